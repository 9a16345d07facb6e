"""examples/shop_pipeline: every materialized view is incremental."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from deltic.frontends.sql.parse_statement import parse_columns
from deltic.frontends.sql.sql_types import sql_type
from deltic.schema import Field, Schema

pytest.importorskip("pyspark.sql.connect.proto")

SPEC = Path(__file__).parents[2] / "examples" / "shop_pipeline" / "spark-pipeline.yml"
COLUMNS = {
    "lineitem": "l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_quantity DECIMAL(15,2), l_extendedprice DECIMAL(15,2), "
    "l_discount DECIMAL(15,2), l_returnflag STRING, l_linestatus STRING, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE",
    "orders": "o_orderkey BIGINT, o_custkey BIGINT, o_totalprice DECIMAL(15,2), o_orderdate DATE, o_orderpriority STRING",
    "customer": "c_custkey BIGINT, c_name STRING, c_nationkey BIGINT, c_mktsegment STRING",
    "part": "p_partkey BIGINT, p_brand STRING, p_type STRING",
    "supplier": "s_suppkey BIGINT, s_name STRING, s_nationkey BIGINT",
    "nation": "n_nationkey BIGINT, n_name STRING, n_regionkey BIGINT",
    "region": "r_regionkey BIGINT, r_name STRING",
    "web_visits": "customer BIGINT, page STRING, at TIMESTAMP",
    "app_visits": "customer BIGINT, page STRING, at TIMESTAMP",
    "customer_changes": "id BIGINT, segment STRING, deleted BOOLEAN, at BIGINT",
}


class TpchCatalog:
    """The columns of the tables that the project reads."""

    def schema(self, message: Any, names: Any, settings: Mapping[str, str]) -> Schema:
        table = message.read.named_table.unparsed_identifier.replace("`", "").rpartition(".")[2]
        parts = parse_columns(COLUMNS[table], table)
        return Schema(tuple(Field(part.name.text, sql_type(part.type)) for part in parts if part.name is not None))

    def settings(self) -> Mapping[str, str]:
        return {}


def test_every_view_of_the_shop_is_incremental() -> None:
    from deltic.frontends.dataframes import Frames  # noqa: PLC0415  needs the extra
    from deltic.projects import load, plan_project  # noqa: PLC0415  needs the extra

    plan = plan_project(load(SPEC, Frames(lambda: None)), TpchCatalog(), offline=True)  # type: ignore[arg-type, return-value]
    refusals = {key: str(one.refusal) for key, one in plan.datasets.items() if one.refusal is not None}
    assert not refusals
    kinds = Counter((one.dataset.kind, one.refresh, one.dataset.place.file.rpartition(".")[2]) for one in plan.datasets.values())
    assert kinds == {
        ("materialized view", "incremental", "py"): 8,
        ("materialized view", "incremental", "sql"): 6,
        ("streaming table", "appended", "py"): 3,
        ("streaming table", "incremental", "py"): 1,  # of AUTO CDC
        ("temporary view", "inlined", "py"): 1,
        ("temporary view", "inlined", "sql"): 1,
        ("sink", "written", "py"): 1,
    }
    assert len(plan.datasets["visits"].flows) == 2
