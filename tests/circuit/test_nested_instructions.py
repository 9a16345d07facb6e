"""Fields of STRUCTs and elements of ARRAYs in programs of levels: as the operators' steps read them. Damaged bytes are left to these."""

from __future__ import annotations

import datetime
import random
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deltic
from cores import both_cores
from deltic.circuit.programs import nested
from deltic.kernels import instructions as op
from deltic.kernels import nested_words
from deltic.kernels.table import address
from deltic.schema import Type
from deltic.trace.identity import Identity
from deltic.trace.nested import to_bytes
from deltic.trace.strings import StringTable
from parts import slow
from seeds import rotating

NUMBERS: Mapping[str, Sequence[Any]] = {
    "TINYINT": (0, 1, -1, 127, -128),
    "SMALLINT": (0, 7, -(2**15), 2**15 - 1),
    "INT": (0, 5, 30, -(2**31), 2**31 - 1),
    "BIGINT": (0, -1, 1 << 40, -(2**63), 2**63 - 1),
    "BOOLEAN": (True, False),
    "DATE": (datetime.date(1, 1, 1), datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)),
    "TIMESTAMP": (
        datetime.datetime(1969, 12, 31, 23, tzinfo=datetime.UTC),
        datetime.datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=datetime.UTC),
    ),
    "DECIMAL(15,2)": (Decimal("0.00"), Decimal("-0.01"), Decimal("9999999999999.99"), Decimal("-9999999999999.99")),
}
OTHERS: Mapping[str, Sequence[Any]] = {
    "STRING": ("", "a", "a\0b", "\0", "a long text, longer than a prefix"),
    "BINARY": (b"", b"\0\1\2", b"\xff\0"),
    "DECIMAL(30,2)": (Decimal("0.00"), Decimal("-9999999999999999999999999999.99")),
}
PARTS = {f"f{i}": name for i, name in enumerate(("STRING", *NUMBERS, "DECIMAL(30,2)", "BINARY"))}
INNER = "STRUCT<x: STRING, j: INT, k: STRUCT<z: BIGINT, y: ARRAY<SMALLINT>, v: DATE>>"
LAST = "a: ARRAY<INT>, last: BIGINT, m: MAP<INT, INT>, after: INT"
STRUCT = f"STRUCT<{', '.join(f'{name}: {type}' for name, type in PARTS.items())}, n: {INNER}, {LAST}>"
ARRAYS = {f"a{i}": name for i, name in enumerate(NUMBERS)}
TABLE = f"CREATE TABLE t (k BIGINT PRIMARY KEY, s {STRUCT}, {', '.join(f'{name} ARRAY<{type}>' for name, type in ARRAYS.items())});"
READ = [name for name, type in PARTS.items() if type in NUMBERS] + ["n.j", "n.k.z", "n.k.v", "last"]
VIEWS = "\n".join(
    (
        *(f"CREATE MATERIALIZED VIEW v{i} AS SELECT k, s.{path} AS value FROM t;" for i, path in enumerate(READ)),
        f"CREATE MATERIALIZED VIEW fields AS SELECT k, {', '.join(f's.{path} AS c{i}' for i, path in enumerate(READ))} FROM t;",
        "CREATE MATERIALIZED VIEW kept AS SELECT * FROM t WHERE s.f3 < 25;",
        "CREATE MATERIALIZED VIEW some AS SELECT k % 7 AS k, s.f4 <=> 1 AS x, s.f3 i FROM t WHERE s.f3 > 0 AND s.n.j IS NULL OR s.f4 < 0;",
        "CREATE MATERIALIZED VIEW sums AS SELECT s.n.j AS j, sum(s.f3) AS i, count(s.f4) AS l, sum(s.f8) AS p FROM t GROUP BY s.n.j;",
        "CREATE MATERIALIZED VIEW grouped AS SELECT x, count(*) AS n, sum(s.f3) AS total"
        " FROM t LATERAL VIEW explode(a2) AS x WHERE s.f3 < 25 GROUP BY x;",
        *(f"CREATE MATERIALIZED VIEW e_{name} AS SELECT k, x FROM t LATERAL VIEW explode({name}) AS x;" for name in ARRAYS),
        *(f"CREATE MATERIALIZED VIEW o_{name} AS SELECT k, p, x FROM t LATERAL VIEW OUTER posexplode({name}) AS p, x;" for name in ARRAYS),
        "CREATE MATERIALIZED VIEW places AS SELECT k, p, x, s.n.j AS j FROM t LATERAL VIEW posexplode(a3) AS p, x;",
    )
)


def value(type: str, choose: random.Random) -> Any:
    return None if choose.random() < 0.2 else choose.choice({**NUMBERS, **OTHERS}[type])


def array(type: str, choose: random.Random) -> Any:
    return None if choose.random() < 0.1 else [value(type, choose) for _ in range(choose.choice((0, 1, 1, 2, 5)))]


def struct(choose: random.Random) -> Any:
    if choose.random() < 0.1:
        return None
    inner: dict[str, Any] = {"z": value("BIGINT", choose), "y": array("SMALLINT", choose), "v": value("DATE", choose)}
    within = {"x": value("STRING", choose), "j": value("INT", choose), "k": None if choose.random() < 0.2 else inner}
    rest = {"a": array("INT", choose), "last": value("BIGINT", choose), "m": [(1, 2)], "after": 1}
    return {**{n: value(type, choose) for n, type in PARTS.items()}, "n": None if choose.random() < 0.2 else within, **rest}


def row(k: int, choose: random.Random) -> dict[str, Any]:
    return {"k": k, "s": struct(choose), **{name: array(type, choose) for name, type in ARRAYS.items()}}


def at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = None if value is None else value[name]
    return value


def compare(seed: int, ticks: int, shards: int = 1) -> None:
    choose = random.Random(seed)
    with both_cores() as compared, deltic.Session(shards=shards) as session:
        session.sql(TABLE + VIEWS)
        rows: dict[int, dict[str, Any]] = {}
        for _ in range(ticks):
            changed = {k: row(k, choose) for k in (choose.randrange(60) for _ in range(choose.choice((1, 4, 30))))}
            removed = [k for k in rows if k not in changed and choose.random() < 0.1]
            with session.transaction() as tx:
                tx.upsert("t", list(changed.values()))
                tx.delete("t", removed)
            rows = {k: kept for k, kept in {**rows, **changed}.items() if k not in removed}
            for i, path in enumerate(READ):
                assert {r["k"]: r["value"] for r in session.view(f"v{i}").rows()} == {k: at(r["s"], path) for k, r in rows.items()}
        for name in ARRAYS:
            expected = sorted((k, str(x)) for k, r in rows.items() for x in r[name] or ())
            assert sorted((r["k"], str(r["x"])) for r in session.view(f"e_{name}").rows()) == expected
            expected = sorted(
                (k, str(p), str(x)) for k, r in rows.items() for p, x in enumerate(r[name] or (None,)) for p in (p if r[name] else None,)
            )
            assert sorted((r["k"], str(r["p"]), str(r["x"])) for r in session.view(f"o_{name}").rows()) == expected
        assert {"Map", "Chain", "FlatMapOperator"} <= compared.native.keys()
        assert not compared.stepped.keys() & {"Map", "Chain", "FlatMapOperator"}, compared.stepped


@pytest.mark.parametrize("shards", [1, 3])
def test_nested_values_in_programs_equal_those_of_steps(shards: int) -> None:
    compare(1, 6, shards)


@pytest.mark.parametrize("seeds", slow(rotating(20)[::2], rotating(20)[1::2]), ids=len)
def test_many_nested_values_in_programs(seeds: range) -> None:
    for seed in seeds:
        compare(seed, 6)


def test_steps_read_what_instructions_do_not() -> None:
    """Values of other types, fields after a MAP, and elements of STRUCTs."""
    choose = random.Random(3)
    with both_cores() as compared, deltic.Session() as session:
        session.sql(TABLE)
        session.sql("CREATE MATERIALIZED VIEW a AS SELECT k, s.after AS x FROM t; CREATE MATERIALIZED VIEW b AS SELECT k, s.f0 AS x FROM t")
        session.sql(
            "CREATE MATERIALIZED VIEW c AS SELECT k, s.f9 AS x FROM t; CREATE MATERIALIZED VIEW d AS SELECT k, explode(s.a) AS x FROM t"
        )
        rows = [row(k, choose) for k in range(20)]
        session.apply({"t": [{**r, "_weight": 1} for r in rows]})
        for name, field in (("a", "after"), ("b", "f0"), ("c", "f9")):
            assert {r["k"]: r["x"] for r in session.view(name).rows()} == {r["k"]: at(r["s"], field) for r in rows}
        assert len(session.view("d").rows()) == sum(len(at(r["s"], "a") or ()) for r in rows)
        assert compared.stepped["Map"] == 3


def strings_of(*values: bytes) -> tuple[StringTable, np.ndarray, np.ndarray]:
    """(a table with these strings, their ids, the words of a program's state)."""
    table = StringTable(Identity(bytes(16)))
    ids = table.intern(pa.array(values, pa.large_binary()))
    state = np.zeros(op.STATE, np.int64)
    state[op.STRINGS : op.STATE] = table.entries.located
    return table, ids, state


def read_field(value: bytes, type: Type, path: tuple[int, ...]) -> int | None:
    """The first word of a nullable field, or None if the kernel refuses the bytes."""
    kept, ids, state = strings_of(value)
    steps = nested.path_steps(type, path)
    assert steps is not None and kept is not None
    code = np.array([nested_words.FLAGGED, len(steps), *(word for step in steps for word in step)])
    words = np.zeros(2, np.int64)
    targets = np.array([address(words[:1]), address(words[1:])])
    refused = nested_words.read_fields(state, address(ids), 1, code, 0, 1, targets)
    return None if refused else int(words[1])


def test_damaged_fields_are_refused() -> None:
    type, choose = Type.parse(STRUCT), random.Random(7)
    path = (len(PARTS) + 2,)
    for number in (1, -(2**63)):
        found = {**struct(random.Random(1)), "n": {"x": "a\0b", "j": None, "k": None}, "a": [1, None], "last": number}
        whole = to_bytes(pa.array([found], type.arrow), type)[0].as_py()
        assert read_field(whole, type, path) == number
        results = [read_field(whole[:end], type, path) for end in range(len(whole))]
        assert results.count(None) > len(whole) // 2 and set(results) <= {None, number}
        for _ in range(200):
            damaged = bytearray(whole)
            damaged[choose.randrange(len(whole))] = choose.randrange(256)
            read_field(bytes(damaged), type, path)


def test_damaged_elements_are_refused() -> None:
    type = Type.parse("ARRAY<INT>")
    whole = to_bytes(pa.array([[1, None, 3]], type.arrow), type)[0].as_py()
    for value in (whole, *(whole[:end] for end in range(len(whole))), whole + b"\0", bytes([9]) + whole[1:]):
        table, ids, state = strings_of(value)
        begins, counts = np.zeros(1, np.int64), np.zeros(1, np.int64)
        total = nested_words.count_elements(state, address(ids), 1, 4, 0, address(begins), address(counts))
        assert (total == 3) == (value == whole) and (total >= 0) == (value == whole) and table is not None


def test_absent_ids_are_refused() -> None:
    table, ids, state = strings_of(b"\0")
    begins, counts = np.zeros(1, np.int64), np.zeros(1, np.int64)
    absent = np.array([int(ids[0]) ^ 1])
    assert nested_words.count_elements(state, address(ids), 1, 4, 0, address(begins), address(counts)) == 0
    assert nested_words.count_elements(state, address(absent), 1, 4, 0, address(begins), address(counts)) == nested_words.REFUSED
    assert table is not None
