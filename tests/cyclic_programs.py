"""Random programs whose views join relations in a cycle: shapes, self-joins, payload, filters, NULLs, and aggregates over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from program_data import Content, Source, domain
from programs import LARGEST, Case, Tick, applied, empty

from deltic.expr.aggregates import result_type
from deltic.expr.functions import resolve
from deltic.expr.nodes import Expr
from deltic.plan.columns import conjunction, reference
from deltic.plan.evaluate import evaluate
from deltic.plan.nodes import Aggregate, AggregateCall, Distinct, Filter, Hint, Join, Plan, Project, Recursion, Reference, Table, Union
from deltic.schema import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, Field, Schema, TableSchema, Type, decimal

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
HINTED = ("path", "star")
"""Shapes without a cycle, whose joins have a hint."""
VALUES = {"triangle": 5, "clique": 3, "bow-tie": 4, "Loomis-Whitney": 3}
THEMES: tuple[Type, ...] = (BIGINT, BIGINT, INT, STRING, STRING, DATE, decimal(10, 2), TIMESTAMP, BOOLEAN)
PAYLOADS: tuple[Type, ...] = (BIGINT, INT, STRING, DOUBLE, decimal(10, 2), decimal(30, 2))


@dataclass(frozen=True, slots=True)
class _Atom:
    """An occurrence of a table: its first columns are the variables."""

    source: Source
    variables: str


def cyclic(seed: int) -> Case:
    """The program of this seed: one or two views over one to three tables for each number of join columns."""
    for attempt in range(100):
        rng = Random(f"cyclic {seed}.{attempt}")
        made = _made(seed, rng)
        if made is not None:
            return made
    raise AssertionError(f"no small cyclic program for seed {seed}")


def recursive(seed: int) -> Case:
    """A recursion whose step joins its relation with tables, or with itself, in a cycle."""
    rng = Random(f"recursive cycles {seed}")
    theme = rng.choice(THEMES[:6])
    values = rng.randint(3, 5)
    sources = [_source(rng, f"r2{i}", theme, 2, values) for i in range(rng.choice((1, 2)))]
    edges = [_ends(Table(source.table)) for source in sources]
    shape = SHAPES[rng.choice(("triangle", "triangle round and round", "square", "triangle with a tail"))]
    base = edges[0]
    known = Reference("reach", Distinct(base).schema)
    while True:
        inputs = [known if n == 0 or rng.random() < 0.3 else rng.choice(edges) for n in range(len(shape))]
        joined = _of(inputs, shape)
        ends = rng.sample(range(len(joined.schema)), 2)
        step = Project(joined, tuple((f"c{i}", reference(joined.schema, at)) for i, at in enumerate(ends)))
        body = Distinct(Union((base, step)))
        if [f.nullable for f in body.schema] == [f.nullable for f in known.schema]:
            break
        known = Reference("reach", body.schema)
    plan = Recursion((("reach", body),), "reach")
    schemas = {source.table.name: source.table for source in sources}
    return Case(seed, schemas, {"view": plan}, _ticks(rng, sources, values), False)


def _ends(plan: Plan) -> Plan:
    return Project(plan, tuple((plan.schema[i].name, reference(plan.schema, i)) for i in range(2)))


def _of(inputs: Sequence[Plan], shape: Sequence[str]) -> Plan:
    """Edges joined by twos along the variables of the shape."""
    plan, seen = inputs[0], list(shape[0])
    for right, atom in zip(inputs[1:], shape[1:], strict=True):
        pairs = [(seen.index(v), i) for i, v in enumerate(atom) if v in seen]
        plan = Join(plan, right, "inner", tuple((reference(plan.schema, a), reference(right.schema, b)) for a, b in pairs))
        seen += atom
    return plan


def _made(seed: int, rng: Random) -> Case | None:
    theme = rng.choice(THEMES)
    shapes = [rng.choice(list(SHAPES)) for _ in range(rng.choice((1, 1, 2)))]
    values = min(len(domain(theme)), *(VALUES.get(shape, 4) for shape in shapes))
    arities = sorted({len(variables) for shape in shapes for variables in SHAPES[shape]})
    tables = {arity: [_source(rng, f"r{arity}{i}", theme, arity, values) for i in range(rng.choice((1, 1, 2, 3)))] for arity in arities}
    views = {f"view{i}": _view(rng, shape, tables) for i, shape in enumerate(shapes)}
    sources = [source for mine in tables.values() for source in mine]
    schemas = {source.table.name: source.table for source in sources}
    ticks = _ticks(rng, sources, values)
    after = applied(empty(schemas), ticks[0])
    if any(sum(weight for _, weight in evaluate(plan, after).pairs()) > LARGEST for plan in views.values()):
        return None
    return Case(seed, schemas, views, ticks, False)


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


def _view(rng: Random, shape: str, tables: dict[int, list[Source]]) -> Plan:
    atoms = [_Atom(rng.choice(tables[len(variables)]), variables) for variables in SHAPES[shape]]
    rng.shuffle(atoms)
    plan, where = _joined(rng, atoms, Hint("multiway") if shape in HINTED else None)
    for _ in range(rng.choice((0, 0, 1, 2))):
        if (part := _condition(rng, plan)) is not None:
            where.append(part)
    if where:
        plan = Filter(plan, conjunction(where))
    return _topped(rng, plan, _columns(atoms))


def _columns(atoms: Sequence[_Atom]) -> list[tuple[str, int]]:
    """(variable, or '' for payload; position) of each column of the atoms side by side."""
    widths = [len(atom.source.table.schema) for atom in atoms]
    names = [(*atom.variables, *[""] * (width - len(atom.variables))) for atom, width in zip(atoms, widths, strict=True)]
    return [(name, i) for i, name in enumerate(name for mine in names for name in mine)]


def _joined(rng: Random, atoms: Sequence[_Atom], hint: Hint | None) -> tuple[Plan, list[Expr]]:
    """A left-deep tree, and equalities that are left to a filter above, few enough for the oracle to come to an end."""
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
                keys.append((reference(plan.schema, ours), reference(right.schema, i)))
        plan = Join(plan, right, "inner", tuple(keys), hint=hint)
        if rng.random() < 0.2:
            plan = Project(plan, tuple((f"c{i}", reference(plan.schema, i)) for i in range(len(plan.schema))))
    return plan, later


def _beyond(left: Plan, right: Plan, i: int) -> Expr:
    return reference(Schema(left.schema.fields + right.schema.fields), len(left.schema) + i)


def _condition(rng: Random, plan: Plan) -> Expr | None:
    """A comparison of two columns of one type, or whether one is NULL."""
    at = rng.randrange(len(plan.schema))
    others = [i for i, field in enumerate(plan.schema) if field.type == plan.schema[at].type and i != at]
    if rng.random() < 0.2 or not others:
        return resolve("is_not_null", [reference(plan.schema, at)])
    return resolve(rng.choice(("less_equal", "not_equal", "less")), [reference(plan.schema, i) for i in (at, rng.choice(others))])


def _topped(rng: Random, plan: Plan, columns: Sequence[tuple[str, int]]) -> Plan:
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
            return Aggregate(plan, keys, _calls(rng, plan, columns))


def _calls(rng: Random, plan: Plan, columns: Sequence[tuple[str, int]]) -> tuple[tuple[str, AggregateCall], ...]:
    numbers = [i for _, i in columns if plan.schema[i].type.is_numeric and not plan.schema[i].type.is_float]
    calls = [_call("count")]
    for _ in range(rng.randint(0, 3)):
        at = rng.choice(numbers) if numbers and rng.random() < 0.8 else rng.randrange(len(plan.schema))
        function = rng.choice(("sum", "sum", "avg", "count", "min", "max")) if at in numbers else rng.choice(("count", "min", "max"))
        calls.append(_call(function, reference(plan.schema, at)))
    return tuple((f"a{i}", call) for i, call in enumerate(calls))


def _call(function: str, argument: Expr | None = None) -> AggregateCall:
    type, nullable = result_type(function, argument and argument.type)
    return AggregateCall(function, () if argument is None else (argument,), type, nullable)  # type: ignore[arg-type]
