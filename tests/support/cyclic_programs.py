"""Random programs whose views join relations in a cycle: shapes, self-joins, payload, filters, NULLs, computed keys.

`cyclic` aggregates them, `recursive` has one in a recursion, and `consumed` puts whatever else there is over either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from deltic.aggregates import aggregate_function
from deltic.expr.functions import resolve
from deltic.expr.nodes import Expr, Literal
from deltic.plan.columns import conjunction, reference
from deltic.plan.evaluate import evaluate
from deltic.plan.nodes import (
    Aggregate,
    AggregateCall,
    Distinct,
    Filter,
    Hint,
    Join,
    Plan,
    Project,
    Recursion,
    Reference,
    Table,
    TopK,
    Union,
)
from deltic.schema import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, Field, Schema, TableSchema, Type, decimal
from program_data import Content, Source, domain
from program_plans import CROWD, Programs, Sized
from programs import LARGEST, Case, Tables, Tick, applied, empty, explodes

SHAPES: dict[str, tuple[str, ...]] = {
    "triangle": ("xy", "xz", "yz"),
    "triangle round and round": ("xy", "yz", "zx"),
    "a side twice": ("xy", "xy", "xz", "yz"),
    "square": ("xy", "yz", "zw", "wx"),
    "clique": ("xy", "xz", "xw", "yz", "yw", "zw"),
    "bow-tie": ("xy", "yz", "zx", "xw", "wv", "vx"),
    "triangle with a tail": ("xy", "yz", "zx", "zw"),
    "triangle with names": ("xy", "yz", "zx", "x", "y"),
    "Loomis-Whitney": ("xyz", "xyw", "xzw", "yzw"),
    "pentagon": ("xy", "yz", "zw", "wv", "vx"),
    "path": ("xy", "yz", "zw"),
    "star": ("xy", "xz", "x"),
}
RECURSIVE = ("triangle", "triangle round and round", "square", "triangle with a tail")
HINTED = ("path", "star")
"""Shapes without a cycle, whose joins have a hint."""
VALUES = {"triangle": 5, "clique": 3, "bow-tie": 4, "Loomis-Whitney": 3}
THEMES: tuple[Type, ...] = (BIGINT, BIGINT, INT, STRING, STRING, DATE, decimal(10, 2), TIMESTAMP, BOOLEAN, DOUBLE)
PAYLOADS: tuple[Type, ...] = (BIGINT, INT, STRING, DOUBLE, decimal(10, 2), decimal(30, 2))


Views = Callable[[Random, Sequence[str], dict[int, list[Source]], Tables], list[Plan]]
"""Views over joins of these shapes; tables by number of join columns, and their content."""


@dataclass(frozen=True, slots=True)
class _Atom:
    """An occurrence of a table: its first columns are the variables."""

    source: Source
    variables: str


def cyclic(seed: int) -> Case:
    """The program of this seed: one or two views over one to three tables for each number of join columns."""
    return _small("cyclic", seed, _aggregated)


def consumed(seed: int) -> Case:
    """Two or three views, each some operators over a cyclic join, or over a recursion that has one; later ones share parts of the first."""
    return _small("consumed", seed, _consumed)


def recursive(seed: int) -> Case:
    """A recursion whose step joins its relation with tables, or with itself, in a cycle."""
    rng = Random(f"recursive cycles {seed}")
    theme = rng.choice(THEMES[:6])
    values = rng.randint(3, 5)
    sources = [_source(rng, f"r2{i}", theme, 2, values) for i in range(rng.choice((1, 2)))]
    schemas = {source.table.name: source.table for source in sources}
    return Case(seed, schemas, {"view": _recursion(rng, sources)}, _ticks(rng, sources, values), False)


def _small(kind: str, seed: int, views: Views) -> Case:
    for attempt in range(100):
        made = _made(seed, Random(f"{kind} {seed}.{attempt}"), views)
        if made is not None:
            return made
    raise AssertionError(f"no small {kind} program for seed {seed}")


def _recursion(rng: Random, sources: Sequence[Source]) -> Plan:
    edges = [_ends(Table(source.table)) for source in sources]
    shape = SHAPES[rng.choice(RECURSIVE)]
    base = edges[0]
    known = Reference("reach", Distinct(base).schema)
    while True:
        inputs = [known if n == 0 or rng.random() < 0.3 else rng.choice(edges) for n in range(len(shape))]
        joined = _of(inputs, shape)
        ends = rng.sample(range(len(joined.schema)), 2)
        step = Project(joined, tuple((f"c{i}", reference(joined.schema, at)) for i, at in enumerate(ends)))
        body = Distinct(Union((base, step)))
        if [f.nullable for f in body.schema] == [f.nullable for f in known.schema]:
            return Recursion((("reach", body),), "reach")
        known = Reference("reach", body.schema)


def _ends(plan: Plan) -> Plan:
    return Project(plan, tuple((plan.schema[i].name, reference(plan.schema, i)) for i in range(2)))


def _of(inputs: Sequence[Plan], shape: Sequence[str]) -> Plan:
    """Binary joins of edges along the variables of the shape."""
    plan, seen = inputs[0], list(shape[0])
    for right, atom in zip(inputs[1:], shape[1:], strict=True):
        pairs = [(seen.index(v), i) for i, v in enumerate(atom) if v in seen]
        plan = Join(plan, right, "inner", tuple((reference(plan.schema, a), reference(right.schema, b)) for a, b in pairs))
        seen += atom
    return plan


def _made(seed: int, rng: Random, views: Views) -> Case | None:
    theme = rng.choice(THEMES)
    shapes = [rng.choice(list(SHAPES)) for _ in range(rng.choice((1, 1, 2)))]
    values = min(len(domain(theme)), *(VALUES.get(shape, 4) for shape in shapes))
    arities = sorted({len(variables) for shape in shapes for variables in SHAPES[shape]})
    tables = {arity: [_source(rng, f"r{arity}{i}", theme, arity, values) for i in range(rng.choice((1, 1, 2, 3)))] for arity in arities}
    sources = [source for listed in tables.values() for source in listed]
    schemas = {source.table.name: source.table for source in sources}
    ticks = _ticks(rng, sources, values)
    after = applied(empty(schemas), ticks[0])
    plans = views(rng, shapes, tables, after)
    if not plans or any(_size(plan, after) > LARGEST for plan in plans):
        return None
    return Case(seed, schemas, {f"view{i}": plan for i, plan in enumerate(plans)}, ticks, False)


def _size(plan: Plan, tables: Tables) -> int:
    return sum(weight for _, weight in evaluate(plan, tables).pairs())


def _aggregated(rng: Random, shapes: Sequence[str], tables: dict[int, list[Source]], after: Tables) -> list[Plan]:
    return [_topped(rng, _join(rng, shape, tables).plan) for shape in shapes]


def _consumed(rng: Random, shapes: Sequence[str], tables: dict[int, list[Source]], after: Tables) -> list[Plan]:
    """None if there are too many rows, since the oracle uses binary joins."""
    joins = [_listed(rng, _join(rng, shape, tables)) for shape in shapes]
    if 2 in tables and rng.random() < 0.3:
        plan = _recursion(rng, tables[2])
        joins.append(Sized(plan, tables[2][0].bounds[:1] * 2, 0))
    joins = [replace(join, rows=_size(join.plan, after)) for join in joins]
    if any(join.rows > CROWD for join in joins):
        return []
    programs = _Consumers(rng, [source for listed in tables.values() for source in listed], joins)
    plans = [programs.view().plan for _ in range(rng.randint(2, 3))]
    return [] if explodes(plans, after) else plans


class _Consumers(Programs):
    """Random plans, each of which reads one of several joins."""

    def __init__(self, rng: Random, sources: Sequence[Source], joins: Sequence[Sized]) -> None:
        super().__init__(rng, sources, 16)
        self._joins, self._forced = joins, list[Sized]()

    def view(self) -> Sized:
        """A plan of 1 to 4 operators in depth; the leftmost leaf is a join."""
        self._forced = [self.rng.choice(self._joins)]
        if self.rng.random() < 0.3:
            return self.rng.choice((self.extremes, self.top_k))(0)
        return self.relation(self.rng.choice((1, 1, 2, 2, 3, 4)), sharing=True)

    def leaf(self, sharing: bool) -> Sized:
        if self._forced:
            return self._forced.pop()
        return self.rng.choice(self._joins) if self.rng.random() < 0.3 else super().leaf(sharing)

    def extremes(self, depth: int) -> Sized:
        """MIN and MAX over all rows, which each shard first computes from its own rows."""
        source = self.relation(depth)
        chosen = [source.column(i) for i in self.rng.sample(range(len(source.schema)), min(2, len(source.schema)))]
        calls = tuple((f"m{i}", _call(self.rng.choice(("min", "max")), expr)) for i, (expr, _) in enumerate(chosen))
        return Sized(Aggregate(source.plan, (), calls), tuple(size for _, size in chosen), 1)

    def top_k(self, depth: int) -> Sized:
        """The first rows of all, or of each group."""
        made = super().top_k(depth)
        assert isinstance(made.plan, TopK)
        keys = [made.column(i)[0] for i in self.rng.sample(range(len(made.schema)), min(len(made.schema), self.rng.choice((0, 0, 1, 2))))]
        return replace(made, plan=replace(made.plan, keys=tuple(keys)))


def _source(rng: Random, name: str, theme: Type, arity: int, values: int) -> Source:
    keyed = rng.random() < 0.3
    payload = [rng.choice(PAYLOADS) for _ in range(rng.choice((0, 0, 1, 2)))]
    key = tuple(range(arity)) if keyed else ()
    fields = [Field(f"{name}_{i}", type, i not in key and rng.random() < 0.5) for i, type in enumerate([theme] * arity + payload)]
    domains = (*(domain(theme)[:values] for _ in range(arity)), *(domain(type)[:4] for type in payload))
    return Source(TableSchema(name, Schema(tuple(fields)), key), domains)


def _ticks(rng: Random, sources: Sequence[Source], values: int) -> list[Tick]:
    contents = [Content(source) for source in sources]
    sizes = {1: values, 2: values * values, 3: values**3 // 2}
    ticks: list[Tick] = [{c.source.table.name: c.load(rng, sizes[int(c.source.table.name[1])]) for c in contents}]
    for _ in range(rng.randint(3, 6)):
        tick: Tick = {}
        for _ in range(rng.choice((1, 1, 2, 4, 8))):
            content = rng.choice(contents)
            tick.setdefault(content.source.table.name, []).extend(content.change(rng))
        ticks.append(tick)
    return ticks


def _join(rng: Random, shape: str, tables: dict[int, list[Source]]) -> Sized:
    atoms = [_Atom(rng.choice(tables[len(variables)]), variables) for variables in SHAPES[shape]]
    rng.shuffle(atoms)
    plan, where = _joined(rng, atoms, Hint("multiway") if shape in HINTED else None)
    for _ in range(rng.choice((0, 0, 1, 2))):
        if (part := _condition(rng, plan)) is not None:
            where.append(part)
    if where:
        plan = Filter(plan, conjunction(where))
    return Sized(plan, tuple(size for atom in atoms for size in atom.source.bounds), 0)


def _listed(rng: Random, join: Sized) -> Sized:
    """All or some of its columns."""
    if rng.random() < 0.3:
        return join
    kept = rng.sample(range(len(join.schema)), rng.randint(2, min(4, len(join.schema))))
    plan = Project(join.plan, tuple((f"c{i}", reference(join.schema, i)) for i in kept))
    return Sized(plan, tuple(join.bounds[i] for i in kept), join.rows)


def _columns(atoms: Sequence[_Atom]) -> list[tuple[str, int]]:
    """(variable, or '' for payload; position) of each column of the concatenated atoms."""
    widths = [len(atom.source.table.schema) for atom in atoms]
    names = [(*atom.variables, *[""] * (width - len(atom.variables))) for atom, width in zip(atoms, widths, strict=True)]
    return [(name, i) for i, name in enumerate(name for part in names for name in part)]


def _joined(rng: Random, atoms: Sequence[_Atom], hint: Hint | None) -> tuple[Plan, list[Expr]]:
    """A left-deep tree, and equalities that are left to a filter above, few enough for the oracle to terminate."""
    plan: Plan = Table(atoms[0].source.table)
    later: list[Expr] = []
    for n, atom in enumerate(atoms[1:], 1):
        right = Table(atom.source.table)
        before = _columns(atoms[:n])
        keys = []
        for i, variable in enumerate(atom.variables):
            same = [position for name, position in before if name == variable]
            if not same:
                continue
            ours = rng.choice(same)
            if (keys or len(atoms) == 3) and rng.random() < 0.3:
                later.append(resolve("equal", [reference(plan.schema, ours), _beyond(plan, right, i)]))
            else:
                keys.append(_key(rng, reference(plan.schema, ours), reference(right.schema, i), computed=hint is None))
        plan = Join(plan, right, "inner", tuple(keys), hint=hint)
        if rng.random() < 0.2:
            plan = Project(plan, tuple((f"c{i}", reference(plan.schema, i)) for i in range(len(plan.schema))))
    return plan, later


def _key(rng: Random, ours: Expr, theirs: Expr, *, computed: bool) -> tuple[Expr, Expr]:
    """Two columns, some within a function, which can fail or map NULL to a value."""
    if not computed or rng.random() > 0.1:
        return ours, theirs
    if ours.type == BIGINT and rng.random() < 0.5:
        return resolve("add", [ours, Literal(0, BIGINT)]), theirs
    some = Literal(domain(ours.type)[0], ours.type)
    return resolve("coalesce", [ours, some]), resolve("coalesce", [theirs, some])


def _beyond(left: Plan, right: Plan, i: int) -> Expr:
    return reference(Schema(left.schema.fields + right.schema.fields), len(left.schema) + i)


def _condition(rng: Random, plan: Plan) -> Expr | None:
    """A comparison of two columns of one type, or whether one is NULL."""
    at = rng.randrange(len(plan.schema))
    others = [i for i, field in enumerate(plan.schema) if field.type == plan.schema[at].type and i != at]
    if rng.random() < 0.2 or not others:
        return resolve("is_not_null", [reference(plan.schema, at)])
    return resolve(rng.choice(("less_equal", "not_equal", "less")), [reference(plan.schema, i) for i in (at, rng.choice(others))])


def _topped(rng: Random, plan: Plan) -> Plan:
    """Columns, DISTINCT, or an aggregate over it."""
    schema = plan.schema
    kept = sorted(rng.sample(range(len(schema)), rng.randint(1, min(5, len(schema)))))
    match rng.randrange(6):
        case 0:
            return Project(plan, tuple((f"c{i}", reference(schema, i)) for i in kept))
        case 1:
            return Distinct(Project(plan, tuple((f"c{i}", reference(schema, i)) for i in kept[:2])))
        case 2:
            return Aggregate(plan, (), (("n", _call("count")),))
        case _:
            keys = tuple((f"k{i}", reference(schema, i)) for i in kept[: rng.choice((0, 1, 1, 2))])
            return Aggregate(plan, keys, _calls(rng, plan))


def _calls(rng: Random, plan: Plan) -> tuple[tuple[str, AggregateCall], ...]:
    numbers = [i for i, field in enumerate(plan.schema) if field.type.is_numeric and not field.type.is_float]
    calls = [_call("count")]
    for _ in range(rng.randint(0, 3)):
        at = rng.choice(numbers) if numbers and rng.random() < 0.8 else rng.randrange(len(plan.schema))
        function = rng.choice(("sum", "sum", "avg", "count", "min", "max")) if at in numbers else rng.choice(("count", "min", "max"))
        calls.append(_call(function, reference(plan.schema, at)))
    return tuple((f"a{i}", call) for i, call in enumerate(calls))


def _call(function: str, argument: Expr | None = None) -> AggregateCall:
    arguments = () if argument is None else (argument,)
    signature = aggregate_function(function).rule(function, [argument.type for argument in arguments], None)
    return AggregateCall(function, arguments, signature.result, signature.nullable)
