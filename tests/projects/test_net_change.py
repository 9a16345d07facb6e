"""The net change of a view over several epochs, merged into a copy as a MERGE of Delta does it."""

from __future__ import annotations

import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import deltic

pytest.importorskip("pyspark.sql.connect.proto")

VIEWS = {
    "grouped": "SELECT sum(b) AS s, a, count(*) AS n FROM t GROUP BY a",
    "rows": "SELECT c, a FROM t",
    "whole": "SELECT count(*) AS n, max(c) AS c FROM t",
}
FLOATS = [None, 0.0, -0.0, math.nan, 1.5]


def equal(left: Any, right: Any) -> bool:
    """Spark's <=>."""
    if left is None or right is None:
        return left is right
    return bool(left == right) or (left != left and right != right)


def merged(rows: list[dict[str, Any]], change: Any) -> list[dict[str, Any]]:
    """MERGE, whose rows of a frame that match one row of the table would be an error unless all of them delete it."""
    from deltic.projects.net import DELETES  # noqa: PLC0415  needs the extra

    source = change.rows.to_pylist()
    after, matched = [], set()
    for row in rows:
        matches = [
            i for i, one in enumerate(source) if all(equal(row[name], one[name]) for name in change.key) and (change.unique or one[DELETES])
        ]
        assert len(matches) <= 1
        matched |= set(matches)
        if not matches:
            after.append(row)
        elif change.unique and not source[matches[0]][DELETES]:
            after.append(source[matches[0]])
    after += [one for i, one in enumerate(source) if i not in matched and not one[DELETES]]
    return [{name: value for name, value in row.items() if name != DELETES} for row in after]


def listed(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(repr(row) for row in rows)


@pytest.mark.parametrize("name", VIEWS)
def test_merging_net_changes_keeps_a_copy_of_the_view(name: str, tmp_path: Path) -> None:
    from deltic.projects.net import key_of, net_change  # noqa: PLC0415  needs the extra

    draw = random.Random(11)
    with deltic.Session(state=tmp_path / "state", retain=20) as session:
        session.sql(f"CREATE TABLE t (a STRING, b BIGINT, c DOUBLE); CREATE MATERIALIZED VIEW {name} AS {VIEWS[name]}")
        assert key_of(session, name) == (("a",) if name == "grouped" else ())
        copy: list[dict[str, Any]] = session.view(name).rows()
        held: list[dict[str, Any]] = []
        since = session.epoch
        for _ in range(8):
            for _ in range(draw.randrange(1, 4)):
                drawn = draw.randrange(1, 4)
                new = [{"a": draw.choice([None, "x", "y"]), "b": draw.randrange(3), "c": draw.choice(FLOATS)} for _ in range(drawn)]
                gone = [held.pop(draw.randrange(len(held))) for _ in range(min(len(held), draw.randrange(5)))]
                held += new
                session.apply({"t": [{**row, "_weight": 1} for row in new] + [{**row, "_weight": -1} for row in gone]})
            change = net_change(session, name, since)
            assert change is not None
            since = session.epoch
            copy = merged(copy, change)
            assert listed(copy) == listed(session.view(name).rows())
            assert listed(merged(copy, change)) == listed(copy), "a change that is merged twice changes nothing"


@pytest.mark.parametrize("name", VIEWS)
def test_a_change_sets_the_rows_of_any_epoch_that_the_table_may_have(name: str, tmp_path: Path) -> None:
    """A run that ends after a MERGE and before its note leaves the table at an epoch after the one that is noted."""
    from deltic.projects.net import net_change  # noqa: PLC0415  needs the extra

    with deltic.Session(state=tmp_path / "state", retain=20) as session:
        session.sql(f"CREATE TABLE t (a STRING, b BIGINT, c DOUBLE); CREATE MATERIALIZED VIEW {name} AS {VIEWS[name]}")
        session.apply({"t": [{"a": "x", "b": 1, "c": 0.5, "_weight": 1}]})
        since, copies = session.epoch, list[list[dict[str, Any]]]()
        for weight in (1, -1):
            copies.append(session.view(name).rows())
            session.apply({"t": [{"a": "y", "b": 1, "c": 2.0, "_weight": weight}, {"a": "x", "b": 7, "c": 9.0, "_weight": weight}]})
        change = net_change(session, name, since)
        assert change is not None
        assert [listed(merged(copy, change)) for copy in copies] == [listed(session.view(name).rows())] * 2


def test_values_that_a_merge_cannot_compare(tmp_path: Path) -> None:
    from deltic.projects.net import net_change  # noqa: PLC0415  needs the extra

    with deltic.Session(state=tmp_path / "state", retain=20) as session:
        session.sql("CREATE TABLE t (a ARRAY<STRING>); CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
        assert net_change(session, "v", 0) is None
