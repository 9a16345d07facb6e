"""Every function and every type in random programs: the engine equals the oracle after every tick, also from reopened state."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltic.expr.functions import TOPICS
from deltic.expr.registry import Function
from deltic.plan.walk import expressions, nodes
from deltic.types import Type
from engines import checked_durable, embedded, run
from programs import Case, expected
from seeds import rotating
from shrink import shrinking
from term_programs import CARRIED, functions, term_case

FAST = 60
FEW = 12
SLOW = 4_000
SLOW_DURABLE = 400
DRAWN = 5_000
ELSEWHERE = frozenset((
    *("chain", "in_range", "threshold", "normalize", "zero_signs", "widened", "fails", "shown_failure", "shown_row"),  # of plans
    *("sequence_count", "generate_series_count", "window_starts_count"),  # of errors as data
    "is_json",  # which SQL writes IS JSON
    *("only_row", "session_end", "frequency", "json_field", "variant_entries"),  # of subqueries, windows, aggregates and table functions
))  # fmt: skip
"""Functions without a word in SQL, which tests/expr/test_functions.py names with their tests."""


def check(seed: int) -> None:
    def checked(program: Case) -> None:
        engine = embedded(program.tables, program.views, 1 + 2 * (seed % 2))
        run(engine, program, expected(program), row_by_row=seed % 4 == 0)

    shrinking(checked, term_case(seed))


def test_random_programs_of_terms() -> None:
    for seed in range(50_000, 50_000 + FAST):
        check(seed)


def test_random_programs_of_terms_with_restarts_from_state(tmp_path: Path) -> None:
    for seed in range(51_000, 51_000 + FEW):
        shrinking(lambda program: checked_durable(program, tmp_path), term_case(seed))


def test_every_function_and_every_type_is_drawn() -> None:
    called: set[str] = set()
    carried: set[Type] = set()
    for seed in range(DRAWN):
        program = term_case(seed)
        called.update(
            name for plan in program.views.values() for node in nodes(plan) for expr in expressions(node) for name in functions(expr)
        )
        carried.add(program.tables["t"].schema[1].type)
    known = {record.name for records in TOPICS.values() for record in records if isinstance(record, Function)}
    assert known - called == ELSEWHERE
    assert carried == set(CARRIED)
    kinds = {kind for type in CARRIED for kind in _kinds(type)}
    assert {"VARIANT", "TIME", "MAP", "ARRAY", "STRUCT", "CHAR", "VARCHAR", "BINARY", "TIMESTAMP_NTZ", "INTERVAL DAY TO SECOND"} <= kinds


def _kinds(type: Type) -> set[str]:
    return {type.name}.union(*(_kinds(part.type) for part in type.parts))


@pytest.mark.slow
def test_many_random_programs_of_terms() -> None:
    for seed in rotating(SLOW):
        check(seed)


@pytest.mark.slow
def test_many_random_programs_of_terms_with_restarts(tmp_path: Path) -> None:
    for seed in rotating(SLOW_DURABLE):
        shrinking(lambda program: checked_durable(program, tmp_path), term_case(seed))
