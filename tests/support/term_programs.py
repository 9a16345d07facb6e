"""Random programs whose expressions are the terms that functions are compared with Spark on: every function under filters, groups, joins.

A program has one table: the columns that its terms read, with their edge values, and one of a type that is drawn, which the views carry.
A term that can fail is NULL where it does, so that no tick fails. Everything comes from the seed.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from random import Random
from typing import Final

from benchmarks.function_comparison import bound
from benchmarks.function_samples import SCHEMA as SAMPLES
from benchmarks.function_samples import sample_rows
from benchmarks.function_terms import TERMS
from deltic.errors import QueryError
from deltic.expr.failing import can_fail
from deltic.expr.functions import resolve
from deltic.expr.functions.attempts import attempt
from deltic.expr.nodes import Call, Column, Expr, Value, children
from deltic.plan.columns import map_columns, reference
from deltic.plan.nodes import Aggregate, AggregateCall, Distinct, Filter, Join, Order, Plan, Project, SetOperation, Table, TopK
from deltic.plan.signs import as_view
from deltic.schema import BIGINT, INT, NULL, STRING, TIME, VARIANT, Field, Schema, TableSchema, Type
from deltic.types import array_type, map_type, struct, text, time_type
from deltic.variants import Variant
from expr_terms import COLUMNS, all_terms
from program_data import TYPES, Source, domain
from programs import Case, ticks_of

SIZE: Final = 8
_LCASE, _RTRIM = text("UTF8_LCASE"), text("UTF8_BINARY_RTRIM")
_CASES: Final = ("a", "A", "b", "B ", "B", "straße", "STRASSE", "İ")
_PIECES: Final = (
    Variant.parse_json('{"a": [1, 2.5, null]}'),
    Variant.parse_json("[]"),
    Variant.parse_json('"x"'),
    Variant.parse_json("null"),
)
_MAP: Final = map_type(STRING, array_type(INT))
_DEEP: Final = struct((Field("c", array_type(_LCASE)), Field("m", map_type(time_type(3), VARIANT))))
_MORE: Final[Mapping[Type, tuple[Value, ...]]] = {
    VARIANT: _PIECES,
    _LCASE: _CASES,
    _RTRIM: ("a", "a ", "b", "b  ", "", " "),
    array_type(_LCASE): ((), ("a",), ("A",), ("b", None), ("B", None)),
    _MAP: ((), (("a", (1, None)),), (("a", None), ("b", ())), (("b", ()), ("a", None))),
    map_type(_LCASE, INT): ((), (("a", 1),), (("A", 1), ("b", None))),
    struct((Field("v", VARIANT), Field("t", TIME))): ((_PIECES[0], datetime.time(1, 2)), (None, None), (_PIECES[1], datetime.time(1, 2))),
    _DEEP: ((("a", "B"), ()), (("A", "b"), ((datetime.time(1), _PIECES[0]),)), (None, None)),
}
"""Types that the tables of `programs` have not, and values of them."""
CARRIED: Final = (*TYPES, *_MORE)
"""Types of the column that the views carry."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """An expression over columns with these types and values."""

    expr: Expr
    columns: Sequence[tuple[Type, Sequence[Value]]]


@cache
def _sampled() -> Sequence[tuple[Type, Sequence[Value]]]:
    rows = sample_rows()
    return [(field.type, [row[i] for row in rows if row[i] is not None]) for i, field in enumerate(SAMPLES)]


@cache
def _edges() -> Sequence[tuple[Type, Sequence[Value]]]:
    return [(type, values) for _, type, values in COLUMNS]


def _report_term(name: str, sql: str) -> Drawn:
    return Drawn(bound(name, sql).expr, _sampled())


@cache
def _sources() -> Sequence[Sequence[Callable[[], Drawn]]]:
    """Makers of terms: for each function of the report, and for each function of `expr_terms`."""
    groups: dict[str, list[Callable[[], Drawn]]] = {}
    for name, texts in TERMS.items():
        groups[name] = [partial(_report_term, name, sql) for sql in texts]
    for term in all_terms():
        name = next(functions(term.expr), "other")
        groups.setdefault(f"edge {name}", []).append(partial(Drawn, term.expr, _edges()))
    return [groups[name] for name in sorted(groups)]


def functions(expr: Expr) -> Iterator[str]:
    """The functions that the expression calls."""
    if isinstance(expr, Call):
        yield expr.function
    for part in children(expr):
        yield from functions(part)


def terms_of(rng: Random, seed: int) -> list[Drawn]:
    """One of the function that is due for this seed, and one or two of others."""
    sources = _sources()
    groups = [sources[seed % len(sources)], *(rng.choice(sources) for _ in range(rng.randint(1, 2)))]
    return [rng.choice(group)() for group in groups]


class Builder:
    """The table of a program, and the terms over its columns."""

    def __init__(self, rng: Random, drawn: Sequence[Drawn], carried: Type) -> None:
        self.rng = rng
        self.fields = [Field("id", BIGINT, False), Field("carried", carried)]
        self.domains = [tuple(range(60)), _MORE[carried] if carried in _MORE else domain(carried)]
        self.places: dict[tuple[int, int], int] = {}
        self.terms = [self._placed(one) for one in drawn]
        self.table = Table(TableSchema("t", Schema(tuple(self.fields))))

    def _placed(self, drawn: Drawn) -> Expr:
        """The term over the table; NULL where it fails."""

        def place(column: Column) -> Expr:
            key = (id(drawn.columns), column.index)
            if key not in self.places:
                type, values = drawn.columns[column.index]
                self.places[key] = len(self.fields)
                self.fields.append(Field(f"c{len(self.fields)}", type))
                self.domains.append(tuple(self.rng.choice(values) for _ in range(5)))
            return replace(column, index=self.places[key])

        expr = map_columns(drawn.expr, place)
        return attempt(expr) if can_fail(expr) else expr

    def views(self) -> dict[str, Plan]:
        id_, carried = (reference(self.table.schema, i) for i in range(2))
        every = Project(self.table, (("id", id_), ("carried", carried), *((f"t{i}", term) for i, term in enumerate(self.terms))))
        made: dict[str, Plan] = {"every": every}
        shapes = (self._grouped, self._joined, self._first, self._distinct, self._compared)
        keys = [term for term in (*self.terms, carried) if _is_key(term.type)]
        if keys:
            chosen = self.rng.choice(keys)
            shape = self.rng.choice(shapes) if chosen.type.is_ordered else self._grouped
            made["shaped"] = shape(chosen, every)
        return {name: as_view(plan) for name, plan in made.items()}

    def _grouped(self, term: Expr, every: Project) -> Plan:
        greatest = [one for one in self.terms if one.type.is_ordered and one.type != NULL][:1]
        calls = [AggregateCall("count", (), BIGINT, False), *(AggregateCall("max", (one,), one.type, True) for one in greatest)]
        return Aggregate(self.table, (("k", term),), tuple((f"a{i}", call) for i, call in enumerate(calls)))

    def _joined(self, term: Expr, every: Project) -> Plan:
        joined = Join(self.table, self.table, self.rng.choice(("inner", "left", "anti")), ((term, term),))
        width = len(self.table.schema)
        return Project(joined, tuple((f"j{i}", reference(joined.schema, i)) for i in {0, len(joined.schema) - width}))

    def _first(self, term: Expr, every: Project) -> Plan:
        return TopK(every, (Order(term_over(every, term), self.rng.random() < 0.5, True),), 3) if _has(every, term) else every

    def _distinct(self, term: Expr, every: Project) -> Plan:
        return Distinct(Project(self.table, (("k", term),)))

    def _compared(self, term: Expr, every: Project) -> Plan:
        kind = self.rng.choice(("except", "intersect", "except_all", "intersect_all"))
        left = Project(Filter(self.table, resolve("is_not_null", [reference(self.table.schema, 1)])), (("k", term),))
        return SetOperation(Project(self.table, (("k", term),)), left, kind)


def _is_key(type: Type) -> bool:
    """Whether GROUP BY has it as a key."""
    return type != NULL and (type.is_ordered or not (type.has_variant or type.is_collated))


def _has(every: Project, term: Expr) -> bool:
    return any(one is term for _, one in every.columns)


def term_over(every: Project, term: Expr) -> Expr:
    return next(reference(every.schema, i) for i, (_, one) in enumerate(every.columns) if one is term)


def term_case(seed: int) -> Case:
    """The program of this seed."""
    rng = Random(f"terms {seed}")
    for _ in range(100):
        try:
            drawn = terms_of(rng, seed)
        except QueryError:  # a term of the report that is refused
            continue
        builder = Builder(rng, drawn, CARRIED[seed % len(CARRIED)])
        views = builder.views()
        source = Source(builder.table.table, tuple(builder.domains))
        return Case(seed, {"t": source.table}, views, ticks_of(rng, [source], SIZE), False)
    raise AssertionError(f"no terms for seed {seed}")
