"""Random plans that grow with what they read in other ways than by joins: by conditions on subqueries, and thresholds of groups.

The conditions compare what only rises or only falls: whether there are rows, how many, and the least or greatest of them. They are
connected by AND, OR and NOT. Subqueries are unnested, as SQL's are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from deltic.expr.functions import resolve
from deltic.expr.nodes import Expr, Literal, OuterColumn
from deltic.expr.typing import case
from deltic.plan.columns import conjunction, reference
from deltic.plan.equalities import null_safe
from deltic.plan.nodes import Aggregate, AggregateCall, DependentJoin, Distinct, Filter, Join, Plan
from deltic.plan.subquery_nodes import DependentKind, outer_number
from deltic.plan.unnest import unnest
from deltic.schema import BIGINT, BOOLEAN
from program_plans import Programs, Sized

Condition = tuple[Sized, Expr]
"""Rows with further columns, and a condition on them."""


class MonotonePrograms(Programs):
    """inside: the recursive relations. source: a plan that reads one of them."""

    def tested(self, source: Sized, inside: Sequence[Sized]) -> Sized:
        """The rows of a relation, mostly of one that is not recursive, under conditions on subqueries over the source."""
        rows = self.rng.choice(inside) if self.rng.random() < 0.35 else self.rng.choice(self.tables)
        return self.under_conditions(rows, source)

    def under_conditions(self, rows: Sized, source: Sized) -> Sized:
        wide, conditions = rows, []
        for _ in range(self.rng.choice([1, 1, 2])):
            wide, condition = self._condition(wide, rows, source)
            conditions.append(condition)
        kept = Filter(wide.plan, self._connected(conditions, rows))
        return self._projected(Sized(kept, wide.bounds, rows.rows), [wide.column(i) for i in range(len(rows.schema))])

    def _condition(self, wide: Sized, rows: Sized, source: Sized) -> Condition:
        """A condition that reads the source for each of `rows`, the first columns of `wide`."""
        makers: list[Callable[[Sized, Sized, Sized], Condition]] = [self._existing, self._existing, self._quantified, self._extreme]
        makers += [self._counted, self._matched, self._best_matched]
        return self.rng.choice(makers)(wide, rows, source)

    def _connected(self, conditions: Sequence[Expr], rows: Sized) -> Expr:
        """A condition that further rows of what is compared cannot make FALSE."""
        parts = [*conditions, *([self.scalars.predicate(rows, 1)] if self.rng.random() < 0.7 else [])]
        self.rng.shuffle(parts)
        whole = parts[0]
        for part in map(self._written, parts[1:]):
            function = self.rng.choice(["and", "or", "or"])
            if self.rng.random() < 0.3:
                opposite = {"and": "or", "or": "and"}[function]
                whole = resolve("not", [resolve(opposite, [resolve("not", [whole]), resolve("not", [part])])])
            else:
                whole = resolve(function, [whole, part])
        return whole

    def _written(self, condition: Expr) -> Expr:
        """The condition in other words."""
        match self.rng.randrange(8):
            case 0:
                return resolve("is_true", [condition])
            case 1:
                return resolve("=", [condition, Literal(True, BOOLEAN)])
            case 2:
                return case([(condition, Literal(True, BOOLEAN))], Literal(False, BOOLEAN))
            case 3:
                return resolve("coalesce", [condition, Literal(False, BOOLEAN)])
            case _:
                return condition

    def _rows_for(self, rows: Sized, source: Sized) -> tuple[Plan, tuple[tuple[int, Expr], ...]]:
        """The rows of the source for one of `rows`, and what they read of it."""
        pairs = [(i, j) for i, f in enumerate(rows.schema) for j, g in enumerate(source.schema) if f.type == g.type]
        conditions: list[Expr] = []
        outer: list[tuple[int, Expr]] = []
        for i, j in self.rng.sample(pairs, min(len(pairs), self.rng.choice([0, 1, 1, 1, 2]))):
            column = rows.column(i)[0]
            one = OuterColumn(outer_number(), column.type, column.nullable)
            function = self.rng.choice(["=", "=", "=", "<=>", "<", ">=", "<>"])
            conditions.append(resolve(function, self._shuffled(source.column(j)[0], one)))
            outer.append((one.number, column))
        if self.rng.random() < 0.2:
            conditions.append(self.scalars.predicate(source, 1))
        return Filter(source.plan, conjunction(conditions)) if conditions else source.plan, tuple(outer)

    def _shuffled(self, *parts: Expr) -> list[Expr]:
        return self.rng.sample(parts, len(parts))

    def _joined_with(self, rows: Sized, kind: DependentKind, right: Plan, outer: tuple[tuple[int, Expr], ...]) -> Sized:
        joined = unnest(DependentJoin(rows.plan, right, kind, outer))
        return Sized(joined, (*rows.bounds, *(None for _ in range(len(joined.schema) - len(rows.schema)))), rows.rows)

    def _existing(self, wide: Sized, rows: Sized, source: Sized) -> Condition:
        """EXISTS, or IN."""
        both = self._joined_with(wide, "mark", *self._rows_for(rows, source))
        return both, reference(both.schema, len(wide.schema))

    def _quantified(self, wide: Sized, rows: Sized, source: Sized) -> Condition:
        """ANY, or NOT ALL, by the least or greatest value, or both for <> ANY, and the counts of NULLs and rows."""
        right, outer = self._rows_for(rows, source)
        other, value = self._comparable(rows, source)
        every, functions = self.rng.random() < 0.5, (self.rng.choice(["<", "<=", ">", ">="]),)
        if self.rng.random() < 0.25:
            functions = ("<=", ">=") if every else (">", "<")
        extremes = ("min", "max") if len(functions) == 2 else ("max",) if (functions[0][0] == "<") != every else ("min",)
        calls = (*(AggregateCall(name, (other,), other.type, True) for name in extremes), *(_count(of) for of in ((other,), ())))
        total = Aggregate(right, (), tuple((f"q{i}", call) for i, call in enumerate(calls)))
        both = self._joined_with(wide, "inner", total, outer)
        *best, present, count = (reference(both.schema, len(wide.schema) + i) for i in range(len(calls)))
        each = [resolve(function, [value, one]) for function, one in zip(functions, best, strict=True)]
        holds = each[0] if len(each) == 1 else resolve("and" if every else "or", each)
        decided = (resolve("not", [holds]), Literal(False, BOOLEAN)) if every else (holds, Literal(True, BOOLEAN))
        unknown = resolve("or", [resolve("<", [present, count]), resolve("is_null", [value])])
        last = Literal(every, BOOLEAN)
        whole = case([decided, (resolve("=", [count, Literal(0, BIGINT)]), last), (unknown, Literal(None, BOOLEAN))], last)
        return both, resolve("not", [whole]) if every else whole

    def _comparable(self, rows: Sized, source: Sized) -> tuple[Expr, Expr]:
        """A column of the source, and one of the rows or a constant of the same type."""
        other = self.scalars.column(source)
        assert other is not None
        value = self.scalars.column(rows, lambda type: type == other[0].type) or self.scalars.literal(other[0].type)
        return other[0], value[0]

    def _extreme(self, wide: Sized, rows: Sized, source: Sized) -> Condition:
        """A comparison with the least or the greatest value."""
        right, outer = self._rows_for(rows, source)
        other, value = self._comparable(rows, source)
        least = self.rng.random() < 0.5
        total = Aggregate(right, (), (("q", AggregateCall("min" if least else "max", (other,), other.type, True)),))
        both = self._joined_with(wide, self.rng.choice(["inner", "left"]), total, outer)
        return both, self._better(reference(both.schema, len(wide.schema)), value, least)

    def _better(self, best: Expr, value: Expr, least: bool) -> Expr:
        """Whether the best value so far has passed another one, which better values have too."""
        if self.rng.random() < 0.15:
            return resolve("is_not_null", [best])
        passed, opposite = ("<", ">=") if least else (">", "<=")
        if self.rng.random() < 0.25:
            return resolve("not", [resolve(opposite, [best, value])])
        return resolve(passed + self.rng.choice(["", "="]), [best, value])

    def _counted(self, wide: Sized, rows: Sized, source: Sized) -> Condition:
        right, outer = self._rows_for(rows, source)
        both = self._joined_with(wide, "inner", Aggregate(right, (), (("q", self._count_of(source)),)), outer)
        return both, self._at_least(reference(both.schema, len(wide.schema)))

    def _count_of(self, source: Sized) -> AggregateCall:
        column = self.scalars.column(source)
        assert column is not None
        arguments, distinct = self.rng.choice([((), False), ((column[0],), False), ((column[0],), True)])
        where = self.scalars.predicate(source, 1) if self.rng.random() < 0.2 else None
        if self.rng.random() < 0.15:
            return AggregateCall("count_if", (self.scalars.predicate(source, 1),), BIGINT, False, False, where)
        return AggregateCall("count", arguments, BIGINT, False, distinct, where)

    def _at_least(self, count: Expr) -> Expr:
        number = self.rng.choice([0, 1, 2, 2, 3])
        if number == 0:
            different = resolve("<>", [count, Literal(0, BIGINT)])
            return different if self.rng.random() < 0.5 else resolve("not", [resolve("=", [Literal(0, BIGINT), count])])
        if self.rng.random() < 0.3:
            return resolve("not", [resolve("<", [count, Literal(number, BIGINT)])])
        if self.rng.random() < 0.3:
            return resolve("<", [Literal(number, BIGINT), resolve("+", [count, Literal(1, BIGINT)])])
        return resolve(">=", [count, Literal(number, BIGINT)])

    def _matched(self, wide: Sized, rows: Sized, source: Sized) -> Condition:
        """A LEFT JOIN with distinct rows of the source by all their columns."""
        pairs = self._pairs(rows, source)
        if not pairs:
            return self._existing(wide, rows, source)
        chosen = self._projected(source, [source.column(j) for _, j in pairs])
        own = [rows.column(i)[0] for i, _ in pairs]
        distinct = Distinct(chosen.plan)
        others = [reference(distinct.schema, at) for at in range(len(pairs))]
        keys = tuple(zip(own, others, strict=True)) if self.rng.random() < 0.7 else null_safe(own, others)
        both = self._left_join(wide, distinct, keys, self.scalars.predicate(rows, 1) if self.rng.random() < 0.3 else None)
        return both, resolve("is_not_null", [reference(both.schema, len(wide.schema))])

    def _best_matched(self, wide: Sized, rows: Sized, source: Sized) -> Condition:
        """A LEFT JOIN with groups of the source by their keys."""
        pairs = self._pairs(rows, source)
        if not pairs:
            return self._counted(wide, rows, source)
        least, counts = self.rng.random() < 0.5, self.rng.random() < 0.4
        other, value = self._comparable(rows, source)
        call = self._count_of(source) if counts else AggregateCall("min" if least else "max", (other,), other.type, True)
        groups = Aggregate(source.plan, tuple((f"k{at}", source.column(j)[0]) for at, (_, j) in enumerate(pairs)), (("q", call),))
        keys = tuple((rows.column(i)[0], reference(groups.schema, at)) for at, (i, _) in enumerate(pairs))
        both = self._left_join(wide, groups, keys)
        best = reference(both.schema, len(both.schema) - 1)
        if not counts:
            return both, self._better(best, value, least)
        return both, self._at_least(resolve("coalesce", [best, Literal(0, BIGINT)]) if self.rng.random() < 0.5 else best)

    def _pairs(self, rows: Sized, source: Sized) -> list[tuple[int, int]]:
        pairs = [(i, j) for i, f in enumerate(rows.schema) for j, g in enumerate(source.schema) if f.type == g.type]
        return self.rng.sample(pairs, min(len(pairs), self.rng.choice([1, 1, 2])))

    @staticmethod
    def _left_join(rows: Sized, right: Plan, keys: tuple[tuple[Expr, Expr], ...], residual: Expr | None = None) -> Sized:
        return Sized(Join(rows.plan, right, "left", keys, residual), (*rows.bounds, *(None for _ in right.schema)), rows.rows)

    def grouped(self, source: Sized, inside: Sequence[Sized]) -> Sized:
        """The keys of the source's groups that pass thresholds."""
        width = len(source.schema)
        return self.passing(source, self.rng.sample(range(width), min(width, self.rng.choice([1, 1, 2]))))

    def passing(self, source: Sized, keys: Sequence[int]) -> Sized:
        """The groups by the source's columns `keys` that pass thresholds."""
        calls = [self._threshold(source) for _ in range(self.rng.choice([1, 1, 2]))]
        named = tuple((f"k{at}", source.column(i)[0]) for at, i in enumerate(keys))
        groups = Aggregate(source.plan, named, tuple((f"q{at}", call) for at, (call, _) in enumerate(calls)))
        own = Sized(groups, (*(source.bounds[i] for i in keys), *(None for _ in calls)), source.rows * 0.5)
        values = [own.column(len(keys) + at)[0] for at in range(len(calls))]
        conditions = [test(value) for value, (_, test) in zip(values, calls, strict=True)]
        kept = Sized(
            Filter(groups, self._connected(conditions, self._projected(own, [own.column(i) for i in range(len(keys))]))),
            own.bounds,
            own.rows,
        )
        return self._projected(kept, [kept.column(i) for i in range(len(keys))])

    def _threshold(self, source: Sized) -> tuple[AggregateCall, Callable[[Expr], Expr]]:
        """An aggregate, and a condition on it that further rows satisfy too."""
        where = self.scalars.predicate(source, 1) if self.rng.random() < 0.2 else None
        match self.rng.choice(["count", "count", "bool_or", "bool_and", "min", "max"]):
            case "count":
                return self._count_of(source), self._at_least
            case "bool_or":
                return AggregateCall("bool_or", (self.scalars.predicate(source, 1),), BOOLEAN, True, False, where), lambda value: value
            case "bool_and":
                call = AggregateCall("bool_and", (self.scalars.predicate(source, 1),), BOOLEAN, True, False, where)
                return call, lambda value: resolve("not", [value])
            case extreme:
                column = self.scalars.column(source)
                assert column is not None
                other = self.scalars.literal(column[0].type)[0]
                call = AggregateCall(extreme, (column[0],), column[0].type, True, False, where)
                return call, lambda value: self._better(value, other, extreme == "min")


def _count(arguments: tuple[Expr, ...]) -> AggregateCall:
    return AggregateCall("count", arguments, BIGINT, False)
