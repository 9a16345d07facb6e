"""Named arguments of calls, `f(1, y => 2)`, put into the order of the function's parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deltic.errors import QueryError, Span, UnknownName, did_you_mean
from deltic.frontends.sql import tree

Parameters = Sequence[tuple[str, tree.Expression | None]]
"""The names of parameters, each with the value where a call leaves it out, or None."""
_MASKS: Final = (("upperChar", "X"), ("lowerChar", "x"), ("digitChar", "n"))
_GENERATORS: Final = ("explode", "explode_outer", "posexplode", "posexplode_outer")


def has_names(arguments: Sequence[tree.Expression]) -> bool:
    return any(isinstance(argument, tree.NamedArgument) for argument in arguments)


def of_builtin(name: str, span: Span) -> Parameters | None:
    """The parameters of a builtin function that Spark lets a call name; None for all others."""
    if name == "mask":
        texts = ((word, tree.StringText(text, span)) for word, text in _MASKS)
        return (("str", None), *texts, ("otherChar", tree.KeywordExpression("NULL", span)))
    return (("collection", None),) if name in _GENERATORS else None


def in_order(name: str, arguments: Sequence[tree.Expression], parameters: Parameters, span: Span) -> tuple[tree.Expression, ...]:
    """The arguments in the order of the parameters, up to the last one that is given. Raises QueryError and UnknownName."""
    if not has_names(arguments):
        return tuple(arguments)
    places = {parameter.lower(): i for i, (parameter, _) in enumerate(parameters)}
    given: dict[int, tree.Expression] = {}
    for i, argument in enumerate(arguments):
        if not isinstance(argument, tree.NamedArgument):
            if len(given) > 0 and isinstance(arguments[i - 1], tree.NamedArgument):
                raise QueryError("an argument without a name follows one with a name", span=argument.span, expected="f(1, y => 2)")
            given[i] = argument
            continue
        word = argument.name.text
        if (place := places.get(word.lower())) is None:
            remedy = did_you_mean(word, [parameter for parameter, _ in parameters])
            raise UnknownName(f"{name} has no parameter {word!r}", span=argument.name.span, remedy=remedy)
        if place in given:
            raise QueryError(f"the argument {word!r} is given twice", span=argument.span, remedy="leave one of them out")
        given[place] = argument.value
    ordered = []
    for i in range(max(given) + 1):
        value = given[i] if i in given else parameters[i][1]
        if value is None:
            raise QueryError(f"the argument {parameters[i][0]!r} of {name} is missing", span=span, expected=f"{parameters[i][0]} => value")
        ordered.append(value)
    return tuple(ordered)
