"""Hints: `/*+ MULTIWAY_JOIN */` and `/*+ BINARY_JOIN */` behind SELECT say how the inner joins of its FROM are computed.

Others are read and dropped, as Spark does with hints that it does not know: none of them changes a result.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from deltic.errors import Span, SyntaxFailure, Unsupported
from deltic.frontends.sql.spans import Places
from deltic.plan.nodes import Hint, HintKind, Join, Plan
from deltic.plan.walk import nodes

KINDS: Final[dict[str, HintKind]] = {"MULTIWAY_JOIN": "multiway", "BINARY_JOIN": "binary"}

_COMMENT: Final = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)


def join_hint(select: exp.Select, places: Places) -> Hint | None:
    """The hint of this SELECT for its joins."""
    given = select.args.get("hint")
    found: Hint | None = None
    for node in given.expressions if given else ():
        name = node.name if isinstance(node, exp.Var | exp.Column | exp.Anonymous) else ""
        kind = KINDS.get(name.upper())
        if kind is None:
            continue
        span = _place(select, places)
        if isinstance(node, exp.Anonymous) and node.expressions:
            raise SyntaxFailure(f"the hint {name} is for all joins of the SELECT", span=span, expected=f"/*+ {name} */")
        if found is not None and found.kind != kind:
            raise SyntaxFailure("these hints contradict each other", span=span, expected=f"one of {', '.join(KINDS)}")
        found = Hint(kind, span)
    return found


def _place(select: exp.Select, places: Places) -> Span:
    """That of the hint before the first name of the SELECT; sqlglot keeps none for hints."""
    parts = [*select.expressions, *([select.args["from_"]] if select.args.get("from_") else [])]
    first = min((node.meta["start"] for part in parts for node in part.walk() if "start" in node.meta), default=0)
    before = [token for token in places.tokens if token.token_type == TokenType.HINT and token.start < first]
    return places.at(before[-1]) if before else places.of(select)


def check_placed(places: Places) -> None:
    """Raises SyntaxFailure where a hint for joins is a mere comment, since it does not stand behind SELECT at once."""
    for before, after in pairwise(places.tokens):
        for comment in _COMMENT.finditer(places.text, before.end + 1, after.start):
            if comment[0].startswith("/*+") and any(word in KINDS for word in re.findall(r"\w+", comment[0].upper())):
                span = Span(places.text, *comment.span(), places.name)
                raise SyntaxFailure("a hint stands behind SELECT, one comment for all", span=span, expected="SELECT /*+ hint, hint */ …")


def check_followed(hint: Hint | None, plan: Plan) -> None:
    """Raises Unsupported where FROM, bound as `plan`, has no join for the hint."""
    if hint is not None and not any(isinstance(node, Join) and node.hint is hint for node in nodes(plan)):
        raise Unsupported("there is no inner join for this hint", span=hint.span, remedy="leave the hint out")
