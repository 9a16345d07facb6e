"""Arrangements are shared: by a table and the joins over it, by joins of any shape, and by views, in any order of definition."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import permutations
from pathlib import Path

import pytest

import deltic
from deltic.circuit.copies import Copy, copies
from deltic.cli import main
from deltic.lowering import lower
from deltic.optimizer import optimize
from ordered_programs import range_case, window_case
from parts import slow
from programs import Case, case, mixed
from seeds import rotating

TABLES = "CREATE TABLE e (src BIGINT NOT NULL, dst BIGINT NOT NULL); CREATE TABLE p (id BIGINT NOT NULL PRIMARY KEY, name STRING);"
VIEWS = {
    "triangles": """SELECT x.src AS a, x.dst AS b, y.dst AS c FROM e x JOIN e y ON x.dst = y.src
        JOIN e z ON y.dst = z.src AND z.dst = x.src""",
    "squares": """SELECT x.src AS a, y.src AS b, z.src AS c, w.src AS d FROM e x JOIN e y ON x.dst = y.src JOIN e z ON y.dst = z.src
        JOIN e w ON z.dst = w.src AND w.dst = x.src""",
    "hops": "SELECT x.src AS a, y.dst AS b FROM e x JOIN e y ON x.dst = y.src",
    "named": "SELECT e.src AS a, p.name AS b FROM e JOIN p ON e.dst = p.id",
}
ORDERS = {("src", "dst"), ("dst", "src")}
Edges = Counter[tuple[int, int]]


def script(views: dict[str, str] = VIEWS) -> str:
    return TABLES + ";".join(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in views.items())


@contextmanager
def opened(folder: Path, shards: int, text: str) -> Iterator[deltic.Session]:
    with deltic.Session(state=str(folder), shards=shards) as session:
        session.program(text)
        yield session


def held(session: deltic.Session, table: str = "e") -> list[Copy]:
    return [copy for copy in copies(session._definitions.circuit) if copy.table == table]


def expected(edges: Edges, names: dict[int, str]) -> dict[str, Counter[tuple[object, ...]]]:
    """By nested loops."""
    counts: dict[str, Counter[tuple[object, ...]]] = {view: Counter() for view in VIEWS}
    out: dict[int, Edges] = {}
    for (a, b), n in edges.items():
        out.setdefault(a, Counter())[a, b] = n
    for (a, b), n in edges.items():
        if b in names:
            counts["named"][a, names[b]] += n
        for (_, c), m in out.get(b, Counter()).items():
            counts["hops"][a, c] += n * m
            counts["triangles"][a, b, c] += n * m * edges[c, a]
            for (_, d), k in out.get(c, Counter()).items():
                counts["squares"][a, b, c, d] += n * m * k * edges[d, a]
    return {view: +rows for view, rows in counts.items()}


def content(session: deltic.Session) -> dict[str, Counter[tuple[object, ...]]]:
    return {view: Counter(tuple(row.values()) for row in session.view(view).rows()) for view in session.views}


def change(session: deltic.Session, edges: Edges, names: dict[int, str], rng: random.Random) -> None:
    """Inserts edges, some of them twice, and deletes some."""
    new = [(rng.randrange(8), rng.randrange(8)) for _ in range(12)]
    removed = rng.sample(sorted(edges.elements()), min(6, edges.total()))
    person = rng.randrange(8)
    with session.transaction() as tx:
        tx.insert("e", [{"src": a, "dst": b} for a, b in new])
        tx.delete("e", [{"src": a, "dst": b} for a, b in removed])
        tx.upsert("p", [{"id": person, "name": f"p{len(new)}"}])
    edges.update(new)
    edges.subtract(removed)
    names[person] = f"p{len(new)}"


@pytest.mark.parametrize("shards", [1, 3])
def test_a_table_is_held_in_two_orders_by_joins_of_all_shapes(tmp_path: Path, shards: int) -> None:
    edges, names, rng = Counter[tuple[int, int]](), dict[int, str](), random.Random(shards)
    with opened(tmp_path, shards, script()) as session:
        for _ in range(6):
            change(session, edges, names, rng)
            assert content(session) == expected(edges, names)
        assert {copy.columns for copy in held(session)} == ORDERS
        # Its own; by dst; on several shards also by src, and two for each cube.
        assert len(held(session)) == (2 if shards == 1 else 7)
        assert len(session._definitions.circuit.arrangements) == len(held(session)) + 1 + len(VIEWS)
        assert sum(rows for rows, _ in session._runtime.statistics().values()) > 0


def test_resharding_keeps_shared_arrangements(tmp_path: Path) -> None:
    edges, names, rng = Counter[tuple[int, int]](), dict[int, str](), random.Random(5)
    for shards in (1, 3, 1, 2, 4, 1):
        with opened(tmp_path, shards, script()) as session:
            assert content(session) == expected(edges, names)
            assert session.last_tick is None or not session.last_tick.changes or not edges
            for _ in range(2):
                change(session, edges, names, rng)
                assert content(session) == expected(edges, names)
            assert {copy.columns for copy in held(session)} == ORDERS


@pytest.mark.parametrize("shards", [1, 3])
def test_sharing_does_not_depend_on_the_order_of_views(tmp_path: Path, shards: int) -> None:
    arrangements = set()
    for i, order in enumerate(permutations(VIEWS)):
        with opened(tmp_path / str(i), shards, script({name: VIEWS[name] for name in order})) as session:
            arrangements.add(frozenset(session._definitions.circuit.arrangements))
    assert len(arrangements) == 1


@pytest.mark.parametrize("shards", [1, 3])
def test_dropping_a_view_keeps_the_state_of_the_others(tmp_path: Path, shards: int) -> None:
    with opened(tmp_path, shards, script()) as session:
        change(session, Counter(), {}, random.Random(1))
    for left_out in VIEWS:
        with opened(tmp_path, shards, script({name: query for name, query in VIEWS.items() if name != left_out})) as session:
            assert session.last_tick is None or not session.last_tick.counters
        with opened(tmp_path, shards, script()) as session:
            change(session, Counter(), {}, random.Random(2))


def test_equal_cubes_are_shared_by_views(tmp_path: Path) -> None:
    both = {"triangles": VIEWS["triangles"], "counted": f"SELECT a, count(*) AS n FROM ({VIEWS['triangles']}) GROUP BY a"}
    with opened(tmp_path / "one", 3, script({"triangles": VIEWS["triangles"]})) as session:
        one = {copy.arrangement for copy in held(session)}
    with opened(tmp_path / "two", 3, script(both)) as session:
        assert {copy.arrangement for copy in held(session)} == one


KEYED = "CREATE TABLE m (c STRING, b BIGINT NOT NULL, a BIGINT NOT NULL, PRIMARY KEY (a, b));"


@pytest.mark.parametrize(
    ("query", "more"),
    [
        ("SELECT x.b, y.b AS d FROM m x JOIN m y ON x.a = y.a", 0),  # by the leading column of the key
        ("SELECT x.c, y.c AS d FROM m x JOIN m y ON x.b = y.b AND x.a = y.a", 0),  # by the key, in whichever order
        ("SELECT x.c, y.c AS d FROM m x JOIN m y ON x.a = y.a AND x.b = y.b", 0),
        ("SELECT x.c, y.c AS d FROM m x JOIN m y ON x.a = y.a", 1),  # equal c of one a are one row
        ("SELECT count(*) AS n FROM m x JOIN m y ON x.a = y.a", 1),
        ("SELECT x.b, y.c AS d FROM m x JOIN m y ON x.b = y.b", 2),
        ("SELECT x.c FROM m x WHERE EXISTS (SELECT 1 FROM m y WHERE x.a = y.a)", 2),
        ("SELECT DISTINCT a, b, c FROM m", 1),  # the view itself
    ],
)
def test_a_tables_own_arrangement_serves_joins_by_its_leading_columns(query: str, more: int) -> None:
    with deltic.Session() as session:
        session.sql(f"{KEYED} CREATE MATERIALIZED VIEW v AS {query}")
        rows = [{"a": i % 3, "b": i, "c": f"c{i % 2}"} for i in range(12)]
        with session.transaction() as tx:
            tx.insert("m", rows)
        with session.transaction() as tx:
            tx.delete("m", [{"a": i % 3, "b": i} for i in range(0, 12, 5)])
        assert len(held(session, "m")) == 1 + more
        assert len(session.view("v").rows()) == _count(query, [row for i, row in enumerate(rows) if i % 5])


def _count(query: str, rows: list[dict[str, object]]) -> int:
    """The number of rows of the query."""
    pairs = [(x, y) for x in rows for y in rows]
    if "count(*)" in query:
        return 1
    if "EXISTS" in query or "DISTINCT" in query:
        return len(rows)
    if "AND" in query:
        return len(rows)
    column = "a" if "x.a" in query else "b"
    return sum(x[column] == y[column] for x, y in pairs)


def test_a_nullable_key_does_not_match_nulls() -> None:
    with deltic.Session() as session:
        session.sql(
            "CREATE TABLE n (a BIGINT, b BIGINT); CREATE MATERIALIZED VIEW v AS SELECT x.b, y.b AS c FROM n x JOIN n y ON x.a = y.a"
        )
        with session.transaction() as tx:
            tx.insert("n", [{"a": None, "b": 1}, {"a": None, "b": 2}, {"a": 1, "b": 3}])
        assert session.view("v").rows() == [{"b": 3, "c": 3}]


def test_arrangements_are_shared_regardless_of_names() -> None:
    with deltic.Session() as session:
        session.sql(
            """CREATE TABLE e (src BIGINT, dst BIGINT, w DOUBLE);
            CREATE MATERIALIZED VIEW one AS SELECT x.src, y.dst FROM e x JOIN e y ON x.dst = y.src;
            CREATE MATERIALIZED VIEW other AS SELECT r.a, s.b FROM (SELECT src AS a, dst AS m FROM e) r
                JOIN (SELECT src AS k, dst AS b FROM e) s ON r.m = s.k"""
        )
        assert len(held(session)) == 3
        assert session.view("other").to_arrow().schema.names == ["a", "b"]


def test_copies_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with opened(tmp_path, 1, script()) as session:
        with session.transaction() as tx:
            tx.insert("e", [{"src": 1, "dst": 2}, {"src": 2, "dst": 3}])
        explanation = session.explain("hops")
    assert [(copy.table, copy.columns, copy.rows) for copy in explanation.copies] == [("e", ("src", "dst"), 2), ("e", ("dst", "src"), 2)]
    assert "rows of e are held in 2 arrangements\n  table-" in str(explanation)
    assert [copy["columns"] for copy in explanation.json()["copies"]] == [("src", "dst"), ("dst", "src")]
    assert main(["state", "show", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "copy of e (dst, src)" in shown and "rows of e are held in 2 arrangements" in shown


NULLABLE = {
    **{name: VIEWS[name] for name in ("triangles", "squares", "hops")},
    "counted": f"SELECT count(*) AS a, count(DISTINCT t.a) AS b FROM ({VIEWS['triangles']}) t",
    "siblings": "SELECT x.dst AS a, y.dst AS b FROM e x JOIN e y ON x.src = y.src",
    "both": "SELECT x.src AS a, y.src AS b FROM e x JOIN e y ON x.src = y.src AND x.dst = y.dst",
    "ends": "SELECT x.src AS a, x.dst AS b FROM e x WHERE NOT EXISTS (SELECT * FROM e y WHERE y.src = x.dst)",
    "inner": "SELECT x.src AS a, x.dst AS b FROM e x WHERE EXISTS (SELECT * FROM e y WHERE y.src = x.dst)",
    "kept": "SELECT x.src AS a, y.dst AS b FROM e x LEFT JOIN e y ON x.dst = y.src",
    "sums": "SELECT x.src AS a, count(*) AS b FROM e x JOIN e y ON x.dst = y.src GROUP BY x.src",
    "reach": """WITH RECURSIVE r AS (SELECT src AS a, dst AS b FROM e UNION SELECT r.a, e.dst AS b FROM r JOIN e ON r.b = e.src)
        SELECT a, b FROM r""",
}
Nullable = Counter[tuple[int | None, int | None]]


def nullable_script(kind: str, columns: tuple[str, str], views: dict[str, str] = NULLABLE) -> str:
    table = f"CREATE TABLE e (src {kind} {columns[0]}, dst {kind} {columns[1]});"
    return table + ";".join(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in views.items())


def with_nulls(edges: Nullable) -> dict[str, Counter[tuple[object, ...]]]:
    """By nested loops, in which NULL equals nothing."""
    rows = sorted(edges.elements(), key=repr)
    follows = {row: [next for next in rows if row[1] is not None and next[0] == row[1]] for row in set(rows)}
    counts: dict[str, Counter[tuple[object, ...]]] = {view: Counter() for view in NULLABLE}
    for a, b in rows:
        for _, c in follows[a, b]:
            counts["hops"][a, c] += 1
            counts["sums"][a,] += 1
            for _, d in follows[b, c]:
                counts["triangles"][a, b, c] += d is not None and d == a
                counts["squares"].update((a, b, c, d) for _, last in follows[c, d] if last is not None and last == a)
        counts["siblings"].update((b, other) for same, other in rows if a is not None and same == a)
        counts["both"].update((a, a) for other in rows if None not in (a, b) and other == (a, b))
        counts["inner" if follows[a, b] else "ends"][a, b] += 1
        counts["kept"].update((a, c) for _, c in follows[a, b] or [(None, None)])
    counts["sums"] = Counter((a, n) for (a,), n in counts["sums"].items())
    triangles = +counts["triangles"]
    counts["counted"] = Counter([(triangles.total(), len({a for a, _, _ in triangles}))])
    reach = set(rows)
    while more := {(a, c) for a, b in reach for d, c in rows if b is not None and d == b} - reach:
        reach |= more
    counts["reach"] = Counter(reach)
    return {view: +rows for view, rows in counts.items()}


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("kind", ["BIGINT", "INT"])
@pytest.mark.parametrize("columns", [("", ""), ("NOT NULL", ""), ("", "NOT NULL")])
def test_nullable_columns_are_held_as_often_as_others(kind: str, shards: int, columns: tuple[str, str]) -> None:
    """On several shards the table's own arrangement, which has rows with NULLs, serves no join by nullable keys; in scopes neither."""
    listed = []
    views = {name: query for name, query in NULLABLE.items() if name not in ("reach", "both" if shards > 1 else "")}
    for each in (("NOT NULL", "NOT NULL"), columns):
        with deltic.Session(shards=shards) as session:
            session.program(nullable_script(kind, each, views))
            listed.append(Counter((copy.table, copy.columns) for copy in held(session)))
    assert listed[0] == listed[1] and listed[0].total() < 10


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        ("BIGINT", ("", "")),
        ("BIGINT", ("NOT NULL", "")),
        ("BIGINT", ("", "NOT NULL")),
        ("STRING", ("", "")),
        ("INT", ("", "NOT NULL")),
    ],
)
def test_nulls_match_nothing_in_shared_arrangements(tmp_path: Path, kind: str, columns: tuple[str, str]) -> None:
    edges, rng = Nullable(), random.Random(f"{kind} {columns}")

    def value(constraint: str) -> int | None:
        return rng.randrange(5) if constraint or rng.random() < 0.6 else None

    def written(row: tuple[int | None, int | None]) -> dict[str, object]:
        values = [str(part) if kind == "STRING" and part is not None else part for part in row]
        return dict(zip(("src", "dst"), values, strict=True))

    def read(rows: Counter[tuple[object, ...]]) -> Counter[tuple[object, ...]]:
        return Counter({tuple(int(v) if isinstance(v, str) else v for v in row): n for row, n in rows.items()})

    for shards in (1, 3, 1):
        with opened(tmp_path, shards, nullable_script(kind, columns)) as session:
            assert session.last_tick is None or not session.last_tick.changes or not edges
            for _ in range(2):
                new = [(value(columns[0]), value(columns[1])) for _ in range(6)]
                removed = rng.sample(sorted(edges.elements(), key=repr), min(4, edges.total()))
                with session.transaction() as tx:
                    tx.insert("e", [written(row) for row in new])
                    tx.delete("e", [written(row) for row in removed])
                edges.update(new)
                edges.subtract(removed)
                assert {view: read(rows) for view, rows in content(session).items()} == with_nulls(edges)


def test_copies_of_a_key_are_the_key_on_any_number_of_shards() -> None:
    """On one shard a join reads the table, where they are one column; on several its own arrangement, which stores them once."""
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (a BIGINT, b BIGINT); CREATE TABLE u (a BIGINT)")
        copied = "(SELECT b, a AS p, a AS q, a AS r FROM t) c"
        absent = "NOT EXISTS (SELECT 1 FROM u WHERE u.a = c.q)"
        session.sql(f"CREATE MATERIALIZED VIEW anti AS SELECT *, q + 1 AS s FROM {copied} WHERE {absent}")
        session.sql(f"CREATE MATERIALIZED VIEW both AS SELECT c.*, u.a AS other FROM {copied} JOIN u ON u.a = c.q")
        catalog = session._definitions.catalog
        plans = {name: optimize(plan) for name, plan in catalog.plans().items()}
        on_one, on_three = (lower(plans, catalog.tables, shards) for shards in (1, 3))
    assert on_one.views == on_three.views
    assert max(spec.columns for name, spec in on_three.arrangements.items() if name.startswith("trace")) == 3  # a, and b with its flag


@pytest.mark.parametrize("count", [12, *slow(400)])
@pytest.mark.parametrize("draw", [case, mixed, range_case, window_case])
def test_a_view_is_one_arrangement_on_any_number_of_shards(draw: Callable[[int], Case], count: int) -> None:
    """Otherwise a change of the number of shards would define it anew, and show all of its rows as inserted."""
    for seed in rotating(count) if count > 12 else range(12_000, 12_000 + count):
        program = draw(seed)
        plans = {name: optimize(plan) for name, plan in program.views.items()}
        on_one, on_three = (lower(plans, program.tables, shards).views for shards in (1, 3))
        assert on_one == on_three, f"{program}"
