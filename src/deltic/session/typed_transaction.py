"""A transaction whose statements are typed one by one: each is checked as it comes, and COMMIT runs all of them."""

from __future__ import annotations

from collections.abc import Callable

from deltic.frontends.sql import parse_sql
from deltic.runtimes import Committed
from deltic.session.contents import Contents
from deltic.session.draft import Draft
from deltic.session.query import Answer, answer_of
from deltic.session.row_changes import CHANGES, AppliedStatements, RowChanges
from deltic.trace.strings import StringTable


class TypedTransaction:
    """draft: the definitions, with the variables that the transaction sets. now_us: the time of its statements. limit: of iterations."""

    def __init__(self, draft: Draft, contents: Contents, now_us: Callable[[], int], limit: int | None) -> None:
        self._draft, self._contents, self._now_us, self._limit = draft, contents, now_us, limit
        self._changes = RowChanges()
        self._texts: list[str] = []

    @property
    def is_open(self) -> bool:
        """Whether COMMIT or ROLLBACK is still to come."""
        return self._changes.is_open

    @property
    def script(self) -> str:
        """Its statements, from BEGIN on."""
        return ";\n".join(self._texts)

    def add(self, text: str, name: str) -> None:
        """Checks one statement, and takes it. Raises QueryError, and is then as before."""
        for statement in parse_sql(text, name, self._draft, self._now_us()):
            if isinstance(statement, CHANGES):
                self._changes.add(statement)
            else:
                self._changes.check_definition(statement)
                self._draft.apply(statement)
        self._texts.append(text)

    def query(self, text: str, name: str) -> Answer:
        """The answer of a query that sees the changes and variables of the statements so far. Views are computed, not read.

        Raises as `Session.sql` and `query`.
        """
        now_us = self._now_us()

        def answer(committed: Committed, strings: StringTable) -> Answer:
            relations = AppliedStatements(self._changes.last, committed, strings, now_us, self._limit).relations(self._draft.variables())
            return answer_of(text, name, relations, None, committed, strings, self._limit)

        return self._contents.compute(answer)
