"""Arguments of aggregates are not evaluated on rows that FILTER rejects, or of which an earlier argument is NULL: in groups and all frames.

On the other rows they are, also on those that no frame has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Final

import pytest

import deltic
from deltic.errors import EvaluationError
from deltic.expr import cast, resolve
from deltic.expr.nodes import Case as When
from deltic.expr.nodes import Expr, Literal
from deltic.plan.columns import reference
from deltic.plan.evaluate import evaluate
from deltic.plan.isolate import isolated
from deltic.plan.nodes import Aggregate, AggregateCall, Plan, Table
from deltic.plan.relation import Relation
from deltic.plan.sort_terms import Order
from deltic.plan.window_nodes import UNBOUNDED, WHOLE, Edge, Window, WindowCall, WindowFrame
from deltic.schema import BIGINT, STRING
from engines import embedded, run
from grouped_programs import calls, source
from parts import slow
from program_data import Content
from program_plans import built_in
from programs import Case, expected
from seeds import rotating

SOURCE: Final = source()
ROWS: Final = Table(SOURCE.table)
KEPT: Final = resolve("less_equal", [resolve("coalesce", [reference(ROWS.schema, 3), Literal(1, BIGINT)]), Literal(1, BIGINT)])
ROW: Final = Edge("rows")
FRAMES: Final = {
    "whole": WHOLE,
    "peers": WindowFrame(UNBOUNDED, Edge("peers")),
    "running": WindowFrame(UNBOUNDED, ROW),
    "rows": WindowFrame(Edge("rows", -1), ROW),
    "earlier": WindowFrame(Edge("rows", -3), Edge("rows", -2)),
    "shifted": WindowFrame(UNBOUNDED, Edge("rows", -1)),
}


def where_kept(value: Expr, otherwise: Expr) -> Expr:
    return When(((KEPT, value),), cast(otherwise, value.type), value.type, True)


def guarded(rng: Random, call: AggregateCall) -> AggregateCall:
    """The call, whose arguments fail on some rows, which FILTER rejects, or of which the first argument is NULL."""
    error, null = resolve("raise_error", [Literal("evaluated", STRING)]), Literal(None, STRING)
    arguments = [a if isinstance(a, Literal) else where_kept(a, error) for a in call.arguments]
    first = call.arguments[0]
    if len(arguments) == 1 or isinstance(first, Literal) or first not in call.required or rng.random() < 0.5:
        return replace(call, arguments=tuple(arguments), filter=KEPT)
    return replace(call, arguments=(where_kept(first, null), *arguments[1:]))


def plans(call: AggregateCall) -> dict[str, Plan]:
    key, order = reference(ROWS.schema, 0), Order(reference(ROWS.schema, 5), False, True)
    over = {name: WindowCall("aggregate", call.type, call.nullable, frame=frame, aggregate=call) for name, frame in FRAMES.items()}
    windows = {name: Window(ROWS, (key,), (order,), (("w", window),)) for name, window in over.items()}
    return {"groups": Aggregate(ROWS, (("k", key),), (("a", call),)), **windows}


@pytest.mark.parametrize("seeds", [range(4), *slow(rotating(300))], ids=len)
def test_they_are_not_evaluated_on_rows_that_do_not_count(seeds: range) -> None:
    functions = built_in()
    errors = 0
    for seed in seeds:
        rng = Random(f"guarded {seed}")
        call = guarded(rng, rng.choice(list(calls(functions[seed % len(functions)], ROWS.schema))))
        content = Content(SOURCE)
        ticks = [{"t": content.load(rng, 6)}, *({"t": content.change(rng)} for _ in range(3))]
        views: dict[str, Plan] = {}
        for name, plan in plans(call).items():
            parts = isolated(plan)
            views |= {name: plan, f"{name} content": parts.content}
            if parts.errors is not None:
                views[f"{name} errors"] = parts.errors
        errors += any(name.endswith("errors") for name in views)
        program = Case(seed, {"t": SOURCE.table}, views, ticks, False)
        outcomes = expected(program)
        run(embedded(program.tables, program.views, 1 + 2 * (seed % 2)), program, outcomes)
        for outcome in outcomes:
            assert isinstance(outcome, dict), call
            assert not any(rows for name, rows in outcome.items() if name.endswith("errors"))
    assert errors > len(seeds) // 2


FRAME = "ORDER BY a ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING"
VIEWS: Mapping[str, bool] = {
    f"max(cast(b AS INT)) OVER ({FRAME})": True,
    f"sum(cast(b AS INT)) OVER ({FRAME})": True,
    f"median(cast(b AS INT)) OVER ({FRAME})": True,
    f"max(a) FILTER (WHERE cast(b AS INT) > 0) OVER ({FRAME})": True,
    f"max(cast(b AS INT)) FILTER (WHERE b <> 'x') OVER ({FRAME})": False,
    f"median(cast(b AS INT)) FILTER (WHERE b <> 'x') OVER ({FRAME})": False,
    f"corr(c, cast(b AS DOUBLE)) OVER ({FRAME})": False,
    "max(cast(b AS INT)) FILTER (WHERE b <> 'x') OVER (ORDER BY a ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)": False,
}


@pytest.mark.parametrize("call", VIEWS)
def test_they_are_evaluated_on_rows_that_no_frame_has(call: str) -> None:
    rows = ((1, "1", 1.0), (2, "x", None))
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (a INT PRIMARY KEY, b STRING, c DOUBLE)")
        session.sql(f"CREATE MATERIALIZED VIEW v AS SELECT a, {call} AS x FROM t")
        plan, tables = session._definitions.catalog.plans()["v"], {"t": Relation((row, 1) for row in rows)}
        changes = [dict(zip("abc", row, strict=True)) for row in rows]
        if VIEWS[call]:
            with pytest.raises(EvaluationError):
                evaluate(plan, tables)
            with pytest.raises(EvaluationError):
                session.insert("t", changes)
        else:
            session.insert("t", changes)
            assert {tuple(row.values()) for row in session.view("v").rows()} == {row for row, _ in evaluate(plan, tables).pairs()}
