"""Test support: random joins as a user may write them, of which it is known what their relations and variables are.

An atom is a relation with a letter for each of its columns s and d; equal letters must be equal. `random_join` joins the atoms in any
order and shape, with the equalities in ON or in a WHERE further up, and puts between and above them what its `wrappings` are. If it is
`loose`, some equalities are `<=>` and some joins are outer joins, so that the relations need not form one conjunctive query.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from deltic.expr.functions import resolve
from deltic.expr.nodes import Expr, Literal
from deltic.plan.columns import conjunction, reference
from deltic.plan.nodes import Bound, Filter, FlatMap, Join, JoinKind, Plan, Project, Table, TemporalFilter
from deltic.plan.relation import Relation, Row
from deltic.schema import BIGINT, TIMESTAMP, Field, Schema, TableSchema

NOW = datetime(2024, 5, 1, 12, tzinfo=UTC)
EDGE = Schema((Field("s", BIGINT), Field("d", BIGINT), Field("at", TIMESTAMP)))
SURE = Schema((Field("s", BIGINT, False), Field("d", BIGINT, False), Field("at", TIMESTAMP)))
TABLES = {name: TableSchema(name, SURE if name == "n" else EDGE) for name in ("g", "h", "n", "p")}


OUTER: tuple[JoinKind, ...] = ("left", "right", "full")


@dataclass(frozen=True)
class Part:
    """What has been joined so far. letters: by position of a column its variable. waiting: letters and pairs for a WHERE further up."""

    plan: Plan
    letters: tuple[str | None, ...]
    waiting: tuple[tuple[str, int, int], ...] = ()

    def column(self, i: int) -> Expr:
        return reference(self.plan.schema, i)

    def of_type(self, type_: object) -> list[int]:
        return [i for i, field in enumerate(self.plan.schema) if field.type == type_]


Wrapping = Callable[[random.Random, Part], Part]


def random_atoms(rng: random.Random) -> list[str]:
    letters = "abcde"[: rng.randint(3, 5)]
    return ["".join(rng.sample(letters, 2)) for _ in range(rng.randint(3, 5))]


def random_join(rng: random.Random, atoms: Sequence[str], wrappings: Sequence[Wrapping], *, loose: bool = False) -> Plan:
    """The atoms joined, beside them sometimes a relation without variables."""
    parts = [Part(Table(TABLES[rng.choice("ghn")]), (*atom, None)) for atom in atoms]
    if rng.random() < 0.3:
        parts.append(Part(Table(TABLES["p"]), (None,) * 3))
    rng.shuffle(parts)
    while len(parts) > 1:
        left = parts.pop(0 if rng.random() < 0.6 else rng.randrange(len(parts)))
        right = parts.pop(rng.randrange(len(parts)))
        part = _joined(rng, left, right, loose)
        while wrappings and rng.random() < 0.35:
            part = rng.choice(wrappings)(rng, part)
        parts.insert(0, part)
    return _filtered(parts[0]).plan


def _joined(rng: random.Random, left: Part, right: Part, loose: bool) -> Part:
    """Every letter that both have is in a key, in ON, or waits for a WHERE."""
    width = len(left.letters)
    both = Schema((*left.plan.schema, *right.plan.schema))
    letters = (*left.letters, *right.letters)
    keys, conditions = [], []
    waiting = [*left.waiting, *((letter, a + width, b + width) for letter, a, b in right.waiting)]
    for letter in sorted({x for x in left.letters if x} & {x for x in right.letters if x}):
        one, other = rng.choice(_places(left.letters, letter)), rng.choice(_places(right.letters, letter))
        way = rng.random()
        if way < 0.6:
            keys.append((left.column(one), right.column(other)))
        elif way < 0.8:
            sides = [reference(both, one), reference(both, other + width)]
            sure = not any(side.nullable for side in sides)
            conditions.append(resolve("<=>" if (sure or loose) and rng.random() < 0.5 else "equal", sides))
        else:
            waiting.append((letter, one, other + width))
    kind = rng.choice(OUTER) if loose and (keys or conditions) and rng.random() < 0.3 else "inner"
    plan = Join(left.plan, right.plan, kind, tuple(keys), conjunction(conditions) if conditions else None)
    part = Part(plan, letters, tuple(waiting))
    return _filtered(part) if rng.random() < 0.3 else part


def _places(letters: Sequence[str | None], letter: str) -> list[int]:
    return [i for i, each in enumerate(letters) if each == letter]


def _filtered(part: Part) -> Part:
    if not part.waiting:
        return part
    equalities = [resolve("equal", [part.column(one), part.column(other)]) for _, one, other in part.waiting]
    return Part(Filter(part.plan, conjunction(equalities)), part.letters)


def _two(rng: random.Random, part: Part, type_: object) -> list[Expr]:
    return [part.column(i) for i in rng.sample(part.of_type(type_), 2)]


def timed(rng: random.Random, part: Part) -> Part:
    """A temporal condition on two columns, mostly of two relations."""
    bound = Bound(resolve(rng.choice(("greatest", "least")), _two(rng, part, TIMESTAMP)), rng.choice((0, 3_600_000_000)))
    plan = TemporalFilter(part.plan, (bound,)) if rng.random() < 0.7 else TemporalFilter(part.plan, upper=(bound,))
    return Part(plan, part.letters, part.waiting)


def conditioned(rng: random.Random, part: Part) -> Part:
    return Part(Filter(part.plan, resolve("less_equal", _two(rng, part, BIGINT))), part.letters, part.waiting)


def divided(rng: random.Random, part: Part) -> Part:
    """A condition that can fail."""
    predicate = resolve("is_not_null", [resolve("div", _two(rng, part, BIGINT))])
    return Part(Filter(part.plan, predicate), part.letters, part.waiting)


def permuted(rng: random.Random, part: Part) -> Part:
    order = rng.sample(range(len(part.letters)), len(part.letters))
    plan = Project(part.plan, tuple((f"c{i}", part.column(i)) for i in order))
    waiting = tuple((letter, order.index(one), order.index(other)) for letter, one, other in part.waiting)
    return Part(plan, tuple(part.letters[i] for i in order), waiting)


def computed(rng: random.Random, part: Part) -> Part:
    """A column beside the others that costs something."""
    columns = tuple((f"c{i}", part.column(i)) for i in range(len(part.letters)))
    made = resolve("greatest", _two(rng, part, BIGINT))
    return Part(Project(part.plan, (*columns, ("made", made))), (*part.letters, None), part.waiting)


def exploded(rng: random.Random, part: Part) -> Part:
    """Two elements for each row, which is what another relation may be joined by."""
    a, b = _two(rng, part, BIGINT)
    return Part(FlatMap(part.plan, "array", (a, b, Literal(1, BIGINT))[: rng.randint(2, 3)], ("e",)), (*part.letters, None), part.waiting)


def beside(rng: random.Random, part: Part) -> Part:
    """A join of another kind with a relation that has no variables."""
    other = Table(TABLES["p"])
    key = (part.column(rng.choice(part.of_type(BIGINT))), reference(other.schema, 0))
    kind = rng.choice(("left", "right", "semi", "anti"))
    if kind == "right":
        plan = Join(other, part.plan, "right", (key[::-1],))
        return Part(plan, (None, None, None, *part.letters), tuple((x, a + 3, b + 3) for x, a, b in part.waiting))
    plan = Join(part.plan, other, kind, (key,))
    return Part(plan, (*part.letters, *([None] * 3 if kind == "left" else [])), part.waiting)


SEEN_THROUGH: tuple[Wrapping, ...] = (timed, timed, conditioned, divided, permuted)
ALL: tuple[Wrapping, ...] = (*SEEN_THROUGH, computed, exploded, beside)


def random_tables(rng: random.Random, rows: int = 9) -> Mapping[str, Relation]:
    """Few values, so that much is equal, and few of what can fail."""

    def row(last: int | None) -> Row:
        values = [rng.choice((1, 1, 2, 2, 3, 4, last)) for _ in range(2)]
        return (*values, NOW + rng.choice((-2, -1, 0, 1)) * timedelta(hours=1))

    sizes = {name: 2 if name == "p" else rows for name in TABLES}
    return {name: Relation((row(5 if name == "n" else None), rng.choice((1, 1, 2))) for _ in range(size)) for name, size in sizes.items()}
