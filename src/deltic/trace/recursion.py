"""A recursion of several relations over spines, run to its fixed point in one kernel call: a program of rules, as data."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

import numpy as np

from deltic.kernels import added as layout
from deltic.kernels import fixpoint, rules, seen
from deltic.kernels import recursion as kernel
from deltic.kernels.memory import Words
from deltic.trace import interrupts
from deltic.trace.consolidate import overflow
from deltic.trace.counters import Counters
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

HASH_KEY: Final = secrets.randbits(55)
"""Of the kernel's hash tables, which decide no result."""
_MOST: Final = 2**63 - 1

Operand = tuple[int | None, int]
"""(a register, 0), or (None, a constant)."""

Comparison = Literal["equal", "not_equal", "less", "less_or_equal"]
COMPARISONS: Final[Mapping[Comparison, int]] = {
    "equal": rules.EQUAL,
    "not_equal": rules.NOT_EQUAL,
    "less": rules.LESS,
    "less_or_equal": rules.LESS_OR_EQUAL,
}


class Condition(NamedTuple):
    """A comparison of words."""

    comparison: Comparison
    left: Operand
    right: Operand


@dataclass(frozen=True, slots=True)
class Lookup:
    """Binds the words of a row of an arrangement after its key, to the registers from `bound` on.

    key: the registers of its first words. width: the words of a row, without an iteration, which `timed` says that it has. collection: what
    the tick adds to the arrangement; None if that is nothing, or known before the first iteration. new: whether the newest rows are read.
    """

    arrangement: str
    key: tuple[int, ...]
    bound: int
    width: int
    timed: bool
    collection: int | None
    new: bool

    @property
    def registers(self) -> int:
        """How many registers are bound after it."""
        return self.bound + self.width - len(self.key)


@dataclass(frozen=True, slots=True)
class RuleVariant:
    """Lookups, and what is derived from their registers if the conditions are met."""

    steps: tuple[Lookup, ...]
    output: tuple[Operand, ...]
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class RecursiveRule:
    """Starts from the newest rows of a collection, whose words are the first registers, and derives rows of a relation.

    All variants derive the same; each row takes the one whose first lookup finds the fewest rows.
    """

    start: int
    target: int
    variants: tuple[RuleVariant, ...]


@dataclass(frozen=True, slots=True)
class Collection:
    """Rows that a tick adds. width: their words. key: by how many words they are looked up, if at all.

    input: the position of the change, among those of the scope, that they are. arrangement: that to which they are appended.
    """

    width: int
    key: int | None = None
    input: int | None = None
    arrangement: str | None = None


@dataclass(frozen=True, slots=True)
class RecursiveRelation:
    """What rules derive, summed. derivations: of a distinct relation, the arrangement of what is summed. adds_to: the collection of its
    changes. delayed: whether that gets them in the next iteration, as those of distinct recursive relations do."""

    width: int
    derivations: str | None
    adds_to: int | None
    delayed: bool = False


@dataclass(frozen=True, slots=True)
class Rearrange:
    """Adds the newest rows of the collection `source`, words moved, to another. moves: for each word, which word of the source it is."""

    collection: int
    source: int
    moves: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ApplyRule:
    """Runs a rule."""

    rule: int


@dataclass(frozen=True, slots=True)
class Settle:
    """Sums what is due for a relation now."""

    relation: int


Operation = Rearrange | ApplyRule | Settle


@dataclass(frozen=True, slots=True)
class RecursiveProgram:
    """operations: those of an iteration, in order; a relation is settled after all rules that derive it at this iteration.

    recursive: how many collections are of recursive relations; they are the first ones. exported: the relation whose sums are wanted.
    """

    collections: tuple[Collection, ...]
    relations: tuple[RecursiveRelation, ...]
    operations: tuple[Operation, ...]
    rules: tuple[RecursiveRule, ...]
    recursive: int
    exported: int
    tables: Tables = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", _tables(self))

    @property
    def lookups(self) -> tuple[Lookup, ...]:
        """Those of all rules."""
        return tuple(step for rule in self.rules for variant in rule.variants for step in variant.steps)


@dataclass(frozen=True, slots=True)
class Tables:
    """A program as the kernel reads it; what depends on the tick is 0 in collections, relations and steps."""

    collections: Words
    relations: Words
    operations: Words
    rules: Words
    variants: Words
    steps: Words
    moves: Words
    keys: Words
    width: int
    registers: int


@dataclass(frozen=True, slots=True)
class Versions:
    """An arrangement: as it was before the tick, and with what is known of its change before the first iteration."""

    old: Spine
    now: Spine


@dataclass(frozen=True, slots=True)
class Recursed:
    """The results of a tick, in any order.

    derivations: of each relation, (row, iteration); none of one that is not distinct. added: of each collection, (row, iteration).
    sums: the changes of the exported relation. growth: for each iteration that was run, how many rows each recursive collection has got.
    diverged: only `added` is valid, with the first iteration beyond the limit.
    """

    derivations: tuple[Rows, ...]
    added: tuple[Rows, ...]
    sums: Rows
    growth: Words
    diverged: bool

    def newest(self, collection: int) -> Rows:
        """The rows of the last iteration of a collection, without the iteration."""
        rows = self.added[collection]
        last = rows.take(rows.columns[-1] == rows.columns[-1].max(initial=0))
        return Rows(last.columns[:-1], last.weights)


def recurse(
    program: RecursiveProgram, changes: Sequence[Rows], spines: Mapping[str, Versions], limit: int, rows: Counters, joins: Counters
) -> Recursed:
    """Runs a program over the changes of one tick. limit: how many iterations may change rows.

    changes: the inputs of the scope. spines: the arrangements that it reads. O(rows derived + the histories of these rows). Raises
    WeightOverflow.
    """
    tables, places, parts, end = program.tables, dict[str, int](), list[Words](), 0
    for name, versions in spines.items():
        places[name] = end
        parts.append(versions.now.view[1])
        end += len(parts[-1])
    collections, relations, steps = tables.collections.copy(), tables.relations.copy(), tables.steps.copy()
    for number, collection in enumerate(program.collections):
        if collection.input is not None:
            change = changes[collection.input]
            collections[number, rules.INPUT], collections[number, rules.INPUT_ROWS] = end, len(change)
            parts.append(change.table)
            end += len(change.table)
    for number, relation in enumerate(program.relations):
        if relation.derivations is not None:
            relations[number, rules.RELATION_PAST] = places[relation.derivations]
            relations[number, rules.RELATION_BATCHES] = len(spines[relation.derivations].old.batches)
    lookups = program.lookups
    for number, step in enumerate(lookups):
        versions = spines[step.arrangement]
        batches = len(versions.old.batches), len(versions.now.batches)
        steps[number, [rules.PAST, rules.OLD_BATCHES, rules.BATCHES]] = places[step.arrangement], *batches
    report = np.zeros(layout.REPORT, np.int64)
    outcome, derivations, added, sums, growth = interrupts.run(
        kernel.recursion,
        np.concatenate(parts),
        collections,
        relations,
        tables.operations,
        tables.rules,
        tables.variants,
        steps,
        tables.moves,
        tables.keys,
        program.recursive,
        tables.width,
        tables.registers,
        program.exported,
        limit,
        HASH_KEY,
        _MOST,
        report,
    )
    if outcome == fixpoint.OVERFLOW:
        raise overflow("a derivation")
    rows.touched += int(report[seen.TOUCHED_ROWS])
    joins.touched += int(report[seen.TOUCHED_JOINS])
    rows.rows_in, joins.rows_out = int(report[seen.DERIVATIONS]), int(report[seen.DERIVED])
    for step in lookups:
        spines[step.arrangement].old.count_sought(int(report[seen.SOUGHT_JOINS]) // len(lookups))
    iterations = int(report[seen.ITERATIONS])
    growth = growth[: iterations * program.recursive].reshape(iterations, program.recursive)
    rows.rows_out = int(growth.sum())
    return Recursed(
        tuple(_derived(derivations[: rows.rows_in], n, r.width) for n, r in enumerate(program.relations)),
        tuple(_added(added[: report[layout.ADDED]], n, c) for n, c in enumerate(program.collections)),
        Rows(tuple(sums[:-1]), (sums[-1],)),
        growth,
        outcome == fixpoint.DIVERGED,
    )


def _derived(table: Words, relation: int, width: int) -> Rows:
    own = table[table[:, kernel.DERIVED_RELATION] == relation]
    words = (*range(kernel.DERIVED_WORDS, kernel.DERIVED_WORDS + width), kernel.DERIVED_ITERATION, kernel.DERIVED_WEIGHT)
    return _columns(own, words)


def _added(table: Words, number: int, collection: Collection) -> Rows:
    own = table[table[:, layout.COLLECTION] == number]
    return _columns(own, (*range(layout.WORDS, layout.WORDS + collection.width), layout.ITERATION, layout.WEIGHT))


def _columns(table: Words, words: Sequence[int]) -> Rows:
    *columns, weights = (np.ascontiguousarray(table[:, word]) for word in words)
    return Rows(columns, (weights,))


def _tables(program: RecursiveProgram) -> Tables:
    moves: list[int] = []

    def place(words: Sequence[int]) -> int:
        moves.extend(words)
        return len(moves) - len(words)

    def operands(*several: Operand) -> list[int]:
        return [word for register, value in several for word in ((1, value) if register is None else (0, register))]

    collections = [(seen.NOTHING, 0, c.width) for c in program.collections]
    relations = [
        (int(r.derivations is not None), r.width, 0, 0, seen.NOTHING if r.adds_to is None else r.adds_to, int(r.delayed))
        for r in program.relations
    ]
    all_rules, variants, steps, operations = [], list[tuple[int, ...]](), list[tuple[int, ...]](), []
    for rule in program.rules:
        all_rules.append((rule.start, rule.target, len(variants), len(rule.variants)))
        for variant in rule.variants:
            output = place(operands(*variant.output))
            conditions = [word for c in variant.conditions for word in (COMPARISONS[c.comparison], *operands(c.left, c.right))]
            variants.append((len(steps), len(variant.steps), output, place(conditions), len(variant.conditions)))
            for step in variant.steps:
                collection = seen.NOTHING if step.collection is None else step.collection
                shape = len(step.key), place(step.key), step.bound, step.width
                steps.append((*shape, 0, 0, 0, int(step.timed), collection, int(step.new)))
    for operation in program.operations:
        match operation:
            case Rearrange(collection, source, moved):
                operations.append((kernel.ARRANGE, collection, source, place(moved)))
            case ApplyRule(number):
                operations.append((kernel.APPLY, number, 0, 0))
            case Settle(number):
                operations.append((kernel.SETTLE, number, 0, 0))
    starts = [program.collections[rule.start].width for rule in program.rules]
    return Tables(
        _array(collections, rules.COLLECTION_WORDS),
        _array(relations, rules.RELATION),
        _array(operations, kernel.OPERATION),
        _array(all_rules, rules.RULE),
        _array(variants, rules.VARIANT),
        _array(steps, rules.STEP),
        np.array(moves, np.int64),
        np.array([-1 if c.key is None else c.key for c in program.collections], np.int64),
        max([*(c.width for c in program.collections), *(r.width for r in program.relations)]),
        max([*starts, *(step.registers for step in program.lookups)]),
    )


def _array(records: Sequence[tuple[int, ...]], width: int) -> Words:
    return np.array(records, np.int64).reshape(-1, width)
