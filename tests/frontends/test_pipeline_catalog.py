"""Sources and sinks in the catalog: which names, views and folders go together, word for word as in catalog.txt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import deltic
from deltic.errors import DelticError
from goldens import Goldens

SCRIPT = """
CREATE TABLE orders (id BIGINT, amount INT, PRIMARY KEY (id))
    USING parquet OPTIONS (path 'in/orders', op_column '_op', on_error 'dead_letter', dead_letter_path 'letters');
CREATE TABLE people (id BIGINT, name STRING) USING csv OPTIONS (path 's3://b/people/', on_error 'dead_letter', dead_letter_path 'letters');
CREATE TABLE fed (id BIGINT);
CREATE VIEW named AS SELECT o.id, name FROM orders o JOIN people p ON o.id = p.id;
CREATE MATERIALIZED VIEW Totals AS SELECT name, count(*) AS n FROM named GROUP BY name;
CREATE MATERIALIZED VIEW aside AS SELECT id, id AS _epoch FROM fed;
CREATE SINK out FROM totals USING json OPTIONS (path 'out/totals', mode 'changes');
"""
LETTERS = "CREATE TABLE t (a INT) USING csv OPTIONS (path 'x', on_error 'dead_letter', dead_letter_path"
NEW = "USING parquet OPTIONS (path 'new', mode 'changes')"
CSV = "USING csv OPTIONS (path 'new', mode 'snapshot')"
SOURCE = "USING csv OPTIONS (path 'read')"


@pytest.fixture
def session() -> Iterator[deltic.Session]:
    with deltic.Session() as session:
        session.sql(SCRIPT)
        yield session


def catalog(session: deltic.Session) -> object:
    return session.tables, session.views, session.sources, session.sinks


def test_the_catalog_has_sources_and_sinks(session: deltic.Session) -> None:
    assert {name: source.path for name, source in session.sources.items()} == {"orders": "in/orders", "people": "s3://b/people/"}
    assert {name: (sink.view, sink.sink.path) for name, sink in session.sinks.items()} == {"out": ("Totals", "out/totals")}


REFUSED = {
    "unknown view": f"CREATE SINK s FROM total {NEW}",
    "sink of a table": f"CREATE SINK s FROM fed {NEW}",
    "sink of a view that is not materialized": f"CREATE SINK s FROM named {NEW}",
    "sink of a sink": f"CREATE SINK s FROM out {NEW}",
    "sink of a view with a column that sinks add": f"CREATE SINK s FROM aside {NEW}",
    "sink twice": f"CREATE SINK OUT FROM totals {NEW}",
    "sink called as a view": f"CREATE SINK totals FROM totals {NEW}",
    "sink called as a view, if not exists": f"CREATE SINK IF NOT EXISTS totals FROM totals {NEW}",
    "sink called as a table": f"CREATE SINK fed FROM totals {NEW}",
    "table called as a sink": "CREATE TABLE out (a INT)",
    "view called as a sink": "CREATE MATERIALIZED VIEW IF NOT EXISTS out AS SELECT 1 AS a",
    "view that a sink reads is dropped": "DROP VIEW totals",
    "view that a sink reads is no longer materialized": "CREATE OR REPLACE VIEW totals AS SELECT 1 AS one",
    "view that a sink reads gets a column that sinks add": "CREATE OR REPLACE MATERIALIZED VIEW totals AS SELECT 1 AS _epoch",
    "view below the view that a sink reads gets a column that sinks add": (
        "CREATE OR REPLACE VIEW named AS SELECT 1 AS name; CREATE MATERIALIZED VIEW all AS SELECT * FROM named; "
        f"CREATE SINK s FROM all {NEW}; CREATE OR REPLACE VIEW named AS SELECT 1 AS name, 2 AS _epoch"
    ),
    "array from csv": f"CREATE TABLE t (id BIGINT,\n  a ARRAY<INT>) {SOURCE}",
    "variant from csv, in a stream": f"CREATE STREAM t (id BIGINT, `V 1` VARIANT) {SOURCE}",
    "array from csv, in a new column": f"CREATE TABLE t (id BIGINT) {SOURCE}; ALTER TABLE t ADD COLUMN m MAP<STRING, INT>",
    "struct into csv": f"CREATE MATERIALIZED VIEW v AS SELECT named_struct('a', id) AS s FROM fed; CREATE SINK s FROM v {CSV}",
    "array into csv, from a view that is replaced": (
        f"CREATE SINK s FROM totals {CSV}; CREATE OR REPLACE MATERIALIZED VIEW totals AS SELECT array(id) AS ids FROM fed"
    ),
    "array into csv, from a function that is replaced": (
        "CREATE FUNCTION f(x BIGINT) RETURNS BIGINT RETURN x; CREATE MATERIALIZED VIEW v AS SELECT f(id) AS y FROM fed; "
        f"CREATE SINK s FROM v {CSV}; CREATE OR REPLACE FUNCTION f(x BIGINT) RETURNS ARRAY<BIGINT> RETURN array(x)"
    ),
    "view that views and sinks read is dropped": "CREATE VIEW more AS SELECT n FROM totals; DROP VIEW totals",
    "unknown sink is dropped": "DROP SINK ou",
    "view is dropped as a sink": "DROP SINK totals",
    "sink is dropped as a view": "DROP VIEW out",
    "sink is dropped as a table, if it exists": "DROP TABLE IF EXISTS out",
    "two sinks with one folder": "CREATE SINK s FROM aside USING json OPTIONS (path './out//totals/', mode 'snapshot')",
    "sink in a source's folder": "CREATE SINK s FROM totals USING csv OPTIONS (path 's3://b/people', mode 'snapshot')",
    "source in a sink's folder": "CREATE TABLE t (id INT) USING json LOCATION 'out/totals'",
    "two sources with one folder": "CREATE TABLE t (id INT) USING parquet OPTIONS (path 'file://in/orders')",
    "source in the folder of dead letters": "CREATE TABLE t (id INT) USING json OPTIONS (path 'letters')",
    "dead letters in a source's folder": f"{LETTERS} 'in/orders')",
    "dead letters in the source's own folder": f"{LETTERS} 'x/')",
    "sink in the folder of dead letters": "CREATE SINK s FROM totals USING csv OPTIONS (path 'letters', mode 'changes')",
    "all or nothing": f"CREATE TABLE t (id INT) USING json LOCATION 'x'; CREATE SINK s FROM t {NEW}",
}


@pytest.fixture
def goldens(request: pytest.FixtureRequest) -> Goldens:
    return Goldens(Path(__file__).parent / "catalog.txt", bool(request.config.getoption("--update-goldens")))


@pytest.mark.parametrize("name", REFUSED)
def test_incompatible_statements_are_refused(session: deltic.Session, goldens: Goldens, name: str) -> None:
    before = catalog(session)
    with pytest.raises(DelticError) as caught:
        session.sql(REFUSED[name])
    goldens.check(name, f"{type(caught.value).__name__}: {caught.value}")
    assert caught.value.span is not None
    assert caught.value.expected or caught.value.remedy
    assert catalog(session) == before


def test_every_golden_text_is_tested(goldens: Goldens) -> None:
    goldens.check_names(REFUSED)


def test_tables_may_share_a_folder_for_dead_letters_and_names_may_come_back(session: deltic.Session) -> None:
    session.sql("DROP SINK out; DROP SINK IF EXISTS out; DROP VIEW totals; DROP VIEW named; DROP TABLE people")
    assert set(session.sources) == {"orders"}
    assert session.sinks == {}
    session.sql(
        "CREATE MATERIALIZED VIEW out AS SELECT id FROM orders; CREATE SINK s FROM OUT USING csv OPTIONS (path 'o', mode 'snapshot')"
    )
    assert session.sinks["s"].view == "out"


def test_if_not_exists_of_existing_names(session: deltic.Session) -> None:
    before = catalog(session)
    session.sql("CREATE TABLE IF NOT EXISTS orders (id BIGINT) USING json LOCATION 'elsewhere'")
    session.sql(f"CREATE SINK IF NOT EXISTS Out FROM totals {NEW}")
    assert catalog(session) == before


def test_a_view_that_a_sink_reads_may_be_replaced(session: deltic.Session) -> None:
    session.sql("CREATE OR REPLACE MATERIALIZED VIEW totals AS SELECT name FROM named")
    assert session.sinks["out"].view == "totals"


def test_a_table_of_files_can_be_changed_by_hand(session: deltic.Session) -> None:
    with session.transaction() as tx:
        tx.insert("orders", [{"id": 1, "amount": 2}])
        tx.insert("people", [{"id": 1, "name": "Ann"}])
    assert session.view("totals").rows() == [{"name": "Ann", "n": 1}]


def test_explain_names_the_sources_and_sinks_of_what_it_shows(session: deltic.Session) -> None:
    lines = str(session.explain("totals")).splitlines()
    assert lines[:4] == [
        "source orders: parquet in/orders, operations in _op, dead letters in letters",
        "source people: csv s3://b/people/, append only, dead letters in letters",
        "sink out: Totals to json out/totals, changes",
        "",
    ]
    explained = session.explain().json()
    assert explained["sources"]["orders"] == {
        "format": "parquet",
        "path": "in/orders",
        "op_column": "_op",
        "on_error": "dead_letter",
        "dead_letter_path": "letters",
    }
    assert explained["sinks"] == {"out": {"view": "Totals", "format": "json", "path": "out/totals", "mode": "changes"}}
    aside = session.explain("aside")
    assert (aside.json()["sources"], aside.json()["sinks"]) == ({}, {})
    assert str(aside).startswith("view aside")
