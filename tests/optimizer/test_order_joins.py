"""The order of inner joins: by their graph, keys, filters and sizes; what it must not change; the time that it takes."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from time import process_time

import pytest

from deltic.errors import EvaluationError
from deltic.expr.functions import resolve
from deltic.expr.nodes import Expr, Literal
from deltic.optimizer import optimize
from deltic.optimizer.join_orders import GraphRelation, JoinGraph
from deltic.optimizer.order_joins import order_joins
from deltic.optimizer.row_estimates import Sizes, TableSize
from deltic.plan.columns import agrees, conjunction, reference
from deltic.plan.evaluate import evaluate
from deltic.plan.fingerprint import fingerprint
from deltic.plan.nodes import Filter, Hint, Join, OverTicks, Plan, Project, Table
from deltic.plan.relation import Relation
from deltic.plan.show import show
from deltic.plan.walk import nodes
from deltic.schema import BIGINT, Field, Schema, TableSchema
from parts import slow
from random_joins import ALL, NOW, SEEN_THROUGH, random_atoms, random_join, random_tables
from seeds import rotating


def table(name: str, *columns: str, key: tuple[int, ...] = (0,)) -> Table:
    return Table(TableSchema(name, Schema(tuple(Field(column, BIGINT, i not in key) for i, column in enumerate(columns))), key))


REGION = table("region", "r_key", "r_name")
NATION = table("nation", "n_key", "n_region")
CUSTOMER = table("customer", "c_key", "c_nation")
ORDERS = table("orders", "o_key", "o_customer")
PART = table("part", "p_key", "p_size")
SUPPLIER = table("supplier", "s_key", "s_nation")
ITEM = table("item", "l_order", "l_line", "l_part", "l_supplier", key=(0, 1))


def joined(relations: list[Plan], *equal: tuple[str, str], where: tuple[Expr, ...] = ()) -> Plan:
    """FROM these WHERE the columns are equal."""
    plan = relations[0]
    for each in relations[1:]:
        plan = Join(plan, each, "inner")
    return Filter(plan, conjunction([*(resolve("equal", [column(plan, a), column(plan, b)]) for a, b in equal), *where]))


def column(plan: Plan, name: str) -> Expr:
    return reference(plan.schema, plan.schema.names.index(name))


def named(plan: Plan, name: str, value: int) -> Plan:
    return Filter(plan, resolve("equal", [column(plan, name), Literal(value, BIGINT)]))


def tables_of(plan: Plan) -> str:
    """The tables of each join, from the inside out."""

    def order(part: Plan) -> str:
        match part:
            case Join():
                return f"({order(part.left)} {order(part.right)})"
            case Table():
                return part.table.name
            case Filter() | Project():
                return order(part.input)
        raise AssertionError(show(part))

    return order(plan)


def products(plan: Plan) -> list[Join]:
    return [node for node in nodes(plan) if isinstance(node, Join) and not node.keys]


def test_no_product_of_relations_that_a_third_one_connects() -> None:
    plan = joined([PART, SUPPLIER, ITEM], ("p_key", "l_part"), ("s_key", "l_supplier"))
    after = optimize(plan)
    assert tables_of(after) == "((part item) supplier)" and not products(after)
    assert after.schema.names == plan.schema.names


def test_filtered_arms_of_a_snowflake_are_joined_first() -> None:
    arms = [ITEM, ORDERS, CUSTOMER, NATION, named(REGION, "r_name", 7)]
    equal = (("l_order", "o_key"), ("o_customer", "c_key"), ("c_nation", "n_key"), ("n_region", "r_key"))
    assert tables_of(optimize(joined(arms, *equal))) == "(item (orders (customer (nation region))))"


def test_tables_that_others_refer_to_are_estimated_smaller_where_sizes_are_unknown() -> None:
    """The nation is looked up before the items, not in the joined rows, although its filter selects more than that of the items."""
    few = Filter(ITEM, conjunction([resolve(sign, [column(ITEM, "l_part"), Literal(n, BIGINT)]) for sign, n in ((">", 3), ("<", 9))]))
    nations = Filter(NATION, resolve("in", [column(NATION, "n_region"), Literal(7, BIGINT), Literal(8, BIGINT)]))
    equal = (("s_key", "l_supplier"), ("l_order", "o_key"), ("s_nation", "n_key"))
    plan = optimize(joined([SUPPLIER, few, ORDERS, nations], *equal))
    assert tables_of(plan) == "(((supplier nation) item) orders)"
    alike = Sizes(tuple((name, TableSize(1_000_000)) for name in ("supplier", "item", "orders", "nation")))
    assert tables_of(optimize(joined([SUPPLIER, few, ORDERS, nations], *equal), sizes=alike)) == "(((supplier item) orders) nation)"


def test_without_keys_and_filters_the_written_order_stays() -> None:
    plain = [table(name, f"{name}_a", f"{name}_b", key=()) for name in "tuvw"]
    plan = joined([*plain], ("t_b", "u_a"), ("u_b", "v_a"), ("v_b", "w_a"))
    assert tables_of(optimize(plan)) == "(((t u) v) w)"


def test_small_tables_are_joined_first_where_sizes_are_known() -> None:
    a, b, c = (table(name, f"{name}_k", f"{name}_v", key=()) for name in "abc")
    plan = optimize(joined([a, b, c], ("a_v", "b_k"), ("b_v", "c_k")))
    assert tables_of(plan) == "((a b) c)"
    assert tables_of(order_joins(plan, Sizes((("a", TableSize(1_000_000)), ("b", TableSize(10)), ("c", TableSize(10)))))) == "(a (b c))"


def test_joins_by_columns_with_many_values_come_first() -> None:
    """Of three large tables that a column of a connects, the pair whose column has more values has fewer rows."""
    a, b, c = (table(name, f"{name}_k", f"{name}_v", key=()) for name in "abc")
    plan = optimize(joined([a, b, c], ("a_v", "b_k"), ("b_v", "c_k")))
    few, many = (("b_k", 10), ("b_v", 100_000)), (("b_k", 100_000), ("b_v", 10))
    sizes = {
        name: Sizes((("a", TableSize(10**6)), ("b", TableSize(10**6, values)), ("c", TableSize(10**6))))
        for name, values in (("few", few), ("many", many))
    }
    assert tables_of(order_joins(plan, sizes["few"])) == "(a (b c))"
    assert tables_of(order_joins(plan, sizes["many"])) == "((a b) c)"


def test_a_filter_by_a_column_with_many_values_leaves_few_rows() -> None:
    a, b, c = (table(name, f"{name}_k", f"{name}_v", key=()) for name in "abc")
    plan = joined([a, b, named(c, "c_v", 1)], ("a_v", "b_k"), ("b_v", "c_k"))
    sizes = [Sizes(tuple((name, TableSize(1000, (("c_v", values),) if name == "c" else ())) for name in "abc")) for values in (1, 1000)]
    assert [tables_of(optimize(plan, sizes=each)) for each in sizes] == ["((a b) c)", "(a (b c))"]


def test_equality_is_transitive() -> None:
    """a.k = c.k AND b.k = c.k joins a with b by k."""
    a, b, c = (table(name, f"{name}_k", f"{name}_v", key=()) for name in "abc")
    plan = optimize(joined([a, b, c], ("a_k", "c_k"), ("b_k", "c_k")))
    assert tables_of(plan) == "((a b) c)" and not products(plan)


def test_an_equality_within_a_leaf_that_follows_from_others_stays() -> None:
    a, b, c = (table(name, f"{name}_k", f"{name}_v", key=()) for name in "abc")
    plan = joined([a, b, c], ("a_k", "c_k"), ("a_v", "c_k"), ("b_k", "c_v"))
    after = optimize(plan)
    rows = {name: Relation(((i, j), 1) for i in range(3) for j in range(3)) for name in "abc"}
    assert not products(after) and evaluate(after, rows) == evaluate(plan, rows)


def test_a_hint_keeps_the_written_order() -> None:
    hint = Hint("binary")
    first = Join(PART, SUPPLIER, "inner", hint=hint)
    keys = ((column(first, "p_key"), column(ITEM, "l_part")), (column(first, "s_key"), column(ITEM, "l_supplier")))
    plan = Join(first, ITEM, "inner", keys, hint=hint)
    assert tables_of(optimize(plan)) == "((part supplier) item)"


def test_plans_below_operators_over_ticks_stay() -> None:
    plan = joined([PART, SUPPLIER, ITEM], ("p_key", "l_part"), ("s_key", "l_supplier"))
    kept = OverTicks(plan, "delay")
    assert order_joins(kept) is kept and order_joins(plan) != plan


@pytest.mark.parametrize("seeds", [range(12), *slow(rotating(800))], ids=len)
def test_random_joins_are_the_same_relation_in_any_order(seeds: range) -> None:
    changed = 0
    for seed in seeds:
        rng = Random(f"order {seed}")
        plan = random_join(rng, random_atoms(rng), ALL if seed % 2 else SEEN_THROUGH, loose=seed % 3 == 0)
        rows = random_tables(rng)
        after, optimized = order_joins(plan), optimize(plan)
        assert agrees(after) and after.schema == plan.schema
        assert fingerprint(optimize(optimized)) == fingerprint(optimized), f"seed {seed}: {show(optimized)}"
        changed += after != plan
        try:
            written = evaluate(plan, rows, now=NOW)
        except EvaluationError:
            continue
        assert evaluate(after, rows, now=NOW) == written, f"seed {seed}: {show(plan)}\n-->\n{show(after)}"
        assert evaluate(optimized, rows, now=NOW) == written, f"seed {seed}: {show(plan)}\n-->\n{show(optimized)}"
    assert changed > len(seeds) / 3


@pytest.mark.parametrize("shape", ["star", *slow("chain", "clique", "apart")])
def test_thirty_relations_are_planned_in_less_than_a_second(shape: str) -> None:
    relations = [table(f"t{i}", f"a{i}", f"b{i}") for i in range(30)]
    equal = {
        "chain": [(f"b{i}", f"a{j}") for i, j in pairwise(range(30))],
        "star": [("b0", f"a{i}") for i in range(1, 30)],
        "clique": [(f"b{i}", f"b{j}") for i in range(30) for j in range(i)],
        "apart": [(f"b{i}", f"a{29 - i}") for i in range(15)],
    }[shape]
    written = joined([*relations], *equal)
    start = process_time()
    plan = optimize(written)
    assert process_time() - start < 1
    assert len(products(plan)) == (14 if shape == "apart" else 0)


def test_of_equal_estimates_the_written_order_is_chosen() -> None:
    relation = GraphRelation(100.0, 100.0, frozenset({0}), frozenset({0}))
    assert JoinGraph([relation] * 4, []).ordered() == (((0, 1), 2), 3)
