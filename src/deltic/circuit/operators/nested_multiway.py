"""multiway_join in nested scopes: every combination of changes is found once, and leaves at the join of all their times.

Old and new are what has been appended so far: a rule reads relations before its own with the change of now, and those after it without.
A step that binds a word asks only whether rows begin so at any time, even where their weights cancel; what is whole is then looked up with
its times, which are joined as the weights are multiplied. What is due later than now waits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from deltic.circuit.due import split_by_time
from deltic.circuit.operator import Context, Delta
from deltic.circuit.operators.multiway import MultiwayJoinOperator, Run
from deltic.circuit.prefixes import Prefixes
from deltic.circuit.rules import Atom, Extend, Fetch, Rule, Stage, Step
from deltic.circuit.scopes import Nest, nest_of
from deltic.trace.extend import Directories
from deltic.trace.probe import probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine


@dataclass(frozen=True, slots=True)
class NestedMultiwayJoin:
    """`flat` at times in scopes. depths: of the scopes in which the arrangements of its `sources` lie, this one's or one around it."""

    flat: MultiwayJoinOperator
    depths: tuple[int, ...]
    timed: MultiwayJoinOperator = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "timed", replace(self.flat, rules=tuple(map(_timed, self.flat.rules))))

    @property
    def name(self) -> str:
        return self.flat.name

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        nest = nest_of(context)
        depths = dict(zip(self.flat.sources, self.depths, strict=True))
        spines: list[Spine] = []
        for name, (port, width, weights) in self.flat.sources.items():
            trace = nest.trace(name, width + depths[name], weights, depths[name])
            spines += (trace.before if len(inputs[port]) else trace.now, trace.now)
        directories = Directories([(spine, None) for spine in spines])
        names = [(name, new) for name in self.flat.sources for new in (False, True)]
        versions = {name: old for name, (old, _) in zip(names, directories.versions, strict=True)}
        due = nest.awaited()
        due.append(self.timed.summed(inputs, TimedRun(directories, versions, nest, self.flat.naive, nest=nest, depths=depths)))
        return Rows.concat(due)


@dataclass(frozen=True, slots=True)
class TimedRun(Run):
    """The rules at one time. depths: of the arrangements."""

    nest: Nest = field(kw_only=True)
    depths: dict[str, int] = field(kw_only=True)

    def start(self, rule: Rule, change: Delta) -> Prefixes:
        prefixes = Prefixes.of(rule, change)
        times = {-1 - scope: np.full(len(prefixes), now, np.int64) for scope, now in enumerate(self.nest.time)}
        return Prefixes({**prefixes.columns, **times}, prefixes.weights)

    def fetched(self, stage: Stage, atom: Atom, prefixes: Prefixes) -> Prefixes:
        keys, depth = prefixes.key(atom.key), self.depths[atom.arrangement]
        words = [word for word in range(len(keys), atom.width) if stage.reads(stage.at + word - len(keys))]
        spine = self.version(atom).spine
        source, found, weights = probe(spine, keys, (*words, *range(atom.width, atom.width + depth)), self.context.counters)
        bound = {stage.at + word - len(keys): column for word, column in zip(words, found[: len(words)], strict=True)}
        for scope, times in enumerate(found[len(words) :]):
            bound[-1 - scope] = np.maximum(prefixes.columns[-1 - scope][source], times)
        return prefixes.extended(stage, source, bound, weights, self.context)

    def rows(self, rule: Rule, prefixes: Prefixes) -> Rows:
        """What is due now; the rest is put off."""
        rows = Run.rows(self, rule, prefixes)
        times = prefixes.key([-1 - scope for scope in range(len(self.nest.time))])
        now, later = split_by_time(times, self.nest.time)
        for time, at in later:
            self.nest.postpone(time, rows.take(at))
        return rows if now is None else rows.take(now)


def _timed(rule: Rule) -> Rule:
    """The rule with weights, and times, looked up once words are bound."""
    steps: list[Step] = []
    at = len(rule.start)
    for step in rule.steps:
        steps += _looked_up(step, at) if isinstance(step, Extend) else (step,)
        at += step.width
    return replace(rule, steps=tuple(steps))


def _looked_up(step: Extend, at: int) -> Iterator[Step]:
    """A step that only says what begins so, and one for each relation that it makes whole."""
    yield replace(step, atoms=tuple(replace(atom, leaf=False) for atom in step.atoms))
    for atom in step.atoms:
        if atom.leaf:
            yield Fetch(replace(atom, key=(*atom.key, at)))
