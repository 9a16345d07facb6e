"""The optimizer against the oracle: the same relations, the same schema, and no additional failure."""

from __future__ import annotations

import doctest
import importlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from random import Random
from unittest.mock import patch

import pytest

import deltic
from deltic.errors import EvaluationError
from deltic.expr import resolve
from deltic.expr.failing import can_fail
from deltic.expr.nodes import Column, Literal
from deltic.optimizer import CONCERNED, JOINS, LAST, RANKS, RULES, optimize
from deltic.optimizer.join_partitions import join_partitions
from deltic.optimizer.restrict_groups import restrict_groups
from deltic.plan.columns import agrees, conjunction, shift
from deltic.plan.evaluate import NO_VIEWS, Moment, evaluate
from deltic.plan.fingerprint import fingerprint
from deltic.plan.nodes import (
    Aggregate,
    AggregateCall,
    Bound,
    Distinct,
    Filter,
    Join,
    Order,
    OverTicks,
    Plan,
    Project,
    Table,
    TemporalFilter,
    TopK,
    Window,
    WindowCall,
)
from deltic.plan.relation import Relation
from deltic.plan.show import show
from deltic.plan.walk import expressions, kinds, nodes
from deltic.schema import BIGINT, BOOLEAN, DAY_TO_SECOND, INT, STRING, TIMESTAMP, Field, Lateness, Schema, StreamSchema
from parts import slow
from program_data import INSTANTS
from programs import Case, applied, case, daring, empty, expected, mixed, outcome
from seeds import rotating


@pytest.mark.parametrize(
    "name",
    [*dict.fromkeys(rule.__name__ for rule in (*RULES, *JOINS, *RANKS, *LAST)), "fold", "join_orders", "rejected_nulls", "row_estimates"],
)
def test_the_examples_of_every_rule(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"deltic.optimizer.{name}"))
    assert result.attempted > 0 and result.failed == 0


def check(program: Case) -> None:
    """Every optimized view equals the written one after every tick, and fails where it fails."""
    views = {name: optimize(plan) for name, plan in program.views.items()}
    for name, plan in views.items():
        assert agrees(program.views[name]) and agrees(plan), f"{program}: {show(plan)}"
        assert plan.schema == program.views[name].schema
        if fingerprint(optimize(plan)) != fingerprint(plan):  # the semi-joins of restrict_groups are no fixed point of the other rules
            with patch("deltic.optimizer.LAST", tuple(rule for rule in LAST if rule is not restrict_groups)):
                settled = optimize(program.views[name])
                assert settled != plan, f"{program}: not settled: {show(plan)}"
                assert fingerprint(optimize(settled)) == fingerprint(settled), f"{program}: not settled: {show(settled)}"
    tables = empty(program.tables)
    for tick, wanted in zip(program.ticks, expected(program), strict=True):
        after = applied(tables, tick)
        assert outcome(views, after) == wanted, f"{program}: {[show(plan) for plan in views.values()]}"
        tables = after if isinstance(wanted, dict) else tables


def test_random_programs_mean_the_same() -> None:
    for seed in range(40):
        check(case(seed))


def test_a_rule_changes_no_plan_that_does_not_concern_it() -> None:
    seen = set[str]()
    for seed in range(30):
        for view in case(seed).views.values():
            for plan in (part for whole in (view, optimize(view)) for part in nodes(whole)):
                for rule, concerned in CONCERNED.items():
                    if concerned.isdisjoint(kinds(plan)):
                        assert rule(plan) == plan, f"{rule.__name__}: {show(plan)}"
                        seen.add(rule.__name__)
    assert seen == {rule.__name__ for rule in CONCERNED}


@pytest.mark.parametrize(("condition", "has_rows"), [("r = 1", True), ("r <= 3", True), ("r < 1", False), ("r = -1", False)])
@pytest.mark.parametrize("function", ["rank", "dense_rank"])
def test_plans_with_first_ranks_are_settled(function: str, condition: str, has_rows: bool) -> None:
    """Over fewer columns than the table has, and where no row has such a rank."""
    query = f"SELECT a FROM (SELECT a, {function}() OVER (PARTITION BY b ORDER BY a DESC) AS r FROM t) WHERE {condition}"
    session = deltic.Session()
    session.sql(f"CREATE TABLE t (a INT, b INT, c STRING); CREATE MATERIALIZED VIEW v AS {query}")
    plan = session._commits.compiler.optimized_plans["v"]
    assert fingerprint(optimize(plan)) == fingerprint(plan)
    assert ("Table t" in show(plan)) == ("Project a#0, b#1" in show(plan)) == has_rows


def test_joins_are_ordered_once_a_rank_that_no_row_has_is_known() -> None:
    check(mixed(739950001003))


def test_conditions_on_rows_alone_are_below_the_join_with_their_partitions() -> None:
    check(mixed(739950002342))


@pytest.mark.parametrize("seed", [739950001366, 739950003707])
def test_conditions_on_defaults_are_below_the_joins_that_they_do_not_concern(seed: int) -> None:
    check(mixed(seed))


def test_an_empty_plan_has_the_names_of_its_columns_without_a_projection() -> None:
    check(mixed(739950005316))


def test_random_recursive_programs_mean_the_same() -> None:
    for seed in range(12):
        if seed % 10 >= 5:
            check(mixed(seed))


def test_rules_return_the_same_object_if_they_change_nothing() -> None:
    """So that what is kept with a node serves the next rule and the next round."""
    for seed in range(8):
        for plan in mixed(seed).views.values():
            for rule in RULES:
                after = rule(plan)
                assert after is plan or after != plan, (seed, rule.__name__)
                plan = after


@pytest.mark.slow
@pytest.mark.parametrize("slice_", range(20))
def test_many_more_random_programs_mean_the_same(slice_: int) -> None:
    for seed in rotating(6_000)[slice_::20]:
        check(mixed(seed))


@pytest.mark.parametrize("seeds", [range(30, 34), *slow(rotating(400))], ids=len)
@pytest.mark.parametrize("rule", (*RULES, *RANKS, join_partitions, restrict_groups), ids=lambda rule: rule.__name__)
def test_each_rule_alone_keeps_the_relation(rule: object, seeds: range) -> None:
    assert callable(rule)
    changed = 0
    for seed in seeds:
        program, tables, written = evaluated(seed)
        made = (
            *(
                of_times,
                of_disjunctions,
                of_sides,
                of_limits,
                of_left_joins,
                of_same_groups,
                of_unmatched_rows,
                of_partitions,
                of_few_groups,
            ),
            of_first_rows,
        )
        known = {view: relation for view, relation in written.items() if isinstance(relation, Relation)}
        for view, relation in written.items():  # which the plans below may read seven times, with a recursion in them
            if (after := rule(view)) != view:
                changed += 1
                assert result(after, tables) == relation, f"{program}: {show(view)}"
                known |= {after: relation} if isinstance(relation, Relation) else {}
        for plan in (*(plan for view in written for make in made for plan in make(view)), *of_windows()):
            if (after := rule(plan)) != plan:
                changed += 1
                assert result(after, tables, known) == result(plan, tables, known), f"{program}: {show(plan)}"
    assert changed > len(seeds) // 20


@cache
def evaluated(seed: int) -> tuple[Case, dict[str, Relation], dict[Plan, Relation | type[EvaluationError]]]:
    """A program, its tables after the first tick and a stream of events, and what its views are then; for all rules."""
    program = mixed(seed)
    tables = {**applied(empty(program.tables), program.ticks[0]), "events": events(seed)}
    return program, tables, {view: result(view, tables) for view in program.views.values()}


DAY_US = 86_400_000_000
NOW = max(instant for instant in INSTANTS if instant.year < 2100)


def of_times(plan: Plan) -> Iterator[Plan]:
    """For each timestamp column of the plan, its rows of the last day, and those of any day before."""
    for i, field in enumerate(plan.schema):
        if field.type == TIMESTAMP:
            moment = Column(i, TIMESTAMP, field.nullable, field.name)
            yield TemporalFilter(plan, (Bound(moment),), (Bound(moment, DAY_US),))
            yield TemporalFilter(plan, (Bound(moment, DAY_US),))


def of_disjunctions(plan: Plan) -> Iterator[Plan]:
    """The rows of the plan that satisfy one of two conditions that have a part in common."""
    columns = [Column(i, field.type, field.nullable, field.name) for i, field in enumerate(plan.schema)]
    if len(columns) > 1:
        shared, *others = (resolve("is_not_null", [column]) for column in columns)
        missing = resolve("is_null", [columns[-1]])
        yield Filter(plan, resolve("or", [conjunction([*others, shared]), conjunction([shared, missing])]))


def of_sides(plan: Plan) -> Iterator[Plan]:
    """The rows of the plan beside their number, if one of two conditions on both sides is true."""
    both = Join(plan, Aggregate(plan, (), (("n", AggregateCall("count", (), BIGINT, False)),)), "inner")
    first, number = (Column(i, both.schema[i].type, both.schema[i].nullable, "c") for i in (0, len(both.schema) - 1))
    few = resolve("less", [number, Literal(5, BIGINT)])
    parts = [resolve("is_not_null", [first]), few], [resolve("is_null", [first]), resolve("not", [few])]
    yield Filter(both, resolve("or", [conjunction(part) for part in parts]))


def of_left_joins(plan: Plan) -> Iterator[Plan]:
    """The groups of the plan by a column, joined with themselves: LEFT, and then by their key."""
    key = Column(0, plan.schema[0].type, plan.schema[0].nullable, "k")
    groups = Aggregate(plan, (("k", key),), (("n", AggregateCall("count", (), BIGINT, False)),))
    yield Join(Join(groups, groups, "left", ((key, key),)), groups, "inner", ((key, key),))


def of_same_groups(plan: Plan) -> Iterator[Plan]:
    """The rows of the plan beside values of their groups by a column, in several LEFT joins."""
    key = Column(0, plan.schema[0].type, plan.schema[0].nullable, "k")
    count = AggregateCall("count", (), BIGINT, False)
    present = AggregateCall("count", (Column(len(plan.schema) - 1, plan.schema[-1].type, plan.schema[-1].nullable, "c"),), BIGINT, False)
    counts, others = (Aggregate(plan, (("k", key),), calls) for calls in ((("n", count),), (("m", present), ("n", count))))
    first = Join(plan, counts, "left", ((key, key),))
    of_rows = Join(first, Project(counts, (("k", key),)), "left", ((key, key),), Literal(True, BOOLEAN))
    for rows in (first, of_rows):
        yield Join(rows, others, "left", ((key, key),))
        turned = Project(
            others, tuple((name, Column(i, others.schema[i].type, others.schema[i].nullable, name)) for i, name in ((2, "n"), (0, "k")))
        )
        yield Filter(Join(rows, turned, "left", ((key, Column(1, key.type, key.nullable, "k")),)), resolve("is_null", [key]))


def of_unmatched_rows(plan: Plan) -> Iterator[Plan]:
    """The groups of the plan by a column that have no row of the plan with few of its values, and such rows without a group."""
    key = Column(0, plan.schema[0].type, plan.schema[0].nullable, "k")
    groups = Aggregate(plan, (("k", key),), (("n", AggregateCall("count", (), BIGINT, False)),))
    few = Filter(groups, resolve("less", [Column(1, BIGINT, False, "n"), Literal(2, BIGINT)]))
    for kind, place in (("left", 3), ("right", 0), ("full", 0), ("full", 1), ("full", 2), ("full", 3)):
        join = Join(groups if place > 1 else few, few if place > 1 else groups, kind, ((key, key),))
        field = join.schema[place]
        yield Filter(join, resolve("is_null", [Column(place, field.type, field.nullable, field.name)]))


def of_partitions(plan: Plan) -> Iterator[Plan]:
    """The rows with the greatest value of a column among those that are equal in another one, and the rows below it, which are not many."""
    key, value = (Column(i, plan.schema[i].type, plan.schema[i].nullable, "c") for i in (0, len(plan.schema) - 1))
    if not value.type.is_ordered or not key.type.is_ordered:
        return
    most = WindowCall("aggregate", value.type, True, aggregate=AggregateCall("max", (value,), value.type, True))
    count = WindowCall("aggregate", BIGINT, False, aggregate=AggregateCall("count", (), BIGINT, False))
    window = Window(plan, (key,), (), (("most", most), ("n", count)))
    greatest, number = (Column(len(plan.schema) + i, type, i == 0, "c") for i, type in enumerate((value.type, BIGINT)))
    yield Filter(window, resolve("equal", [value, greatest]))
    yield Filter(window, conjunction([resolve("less", [number, Literal(5, BIGINT)]), resolve("less", [value, greatest])]))


def of_few_groups(plan: Plan) -> Iterator[Plan]:
    """The rows of the plan beside their groups by a column, of those groups that have a property."""
    key, value = (Column(i, plan.schema[i].type, plan.schema[i].nullable, "c") for i in (0, -1 % len(plan.schema)))
    counts = Aggregate(plan, (("k", key),), (("n", AggregateCall("count", (value,), BIGINT, False)),))
    few = Filter(counts, resolve("equal", [Column(1, BIGINT, False, "n"), Literal(1, BIGINT)]))
    sums = Aggregate(plan, (("k", key),), (("n", AggregateCall("count", (), BIGINT, False)),))
    yield Join(plan, Join(few, sums, "left", ((key, key),)), "inner", ((key, key),))


def of_limits(plan: Plan) -> Iterator[Plan]:
    """The first rows of its number of rows, which is one row."""
    count = Aggregate(plan, (), (("n", AggregateCall("count", (), BIGINT, False)),))
    yield TopK(count, (Order(Column(0, BIGINT, False, "n")),), 3)


def of_first_rows(plan: Plan) -> Iterator[Plan]:
    """Its first two rows by row_number, and those of the first two ranks."""
    order = tuple(Order(Column(i, field.type, field.nullable, field.name)) for i, field in enumerate(plan.schema.fields[:1]))
    for function in ("row_number", "rank", "dense_rank"):
        numbered = Window(plan, (), order, (("n", WindowCall(function, INT, False)),))
        yield Filter(numbered, resolve("<=", [Column(len(plan.schema), INT, False, "n"), Literal(2, INT)]))


def of_windows() -> Iterator[Plan]:
    """Groups and distinct rows by windows over all rows of a stream, and joins on bounds of the times of two."""
    schema = Schema((Field("at", TIMESTAMP, False), Field("k", BIGINT)))
    every = OverTicks(Table(StreamSchema("events", schema, lateness=Lateness(0, DAY_US))), "integrate")
    at, k = (Column(i, field.type, field.nullable, field.name) for i, field in enumerate(schema))
    day = resolve("date_trunc", [Literal("DAY", STRING), at])
    large = Filter(every, resolve("greater", [k, Literal(2, BIGINT)]))
    yield Distinct(large)
    yield Distinct(Distinct(large))
    yield Distinct(Project(every, (("k", k), ("day", day))))
    yield Aggregate(
        large, (("day", day),), (("n", AggregateCall("count", (), BIGINT, False)), ("top", AggregateCall("max", (k,), BIGINT, True)))
    )
    later = shift(at, len(schema))
    after, until = Literal(timedelta(hours=-3), DAY_TO_SECOND), Literal(timedelta(hours=9), DAY_TO_SECOND)
    near = conjunction(
        [resolve("less_equal", [resolve("add", [at, after]), later]), resolve("greater", [resolve("add", [at, until]), later])]
    )
    yield Join(large, every, "inner", ((k, k),), near)
    yield TemporalFilter(Project(every.input, (("at", at),)), (Bound(Column(0, TIMESTAMP, False, "at")),))
    yield Filter(Join(every.input, every.input, "inner"), near)


def events(seed: int) -> Relation:
    rng = Random(f"events {seed}")
    start = datetime(2024, 1, 1, tzinfo=UTC)
    return Relation(((start + timedelta(hours=rng.randrange(100)), rng.choice([None, *range(5)])), 1) for _ in range(rng.randrange(12)))


def result(plan: Plan, tables: dict[str, Relation], known: Mapping[Plan, Relation] = NO_VIEWS) -> Relation | type[EvaluationError]:
    """known: relations of plans that this one may read."""
    try:
        return evaluate(plan, tables, now=NOW, past=[Moment(dict.fromkeys(tables, Relation()), NOW)], views=known)
    except EvaluationError as error:
        return type(error)


def may_fail(plan: Plan) -> bool:
    return any(can_fail(expr) for node in nodes(plan) for expr in expressions(node))


@pytest.mark.parametrize("block", [0, *slow(1, 2, 3)])
def test_no_rule_adds_a_failure(block: int) -> None:
    fine = failed = 0
    for seed in range(block * 100, block * 100 + 100):
        program = daring(seed)
        tables = empty(program.tables)
        views = {name: optimize(plan) for name, plan in program.views.items() if may_fail(plan)}
        for tick in program.ticks:
            tables = applied(tables, tick)
            for name, plan in views.items():
                written = result(program.views[name], tables)
                if isinstance(written, Relation):
                    fine += 1
                    assert result(plan, tables) == written, f"daring({seed}): {show(program.views[name])}\n-->\n{show(plan)}"
                else:
                    failed += 1
    assert fine > 300 and failed > 100, (fine, failed)
