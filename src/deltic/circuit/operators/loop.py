"""A scope that is one linear recursion, run as one kernel call: distinct over imports and joins of the recursive relation with imports.

The kernel keeps the same state as the operators would, to the row and the iteration, so either can resume from the state of the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from deltic.circuit.nodes import Node, NodeKind
from deltic.circuit.operator import Context, Delta
from deltic.circuit.operators.arrange import check_sums
from deltic.circuit.operators.feedback import Feedback, Import
from deltic.circuit.operators.linear import Plus
from deltic.circuit.operators.map import Map
from deltic.circuit.operators.nested_arrange import NestedArrange
from deltic.circuit.operators.nested_join import NestedJoin
from deltic.circuit.operators.nested_reweigh import NestedReweigh
from deltic.circuit.scopes import divergence
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.encoding import words_of
from deltic.trace.fixpoint import Joined, LinearJoin, LinearRecursion, fixpoint
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine
from deltic.trace.workers import ALONE

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

    arrangement: str = field(init=False, compare=False, repr=False)
    """That of the recursive relation, and of the import, whose change is the input at `position`."""
    imported: str = field(init=False, compare=False, repr=False)
    position: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        operator = self.other.operator
        assert isinstance(operator, Import) and operator.arrangement is not None
        object.__setattr__(self, "arrangement", _owned(self.recursive))
        object.__setattr__(self, "imported", operator.arrangement)
        object.__setattr__(self, "position", operator.position)

    @property
    def key(self) -> int:
        """How many words they are joined by."""
        assert isinstance(self.join.operator, NestedJoin)
        return self.join.operator.flat.key

    def joined(self, inputs: Sequence[Delta], context: Context) -> Joined:
        """Its relations in a tick."""
        shape, change = self.other.shape, inputs[self.position]
        recursive = context.old(self.arrangement, len(self.arranged) + 1, 1)
        other = context.old(self.imported, shape.layout.width, shape.weights)
        if not isinstance(change, Batch):
            assert not change.length
            change = Batch.empty(shape.layout.width, 1)
        return Joined(recursive, other.with_batch(change), change)


@dataclass(frozen=True, slots=True)
class Loop:
    """The recursion: its feedback, its distinct, the input of that (derived), its imports at iteration 0 (base), and its joins (steps)."""

    feedback: Node
    distinct: Node
    derived: Node
    base: tuple[Node, ...]
    steps: tuple[Step, ...]

    arrangement: str = field(init=False, compare=False, repr=False)
    """That of what is derived."""
    arrangements: tuple[str, ...] = field(init=False, compare=False, repr=False)
    """Those that the kernel reads."""
    orders: dict[str, Moves] = field(init=False, compare=False, repr=False)
    """The order of words in each arrangement of the recursive relation."""
    positions: tuple[int, ...] = field(init=False, compare=False, repr=False)
    """Of the inputs that have the changes of the imports at iteration 0."""
    recursion: LinearRecursion = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        joins = [LinearJoin(step.key, step.arranged, step.derived) for step in self.steps]
        object.__setattr__(self, "recursion", LinearRecursion(self.distinct.shape.layout.width, joins))
        object.__setattr__(self, "arrangement", _owned(self.derived))
        read = [self.arrangement, *(name for step in self.steps for name in (step.arrangement, step.imported))]
        object.__setattr__(self, "arrangements", tuple(dict.fromkeys(read)))
        object.__setattr__(self, "orders", {step.arrangement: step.arranged for step in self.steps})
        object.__setattr__(self, "positions", tuple(_position(node) for node in self.base))

    def applies(self, context: Context) -> bool:
        """Whether the kernel may run; see `prepared_for_kernel`."""
        return prepared_for_kernel(self.arrangements, context)

    def run(self, inputs: Sequence[Delta], limit: int, context: Context) -> Delta:
        """The sum of the changes of all iterations."""
        width = self.recursion.width
        past = context.old(self.arrangement, width + 1, 1)
        changed = [delta for position in self.positions if (delta := inputs[position]).length]
        base = Rows.concat(changed) if changed else Rows.empty(width, 1)
        rows, joins = Counters(), Counters()
        joined = [step.joined(inputs, context) for step in self.steps]
        self.recursion.begin(context.tick.epoch)
        result = fixpoint(self.recursion, base, past, joined, limit, rows, joins, context.workers)
        context.inner[self.distinct.name] = rows
        context.inner[self.steps[0].join.name] = joins
        if result.diverged:
            (last,) = result.changes
            change = consolidate(Rows(last.columns[:-1], last.weights))
            raise divergence(self.feedback, limit, result.growth, change, context)
        changes = [[_rearranged(part, order) for part in result.changes] for order in self.orders.values()]
        workers = context.workers if len(result.sums) > 1 else ALONE
        whole = workers.map(lambda parts, _: consolidate(Rows.concat(parts)), [result.sums, result.derivations, *changes])
        for name, batch in zip((self.arrangement, *self.orders), whole[1:], strict=True):
            append(name, batch, context)
        return whole[0]


def _rearranged(rows: Rows, order: Moves) -> Rows:
    """Rows with an iteration, their words in this order."""
    return rows.select((*order, len(rows.columns) - 1))


def append(arrangement: str, batch: Batch, context: Context) -> None:
    """Appends what a kernel has computed, with the iterations, to an arrangement of a scope."""
    if batch.length:
        check_sums(batch, arrangement, context)
        context.append(arrangement, batch)


def prepared_for_kernel(arrangements: Iterable[str], context: Context) -> bool:
    """Whether a kernel may run a scope that reads these arrangements: not if much state must first be verified.

    Nor after resharding while batches still contain rows of other shards, which the kernel cannot distinguish. If it may, all of their
    pages have been verified, since it reads anywhere.
    """
    if context.tick.fresh is not None:
        return True
    mapped: list[Spine] = []
    for name in arrangements:
        spine = context.state[name]
        if spine.share is not None:
            return False
        if spine.guards:
            mapped.append(spine)
    if not mapped:
        return True
    if sum(spine.unverified for spine in mapped if not spine.passes()) > VERIFIED_AT_ONCE:
        return False
    for spine in mapped:
        spine.expect(())
    return True


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
