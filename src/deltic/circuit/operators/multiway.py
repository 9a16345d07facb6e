"""multiway_join: the change of an inner join of several relations, one variable at a time (incremental generic join).

With one factor for each occurrence of a relation, Δ(R1 ⋈ … ⋈ Rn) = Σ_j R1′ ⋈ … ⋈ R(j-1)′ ⋈ ΔRj ⋈ R(j+1) ⋈ … ⋈ Rn, where R′ includes the
tick's change and R does not. Each summand is a rule: it starts from the rows of its change as prefixes, and each step binds one more word,
or a relation's remaining words. For every prefix the relation with the fewest rows under it proposes values, and the others are searched by
galloping. No state is kept but the arrangements (McSherry's delta queries, each run as a generic join of Ngo, Ré and Rudra).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from deltic.circuit.cube import Cell, Cube, Placement
from deltic.circuit.operator import Context, Delta, as_batch
from deltic.circuit.prefixes import NO_PREFIXES, Prefixes
from deltic.circuit.rules import Extend, PlannedStep, Rule, RuleAtom
from deltic.trace import propose
from deltic.trace.extend import Directories, SpineVersion, among, extend
from deltic.trace.probe import lookup, probe
from deltic.trace.rows import Rows

Versions = Mapping[tuple[str, bool], SpineVersion]


@dataclass(frozen=True, slots=True)
class MultiwayJoinOperator:
    """The rules of a join, one for each occurrence of a relation. Its inputs are the changes of arrangements.

    cube: how results are divided among the shards; None if all are on one. placed: the placements of the rows of each arrangement, if a
    result may be removed on another shard than it was added on; () if not. naive: each step counts, proposes and validates over all
    prefixes, as a reference with the same result. sources: for each arrangement that a rule reads, its input, and the number of columns and
    weights of its rows.
    """

    rules: tuple[Rule, ...]
    naive: bool = False
    cube: Cube | None = None
    placed: tuple[tuple[Placement, ...], ...] = ()
    sources: Mapping[str, tuple[int, int, int]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        atoms = [atom for rule in self.rules for step in rule.steps for atom in step.atoms]
        object.__setattr__(self, "sources", {a.arrangement: (a.port, a.width, a.weights) for a in atoms})
        assert all(self.sources[a.arrangement] == (a.port, a.width, a.weights) for a in atoms)
        assert len({(len(rule.output), len(rule.weights)) for rule in self.rules}) == 1

    @property
    def name(self) -> str:
        return "multiway_join"

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        sources = [(context.old(name, width, weights), as_batch(inputs[port])) for name, (port, width, weights) in self.sources.items()]
        directories = Directories(sources)
        versions = {(name, new): pair[new] for name, pair in zip(self.sources, directories.versions, strict=True) for new in (False, True)}
        cell = None if self.cube is None else self.cube.cell(context.shard, context.shards, self.placed)
        return self.summed(inputs, Run(directories, versions, context, self.naive, cell))

    def summed(self, inputs: Sequence[Delta], run: Run) -> Rows:
        """The results of all rules for the changes of the inputs."""
        parts = [part for rule in self.rules if len(inputs[rule.port]) for part in run.results(rule, inputs[rule.port])]
        return Rows.concat(parts) if parts else Rows.empty(len(self.rules[0].output), len(self.rules[0].weights))


@dataclass(frozen=True, slots=True)
class Run:
    """The rules in one step. versions: of each arrangement that they read, old and new. cell: this shard's, if results are divided."""

    directories: Directories
    versions: Versions
    context: Context
    naive: bool = False
    cell: Cell | None = None

    def results(self, rule: Rule, change: Delta) -> Iterator[Rows]:
        """The rows of a rule, in pieces, neither sorted nor consolidated."""
        if all(self.version(atom).spine.batches for step in rule.steps for atom in step.atoms):
            yield from self._results(rule, 0, self.start(rule, change))

    def _results(self, rule: Rule, number: int, prefixes: Prefixes) -> Iterator[Rows]:
        """Depth first, so that few intermediate prefixes are held at once."""
        if number == len(rule.steps):
            yield self.rows(rule, prefixes)
            return
        planned = rule.plan.steps[number]
        for piece in prefixes.pieces():
            is_extend = isinstance(planned.step, Extend)
            longer = self._extended(rule, planned, piece) if is_extend else self.fetched(planned, piece)
            if len(longer):
                yield from self._results(rule, number + 1, longer)

    def start(self, rule: Rule, change: Delta) -> Prefixes:
        """The first prefixes of a rule."""
        prefixes, width = Prefixes.of(rule, change), len(rule.start)
        if self.cell is None:
            return prefixes
        return prefixes.take(self.cell.started(prefixes.key(range(width)), rule.dimensions[:width]))

    def rows(self, rule: Rule, prefixes: Prefixes) -> Rows:
        """The output rows of complete prefixes."""
        return Rows(prefixes.key(rule.output), tuple(prefixes.weights[column] for column in rule.plan.final))

    def version(self, atom: RuleAtom) -> SpineVersion:
        return self.versions[atom.arrangement, atom.new]

    def _extended(self, rule: Rule, planned: PlannedStep, prefixes: Prefixes) -> Prefixes:
        dimension = rule.dimensions[planned.position] if rule.dimensions else None
        cell = self.cell if self.cell is not None and self.cell.divides(dimension) else None
        atoms = planned.step.atoms
        versions, keys = [self.version(atom) for atom in atoms], [prefixes.key(atom.key) for atom in atoms]
        extended = propose.extend if self.naive else extend
        summed = planned.summed and cell is None
        matches = extended(self.directories, versions, keys, len(prefixes), planned.measured, summed, self.context.counters)
        if not len(matches.source):
            return NO_PREFIXES
        if cell is not None and dimension is not None:
            matches = among(matches, cell.own(matches.words, dimension), summed=planned.summed)
        bound = {} if planned.summed else {planned.position: matches.words}
        return prefixes.extended(planned, matches.source, bound, matches.weights, self.context)

    def fetched(self, planned: PlannedStep, prefixes: Prefixes) -> Prefixes:
        """The prefixes extended by a Fetch."""
        (atom,) = planned.step.atoms
        spine, keys = self.version(atom).spine, prefixes.key(atom.key)
        share = () if spine.share is None else spine.share.key
        if planned.summed and all(word < len(keys) for word in share):
            weights = lookup(spine, keys, self.context.counters)
            matches = np.flatnonzero(np.logical_or.reduce([weight != 0 for weight in weights]))
            if not len(matches):
                return NO_PREFIXES
            if spine.share is not None:
                own = spine.share.places([keys[word][matches] for word in share])
                matches = matches[own]
            return prefixes.extended(planned, matches, {}, [weight[matches] for weight in weights], self.context)
        words = [word for word in range(len(keys), atom.width) if planned.reads(planned.position + word - len(keys)) or word in share]
        source, columns, weights = probe(spine, keys, words, self.context.counters)
        if not len(source):
            return NO_PREFIXES
        values = dict(zip(words, columns, strict=True))
        if spine.share is not None:
            own = spine.share.places([keys[word][source] if word < len(keys) else values[word] for word in share])
            source, values, weights = source[own], {word: c[own] for word, c in values.items()}, tuple(w[own] for w in weights)
        bound = {planned.position + word - len(keys): column for word, column in values.items()}
        return prefixes.extended(planned, source, bound, weights, self.context)
