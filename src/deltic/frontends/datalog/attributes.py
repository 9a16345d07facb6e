"""Attributes, #[name = value, …], before declarations, rules and columns.

#[source = "csv", path = "in"] says where the rows of an input relation come from in a pipeline, #[sink = "csv", path = "out"] where the
changes of an output relation go: connectors and their options, as those of USING and OPTIONS in SQL. Those before rules are hints
(rule_hints.py). Attributes of DDlog have no effect.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from deltic.errors import Span, SyntaxFailure, UnknownName, Unsupported, did_you_mean
from deltic.frontends.datalog.rule_hints import HINTS, hinted
from deltic.frontends.datalog.tree import Attribute, DatalogRule, Item, RelationDeclaration
from deltic.options import Option, Options

CONNECTORS: Final = {"source": "input", "sink": "output"}
"""The attributes that connect a relation, by its role."""
OF_DDLOG: Final = (
    "by_val",
    "custom_from_record",
    "custom_serde",
    "deserialize_from_array",
    "dyn_alloc",
    "has_side_effects",
    "iterate_by_ref",
    "iterate_by_val",
    "original",
    "rename",
    "return_by_ref",
    "rust",
    "shared_ref",
    "size",
)
"""They are about the Rust code that DDlog makes."""
EXPECTED_HINT: Final = '#[join_order = "Edge, Path", iterations = 100]'
EXPECTED: Final = '#[source = "csv", path = "folder", header = true]'
_PAIR: Final = re.compile(r'\s*(\w+)\s*=\s*("(?:[^"\\]|\\.)*"|[\w.+-]+)\s*(?:,|$)')


def attribute(token: str, place: Span) -> Attribute:
    """An attribute. place: of the whole token. Raises UnknownName and SyntaxFailure."""
    start = token.index("[") + 1
    match = re.match(r"\s*(\w*)", token[start:])
    assert match is not None
    name = match[1]
    if name in OF_DDLOG:
        return Attribute(name, place)
    if name not in (*CONNECTORS, *HINTS):
        names = (*CONNECTORS, *HINTS, *OF_DDLOG)
        raise UnknownName(f"there is no attribute {name}", span=place, remedy=did_you_mean(name, names) or "leave it out")
    options: dict[str, Option] = {}
    offset, end = start, len(token) - 1
    while offset < end:
        pair = _PAIR.match(token, offset, end)
        if pair is None:
            expected = EXPECTED if name in CONNECTORS else EXPECTED_HINT
            raise SyntaxFailure(f"malformed attribute {name}", span=_part(place, offset, end), expected=expected)
        value = pair[2]
        text = re.sub(r"\\(.)", lambda escape: {"n": "\n", "t": "\t"}.get(escape[1], escape[1]), value[1:-1]) if value[0] == '"' else value
        key = pair[1].lower()
        if key in options:
            raise SyntaxFailure(f"the option {pair[1]} is given twice", span=_part(place, *pair.span(1)))
        options[key] = Option(pair[1], text, _part(place, *pair.span(1)), _part(place, *pair.span(2)))
        offset = pair.end()
    if name in HINTS:
        return Attribute(name, place, None, options)
    connector = options.pop(name)
    return Attribute(name, place, Options(connector.value, connector.span, options))


def _part(place: Span, start: int, end: int) -> Span:
    return Span(place.text, place.start + start, place.start + end, place.name)


def connected(item: Item | None, attributes: Sequence[Attribute]) -> Item | None:
    """The item with the connector and the hints of its attributes. Raises Unsupported if it is no item that can have them."""
    for one in attributes:
        if one.hints:
            if not isinstance(item, DatalogRule):
                raise Unsupported(f"the attribute {one.name} belongs to a rule", span=one.span, expected=f"#[{one.name} = …] R(x) :- …")
            item = hinted(item, one.hints, one.span)
        if one.connector is None:
            continue
        role = CONNECTORS[one.name]
        if not isinstance(item, RelationDeclaration) or item.role != role:
            raise Unsupported(
                f"the attribute {one.name} belongs to an {role} relation", span=one.span, expected=f"#[{one.name} = …] {role} relation …"
            )
        if item.connector is not None:
            raise Unsupported(f"the relation {item.name} has two attributes {one.name}", span=one.span, remedy="leave one of them out")
        item = replace(item, connector=one.connector)
    return item
