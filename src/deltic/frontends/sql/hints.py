"""Hints: `/*+ MULTIWAY_JOIN */` and `/*+ BINARY_JOIN */` after SELECT choose how the inner joins of its FROM are computed.

Spark's hints are ignored: none of them changes a result. An unknown hint, or one that names an unknown relation, is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from deltic.errors import Span, SyntaxFailure, UnknownName, Unsupported, did_you_mean
from deltic.frontends.sql import tree
from deltic.plan.nodes import Hint, HintKind, Join, Plan
from deltic.plan.walk import nodes

KINDS: Final[dict[str, HintKind]] = {"MULTIWAY_JOIN": "multiway", "BINARY_JOIN": "binary"}
# fmt: off
OF_RELATIONS: Final = (
    "BROADCAST", "BROADCASTJOIN", "MAPJOIN", "MERGE", "SHUFFLE_MERGE", "MERGEJOIN", "SHUFFLE_HASH", "SHUFFLE_REPLICATE_NL",
)
# fmt: on
OF_ROWS: Final = ("COALESCE", "REPARTITION", "REPARTITION_BY_RANGE", "REBALANCE")
KNOWN: Final = (*KINDS, *OF_RELATIONS, *OF_ROWS)
"""Deltic's, Spark's for joins, whose arguments are relations, and Spark's for where rows are."""

_HINT: Final = re.compile(r"([^\W\d]\w*)\s*(?:\((\s*[^\s(),][^(),]*(?:,\s*[^\s(),][^(),]*)*)\))?(\s*,\s*(?=\w)|\s+|$)")
_ARGUMENT: Final = re.compile(r"[^\s,]+(?:\s+[^\s,]+)*")


@dataclass(frozen=True, slots=True)
class _Given:
    """One hint, with places."""

    name: str
    span: Span
    arguments: tuple[tuple[str, Span], ...]


def join_hint(select: tree.SelectQuery) -> Hint | None:
    """The join hint of the SELECT; None without one."""
    span = select.hint
    if span is None:
        return None
    given = [_known(hint) for hint in _read(span)]
    _check_relations(given, select)
    kinds = {KINDS[hint.name] for hint in given if hint.name in KINDS}
    if len(kinds) > 1:
        raise SyntaxFailure("these hints contradict each other", span=span, expected=f"one of {', '.join(KINDS)}")
    return Hint(kinds.pop(), span) if kinds else None


def _read(comment: Span) -> Iterator[_Given]:
    text, offset, end = comment.text, comment.start + len("/*+"), comment.end - len("*/")
    end = offset + len(text[offset:end].rstrip())
    offset += len(text[offset:end]) - len(text[offset:end].lstrip())
    if offset == end:
        raise SyntaxFailure("this hint is empty", span=comment, remedy="leave it out")
    while offset < end:
        match = _HINT.match(text, offset, end)
        if match is None:
            rest = Span(text, offset, end, comment.name)
            raise SyntaxFailure("invalid hint", span=rest, expected="/*+ hint, hint(relation, …) */")
        arguments = () if match[2] is None else tuple(_ARGUMENT.finditer(text, *match.span(2)))
        places = [Span(text, *argument.span(), comment.name) for argument in arguments]
        named = tuple((argument[0], place) for argument, place in zip(arguments, places, strict=True))
        yield _Given(match[1].upper(), Span(text, *match.span(1), comment.name), named)
        offset = match.end()


def _known(hint: _Given) -> _Given:
    if hint.name not in KNOWN:
        remedy = did_you_mean(hint.name, KNOWN)
        raise UnknownName(f"there is no hint {hint.name}", span=hint.span, expected=f"{', '.join(KINDS)}, or one of Spark's", remedy=remedy)
    if hint.name in KINDS and hint.arguments:
        raise SyntaxFailure(f"the hint {hint.name} is for all joins of the SELECT", span=hint.span, expected=f"/*+ {hint.name} */")
    return hint


def _check_relations(given: Sequence[_Given], select: tree.SelectQuery) -> None:
    relations = list(dict.fromkeys([*_names(select.source), *(view.name.text for view in select.laterals if view.name is not None)]))
    for name, span in (argument for hint in given if hint.name in OF_RELATIONS for argument in hint.arguments):
        if name.rpartition(".")[2].strip("`").lower() not in map(str.lower, relations):
            raise UnknownName(f"there is no relation {name} in this FROM", span=span, remedy=did_you_mean(name, relations))


def _names(source: tree.Source | None) -> Iterator[str]:
    """The names of the relations of FROM."""
    if source is None or isinstance(source, tree.ArgumentRows | tree.PipedRows):
        return
    if source.alias is not None:
        yield source.alias.name.text
    elif isinstance(source, tree.TableName):
        yield source.name.text
    elif isinstance(source, tree.JoinedTables):
        for part in (source.first, *(join.right for join in source.joins)):
            yield from _names(part)


def check_followed(hint: Hint | None, plan: Plan) -> None:
    """Raises Unsupported if FROM, bound as `plan`, has no join to which the hint applies."""
    if hint is not None and not any(isinstance(node, Join) and node.hint is hint for node in nodes(plan)):
        raise Unsupported("there is no inner join for this hint", span=hint.span, remedy="remove the hint")
