"""Errors as data: a view is its content and its errors, which are empty where the view does not fail; engines equal the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from deltic.errors import EvaluationError
from deltic.optimizer import optimize
from deltic.plan.evaluate import evaluate
from deltic.plan.isolate import isolated
from deltic.plan.nodes import Window
from deltic.plan.show import show
from deltic.plan.walk import nodes
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
                if any(isinstance(node, Window) for node in nodes(plan)) and evaluate(errors, tables):
                    continue  # of a row that no frame has
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
