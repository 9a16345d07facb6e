"""Random plans with recursions, all of which terminate.

A recursive relation is one of three kinds. A set takes its values from columns and constants alone, so that there are finitely many;
sets may be mutually recursive, non-linear, and hold recursions that read them. A bag (UNION ALL) goes from a row only to rows that are
greater in one column. An extreme keeps the least or greatest value under each key: copies, LEAST and GREATEST of what is there, or sums
that get worse. Most steps follow the edges of a sparse graph, the first of the tables, from a few of its nodes: iterations are many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Literal as OneOf

from deltic.errors import Unsupported
from deltic.expr.functions import resolve
from deltic.expr.nodes import Expr, Literal, OuterColumn
from deltic.expr.typing import case
from deltic.plan.columns import reference
from deltic.plan.monotone import check_monotone
from deltic.plan.nodes import (
    Aggregate,
    AggregateCall,
    DependentJoin,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Plan,
    Recursion,
    Reference,
    SetOperation,
    Union,
    references,
)
from deltic.plan.recursion import as_declared
from deltic.plan.subquery_nodes import outer_number
from deltic.plan.unnest import unnest
from deltic.schema import BIGINT, BOOLEAN, INT, Field, Schema
from program_data import Source, domain
from program_monotone import MonotonePrograms
from program_plans import Bound, Scalar, Sized, holds

Bodies = Callable[[dict[str, Sized]], dict[str, Sized]]
"""Bodies of relations, given the relations."""

LARGE = 10**8


class RecursivePrograms(MonotonePrograms):
    """Random plans in which each view reads a recursion. nest: the nesting depth of recursions."""

    def __init__(self, rng: Random, sources: Sequence[Source], rows: int, nest: int) -> None:
        super().__init__(rng, sources, rows)
        self.nest, self.graph = nest, self.tables[0]
        self._forced: list[Sized] = []
        self._names = 0

    def view(self) -> Sized:
        """A recursion, or one or two operators over it."""
        depth = self.rng.choice([0, 0, 1, 1, 2])
        recursion = self.recursion(self.nest, [])
        self.made.append(recursion)
        self._forced = [recursion]
        return self.relation(depth)

    def leaf(self, sharing: bool) -> Sized:
        return self._forced.pop() if self._forced else super().leaf(sharing)

    def closed(self) -> Sized:
        """A plan without references, usually a table."""
        return self.rng.choice(self.tables) if self.rng.random() < 0.75 else self.relation(1, sharing=True)

    def recursion(self, nest: int, around: list[Sized]) -> Sized:
        """A recursion that reads a relation of `around`, if there are any, and has nest - 1 recursions inside."""
        if nest == 1 and not around and self.rng.random() < 0.45:
            return self.rng.choice((self.bag, self.extreme, self.extreme, self.flags))()
        return self.sets(nest, around)

    def sets(self, nest: int, around: list[Sized]) -> Sized:
        """One or two relations, each the DISTINCT of a base and one or two steps."""
        names = [self._name() for _ in range(self.rng.choice([1, 1, 2]))]
        bases = {name: self._columns(self._base(around), self.rng.choice([1, 2, 2])) for name in names}
        state, made, count = self.rng.getstate(), len(self.made), self._names

        def bodies(relations: dict[str, Sized]) -> dict[str, Sized]:
            self.rng.setstate(state)
            self._names = count
            del self.made[made:]
            inside = [*relations.values(), *around]
            return {name: self._set(bases[name], relations[name], inside, nest) for name in names}

        return self._settled(bases, bodies)

    def _base(self, around: list[Sized]) -> Sized:
        if around:
            return self.monotone(self.rng.choice([0, 1]), around[:1])
        return self.few()

    def few(self) -> Sized:
        """A few base rows, mostly of the graph."""
        relation = self.graph if self.rng.random() < 0.7 else self.closed()
        if self.rng.random() < 0.3:
            return relation
        node = relation.column(0)[0]
        chosen = [Literal(value, node.type) for value in domain(node.type)[: self.rng.randint(1, 3)]]
        return Sized(Filter(relation.plan, resolve("in", [node, *chosen])), relation.bounds, relation.rows * 0.5)

    def _set(self, base: Sized, own: Sized, inside: list[Sized], nest: int) -> Sized:
        steps = [self._step(base, own, inside) for _ in range(self.rng.choice([1, 1, 2]))]
        if nest > 1:
            steps.append(self._fitted(self.recursion(nest - 1, [own]), base))
        union = Union((base.plan, *(step.plan for step in steps)))
        return Sized(Distinct(union), _widest([base, *steps]), min(60.0, base.rows * 3))

    def _step(self, base: Sized, own: Sized, inside: list[Sized]) -> Sized:
        followed = self._followed(self.rng.choice([own, own, *inside[:2]])) if self.rng.random() < 0.7 else None
        source = self.monotone(self.rng.choice([1, 1, 2]), inside) if followed is None else followed
        return self._fitted(source, base, in_order=followed is not None)

    def _followed(self, source: Sized) -> Sized | None:
        """The rows with their last node replaced by the nodes that an edge, or another row, leads to."""
        nodes = self._of_type(source, self.graph, 0)
        if not nodes:
            return None
        at, width = nodes[-1], len(source.schema)
        edges = source if len(nodes) > 1 and nodes[0] == 0 and self.rng.random() < 0.3 else self.graph
        key = (source.column(at)[0], edges.column(0)[0])
        both = Sized(Join(source.plan, edges.plan, "inner", (key,)), source.bounds + edges.bounds, source.rows)
        other = width + (at if edges is source else 1)
        return self._projected(both, [both.column(other if i == at else i) for i in range(width)])

    def monotone(self, depth: int, inside: list[Sized]) -> Sized:
        """A plan that reads one of the relations `inside`, and is monotone in them."""
        if depth == 0:
            return inside[0] if self.rng.random() < 0.7 else self.rng.choice(inside)
        source = self.monotone(depth - 1, inside)
        makers = (self._joined, self._joined, self._joined, self._thinner, self._supported, self._without, self._compared)
        return self.rng.choice((*makers, self.tested, self.tested, self.tested, self.grouped, self.grouped))(source, inside)

    def _joined(self, source: Sized, inside: list[Sized]) -> Sized:
        """A join with another plan or, non-linearly, with a recursive relation."""
        other = self.closed() if self.rng.random() < 0.7 else self.rng.choice(inside)
        kinds: list[JoinKind] = ["inner", "semi"] if references(other.plan) else ["inner", "inner", "inner", "semi", "left"]
        kind = self.rng.choice(kinds)
        left, right = (source, other) if kind == "left" or self.rng.random() < 0.6 else (other, source)
        keys = tuple(self._keys(left, right)[:1])
        if not keys:
            kind = "semi"
        return Sized(Join(left.plan, right.plan, kind, keys), left.bounds if kind == "semi" else left.bounds + right.bounds, left.rows)

    def _thinner(self, source: Sized, inside: list[Sized]) -> Sized:
        return Sized(Filter(source.plan, self.scalars.predicate(source)), source.bounds, source.rows)

    def _supported(self, source: Sized, inside: list[Sized]) -> Sized:
        """A semijoin with the source."""
        other = self.closed()
        return Sized(Join(other.plan, source.plan, "semi", tuple(self._keys(other, source)[:1])), other.bounds, other.rows)

    def _without(self, source: Sized, inside: list[Sized]) -> Sized:
        """An antijoin with a plan that is not recursive."""
        kind: JoinKind = self.rng.choice(["anti", "anti", "not_in"])
        other = self.thinned(self.closed())
        keys = self._keys(source, other)[:1]
        if kind == "not_in" and keys:
            return Sized(Join(source.plan, other.plan, "not_in", (), None, keys[0]), source.bounds, source.rows)
        return Sized(Join(source.plan, other.plan, "anti", tuple(keys)), source.bounds, source.rows)

    def _compared(self, source: Sized, inside: list[Sized]) -> Sized:
        """The rows that are, or are not, in a relation that is not recursive."""
        kind: OneOf["except", "intersect"] = self.rng.choice(["except", "intersect"])
        left, right = self._aligned(source, self.closed())
        if references(right.plan):
            return left
        return Sized(SetOperation(left.plan, right.plan, kind), left.bounds, left.rows)

    def bag(self) -> Sized:
        """From each row to greater ones: an ascending path through rows of a table."""
        first, name = self.few(), self._name()
        source = self.graph if self.rng.random() < 0.8 else self.rng.choice(self.tables)
        expected = [1] if source is self.graph else range(len(source.schema))
        pairs = [(i, j) for i, f in enumerate(first.schema) for j in expected if f.type == source.schema[j].type]
        if not pairs:
            return self.bag()
        i, j = self.rng.choice(pairs)
        base = self._projected(first, [first.column(i), *([first.column(0)] if self.rng.random() < 0.5 else [])])
        limit = self.rng.choice([base.rows, 60.0])
        keyed = source is self.graph or self.rng.random() < 0.5
        thinning, conditional, grouping = (self.rng.random() < 0.3 for _ in range(3))
        state = self.rng.getstate()

        def bodies(relations: dict[str, Sized]) -> dict[str, Sized]:
            self.rng.setstate(state)
            own = relations[name]
            keys = self._edge(own, source) if keyed else ()
            both = Sized(Join(own.plan, source.plan, "inner", keys), own.bounds + source.bounds, 0)
            greater = resolve("greater", [both.column(len(own.schema) + j)[0], both.column(0)[0]])
            climbed = Join(own.plan, source.plan, "inner", keys, greater)
            rows = self._thinner(Sized(climbed, both.bounds, 0), []) if thinning else Sized(climbed, both.bounds, 0)
            if conditional:
                rows = self.under_conditions(rows, own)
            rest = [rows.column(at) for at in range(1, len(own.schema))]
            step = self._projected(rows, [rows.column(len(own.schema) + j), *rest])
            if grouping:
                step = self.passing(step, range(len(own.schema)))
            return {name: Sized(Union((base.plan, step.plan)), _widest([base, step]), limit)}

        return self._settled({name: base}, bodies)

    def extreme(self) -> Sized:
        """The best value of each key, by MIN or MAX, or of a condition by BOOL_AND or BOOL_OR."""
        function = self.rng.choice(["min", "min", "max", "max", "bool_and", "bool_or"])
        rises, first, name = function in ("max", "bool_or"), self.few(), self._name()
        source = self.graph if self.rng.random() < 0.8 else self.rng.choice(self.tables)
        value = (self.scalars.predicate(first), None) if function.startswith("bool") else self._any(first)
        base = self._projected(first, [self.rng.choice([first.column(0), first.column(0), self._any(first)]), value])
        state = self.rng.getstate()

        def bodies(relations: dict[str, Sized]) -> dict[str, Sized]:
            self.rng.setstate(state)
            step = self._improved(rises, base, relations[name], source)
            union = Union((base.plan, step.plan))
            value = reference(union.schema, 1)
            call = AggregateCall(function, (value,), value.type, True)
            names = union.schema.names
            plan = Aggregate(union, ((names[0], reference(union.schema, 0)),), ((names[1], call),))
            return {name: Sized(plan, _widest([base, step]), base.rows * 2)}

        recursion = self._settled({name: base}, bodies)
        return recursion if _is_monotone(recursion.plan) else self.extreme()

    def _improved(self, rises: bool, base: Sized, own: Sized, source: Sized) -> Sized:
        """Keys and values that are not better than those of the relation from which they come; base: the types."""
        if self._edge(own, source) and self.rng.random() < 0.25:
            rows = self._with_best(rises, own, source)
        else:
            rows = Sized(Join(own.plan, source.plan, "inner", self._edge(own, source)), own.bounds + source.bounds, 0)
        if self.rng.random() < 0.3:
            rows = Sized(Filter(rows.plan, self._passed(rises, rows)), rows.bounds, 0)
        places = [at for at in self._of_type(rows, base, 0) if at > 1]
        value = self._worse(rises, base, rows)
        return self._projected(rows, [rows.column(places[-1] if places else 0), value])

    def _with_best(self, rises: bool, own: Sized, source: Sized) -> Sized:
        """The rows of the source, each after its key and the best value under it, by a correlated subquery; NULL where there is none."""
        ((key, other),) = self._edge(own, source)
        outer, value = OuterColumn(outer_number(), other.type, other.nullable), own.column(1)[0]
        call = AggregateCall("max" if rises else "min", (value,), value.type, True)
        total = Aggregate(Filter(own.plan, resolve("=", [key, outer])), (), (("q", call),))
        joined = Sized(
            unnest(DependentJoin(source.plan, total, "inner", ((outer.number, other),))), (*source.bounds, own.bounds[1]), source.rows
        )
        return self._projected(
            joined, [(other, own.bounds[0]), joined.column(len(source.schema)), *map(joined.column, range(len(source.schema)))]
        )

    def _passed(self, rises: bool, rows: Sized) -> Expr:
        """A condition on the value of the rows, their second column, that better values satisfy too."""
        value, key = (rows.column(i)[0] for i in (1, 0))
        other = self.scalars.column(rows, lambda type: type == value.type, but=1) or self.scalars.literal(value.type)
        passed = self._better(value, other[0], not rises)
        return resolve("or", [passed, resolve("=", [key, self.scalars.literal(key.type)[0]])]) if self.rng.random() < 0.5 else passed

    def flags(self) -> Sized:
        """Keys with a BOOLEAN that only rises: a condition on what the relation has so far."""
        first, name = self.few(), self._name()
        base = self._projected(first, [first.column(0), (self.scalars.predicate(first), None)])
        rows = self.graph if self._of_type(self.graph, base, 0) else first
        key = rows.column(self.rng.choice(self._of_type(rows, base, 0)))
        state = self.rng.getstate()

        def bodies(relations: dict[str, Sized]) -> dict[str, Sized]:
            self.rng.setstate(state)
            own = relations[name]
            true = Sized(Filter(own.plan, own.column(1)[0]), own.bounds, own.rows) if self.rng.random() < 0.7 else own
            wide, condition = self._condition(rows, rows, self._projected(true, [own.column(0)]))
            if self.rng.random() < 0.5:
                function = self.rng.choice(["and", "or"])
                condition = resolve(function, self._shuffled(resolve("is_true", [condition]), self.scalars.selective(rows)))
            step = self._projected(wide, [key, (condition, None)])
            return {name: Sized(Distinct(Union((base.plan, step.plan))), _widest([base, step]), base.rows * 2)}

        recursion = self._settled({name: base}, bodies)
        return recursion if _is_monotone(recursion.plan) else self.flags()

    def _edge(self, own: Sized, source: Sized) -> tuple[tuple[Expr, Expr], ...]:
        """From the relation's first column to the first one of its type in the source."""
        return tuple((own.column(0)[0], source.column(at)[0]) for at in self._of_type(source, own, 0)[:1])

    def _any(self, source: Sized) -> Scalar:
        return source.column(self.rng.randrange(len(source.schema)))

    @staticmethod
    def _of_type(source: Sized, expected: Sized, at: int) -> list[int]:
        return [i for i, field in enumerate(source.schema) if field.type == expected.schema[at].type]

    def _worse(self, rises: bool, base: Sized, rows: Sized) -> Scalar:
        """A value that is not better than its origin, or one of a finite set."""
        value, size = rows.column(1)
        first = base.bounds[1]
        if value.type in (INT, BIGINT) and first is not None and holds(value.type, first + LARGE) and self.rng.random() < 0.5:
            return self._added(rises, rows, Literal(self.rng.randint(1, 3), value.type)), first + LARGE
        others = [i for i in range(2, len(rows.schema)) if rows.schema[i].type == value.type]
        if value.type == BOOLEAN and self.rng.random() < 0.6:
            return self._turned(rises, value, rows), None
        if not others or self.rng.random() < 0.3:
            return value, size
        other, bound = rows.column(self.rng.choice(others))
        both = resolve(self.rng.choice(["least", "greatest"]), [value, other])
        return both, None if size is None or bound is None else max(size, bound)

    def _added(self, rises: bool, rows: Sized, step: Expr) -> Expr:
        """The value, some steps worse."""
        (key, _), (value, _) = rows.column(0), rows.column(1)
        match self.rng.choice(["add", "add", "negated", "negated twice", "case"]):
            case "negated":
                return resolve("add" if rises else "subtract", [value, resolve("negate", [step])])
            case "negated twice":
                return resolve("negate", [resolve("add" if rises else "subtract", [resolve("negate", [value]), step])])
            case "case":
                worse = resolve("subtract" if rises else "add", [value, step])
                return case([(resolve("is_not_null", [key]), worse)], value)
            case _:
                return resolve("subtract" if rises else "add", [value, step])

    def _turned(self, rises: bool, value: Expr, rows: Sized) -> Expr:
        """The BOOLEAN with a condition on the rows' other columns, or as TRUE or FALSE."""
        match self.rng.choice(["and", "or", "not", "is_true"]):
            case "not":
                return resolve("not", [resolve("not", [value])])
            case "is_true":
                return resolve("is_true", [value])
            case function:
                fixed = self.rng.choice([i for i in range(len(rows.schema)) if i != 1])
                return resolve(function, self._shuffled(value, resolve("is_not_null", [rows.column(fixed)[0]])))

    def _columns(self, source: Sized, count: int) -> Sized:
        """Some of its columns, the first, which tables have in common, mostly among them."""
        chosen = self.rng.sample(range(len(source.schema)), min(count, len(source.schema)))
        if self.rng.random() < 0.7:
            chosen[0] = 0
        return self._projected(source, [source.column(i) for i in dict.fromkeys(chosen)])

    def _fitted(self, source: Sized, expected: Sized, *, in_order: bool = False) -> Sized:
        """Columns of the types wanted, each in its own place where `in_order` and they fit; constants where it has none."""
        columns = []
        for at, field in enumerate(expected.schema):
            places = self._of_type(source, expected, at)
            place = at if in_order and at in places else self.rng.choice(places) if places else None
            columns.append(self.scalars.literal(field.type) if place is None else source.column(place))
        return self._projected(source, columns)

    def _name(self) -> str:
        self._names += 1
        return f"r{self._names}"

    def _settled(self, bases: dict[str, Sized], bodies: Bodies) -> Sized:
        """The recursion, its relations' columns as often NULL and as large as their bodies' are."""
        relations = {name: _relation(name, base, base) for name, base in bases.items()}
        while True:
            made = bodies(relations)
            wider = {name: _relation(name, relations[name], body) for name, body in made.items()}
            if wider == relations:
                break
            relations = wider
        result = self.rng.choice(list(made))
        plans = tuple((name, as_declared(body.plan, relations[name].schema)) for name, body in made.items())
        return Sized(Recursion(plans, result), made[result].bounds, made[result].rows)


def _is_monotone(plan: Plan) -> bool:
    """GREATEST ignores NULL, which MIN may replace by a number."""
    assert isinstance(plan, Recursion)
    try:
        check_monotone(dict(plan.relations))
    except Unsupported:
        return False
    return True


def _relation(name: str, known: Sized, body: Sized) -> Sized:
    """The reference to a relation, with the bounds of its current body."""
    fields = zip(known.schema, body.schema, strict=True)
    schema = Schema(tuple(Field(f.name, f.type, f.nullable or g.nullable) for f, g in fields))
    return Sized(Reference(name, schema), _widest([known, body]), known.rows)


def _widest(parts: Sequence[Sized]) -> tuple[Bound, ...]:
    """The bounds that hold for all of them."""
    columns = zip(*(part.bounds for part in parts), strict=True)
    return tuple(None if None in sizes else max(size for size in sizes if size is not None) for sizes in columns)
