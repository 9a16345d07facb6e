"""multiway_join in nested scopes: every combination of changes is joined once, and is due at the join of all their times.

Old and new refer to the rows appended so far: a rule reads relations before its own with the current change, and those after it without.
A step that binds a word tests only whether rows with this prefix exist at any time, even where their weights cancel. Complete rows are then
looked up with their times, which are joined as the weights are multiplied. Results that are due later wait in a queue.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from deltic.circuit.due import split_by_time
from deltic.circuit.operator import Context, Delta
from deltic.circuit.operators.multiway import MultiwayJoinOperator, Run
from deltic.circuit.operators.nested import Nested
from deltic.circuit.prefixes import Prefixes
from deltic.circuit.rules import Extend, Fetch, PlannedStep, Rule, Step
from deltic.circuit.scopes import ScopeContext, scope_context
from deltic.trace.extend import Directories
from deltic.trace.probe import probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine


@dataclass(frozen=True, slots=True)
class NestedMultiwayJoin(Nested):
    """`flat` at times in scopes. depths: those of the scopes of the arrangements in `flat.sources`: this scope or one around it."""

    flat: MultiwayJoinOperator
    depths: tuple[int, ...]
    timed: MultiwayJoinOperator = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "timed", replace(self.flat, rules=tuple(map(_timed, self.flat.rules))))

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        scopes = scope_context(context)
        depths = dict(zip(self.flat.sources, self.depths, strict=True))
        spines: list[Spine] = []
        for name, (port, width, weights) in self.flat.sources.items():
            trace = scopes.trace(name, width + depths[name], weights, depths[name])
            spines += (trace.before if len(inputs[port]) else trace.now, trace.now)
        directories = Directories([(spine, None) for spine in spines])
        names = [(name, new) for name in self.flat.sources for new in (False, True)]
        versions = {name: old for name, (old, _) in zip(names, directories.versions, strict=True)}
        due = scopes.awaited()
        due.append(self.timed.summed(inputs, TimedRun(directories, versions, scopes, self.flat.naive, scopes=scopes, depths=depths)))
        return Rows.concat(due)


@dataclass(frozen=True, slots=True)
class TimedRun(Run):
    """The rules at one time. depths: those of the arrangements."""

    scopes: ScopeContext = field(kw_only=True)
    depths: dict[str, int] = field(kw_only=True)

    def start(self, rule: Rule, change: Delta) -> Prefixes:
        prefixes = Prefixes.of(rule, change)
        times = {-1 - scope: np.full(len(prefixes), now, np.int64) for scope, now in enumerate(self.scopes.time)}
        return Prefixes({**prefixes.columns, **times}, prefixes.weights)

    def fetched(self, planned: PlannedStep, prefixes: Prefixes) -> Prefixes:
        (atom,) = planned.step.atoms
        keys, depth = prefixes.key(atom.key), self.depths[atom.arrangement]
        words = [word for word in range(len(keys), atom.width) if planned.reads(planned.position + word - len(keys))]
        spine = self.version(atom).spine
        source, values, weights = probe(spine, keys, (*words, *range(atom.width, atom.width + depth)), self.context.counters)
        bound = {planned.position + word - len(keys): column for word, column in zip(words, values[: len(words)], strict=True)}
        for scope, times in enumerate(values[len(words) :]):
            bound[-1 - scope] = np.maximum(prefixes.columns[-1 - scope][source], times)
        return prefixes.extended(planned, source, bound, weights, self.context)

    def rows(self, rule: Rule, prefixes: Prefixes) -> Rows:
        """The rows that are due now; the others are postponed."""
        rows = Run.rows(self, rule, prefixes)
        times = prefixes.key([-1 - scope for scope in range(len(self.scopes.time))])
        now, later = split_by_time(times, self.scopes.time)
        for time, positions in later:
            self.scopes.postpone(time, rows.take(positions))
        return rows if now is None else rows.take(now)


def _timed(rule: Rule) -> Rule:
    """The rule with weights and times looked up after the words are bound."""
    steps: list[Step] = []
    position = len(rule.start)
    for step in rule.steps:
        steps += _looked_up(step, position) if isinstance(step, Extend) else (step,)
        position += step.width
    return replace(rule, steps=tuple(steps))


def _looked_up(step: Extend, position: int) -> Iterator[Step]:
    """A step that only tests prefixes, and one for each relation whose last word it binds."""
    yield replace(step, atoms=tuple(replace(atom, leaf=False) for atom in step.atoms))
    for atom in step.atoms:
        if atom.leaf:
            yield Fetch(replace(atom, key=(*atom.key, position)))
