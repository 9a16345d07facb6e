"""Rules for joins with the nearest rows: `ASOF JOIN right MATCH_CONDITION (…)`, and `JOIN right EXACT NEAREST 2 BY DISTANCE …`.

Spark has no ASOF JOIN; in it ASOF is a name, and so is MATCH_CONDITION.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final

from deltic.frontends.sql import tree
from deltic.frontends.sql.lexer import NUMBER
from deltic.frontends.sql.parse_expression import ExpressionParser

MATCH: Final = "MATCH_CONDITION"
_MODES: Final = ("APPROX", "EXACT")


def without_asof(words: Sequence[str]) -> tuple[list[str], bool]:
    """(the words before JOIN, whether ASOF was the first or last of them). The others are those of an ordinary join."""
    if words[:1] == ["ASOF"]:
        return [*words[1:]], True
    return ([*words[:-1]], True) if words[-1:] == ["ASOF"] else ([*words], False)


class AsofParser(ExpressionParser, ABC):
    """in_asof: whether the right relation of an ASOF JOIN is read, after which MATCH_CONDITION is not its alias."""

    in_asof = False

    @abstractmethod
    def _source(self) -> tree.Source: ...

    def _matched_source(self) -> tuple[tree.Source, tree.Expression]:
        """The right relation, and the MATCH_CONDITION after it."""
        before, self.in_asof = self.in_asof, True
        try:
            source = self._source()
        finally:
            self.in_asof = before
        if not self.passes(MATCH):
            raise self.failure("MATCH_CONDITION (left.time >= right.time) after the right relation of an ASOF JOIN")
        self.expect("(")
        condition = self.expression()
        self.expect(")")
        return source, condition

    def sees_match_condition(self) -> bool:
        return self.in_asof and self.sees(MATCH, "(")

    def sees_nearest(self) -> bool:
        return any(self.sees(mode, "NEAREST") for mode in _MODES)

    def nearest(self) -> tree.NearestBy | None:
        """What stands in place of a join's condition. Both modes are exact."""
        if not self.sees_nearest():
            return None
        start = self.token.start
        self.position += 2
        count = self.take() if self.token.kind == NUMBER else None
        self.expect("BY")
        if self.word not in ("DISTANCE", "SIMILARITY"):
            raise self.failure("DISTANCE or SIMILARITY")
        greatest = self.take().word == "SIMILARITY"
        most = None if count is None else tree.NumberText(count.text, self.of(count))
        return tree.NearestBy(most, greatest, self.expression(), self.since(start))
