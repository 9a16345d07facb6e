"""A view whose plan has a join without a key warns when it is defined, with the place of a relation of that join."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import deltic
from deltic.cli import main
from deltic.errors import PlanWarning

TABLES = "CREATE TABLE t (k BIGINT, x BIGINT); CREATE TABLE u (k BIGINT, y BIGINT); CREATE TABLE w (k BIGINT, z BIGINT);\n"


def warned(select: str) -> list[str]:
    """The warnings of a view, which is in the second line."""
    with deltic.Session() as session, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        session.sql(f"{TABLES}CREATE MATERIALIZED VIEW v AS {select};", name="views.sql")
    assert all(issubclass(one.category, PlanWarning) for one in caught)
    return [str(one.message) for one in caught]


def warned_at(marked: str, beginning: str) -> str:
    """The one warning of a view, whose place is marked by ^, and which begins so."""
    (warning,) = warned(marked.replace("^", ""))
    column = len("CREATE MATERIALIZED VIEW v AS ") + marked.index("^") + 1
    assert warning.startswith(f"views.sql:2:{column}: view v: {beginning}"), warning
    return warning


@pytest.mark.parametrize(
    "marked",
    [
        "SELECT t.x FROM t, ^u WHERE t.x <> u.y",
        "SELECT t.x FROM t CROSS JOIN ^u",
        "SELECT t.x FROM t LEFT JOIN ^u ON t.x <> u.y",
        "SELECT t.x FROM t JOIN w ON t.k = w.k, ^u",
        "SELECT u.y FROM u, t, ^w WHERE t.k = w.k",
        "SELECT t.x FROM t WHERE NOT EXISTS ^(SELECT 1 FROM u WHERE t.x <> u.y)",
        "SELECT x, ^(SELECT count(*) FROM u WHERE u.y + t.x > 3) AS n FROM t",
        "SELECT x, ^(SELECT y FROM u WHERE u.k <> t.k) AS y FROM t",
        "SELECT x FROM t WHERE x NOT IN ^(SELECT y FROM u WHERE u.k <> t.k)",
        "SELECT x FROM t WHERE x > 1 OR ^x NOT IN (SELECT y FROM u WHERE u.k <> t.k)",
        "SELECT x FROM t WHERE x > 1 OR ^EXISTS (SELECT 1 FROM u WHERE u.y <> t.x)",
        "SELECT x FROM t WHERE ^x > ALL (SELECT y FROM u WHERE u.k <> t.k)",
        "SELECT x, n FROM t, ^LATERAL (SELECT count(*) AS n FROM u WHERE u.y + t.x > 3)",
        "SELECT x, y FROM t, ^LATERAL (SELECT y FROM u WHERE u.y + t.x > 3)",
    ],
)
def test_a_join_without_a_key_is_a_warning_with_its_place(marked: str) -> None:
    warning = warned_at(marked, "no equality joins ")
    assert "each change is compared with all rows of the other side" in warning


@pytest.mark.parametrize(
    "select",
    [
        "SELECT t.x FROM t, u, w WHERE t.k = w.k AND u.k = w.k",
        "SELECT t.x FROM t, u WHERE (t.k = u.k AND t.x > 1) OR (t.k = u.k AND u.y > 1)",
        "SELECT t.x FROM t, (SELECT max(y) AS top FROM u) m WHERE t.x < m.top",
        "SELECT t.x FROM t, (VALUES (1), (2)) AS c(n) WHERE t.x < c.n",
        "SELECT t.x FROM t WHERE EXISTS (SELECT 1 FROM u)",
        "SELECT t.x FROM t WHERE x NOT IN (SELECT y FROM u)",
        "SELECT t.x FROM t WHERE x NOT IN (SELECT y FROM u WHERE u.k = t.k)",
        "SELECT x, (SELECT count(*) FROM u) AS n, (SELECT max(y) FROM u WHERE u.k = t.k AND u.y < t.x) AS m FROM t",
        "SELECT x, y FROM t, LATERAL (SELECT y FROM u WHERE u.k = t.k ORDER BY y LIMIT 2)",
        "SELECT t.x FROM t, u WHERE t.x BETWEEN u.y AND u.k AND t.k <> 3",
        "SELECT t.x FROM t, u WHERE t.x < u.y AND u.k < t.k",
        "SELECT t.x FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE t.x < u.y)",
        "SELECT t.x FROM t, u WHERE t.k = u.k AND t.x < u.y AND t.x <> 2 * u.y",
        "SELECT t.x FROM t, (SELECT max(y) AS top, max(k) AS k FROM u) m WHERE t.x < m.top AND t.k < m.k",
    ],
)
def test_joins_by_keys_and_with_one_row_or_constants_are_no_warning(select: str) -> None:
    assert not warned(select)


@pytest.mark.parametrize(
    "marked",
    [
        "SELECT t.x FROM t, ^u WHERE t.x < u.y AND t.k < u.k",
        "SELECT t.x FROM t LEFT JOIN ^u ON t.x < u.y AND t.x <> u.k",
        "SELECT t.x FROM t WHERE EXISTS ^(SELECT 1 FROM u WHERE t.x < u.y AND t.k < u.k)",
    ],
)
def test_one_comparison_among_several_is_a_warning_with_its_place(marked: str) -> None:
    warning = warned_at(marked, "one comparison looks up rows of ")
    assert "each change is compared with all rows of the other side that satisfy it" in warning


def test_each_definition_warns_of_its_own_views_once() -> None:
    with deltic.Session() as session:
        session.sql(TABLES)
        with pytest.warns(PlanWarning) as caught:
            names = "CREATE VIEW c AS SELECT x, y FROM t, u", *(f"CREATE MATERIALIZED VIEW {v} AS SELECT {v} FROM c" for v in "xy")
            session.sql(";".join(names))
        assert len(caught) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            session.sql("CREATE MATERIALIZED VIEW d AS SELECT x FROM t")


def test_a_warning_that_is_an_error_defines_nothing() -> None:
    with deltic.Session() as session:
        session.sql(TABLES)
        with warnings.catch_warnings(), pytest.raises(PlanWarning):
            warnings.simplefilter("error")
            session.sql("CREATE MATERIALIZED VIEW v AS SELECT x, y FROM t, u")
        assert session.views == ()


def test_commands_print_it_on_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "views.sql"
    script.write_text(f"{TABLES}CREATE MATERIALIZED VIEW v AS SELECT x, y\nFROM t, u;")
    assert main(["explain", str(script)]) == 0
    shown = capsys.readouterr().err
    assert (
        shown.startswith(f"deltic: {script}:3:9: warning: view v: no equality joins u with the other relations") and shown.count("\n") == 1
    )
