"""Operators at nested times against a from-scratch evaluation: random circuits with scopes, under random changes."""

from __future__ import annotations

import random
from collections import Counter as Tally

import numpy as np
import pytest

from deltic.circuit.pending import PendingRows
from deltic.errors import Divergence
from deltic.runtimes.embedded import Embedded
from deltic.schema import Op
from deltic.trace.counters import Counters
from nested_circuits import PAIR, build, tables_alone
from nested_programs import Diverges, Heavy, Scope, ZSet, add, live, meaning, random_changes, random_content, random_program, with_multiway
from seeds import rotating

TICKS = 5


def pending(change: ZSet) -> PendingRows:
    words = tuple(np.array([row[i] for row in change], np.int64) for i in range(len(PAIR)))
    n = len(change)
    return PendingRows.of(words, np.full(n, Op.WEIGHT, np.int64), np.arange(n), np.array([*change.values()], np.int64))


def view(runtime: Embedded) -> ZSet:
    (spine,) = runtime.snapshot("out")
    whole = spine.scan(Counters())
    return dict(zip(zip(*(c.tolist() for c in whole.columns), strict=True), whole.weights[0].tolist(), strict=True))


def expected(program: Scope, content: list[ZSet]) -> ZSet | type[Exception]:
    """The view's content, or the error."""
    try:
        tables = {at for at, spec in enumerate(program.nodes) if spec.kind == "table"}
        return meaning(program, content, nodes=tables | live(program))[program.export]
    except (Diverges, Heavy) as error:
        return type(error)


def check(seed: int, multiway: bool = False) -> str:
    """Runs the case of the seed from tables that have content already; returns the outcome. multiway: with multiway joins."""
    rng = random.Random(seed)
    program = random_program(rng)
    if multiway:
        program = with_multiway(random.Random(seed), program)
    content = [random_content(rng, rng.choice((0, 3, 9))) for _ in range(2)]
    first = expected(program, content)
    runtime = Embedded()
    runtime.install(tables_alone(program))
    runtime.tick({f"t{i}": pending(table) for i, table in enumerate(content) if table})
    circuit = build(program, hoisted=rng.random() < 0.5)
    if not isinstance(first, dict):
        if first is Diverges:
            with pytest.raises(Divergence, match="relation"):
                runtime.install(circuit)
        return first.__name__
    runtime.install(circuit)
    assert view(runtime) == first, f"seed {seed}: at the start"
    outcome = "same"
    for number, changes in enumerate(random_changes(rng, content, TICKS)):
        after = [add([*table.items(), *change.items()]) for table, change in zip(content, changes, strict=True)]
        if any(w < 0 for table in after for w in table.values()):
            continue
        result = expected(program, after)
        if result is Heavy:
            return "Heavy"
        tick = {f"t{i}": pending(change) for i, change in enumerate(changes) if change}
        if result is Diverges:
            outcome = "Diverges later"
            with pytest.raises(Divergence, match="relation"):
                runtime.tick(tick)
            continue
        runtime.tick(tick)
        content = after
        assert view(runtime) == result, f"seed {seed}, tick {number}"
    return outcome


def test_random_circuits_equal_evaluation_from_scratch() -> None:
    tally = Tally(check(seed) for seed in range(80))
    assert tally["same"] > 60 and tally["Diverges later"] > 0, tally


def test_an_import_meets_what_a_distinct_relation_has_at_iteration_0() -> None:
    """The kernel once looked only at what such a relation had before the tick."""
    assert check(739943000090) == "same"


@pytest.mark.slow
def test_thousands_of_random_circuits_equal_evaluation_from_scratch() -> None:
    tally = Tally(check(seed) for seed in rotating(5_000))
    assert tally["same"] > 4_000 and tally["Diverges later"] > 50, tally


def test_random_circuits_with_multiway_joins_equal_evaluation_from_scratch() -> None:
    tally = Tally(check(seed, multiway=True) for seed in range(40))
    assert tally["same"] > 28, tally


@pytest.mark.slow
def test_thousands_of_random_circuits_with_multiway_joins_equal_evaluation_from_scratch() -> None:
    tally = Tally(check(seed, multiway=True) for seed in rotating(3_000))
    assert tally["same"] > 2_400 and tally["Diverges later"] > 30, tally
