"""Hints before rules: #[join_order = "Edge, Path"], #[join = "multiway"] and #[iterations = 100]. None changes a result.

join_order: the order in which the atoms of the body, which are its first parts, are joined, two by two. join: how joins are computed, as by
SQL's hints MULTIWAY_JOIN and BINARY_JOIN. iterations: the most iterations of the recursion that the rule is part of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, get_args

from deltic.errors import Span, SyntaxFailure, Unsupported
from deltic.frontends.datalog.tree import AtomTerm, DatalogRule, RecordTerm, Term
from deltic.options import Option
from deltic.plan.nodes import Hint, HintKind

HINTS: Final = ("join_order", "join", "iterations")


def hinted(rule: DatalogRule, given: Mapping[str, Option], span: Span) -> DatalogRule:
    """The rule with the hints of an attribute. span: the attribute's. Raises SyntaxFailure and Unsupported."""
    for name, option in given.items():
        match name:
            case "join_order":
                rule = _with_join(_ordered(rule, option), Hint("binary", option.span), option.span)
            case "join":
                rule = _with_join(rule, Hint(_kind(option), option.span), option.span)
            case "iterations":
                rule = replace(rule, iterations=(_count(option), option.span))
            case _:
                raise SyntaxFailure(f"there is no hint {option.key}", span=option.key_span, expected=f"one of {', '.join(HINTS)}")
    return rule


def _kind(option: Option) -> HintKind:
    for kind in get_args(HintKind):
        if option.value == kind:
            join_kind: HintKind = kind
            return join_kind
    raise SyntaxFailure(f"invalid join {option.value!r}", span=option.span, expected=" or ".join(map(repr, get_args(HintKind))))


def _count(option: Option) -> int:
    if not option.value.isascii() or not option.value.isdigit() or not 0 < len(option.value) < 10:
        raise SyntaxFailure(f"invalid number of iterations {option.value!r}", span=option.span, expected="a number from 0")
    return int(option.value)


def _with_join(rule: DatalogRule, hint: Hint, span: Span) -> DatalogRule:
    if rule.join not in (None, hint):
        raise SyntaxFailure("these hints contradict each other", span=span, expected="join_order or join")
    if len(_atoms(rule.body)) < 2:
        raise Unsupported("there is no join for this hint", span=span, remedy="remove the hint")
    return replace(rule, join=hint)


def _atoms(body: Sequence[Term]) -> list[tuple[Term, str]]:
    """The positive atoms of a body, with the names of their relations."""
    atoms = ((one, one.atom if isinstance(one, RecordTerm) else one) for one in body)
    return [(one, atom.name) for one, atom in atoms if isinstance(atom, AtomTerm)]


def _ordered(rule: DatalogRule, option: Option) -> DatalogRule:
    """The rule with its atoms in another order; those of one relation stay in the order of the text."""
    atoms, names = _atoms(rule.body), [name.strip() for name in option.value.split(",")]
    if sorted(names) != sorted(name for _, name in atoms):
        expected = ", ".join(name for _, name in atoms) or "the relations of the body"
        raise Unsupported("the order does not have each atom of the body once", span=option.span, expected=f"{expected}, in any order")
    rest = rule.body[len(atoms) :]
    if early := next((one for one in rule.body[: len(atoms)] if all(one is not atom for atom, _ in atoms)), None):
        raise Unsupported("this part is before an atom", span=early.span, remedy="join_order requires that the atoms are the first parts")
    of_name = {name: iter([atom for atom, other in atoms if other == name]) for name in names}
    return replace(rule, body=(*(next(of_name[name]) for name in names), *rest))
