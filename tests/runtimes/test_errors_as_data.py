"""Errors as data: a view is its content and its errors, which are empty where the view does not fail; engines equal the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

from deltic.errors import EvaluationError
from deltic.expr import Literal, resolve
from deltic.expr.nodes import Column, Expr
from deltic.optimizer import optimize
from deltic.plan.evaluate import evaluate
from deltic.plan.isolate import isolated
from deltic.plan.nodes import FlatMap, Project, Table, TableFunction
from deltic.plan.relation import Relation
from deltic.plan.show import show
from deltic.schema import BIGINT, DATE, INT, TIMESTAMP_NTZ, Field, Schema, TableSchema
from engines import checked_durable, embedded, run
from parts import slow
from programs import Case, applied, case, daring, empty, expected, mixed, outcome
from seeds import rotating


@pytest.mark.parametrize("seeds", [range(60), *slow(rotating(2_000))], ids=len)
def test_a_view_fails_where_its_errors_have_rows_and_else_is_its_content(seeds: range) -> None:
    failed = whole = 0
    for seed in seeds:
        program = daring(seed) if seed % 4 else mixed(seed)
        tables = applied(empty(program.tables), program.ticks[0])
        for name, plan in program.views.items():
            view = isolated(plan)
            assert view.content.schema == plan.schema
            if view.errors is None:
                continue
            content, errors = (optimize(part) if seed % 2 else part for part in (view.content, view.errors))
            try:
                expected_rows = evaluate(plan, tables)
            except EvaluationError:
                assert evaluate(errors, tables), f"{program} {name}: {show(plan)}"
                failed += 1
            else:
                assert not evaluate(errors, tables), f"{program} {name}: {show(plan)}"
                assert evaluate(content, tables) == expected_rows, f"{program} {name}: {show(plan)}"
                whole += 1
    assert failed > len(seeds) // 10 and whole > len(seeds) // 4


def failing(seeds: range) -> Iterator[Case]:
    """Of the programs of `case` that fail in some ticks, the views in two plans each; a tick that fails is undone by the next one."""
    for seed in seeds:
        program = case(seed)
        if not program.fails:
            continue
        tables, ticks = empty(program.tables), []
        for tick in program.ticks:
            ticks.append(tick)
            after = applied(tables, tick)
            if isinstance(outcome(program.views, after), dict):
                tables = after
            else:
                ticks.append({table: [(row, -weight) for row, weight in reversed(changes)] for table, changes in tick.items()})
        views = {}
        for name, plan in program.views.items():
            view = isolated(plan)
            views[name] = view.content
            if view.errors is not None:
                views[f"{name}!errors"] = view.errors
        isolates = replace(program, views=views, ticks=ticks, fails=False)
        if all(isinstance(one, dict) for one in expected(isolates)):  # the others fail in ways that are not isolated
            yield isolates


@pytest.mark.parametrize("seeds", [range(40), *slow(rotating(1_500))], ids=len)
def test_errors_come_and_go_as_in_the_oracle(seeds: range) -> None:
    came = 0
    for program in failing(seeds):
        outcomes = expected(program)
        run(embedded(program.tables, program.views, 1 + 2 * (program.seed % 2)), program, outcomes)
        came += any(rows for one in outcomes if isinstance(one, dict) for name, rows in one.items() if name.endswith("!errors"))
    assert came


@pytest.mark.parametrize("seeds", [range(12), *slow(rotating(400))], ids=len)
def test_errors_come_and_go_over_restarts(seeds: range, tmp_path: Path) -> None:
    for program in failing(seeds):
        checked_durable(program, tmp_path)


FIELDS = {"a": INT, "b": INT, "c": INT, "d": DATE, "e": DATE, "t": TIMESTAMP_NTZ}
MADE = TableSchema("r", Schema((*(Field(name, type) for name, type in FIELDS.items()), Field("id", BIGINT, False))))
A, B, C, D, E, T = (Column(i, type, True, name) for i, (name, type) in enumerate(FIELDS.items()))
REST = resolve("%", [Literal(6, INT), C])
DAY = 86_400_000_000
SLIDING = (Literal(2 * DAY, BIGINT), Literal(DAY, BIGINT), Literal(0, BIGINT))
CALLS: dict[str, tuple[TableFunction, tuple[Expr, ...]]] = {
    "sequence": ("sequence", (A, B)),
    "sequence by a column": ("sequence", (A, B, C)),
    "sequence of what fails": ("sequence", (A, REST, C)),
    "days by a column": ("sequence", (D, E, C)),
    "series": ("generate_series", (A, B)),
    "series by a column": ("generate_series", (A, REST, B)),
    "sliding windows": ("window_starts", (T, *SLIDING)),
    "elements": ("array", (A, REST)),
    "copies": ("repeat_row", (resolve("greatest", [resolve("%", [Literal(6, BIGINT), C]), Literal(1, BIGINT)]),)),
}


def made(name: str, *, outer: bool) -> Project:
    function, arguments = CALLS[name]
    names = () if function == "repeat_row" else ("x",)
    rows = FlatMap(Table(MADE), function, arguments, names, outer=outer and bool(names))
    return Project(rows, tuple((field.name, Column(i, field.type, field.nullable, field.name)) for i, field in enumerate(rows.schema)))


def made_row(rng: Random, id: int) -> tuple[Any, ...]:
    """A row, of which in half of the cases every table function has elements."""
    if rng.random() < 0.5:
        return (2, 5, 1, date(2020, 1, 1), date(2020, 1, 3), datetime(2020, 1, 1, 5), id)
    numbers = [None, -2, -1, 0, 0, 1, 3]
    day = date(2020, 1, rng.randint(1, 3))
    time = rng.choice([None, datetime(1, 1, 1), datetime(1, 1, 1, 5), datetime(1, 1, 2), datetime(2020, 1, 1)])
    return (
        rng.choice(numbers),
        rng.choice([*numbers, 2**31 - 1]),
        rng.choice(numbers),
        day,
        rng.choice([day, None, date(2020, 1, 2)]),
        time,
        id,
    )


def fails(plan: Project, pair: tuple[tuple[Any, ...], int]) -> bool:
    """Whether the view fails over this row alone."""
    try:
        evaluate(plan, {"r": Relation([pair])})
    except EvaluationError:
        return True
    return False


@pytest.mark.parametrize("seeds", [range(4), *slow(rotating(100))], ids=len)
@pytest.mark.parametrize("name", CALLS)
def test_rows_of_which_a_table_function_fails_are_errors(name: str, seeds: range) -> None:
    failed = whole = 0
    for seed in seeds:
        rng = Random(f"{name} {seed}")
        plan = made(name, outer=seed % 2 == 1)
        view = isolated(plan)
        assert view.errors is not None
        views = {"content": view.content, "errors": view.errors}
        ids, rows, ticks = iter(range(1_000)), list[tuple[Any, ...]](), []
        for _ in range(8):
            gone = [row for row in rows if rng.random() < 0.5]
            new = [made_row(rng, next(ids)) for _ in range(rng.randint(0, 3))]
            rows = [row for row in rows if row not in gone] + new
            ticks.append({"r": [*((row, -1) for row in gone), *((row, 1) for row in new)]})
        program = Case(seed, {"r": MADE}, views, ticks, False)
        outcomes = expected(program)
        tables = empty(program.tables)
        for tick, after in zip(ticks, outcomes, strict=True):
            tables = applied(tables, tick)
            assert isinstance(after, dict)
            good = [pair for pair in tables["r"].items() if not fails(plan, pair)]
            assert sum(weight for _, weight in after["errors"].items()) == len(tables["r"]) - len(good)
            assert after["content"] == evaluate(plan, {"r": Relation(good)})
            whole += len(after["content"]) > 0
            failed += len(after["errors"]) > 0
        run(embedded(program.tables, {key: optimize(part) for key, part in views.items()}, 1 + 2 * (seed % 2)), program, outcomes)
    assert failed and whole
