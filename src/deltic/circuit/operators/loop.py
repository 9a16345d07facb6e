"""A scope that is one linear recursion, run as one kernel call: distinct over imports and joins of the recursive relation with imports.

The kernel keeps the same state as the operators would, to the row and the iteration, so either can resume from the state of the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from deltic.circuit.nodes import Node, NodeKind
from deltic.circuit.operator import Delta
from deltic.circuit.operators.feedback import Feedback, Import
from deltic.circuit.operators.linear import Plus
from deltic.circuit.operators.map import Map
from deltic.circuit.operators.nested_arrange import NestedArrange
from deltic.circuit.operators.nested_join import NestedJoin
from deltic.circuit.operators.nested_reweigh import NestedReweigh
from deltic.circuit.scopes import Nest, divergence
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.encoding import words_of
from deltic.trace.fixpoint import Fixpoint, LinearJoin, fixpoint
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

VERIFIED_AT_ONCE = 1 << 26
"""Bytes of mapped state that are verified as a whole before the kernel reads it; with more, operators verify the pages that they read."""

Moves = tuple[int, ...]
"""For each word of a row, its position in another row."""


@dataclass(frozen=True, slots=True)
class Step:
    """One join of the recursive relation with an import.

    join: its node. recursive: the arranged recursive relation. arranged: the order of its words there. other: the import.
    derived: (side, word) for each word of a derived row, side 0 being the recursive relation.
    """

    join: Node
    recursive: Node
    arranged: Moves
    other: Node
    derived: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """The recursion: its feedback, its distinct, the input of that (derived), its imports at iteration 0 (base), and its joins (steps)."""

    feedback: Node
    distinct: Node
    derived: Node
    base: tuple[Node, ...]
    steps: tuple[Step, ...]

    def applies(self, nest: Nest) -> bool:
        """Whether the kernel may run; see `kernel_may_run`."""
        return kernel_may_run(self._arrangements(), nest)

    def _arrangements(self) -> list[str]:
        """The arrangements that the kernel reads."""
        return [_owned(self.derived), *(name for step in self.steps for name in (_owned(step.recursive), _arrangement(step.other)))]

    def run(self, inputs: Sequence[Delta], limit: int, nest: Nest) -> Delta:
        """The sum of the changes of all iterations."""
        for spine in _state(self._arrangements(), nest):
            spine.expect(())
        width = self.distinct.shape.layout.width
        base = Rows.concat([Rows.empty(width, 1), *(inputs[_position(node)] for node in self.base)])
        past = nest.trace(_owned(self.derived), width + 1, 1, 1)
        rows, joins = Counters(), Counters()
        result = fixpoint(base, past.past, [self._chain(step, inputs, nest) for step in self.steps], limit, rows, joins)
        nest.inner[self.distinct.name] = rows
        nest.inner[self.steps[0].join.name] = joins
        if result.diverged:
            change = consolidate(Rows(result.changes.columns[:-1], result.changes.weights))
            raise divergence(self.feedback, limit, result.growth, change, nest)
        if len(result.derivations):
            past.append_timed(consolidate(result.derivations))
        if len(result.changes):
            self._append_changes(result, nest)
        return consolidate(result.sums)

    def _chain(self, step: Step, inputs: Sequence[Delta], nest: Nest) -> LinearJoin:
        recursive = nest.trace(_owned(step.recursive), len(step.arranged) + 1, 1, 1)
        shape = step.other.shape
        other = nest.trace(_arrangement(step.other), shape.layout.width, shape.weights, 0)
        change = inputs[_position(step.other)]
        if not isinstance(change, Batch):
            change = Batch.empty(shape.layout.width, 1)
        assert isinstance(step.join.operator, NestedJoin)
        return LinearJoin(step.join.operator.flat.key, recursive.past, step.arranged, other.now, change, step.derived)

    def _append_changes(self, result: Fixpoint, nest: Nest) -> None:
        """Appends the changes to every arrangement of the recursive relation."""
        for step in {_owned(step.recursive): step for step in self.steps}.values():
            columns = result.changes.columns
            arranged = Rows([columns[word] for word in (*step.arranged, len(columns) - 1)], result.changes.weights)
            nest.traces[_owned(step.recursive)].append_timed(consolidate(arranged))


def kernel_may_run(arrangements: Iterable[str], nest: Nest) -> bool:
    """Whether a kernel may run a scope that reads these arrangements: not if much state must first be verified, or if the clock has hooks.

    Nor after resharding while batches still contain rows of other shards, which the kernel cannot distinguish.
    """
    state = _state(arrangements, nest)
    if nest.clock.hooks or any(spine.share is not None for spine in state):
        return False
    return sum(spine.unverified for spine in state) <= VERIFIED_AT_ONCE


def _state(arrangements: Iterable[str], nest: Nest) -> list[Spine]:
    """The arrangements as of the last commit."""
    return [] if nest.backfill else [nest.state[name] for name in arrangements]


def find_loop(nodes: Sequence[Node], export: int) -> Loop | None:
    """The scope as a loop; None if it is anything else."""
    feedback = [n for n in nodes if n.kind is NodeKind.FEEDBACK]
    distinct = nodes[export]
    operator = distinct.operator
    if len(feedback) != 1 or not isinstance(operator, NestedReweigh) or operator.flat.rule != "distinct" or operator.depth != 1:
        return None
    if not isinstance(feedback[0].operator, Feedback) or feedback[0].operator.source != export or not operator.flat.width:
        return None
    derived = nodes[distinct.inputs[0]]
    seen = {feedback[0].id, distinct.id, derived.id}
    base, steps = [], []
    for term in _terms(nodes, derived.inputs[0], seen):
        if term.kind is NodeKind.IMPORT:
            base.append(term)
        elif (step := _step(nodes, term, feedback[0], seen)) is not None:
            steps.append(step)
        else:
            return None
    if not steps or len(seen) < len(nodes):
        return None
    return Loop(feedback[0], distinct, derived, tuple(base), tuple(steps))


def _terms(nodes: Sequence[Node], node: int, seen: set[int]) -> list[Node]:
    """The terms of a sum."""
    seen.add(node)
    if isinstance(nodes[node].operator, Plus):
        return [term for i in nodes[node].inputs for term in _terms(nodes, i, seen)]
    return [nodes[node]]


def _step(nodes: Sequence[Node], term: Node, feedback: Node, seen: set[int]) -> Step | None:
    """The term as a join of the arranged feedback with an import, followed by moves of words; None if it is anything else."""
    moved = _moved(nodes, term, seen)
    if moved is None:
        return None
    join, moves = moved
    operator = join.operator
    if not isinstance(operator, NestedJoin) or operator.flat.weights != ((0, 0),) or sorted(operator.depths) != [0, 1]:
        return None
    side = operator.depths.index(1)
    recursive, other = nodes[join.inputs[side]], nodes[join.inputs[1 - side]]
    if not isinstance(recursive.operator, NestedArrange) or other.kind is not NodeKind.IMPORT or other.shape.weights != 1:
        return None
    arranged = _moved(nodes, nodes[recursive.inputs[0]], seen)
    if arranged is None or arranged[0].id != feedback.id:
        return None
    seen |= {join.id, recursive.id, other.id}
    pairs = [operator.flat.output[word] for word in moves]
    return Step(join, recursive, arranged[1], other, tuple((int(of != side), word) for of, word in pairs))


def _moved(nodes: Sequence[Node], node: Node, seen: set[int]) -> tuple[Node, Moves] | None:
    """(the node below maps that only move words, the position in it of each word of `node`); None if a map does more."""
    moves = tuple(range(node.shape.layout.width))
    while isinstance(node.operator, Map):
        step = _moves(node.operator)
        if step is None:
            return None
        seen.add(node.id)
        moves = tuple(step[word] for word in moves)
        node = nodes[node.inputs[0]]
    seen.add(node.id)
    return node, moves


def _moves(operator: Map) -> Moves | None:
    """The position in the input of each output word; None if it does more than move words."""
    if operator.predicate is not None or operator.measures:
        return None
    moves: list[int] = []
    for move, target in zip(operator.moves, operator.target, strict=True):
        if move is None or move.stop - move.start != words_of(target.type, target.nullable):
            return None
        moves += range(move.start, move.stop)
    return tuple(moves)


def _owned(node: Node) -> str:
    assert node.owns is not None
    return node.owns


def _position(node: Node) -> int:
    assert isinstance(node.operator, Import)
    return node.operator.position


def _arrangement(node: Node) -> str:
    assert isinstance(node.operator, Import) and node.operator.arrangement is not None
    return node.operator.arrangement
