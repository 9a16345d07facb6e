"""A script of SQL in parts: the definitions up to a change of rows, then the ticks up to the next definition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from deltic.errors import Span
from deltic.frontends.sql import ChangeStatement
from deltic.frontends.sql.tree import TransactionMark
from deltic.frontends.statements import Statement
from deltic.session.draft import Draft, DraftedPart
from deltic.session.row_changes import CHANGES, RowChanges, is_of_variable


class ScriptStep(NamedTuple):
    """Definitions that are one commit, or the statements of one tick. place: of the first."""

    place: Span | None
    definitions: DraftedPart | None = None
    tick: Sequence[ChangeStatement] = ()


def applied(steps: Sequence[ScriptStep], done: int) -> str:
    """What an error says of a script of which the first steps are applied."""
    if done == len(steps):
        return "all statements of the script are applied"
    place = steps[done].place
    assert place is not None
    return f"the statements of the script before line {place.line}, column {place.column} are applied; that one and those after it are not"


def steps_of(
    statements: Iterable[Statement | ChangeStatement | TransactionMark], draft: Draft, check: Callable[[Statement], None]
) -> list[ScriptStep]:
    """The steps of a script that is read, each definition of which is in the draft before the next statement is read.

    check: raises QueryError for a definition that is not allowed. Raises QueryError, of several parts also for what `Catalog.plans`
    refuses, so that none of them has been applied then.
    """
    steps: list[ScriptStep] = []
    changes, several = RowChanges(), False
    first: Statement | None = None
    for statement in statements:
        if isinstance(statement, CHANGES):
            if first is not None and not changes.started:
                steps.append(ScriptStep(first.span, draft.cut()))
                first = None
            changes.add(statement)
            continue
        changes.check_definition(statement)
        check(statement)
        if changes.started and not is_of_variable(statement):
            steps += _part(draft, first, changes)
            changes, first, several = RowChanges(), None, True
        draft.apply(statement)
        first = first or statement
    steps += _part(draft, first, changes)
    for step in steps if several else ():
        if step.definitions is not None:
            step.definitions.catalog.plans()
    return steps or [ScriptStep(None, draft.cut())]


def _part(draft: Draft, first: Statement | None, changes: RowChanges) -> list[ScriptStep]:
    """The ticks, and the definitions since the last step, if there are any: after ticks, those of variables. first: of the definitions."""
    ticks = [ScriptStep(statements[0].node.span, tick=statements) for statements in changes.ticks()]
    return ticks if first is None else [*ticks, ScriptStep(first.span, draft.cut())]
