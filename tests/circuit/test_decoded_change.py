"""A column that several operators read of one change is decoded once, and each of them sees its own rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import deltic
from deltic.circuit import decoded_change
from deltic.circuit.operators import selection_vector

VIEWS = 12


def program(session: deltic.Session) -> None:
    session.sql("CREATE TABLE t (id BIGINT NOT NULL, d DOUBLE, name STRING, PRIMARY KEY (id))")
    for i in range(VIEWS):
        session.sql(f"CREATE MATERIALIZED VIEW v{i} AS SELECT id, d FROM t WHERE d > {i} AND upper(name) <> 'N{i}'")
        session.sql(f"CREATE MATERIALIZED VIEW s{i} AS SELECT id FROM t WHERE name RLIKE '{i}$'")


def rows(start: int) -> list[dict[str, Any]]:
    return [{"id": start + i, "d": float(i) if i % 5 else None, "name": f"n{i % 7}" if i % 4 else None} for i in range(20)]


def by_id(session: deltic.Session, view: str) -> list[dict[str, Any]]:
    return sorted(session.view(view).rows(), key=lambda row: row["id"])


def test_a_field_of_a_change_is_decoded_once_for_all_views(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: Counter[str] = Counter()
    decode = decoded_change.decode

    def counted(words: Any, field: Any, strings: Any) -> Any:
        decoded[field.name] += 1
        return decode(words, field, strings)

    with deltic.Session(shards=1) as session:
        program(session)
        monkeypatch.setattr(decoded_change, "decode", counted)
        monkeypatch.setattr(selection_vector, "decode", counted)
        for start in (0, 100):
            decoded.clear()
            with session.transaction() as tx:
                tx.insert("t", rows(start))
            # name: row by row for the first kind of view, and its different values for the second
            assert decoded == {"d": 1, "name": 2}


@pytest.mark.parametrize("shards", [1, 2])
def test_views_that_share_a_change_agree_with_python(shards: int) -> None:
    with deltic.Session(shards=shards) as session:
        program(session)
        with session.transaction() as tx:
            tx.insert("t", rows(0))
        with session.transaction() as tx:
            tx.insert("t", rows(100))
            tx.delete("t", [{"id": 6}])
        content = [row for row in (*rows(0), *rows(100)) if row["id"] != 6]
        for i in range(VIEWS):
            kept = [r for r in content if r["d"] is not None and r["name"] is not None and r["d"] > i and r["name"].upper() != f"N{i}"]
            assert by_id(session, f"v{i}") == [{"id": r["id"], "d": r["d"]} for r in kept]
            named = [{"id": r["id"]} for r in content if r["name"] is not None and r["name"].endswith(str(i))]
            assert by_id(session, f"s{i}") == named
