"""A script of SQL in parts: the definitions up to a change of rows, then the ticks up to the next definition."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from deltic.frontends.sql import ChangeStatement
from deltic.frontends.sql.tree import TransactionMark
from deltic.frontends.statements import Statement
from deltic.session.draft import Draft, DraftedPart
from deltic.session.row_changes import CHANGES, RowChanges, is_of_variable


class ScriptPart(NamedTuple):
    """definitions: None if it has none. ticks: the statements of each."""

    definitions: DraftedPart | None
    ticks: list[list[ChangeStatement]]


def parts_of(
    statements: Iterable[Statement | ChangeStatement | TransactionMark], draft: Draft, check: Callable[[Statement], None]
) -> list[ScriptPart]:
    """The parts of a script that is read, each definition of which is in the draft before the next statement is read.

    check: raises QueryError for a definition that is not allowed. Raises QueryError, of several parts also for what `Catalog.plans`
    refuses, so that none of them has been applied then.
    """
    parts: list[ScriptPart] = []
    changes, defines = RowChanges(), False
    for statement in statements:
        if isinstance(statement, CHANGES):
            changes.add(statement)
            continue
        changes.check_definition(statement)
        check(statement)
        if changes.started and not is_of_variable(statement):
            parts.append(ScriptPart(draft.cut() if defines else None, changes.ticks()))
            changes = RowChanges()
        draft.apply(statement)
        defines = True
    ticks = changes.ticks()
    parts.append(ScriptPart(draft.cut() if defines or not ticks else None, ticks))
    for definitions, _ in parts if len(parts) > 1 else ():
        if definitions is not None:
            definitions.catalog.plans()
    return parts
