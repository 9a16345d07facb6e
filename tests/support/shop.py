"""Test support: a small pipeline over orders (CSV with operations, dead letters) and customers (Parquet, insertions alone)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from deltic.pipeline import Pipeline

ORDERS = """
CREATE TABLE orders (id BIGINT NOT NULL, customer BIGINT NOT NULL, amount INT, PRIMARY KEY (id))
USING csv OPTIONS (path 'in/orders', header 'true', op_column '_op'{letters});
"""
CUSTOMERS = "CREATE TABLE customers (id BIGINT NOT NULL, name STRING) USING parquet OPTIONS (path 'in/customers', append_only 'true');\n"
SPEND = """
CREATE MATERIALIZED VIEW spend AS
SELECT c.name, SUM(o.amount) AS total, COUNT(*) AS orders FROM orders o JOIN customers c ON c.id = o.customer GROUP BY c.name;
"""
TOP = "CREATE MATERIALIZED VIEW top AS SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 2;\n"
SPEND_OUT = "CREATE SINK spend_out FROM spend USING parquet OPTIONS (path 'made/spend', mode 'changes');\n"
TOP_OUT = "CREATE SINK top_out FROM top USING json OPTIONS (path 'made/top', mode 'snapshot');\n"
LETTERS = ", on_error 'dead_letter', dead_letter_path 'made/letters'"
FAILING = ORDERS.format(letters="") + CUSTOMERS + SPEND + TOP + SPEND_OUT + TOP_OUT
SCRIPT = ORDERS.format(letters=LETTERS) + CUSTOMERS + SPEND + TOP + SPEND_OUT + TOP_OUT

Row = tuple[Any, ...]


class Shop:
    """A folder with a pipeline's files in `in`; all output of the pipeline is below `made`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made = folder / "made"
        self.state = self.made / "shop.state"
        for table in ("orders", "customers"):
            (folder / "in" / table).mkdir(parents=True)

    def orders(self, name: str, *lines: str) -> Path:
        """A file of orders: op,id,customer,amount."""
        path = self.folder / "in" / "orders" / name
        path.write_text("\n".join(["_op,id,customer,amount", *lines, ""]))
        return path

    def customers(self, name: str, rows: Sequence[tuple[int, str]]) -> Path:
        """A file of customers."""
        path = self.folder / "in" / "customers" / name
        ids, names = zip(*rows, strict=True)
        pq.write_table(pa.table({"id": pa.array(ids, pa.int64()), "name": pa.array(names)}), path)
        return path

    def fill(self) -> None:
        """Three files of each table: insertions, then changes, then both, with two invalid lines."""
        self.customers("a.parquet", [(1, "ann"), (2, "bob")])
        self.orders("a.csv", "insert,1,1,10", "insert,2,2,20", "insert,3,1,x", "insert,4,2,40")
        self.customers("b.parquet", [(3, "eve")])
        self.orders("b.csv", "update,2,3,25", "delete,4,2,40", "insert,5,3,50")
        self.customers("c.parquet", [(1, "ann")])
        self.orders("c.csv", "insert,6,1,60", "delete,1,,", "insert,,1,7")

    def pipeline(self, script: str = SCRIPT, **options: Any) -> Pipeline:
        """The pipeline, in this process unless `spark` is given, with its state in the folder."""
        return Pipeline(script, name="shop.sql", **{"state": str(self.state), "base": self.folder, "rows_per_tick": 2, **options})

    def run(self, script: str = SCRIPT, **options: Any) -> dict[str, Counter[Row]]:
        """Runs it once; the views' contents."""
        with self.pipeline(script, **options) as pipeline:
            pipeline.run_once()
            return views(pipeline)

    def summed(self, sink: str = "spend") -> Counter[Row]:
        """The sum of the changes that a sink has received."""
        totals: Counter[Row] = Counter()
        for path in self.delivered(sink):
            for *row, weight in _rows(pq.read_table(path).drop_columns(["_epoch"])):
                totals[tuple(row)] += weight
        return Counter({row: weight for row, weight in totals.items() if weight})

    def delivered(self, sink: str = "spend") -> list[Path]:
        """The files of a sink of changes, in order of epoch."""
        return sorted((self.made / sink).glob("changes-*"))

    def snapshot(self, sink: str = "top") -> Counter[Row]:
        """The content of a snapshot sink."""
        (path,) = (self.made / sink).glob("snapshot*")
        return Counter(tuple(json.loads(line).values()) for line in path.read_text().splitlines())

    def letters(self) -> Counter[tuple[str, int]]:
        """File and row of the dead letters."""
        lines = [line for path in (self.made / "letters").glob("letters-*") for line in path.read_text().splitlines()]
        return Counter((Path(letter["file"]).name, letter["row"]) for letter in map(json.loads, lines))


def views(pipeline: Pipeline) -> dict[str, Counter[Row]]:
    """The content of every view."""
    return {view: Counter(_rows(pipeline.session.view(view).to_arrow())) for view in pipeline.session.views}


def _rows(table: pa.Table) -> Iterable[Row]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True) if table.num_rows else ()


EXPECTED = {
    "spend": Counter({("ann", 120, 2): 1, ("eve", 75, 2): 1}),
    "top": Counter({(6, 60): 1, (5, 50): 1}),
}
"""The expected views after `fill`; ann occurs twice."""
EXPECTED_LETTERS = Counter({("a.csv", 3): 1, ("c.csv", 3): 1})
