"""Groups that are joined with few rows: where they are restricted to these, that the answers stay, and what a tick then touches."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import duckdb
import pytest

import deltic
from deltic import optimizer
from deltic.errors import DivisionByZero
from deltic.expr.functions import resolve
from deltic.expr.nodes import Literal
from deltic.frontends.sql import bind_query
from deltic.optimizer import optimize
from deltic.optimizer.restrict_groups import restrict_groups
from deltic.optimizer.row_estimates import UNKNOWN, Sizes, TableSize
from deltic.plan.columns import agrees, reference
from deltic.plan.evaluate import evaluate
from deltic.plan.nodes import Aggregate, AggregateCall, Filter, FlatMap, Join, JoinKind, Plan, Project, Table
from deltic.plan.relation import Relation
from deltic.plan.show import show
from deltic.plan.walk import nodes
from deltic.schema import BIGINT, DOUBLE, STRING, Type
from group_queries import Catalog, random_contents, random_group_query, schemas
from parts import slow
from seeds import rotating

SUMS = "(SELECT k, sum(v) AS n FROM items GROUP BY k) AS q"
BY_TWO = "(SELECT k, g, sum(v) AS n FROM items GROUP BY k, g) AS q"
TOTALS = "WITH u AS (SELECT k, g, sum(v) AS n FROM items GROUP BY k, g)"
OF_PART = "FROM items AS i, parts AS p WHERE i.k = p.id AND p.f = 1"
AVERAGE = "(SELECT avg(j.v) FROM items AS j WHERE j.k = i.k)"

RESTRICTED = {
    "the average of the item's part": f"SELECT i.k, i.v, i.w {OF_PART} AND i.v <> {AVERAGE}",
    "in SELECT": f"SELECT i.k, i.v, {AVERAGE} AS a {OF_PART}",
    "by a key that another relation shares": "SELECT i.v, q.n FROM items AS i, parts AS p, more AS m, "
    f"{SUMS} WHERE q.k = m.id AND m.id = i.k AND i.k = p.id AND p.f = 1",
    "the optional side": f"SELECT p.id, i.v, q.n FROM parts AS p JOIN items AS i ON i.k = p.id "
    f"LEFT JOIN {SUMS} ON q.k = p.id WHERE p.f = 1",
    "HAVING in EXISTS": f"SELECT p.id, i.v {OF_PART} AND EXISTS (SELECT 1 FROM items j WHERE j.k = p.id GROUP BY j.k HAVING max(j.v) > 1)",
    "HAVING in NOT EXISTS": f"SELECT p.id, i.v {OF_PART} AND NOT EXISTS (SELECT 1 FROM {SUMS} WHERE q.k = p.id AND q.n > 1)",
    "LATERAL": "SELECT i.v, q.n FROM items AS i JOIN parts AS p ON i.k = p.id, "
    "LATERAL (SELECT sum(j.v) AS n FROM items AS j WHERE j.k = p.id) AS q WHERE p.f = 1",
    "by one of two keys": f"SELECT i.g, i.v, q.n FROM items AS i, parts AS p, {BY_TWO} WHERE i.k = p.id AND q.k = p.id AND p.f = 1",
    "groups of groups": f"{TOTALS} SELECT t.k, t.n FROM u AS t, parts AS p WHERE t.k = p.id AND p.f = 1 "
    "AND t.n <> (SELECT avg(n) FROM u WHERE u.k = t.k)",
    "of a filtered table": "WITH i AS (SELECT * FROM items WHERE w > 1) SELECT i.v, q.n FROM i, parts AS p, "
    "(SELECT k, sum(v) AS n FROM i GROUP BY k) AS q WHERE i.k = p.id AND q.k = p.id AND p.f = 1",
}
AS_THEY_ARE = {
    "all parts": f"SELECT i.k, i.v FROM items AS i, parts AS p WHERE i.k = p.id AND i.v <> {AVERAGE}",
    "most parts": f"SELECT i.k, i.v FROM items AS i, parts AS p WHERE i.k = p.id AND p.f <> 1 AND i.v <> {AVERAGE}",
    "items are stored by no key": f"SELECT p.id, q.n FROM parts AS p JOIN {SUMS} ON q.k = p.id WHERE p.f = 1",
    "items are stored by another key": f"SELECT p.id, q.n FROM parts AS p JOIN {SUMS} ON q.k = p.id "
    "JOIN items AS i ON i.g = p.h WHERE p.f = 1",
    "items are stored without a column": f"SELECT p.id, q.n, i.w FROM parts AS p JOIN {SUMS} ON q.k = p.id "
    "JOIN items AS i ON i.k = p.id WHERE p.f = 1",
    "items are stored by key and value": f"SELECT i.k, i.v {OF_PART} AND i.v < {AVERAGE}",
    "items are added up before they are stored": f"SELECT p.h, q.n, sum(i.v) AS s FROM parts AS p JOIN {SUMS} ON q.k = p.id "
    "JOIN items AS i ON i.k = p.id WHERE p.f = 1 GROUP BY p.h, q.n",
    "the groups are read twice": "WITH q AS (SELECT k, sum(v) AS n FROM items GROUP BY k) SELECT i.v, q.n, r.n AS o "
    "FROM items AS i, parts AS p, q, q AS r WHERE i.k = p.id AND q.k = p.id AND p.f = 1 AND r.n = q.n",
    "all groups": f"SELECT i.v, p.id, q.n FROM items AS i JOIN (SELECT * FROM parts WHERE f = 1) AS p ON i.k = p.id "
    f"FULL JOIN {SUMS} ON q.k = p.id",
    "the preserved side": f"SELECT i.v, q.k, q.n FROM {SUMS} LEFT JOIN (SELECT i.k, i.v {OF_PART}) AS i ON i.k = q.k",
    "no key": f"SELECT i.k, i.v {OF_PART} AND i.v <> (SELECT max(j.v) FROM items AS j)",
    "a computed key": "SELECT i.v, q.n FROM items AS i, parts AS p, (SELECT k + 1 AS k, sum(v) AS n FROM items GROUP BY k + 1) AS q "
    "WHERE i.k = p.id AND q.k = p.id AND p.f = 1",
    "by a value of the group": "SELECT i.v, q.k FROM items AS i, parts AS p, (SELECT g AS k, max(k) AS n FROM items GROUP BY g) AS q "
    "WHERE i.k = p.id AND q.n = p.id AND p.f = 1",
}


def plan_of(query: str, *, key: Type = BIGINT, numbered: bool = False, sizes: Sizes = UNKNOWN) -> Plan:
    return optimize(bind_query(query, "test", Catalog(schemas(key, numbered=numbered))), sizes=sizes)


def restrictions(plan: Plan) -> list[Join]:
    """The semi-joins that groupings read."""
    below = {node: None for one in nodes(plan) if isinstance(one, Aggregate) for node in nodes(one.input)}
    return [node for node in below if isinstance(node, Join) and node.kind == "semi"]


@pytest.mark.parametrize("name", RESTRICTED)
def test_groups_are_restricted(name: str) -> None:
    plan = plan_of(RESTRICTED[name])
    assert len(restrictions(plan)) == 1, show(plan)


@pytest.mark.parametrize("name", AS_THEY_ARE)
def test_groups_stay_as_they_are(name: str) -> None:
    plan = plan_of(AS_THEY_ARE[name])
    assert any(isinstance(node, Aggregate) for node in nodes(plan)) and not restrictions(plan), show(plan)


def test_a_table_that_is_sorted_by_the_key_needs_no_other_join() -> None:
    query = AS_THEY_ARE["items are stored by no key"]
    (semi,) = restrictions(plan_of(query, numbered=True))
    assert show(semi.left) == "Project k#0, v#2, n#4\n  Table items (k, g, v, w, n)"
    assert not restrictions(plan_of(query, key=DOUBLE, numbered=True))  # which would not be the table's own rows: -0.0 is no key
    assert not restrictions(plan_of(query.replace("GROUP BY k", "GROUP BY g").replace("SELECT k", "SELECT g AS k"), numbered=True))


@pytest.mark.parametrize(("parts", "keys", "is_restricted"), [(10, 1000, True), (800, 1000, False)])
def test_a_small_table_restricts_without_a_filter(parts: int, keys: int, is_restricted: bool) -> None:
    sizes = Sizes((("items", TableSize(100_000, (("k", keys),))), ("parts", TableSize(parts, (("id", parts),)))))
    assert (
        bool(restrictions(plan_of(f"SELECT i.v, {AVERAGE} AS a FROM items AS i, parts AS p WHERE i.k = p.id", sizes=sizes)))
        == is_restricted
    )


def test_the_smallest_relation_restricts() -> None:
    """Not the join of the parts with the items, which has their keys, too."""
    (semi,) = restrictions(plan_of(RESTRICTED["the average of the item's part"]))
    assert [node.table.name for node in nodes(semi.right) if isinstance(node, Table)] == ["parts"]


def joined(kind: JoinKind, *, negative: bool = False) -> Plan:
    """Items joined with the sums of some parts."""
    tables = schemas(BIGINT)
    items, parts = Table(tables["items"]), Table(tables["parts"])
    few: Plan = Filter(parts, resolve("equal", [reference(parts.schema, 1), Literal(1, BIGINT)]))
    if negative:
        some = FlatMap(few, "repeat_row", (reference(few.schema, 2),), ())
        few = Project(some, tuple((field.name, reference(some.schema, i)) for i, field in enumerate(few.schema)))
    k, v, id = reference(items.schema, 0), reference(items.schema, 2), reference(few.schema, 0)
    sums = Aggregate(items, (("k", k),), (("n", AggregateCall("sum", (v,), BIGINT, True)),))
    pairs = Join(few, sums, kind, ((id, reference(sums.schema, 0)),))
    return Join(items, pairs, "inner", ((k, reference(pairs.schema, 0)),))


@pytest.mark.parametrize("kind", ["inner", "left", "semi", "anti"])
def test_the_kinds_of_joins_that_restrict_their_right_side(kind: JoinKind) -> None:
    assert len(restrictions(restrict_groups(joined(kind)))) == 1


@pytest.mark.parametrize("kind", ["right", "full"])
def test_the_kinds_of_joins_that_do_not(kind: JoinKind) -> None:
    assert restrict_groups(joined(kind)) == joined(kind)


def test_rows_of_negative_weight_do_not_restrict() -> None:
    """A key whose weights add up to less than 0 has matches, which a semi-join drops."""
    few = Sizes((("parts", TableSize(10)),))
    assert restrict_groups(joined("inner"), few) != joined("inner")
    assert restrict_groups(joined("inner", negative=True), few) == joined("inner", negative=True)


@pytest.mark.parametrize(("relation", "is_restricted"), [("r", False), ("parts AS r", True)])
def test_a_recursive_relation_does_not_restrict(relation: str, is_restricted: bool) -> None:
    """The groups would depend on the recursion, and have to be monotone."""
    query = f"""WITH RECURSIVE r AS (SELECT id, f, h FROM parts UNION
        SELECT s.n AS id, s.f, s.h FROM (SELECT q.n, r.f, r.h FROM {relation}, {SUMS}
            WHERE q.k = r.id AND r.f = 1 AND r.h = 2 AND r.h = r.id) AS s)
        SELECT id, h FROM r"""
    assert bool(restrictions(plan_of(query, numbered=True))) == is_restricted


@pytest.mark.parametrize(("other", "is_restricted"), [("x AS y ON y.k > p.h", False), ("more AS y ON y.id > p.h", True)])
def test_a_join_that_has_other_readers_is_not_copied(other: str, is_restricted: bool) -> None:
    """The items of few parts would be joined with `more` beside those of all parts."""
    query = f"""WITH x AS (SELECT i.k, i.v, m.c FROM items AS i JOIN more AS m ON m.g = i.g)
        SELECT q.n, y.* FROM parts AS p JOIN (SELECT k, sum(c + v) AS n FROM x GROUP BY k) AS q ON q.k = p.id JOIN {other} WHERE p.f = 1"""
    assert bool(restrictions(plan_of(query, numbered=True))) == is_restricted


def test_conditions_on_other_columns_than_the_key_stay() -> None:
    """The other side of the join has the items without w, too."""
    groups = "(SELECT k, sum(v) AS n FROM items WHERE isnotnull(w) AND isnotnull(k) GROUP BY k) AS q"
    query = f"SELECT i.v, i.w, q.n FROM items AS i, parts AS p, {groups} WHERE q.k = p.id AND i.k = p.id AND p.f = 1"
    plan = plan_of(query)
    assert restrictions(plan)
    items = [(1, 0, 5, 1, 0), (1, 0, 7, None, 0), (None, 0, 9, 1, 0)]
    tables = {"parts": Relation([((1, 1, 1), 1)]), "items": Relation((item, 1) for item in items)}
    assert evaluate(plan, tables) == {(5, 1, 5): 1, (7, None, 5): 1}


def test_an_error_in_a_group_that_nothing_reads_is_dropped_with_it() -> None:
    """As by a filter that moves below a grouping: a plan fails only where the written one does."""
    groups = "(SELECT k, max(1 / v) AS a FROM items GROUP BY k) AS q"
    query = f"SELECT i.k, i.v, q.a FROM items AS i, parts AS p, {groups} WHERE i.k = p.id AND p.f = 1 AND q.k = p.id"
    written, plan = bind_query(query, "test", Catalog(schemas(BIGINT))), plan_of(query)
    assert restrictions(plan)
    tables = {"parts": Relation([((1, 1, 1), 1), ((2, 0, 1), 1)]), "items": Relation([((1, 0, 1, 1, 0), 1), ((2, 0, 0, 1, 0), 1)])}
    with pytest.raises(DivisionByZero):
        evaluate(written, tables)
    assert evaluate(plan, tables) == {(1, 1, 1.0): 1}
    tables["items"] = Relation([((1, 0, 0, 1, 0), 1)])
    with pytest.raises(DivisionByZero):
        evaluate(plan, tables)


@pytest.mark.parametrize("seeds", [range(40), *slow(rotating(1_500))], ids=len)
def test_random_queries_have_the_same_rows(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimizer, "LAST", optimizer.LAST[: optimizer.LAST.index(restrict_groups)])
    changed = rows = 0
    for seed in seeds:
        rng = Random(f"groups {seed}")
        key, numbered = rng.choice((BIGINT, DOUBLE, STRING)), rng.random() < 0.5
        query = random_group_query(rng)
        before = plan_of(query, key=key, numbered=numbered)
        after = restrict_groups(before)
        assert agrees(after) and after.schema == before.schema, query
        changed += after != before
        for _ in range(3):
            tables = random_contents(rng, key, numbered=numbered)
            expected = evaluate(before, tables)
            assert evaluate(after, tables) == expected, (query, tables, show(after))
            rows += len(expected) if after != before else 0
    assert changed > len(seeds) // 5 and rows > len(seeds) // 2, (changed, rows)


@pytest.mark.parametrize(("shards", "seeds"), [(1, range(2)), *slow((1, rotating(25)), (3, rotating(15)))])
def test_random_queries_as_duckdb_after_every_tick(shards: int, seeds: range, tmp_path: Path) -> None:
    """Also after a restart, where half of the views find their state, and the others are filled from that of the tables."""
    for seed in seeds:
        rng = Random(f"ticks {seed}")
        numbered = rng.random() < 0.5
        views = {f"v{i}": random_group_query(rng) for i in range(6)}
        key = "NOT NULL, PRIMARY KEY (k, n)" if numbered else ""
        tables = f"""CREATE TABLE items (k BIGINT, g BIGINT, v BIGINT, w BIGINT, n BIGINT {key});
            CREATE TABLE parts (id BIGINT, f BIGINT, h BIGINT, PRIMARY KEY (id)); CREATE TABLE more (id BIGINT, c BIGINT, g BIGINT);"""
        content: Contents = {name: Counter() for name in ("items", "parts", "more")}
        with duckdb.connect() as other:
            other.execute(tables)
            for defined in (dict(list(views.items())[:3]), views):
                with deltic.Session(state=str(tmp_path / str(seed)), shards=shards) as session:
                    session.sql(tables + ";".join(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in defined.items()))
                    for _ in range(3):
                        drawn = {name: Counter(dict(rows)) for name, rows in random_contents(rng, BIGINT, numbered=numbered).items()}
                        name = rng.choice(sorted(drawn))
                        after = {**content, name: drawn[name]} if rng.random() < 0.5 else drawn
                        apply(session, content, after)
                        replace_all(other, after)
                        content = after
                        for view, query in defined.items():
                            actual = Counter(repr(tuple(row.values())) for row in session.view(view).rows())
                            assert actual == Counter(map(repr, other.execute(query).fetchall())), (seed, query)


Contents = dict[str, Counter[tuple[object, ...]]]


def apply(session: deltic.Session, before: Contents, after: Contents) -> None:
    """The tick between two contents."""
    frames = {}
    for name, rows in after.items():
        names = session.table(name).schema.names
        changes = [(row, -count) for row, count in (before[name] - rows).items()] + list((rows - before[name]).items())
        frames[name] = [{**dict(zip(names, row, strict=True)), "_weight": weight} for row, weight in changes]
    session.apply(frames)


def replace_all(other: duckdb.DuckDBPyConnection, contents: Contents) -> None:
    for name, rows in contents.items():
        other.execute(f"DELETE FROM {name}")
        if rows:
            holes = ", ".join("?" for _ in next(iter(rows)))
            other.executemany(f"INSERT INTO {name} VALUES ({holes})", [list(row) for row in rows.elements()])


@pytest.mark.parametrize("groups", [100, *slow(20_000)])
def test_a_change_touches_the_groups_of_its_key_alone(groups: int) -> None:
    """Of the operators that work in a tick, and the rows that they touch: none of the groups for an item of another part."""
    items = [{"k": k, "n": n, "v": 10 * k + n} for k in range(groups) for n in range(4)]
    with deltic.Session() as session:
        session.sql("CREATE TABLE items (k BIGINT, n BIGINT, v BIGINT, PRIMARY KEY (k, n))")
        session.sql("CREATE TABLE parts (id BIGINT, f BIGINT, PRIMARY KEY (id))")
        session.sql(
            "CREATE MATERIALIZED VIEW v AS SELECT p.id, q.s FROM parts AS p JOIN (SELECT k, sum(v) AS s FROM items GROUP BY k) AS q "
            "ON q.k = p.id WHERE p.f = 1"
        )
        with session.transaction() as tx:
            tx.insert("items", items)
            tx.insert("parts", [{"id": k, "f": int(k % 50 == 1)} for k in range(groups)])
        assert len(session.view("v").rows()) == groups // 50
        of_other = changed(session, "UPDATE items SET v = 7 WHERE k = 5 AND n = 1")
        assert of_other.keys() == {"source", "semijoin"} and of_other["semijoin"] <= 40, of_other
        of_key = changed(session, "UPDATE items SET v = 7 WHERE k = 1 AND n = 1")
        assert 0 < of_key["aggregate"] <= 40 and of_key.total() <= 250, of_key
        come = changed(session, "UPDATE parts SET f = 1 WHERE id = 5")
        assert 4 <= come["semijoin"] <= 60 and come.total() <= 250, come
        assert {"id": 5, "s": 50 + 7 + 52 + 53} in session.view("v").rows()
        gone = changed(session, "UPDATE parts SET f = 0 WHERE id = 1")
        assert 4 <= gone["semijoin"] <= 60 and gone.total() <= 250, gone


def changed(session: deltic.Session, statement: str) -> Counter[str]:
    """The rows that each kind of operator touches in the tick of a statement."""
    session.sql(statement)
    assert session.last_tick is not None
    names = {operator["id"]: operator["operator"].split(" ")[0] for operator in session.explain("v").json()["operators"]}
    touched = Counter[str]()
    for node, counters in session.last_tick.counters.items():
        if node in names:
            touched[names[node]] += counters.touched
    return touched
