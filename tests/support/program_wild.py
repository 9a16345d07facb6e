"""Random recursions of which most are refused, since their bodies have any operators: those that are accepted must be monotone."""

from __future__ import annotations

from collections.abc import Sequence

from deltic.expr.functions import resolve
from deltic.expr.nodes import Expr
from deltic.plan.columns import reference
from deltic.plan.nodes import Aggregate, AggregateCall, Distinct, Plan, Recursion, Union
from deltic.schema import BOOLEAN
from program_plans import Sized
from program_recursion import RecursivePrograms


class WildPrograms(RecursivePrograms):
    """Recursions that need not terminate."""

    def wild(self) -> Recursion:
        """A recursion of one relation, a set, a bag or groups, with any operators in its step."""
        tables, first, name = list(self.tables), self.few(), self._name()
        value = (self.scalars.predicate(first), None) if self.rng.random() < 0.4 else self._any(first)
        base = self._projected(first, [first.column(0), value])
        kind = self.rng.choice(["set", "bag", "min", "max", "bool_or", "bool_and"])
        if kind.startswith("bool") and value[0].type != BOOLEAN:
            kind = "max"
        state = self.rng.getstate()

        def bodies(relations: dict[str, Sized]) -> dict[str, Sized]:
            self.rng.setstate(state)
            self.made.clear()
            own = relations[name]
            self.tables = [*tables, own, own]
            step = self._fitted(self._step_over(own), base)
            self.tables = list(tables)
            return {name: Sized(_body(kind, base.plan, step.plan), base.bounds, base.rows)}

        made = self._settled({name: base}, bodies).plan
        assert isinstance(made, Recursion)
        return made

    def _step_over(self, own: Sized) -> Sized:
        match self.rng.randrange(4):
            case 0:
                return self.monotone(self.rng.choice([1, 2]), [own])
            case 1:
                return self.under_conditions(self.rng.choice(self.tables), own)
            case 2:
                return self.passing(own, [self.rng.randrange(len(own.schema))])
            case _:
                return self.relation(self.rng.choice([1, 2, 2, 3]))

    def _connected(self, conditions: Sequence[Expr], rows: Sized) -> Expr:
        flipped = [resolve("not", [one]) if self.rng.random() < 0.2 else one for one in conditions]
        return super()._connected(flipped, rows)


def _body(kind: str, base: Plan, step: Plan) -> Plan:
    union = Union((base, step))
    if kind == "bag":
        return union
    if kind == "set":
        return Distinct(union)
    value = reference(union.schema, 1)
    names = union.schema.names
    call = AggregateCall(kind, (value,), value.type, True)
    return Aggregate(union, ((names[0], reference(union.schema, 0)),), ((names[1], call),))
