"""Random programs for differential tests: tables, views over them, and ticks of changes, all from one integer.

    for seed in range(500):
        program = case(seed)
        for tick, outcome in zip(program.ticks, expected(program)):
            …apply the tick to an engine; its views must equal `outcome`, or it must fail with that error and change nothing…

`Mix` says what was in the cases, and whether they were fair: enough ticks that retract rows, every kind of operator with rows to show.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from random import Random

from deltic.errors import EvaluationError
from deltic.plan.evaluate import evaluate
from deltic.plan.nodes import Join, Plan, Recursion, SetOperation, inputs, references
from deltic.plan.relation import Relation
from deltic.plan.walk import nodes
from deltic.schema import TableSchema
from program_data import KEY_TYPES, Content, Source, Tick, random_graph, random_source
from program_plans import ANY, FIVE, Programs
from program_recursion import RecursivePrograms

Tables = dict[str, Relation]
Outcome = dict[str, Relation] | type[EvaluationError]
"""The content of every view after a tick, or the error of a failed tick, which has no effect."""

KINDS = (
    *("Project", "Filter", "Aggregate", "Distinct", "Union", "TopK"),
    *(f"Join {kind}" for kind in ("inner", "left", "right", "full", "semi", "anti", "not_in")),
    *(f"SetOperation {kind}" for kind in ("except", "except_all", "intersect", "intersect_all")),
)
ALL_AGGREGATES = 10_000
"""From this seed on programs have all aggregates; earlier seeds keep the programs that once failed."""
LARGEST = 2_000  # rows of any node after the load; programs that explode are made again


@dataclass(frozen=True, slots=True)
class Case:
    """A program. The first tick is the load. `fails`: some ticks may fail; the ticks after one build on what was before it."""

    seed: int
    tables: Mapping[str, TableSchema]
    views: Mapping[str, Plan]
    ticks: Sequence[Tick]
    fails: bool

    def __str__(self) -> str:
        return f"case({self.seed})"


def case(seed: int) -> Case:
    """The program of this seed; one in ten has expressions that fail on some rows."""
    for attempt in range(100):
        rng = Random(f"{seed}.{attempt}")
        made = _made(seed, rng)
        if made is not None:
            return made
    raise AssertionError(f"no small program for seed {seed}")


def daring(seed: int) -> Case:
    """A program with expressions that may fail anywhere in it: what an optimizer or an engine may drop, but not bring about."""
    rng = Random(f"daring {seed}")
    theme = rng.choice(KEY_TYPES)
    sources = [random_source(rng, name, theme) for name in "tu"]
    programs = Programs(rng, sources, 3, daring=0.2)
    views = {f"view{i}": programs.relation(rng.randint(2, 4)).plan for i in range(3)}
    contents = [Content(source) for source in sources]
    ticks = [_load(rng, contents, 3), *(_tick(rng, contents) for _ in range(4))]
    return Case(seed, {source.table.name: source.table for source in sources}, views, ticks, True)


def succeeding(seed: int) -> tuple[Case, int] | None:
    """As `daring`, two of three recursive, without the ticks that fail; and how many these are. None if fewer than two ticks are left."""
    rng = Random(f"succeeding {seed}")
    theme = rng.choice(KEY_TYPES)
    if seed % 3:
        sources = [random_graph(rng, "g", theme), random_source(rng, "t", theme)]
        recursive = RecursivePrograms(rng, sources, 5, rng.choice((1, 1, 2)))
        recursive.scalars.daring = 0.4
        views = {f"view{i}": recursive.view().plan for i in range(2)}
    else:
        sources = [random_source(rng, name, theme) for name in "tu"]
        programs = Programs(rng, sources, 4, daring=0.4)
        views = {f"view{i}": programs.relation(rng.randint(2, 4)).plan for i in range(2)}
    tables = empty({source.table.name: source.table for source in sources})
    if not isinstance(outcome(views, tables), dict):
        return None
    ticks = []
    drawn = failing_ticks(rng, sources, views)
    for tick in drawn:
        after = applied(tables, tick)
        if isinstance(outcome(views, after), dict):
            if explodes(list(views.values()), after):
                return None
            ticks.append(tick)
            tables = after
    program = Case(seed, {source.table.name: source.table for source in sources}, views, ticks, False)
    return (program, len(drawn) - len(ticks)) if len(ticks) > 1 else None


def mixed(seed: int) -> Case:
    """Of ten seeds five are those of `case`, three have a recursion in each view, and two have recursions two or three deep."""
    nest = (0, 0, 0, 0, 0, 1, 1, 1, 2, 2 + (seed % 4 == 1))[seed % 10]
    if nest == 0:
        return case(seed)
    for attempt in range(100):
        made = _made_recursive(seed, Random(f"recursive {seed}.{attempt}"), nest)
        if made is not None:
            return made
    raise AssertionError(f"no small recursive program for seed {seed}")


def _made_recursive(seed: int, rng: Random, nest: int) -> Case | None:
    theme = rng.choice(KEY_TYPES)
    sources = [random_graph(rng, "g", theme), *(random_source(rng, name, theme) for name in "tu"[: rng.randint(1, 2)])]
    size = rng.randint(4, 9)
    programs = RecursivePrograms(rng, sources, size, nest)
    views = {f"view{i}": programs.view().plan for i in range(rng.randint(1, 2))}
    tables = {source.table.name: source.table for source in sources}
    ticks = _graph_ticks(rng, sources, size)
    if explodes(list(views.values()), applied(empty(tables), ticks[0])):
        return None
    return Case(seed, tables, views, ticks, False)


def _graph_ticks(rng: Random, sources: Sequence[Source], size: int) -> list[Tick]:
    """Changes mostly of the first table, a graph, of which half of them delete an edge."""
    contents = [Content(source) for source in sources]
    graph = contents[0]
    ticks = [{**_load(rng, contents[1:], size), graph.source.table.name: graph.load(rng, size + 4)}]
    for _ in range(rng.randint(3, 6)):
        tick: Tick = {}
        for _ in range(rng.choice([1, 2, 2, 3])):
            content = graph if rng.random() < 0.75 else rng.choice(contents)
            change = content.delete(rng) if content.rows and rng.random() < 0.6 else content.change(rng)
            tick.setdefault(content.source.table.name, []).extend(change)
        ticks.append(tick)
    return ticks


def _made(seed: int, rng: Random) -> Case | None:
    theme = rng.choice(KEY_TYPES)
    sources = [random_source(rng, name, theme) for name in "tuv"[: rng.randint(1, 3)]]
    size = rng.randint(5, 12)
    programs = Programs(rng, sources, size, functions=FIVE if seed < ALL_AGGREGATES else ANY)
    fails = seed % 10 == 9
    plans = [programs.failing(rng.randint(0, 3))] if fails else []
    plans += [programs.view() for _ in range(rng.randint(1, 3))]
    views = {f"view{i}": sized.plan for i, sized in enumerate(plans)}
    tables = {source.table.name: source.table for source in sources}
    if fails and not isinstance(outcome(views, empty(tables)), dict):
        return None  # it would fail before there is any data: over the one row of a global aggregate, say
    ticks = failing_ticks(rng, sources, views) if fails else ticks_of(rng, sources, size)
    if not fails and explodes(list(views.values()), applied(empty(tables), ticks[0])):
        return None
    return Case(seed, tables, views, ticks, fails)


def empty(tables: Mapping[str, TableSchema]) -> Tables:
    return {name: Relation() for name in tables}


def applied(tables: Mapping[str, Relation], tick: Tick) -> Tables:
    """The tables after the tick."""
    return {name: relation + Relation(tick.get(name, ())) for name, relation in tables.items()}


def ticks_of(rng: Random, sources: Sequence[Source], size: int) -> list[Tick]:
    contents = [Content(source) for source in sources]
    return [_load(rng, contents, size), *(_tick(rng, contents) for _ in range(rng.randint(3, 6)))]


def _load(rng: Random, contents: Sequence[Content], size: int) -> Tick:
    return {content.source.table.name: content.load(rng, size) for content in contents}


def _tick(rng: Random, contents: Sequence[Content]) -> Tick:
    tick: Tick = {}
    for _ in range(rng.choice([1, 1, 2, 3, 5])):
        content = rng.choice(contents)
        tick.setdefault(content.source.table.name, []).extend(content.change(rng))
    return tick


def failing_ticks(rng: Random, sources: Sequence[Source], views: Mapping[str, Plan]) -> list[Tick]:
    """Ticks of which some fail: the next one starts from what was before. The load is small, or all would fail at once."""
    contents = [Content(source) for source in sources]
    tables = empty({source.table.name: source.table for source in sources})
    ticks: list[Tick] = []
    for turn in range(rng.randint(5, 8)):
        before = [list(content.rows) for content in contents]
        ticks.append(_load(rng, contents, 2) if turn == 0 else _tick(rng, contents))
        after = applied(tables, ticks[-1])
        if isinstance(outcome(views, after), dict):
            tables = after
        else:
            for content, rows in zip(contents, before, strict=True):
                content.rows = rows
    return ticks


def explodes(views: Sequence[Plan], tables: Tables) -> bool:
    """Whether a join or a recursion of theirs has too many rows."""
    large = [node for plan in views for node in nodes(plan) if isinstance(node, Join | Recursion) and not references(node)]
    return any(sum(weight for _, weight in evaluate(node, tables).pairs()) > LARGEST for node in large)


def outcome(views: Mapping[str, Plan], tables: Mapping[str, Relation]) -> Outcome:
    """What the views hold over these tables, by the oracle."""
    try:
        return {name: evaluate(plan, tables) for name, plan in views.items()}
    except EvaluationError as error:
        return type(error)


def expected(program: Case) -> list[Outcome]:
    """The outcome of each tick, by the oracle."""
    tables = empty(program.tables)
    outcomes: list[Outcome] = []
    for tick in program.ticks:
        after = applied(tables, tick)
        outcomes.append(outcome(program.views, after))
        if isinstance(outcomes[-1], dict):
            tables = after
    return outcomes


@dataclass(slots=True)
class Mix:
    """What the cases recorded had in them."""

    cases: int = 0
    ticks: int = 0
    retracting: int = 0
    failing: int = 0
    recursive: int = 0
    nested: int = 0
    restarted: int = 0
    shown: Counter[str] = field(default_factory=Counter)

    def record(self, program: Case, outcomes: Sequence[Outcome], *, restarted: bool = False) -> None:
        """Counts the case: ticks after the load that take away a row of a view or fail, and kinds of operators that had rows.

        restarted: whether the engine went on from its state in between.
        """
        self.cases += 1
        self.restarted += restarted
        deep = max(nest(plan) for plan in program.views.values())
        self.recursive += deep > 0
        self.nested += deep > 1
        before: dict[str, Relation] = {}
        for i, now in enumerate(outcomes):
            if not isinstance(now, dict):
                self.failing += 1
                continue
            if i:
                self.ticks += 1
                self.retracting += any(weight < 0 for name in now for _, weight in (now[name] - before.get(name, Relation())).pairs())
            before = now
        self.shown.update(_shown(program, outcomes))

    def __iadd__(self, other: Mix) -> Mix:
        """Counts what `other` has counted too."""
        for count in fields(self):
            setattr(self, count.name, getattr(self, count.name) + getattr(other, count.name))
        return self

    def assert_fair(self) -> None:
        """30 % of the ticks retract a row of a view, and every kind of operator has rows in 10 % of the cases."""
        assert self.retracting >= 0.3 * self.ticks, str(self)
        rare = [kind for kind in KINDS if self.shown[kind] < 0.1 * self.cases]
        assert not rare, f"{rare}: {self}"

    def assert_recursive(self, restarted: float) -> None:
        """Half of the cases have a recursion, a fifth one inside another; 30 % of the ticks retract a row of a view.

        restarted: the share of cases that went on from state.
        """
        assert self.recursive >= 0.5 * self.cases, str(self)
        assert self.nested >= 0.2 * self.cases, str(self)
        assert self.retracting >= 0.3 * self.ticks, str(self)
        assert self.restarted >= restarted * self.cases, str(self)

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} {self.shown[kind] / max(1, self.cases):.0%}" for kind in KINDS)
        share = self.retracting / max(1, self.ticks)
        loops = f"{self.recursive} recursive, {self.nested} of them nested, {self.restarted} restarted"
        return f"{self.cases} cases, {loops}, {self.ticks} ticks, {share:.0%} retract, {self.failing} fail; with rows: {kinds}"


def kind_of(node: Plan) -> str:
    """The node's name, with its kind where it has one."""
    name = type(node).__name__
    return f"{name} {node.kind}" if isinstance(node, Join | SetOperation) else name


def nest(plan: Plan) -> int:
    """How many recursions lie in one another."""
    return isinstance(plan, Recursion) + max((nest(below) for below in inputs(plan)), default=0)


def _shown(program: Case, outcomes: Sequence[Outcome]) -> set[str]:
    """Kinds of operators that have rows after the load, or at the end."""
    kinds: set[str] = set()
    tables = empty(program.tables)
    for i, (tick, now) in enumerate(zip(program.ticks, outcomes, strict=True)):
        tables = applied(tables, tick) if isinstance(now, dict) else tables
        if i in (0, len(outcomes) - 1):
            closed = (n for plan in program.views.values() for n in nodes(plan) if not references(n))
            kinds |= {kind_of(n) for n in closed if kind_of(n) not in kinds and evaluate(n, tables)}
    return kinds
