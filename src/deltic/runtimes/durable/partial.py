"""Partial results: those that a shard computes from its own rows alone, and all that is computed from them.

Most state is spread by a key, and a key is looked up in the shard that it hashes to. This still works after the number of shards has
changed, since the batches that contain a row are then listed in its new shard too. Operators ensure it as follows:

- join, semijoin, antijoin: both sides are spread by all words of the key that is looked up;
- distinct and the set operations look up whole rows, spread by some of their words;
- aggregate: sums, limbs, extremes and the last results are looked up by the group, and spread by its words;
- a table looks up its key or whole rows, and is spread by them;
- replicated arrangements (those that the steps of a spread recursion join, and one side of a range join without keys) may be looked up
  on any shard; of the other side, which every shard looks up, a range join leaves out rows of other shards (`RangeJoin.spread`);
- everything on the home shard stays there.

But the first k rows of each shard, and each shard's own MIN or MAX, are looked up wherever the rows happen to be. With another number of
shards the same rows would be elsewhere, and their deletion would miss them. This state is dropped and filled again. The relations of
other ticks (`OverTicks`, feedbacks, and windows by a watermark) cannot be filled again: they are spread by whole rows, and kept. So are
accumulators and the folds of groups, which are spread by the group.

A scope is filled as a whole or not at all, since its arrangements are computed together.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from deltic.circuit.nodes import Dataflow, Node
from deltic.circuit.operators.accumulate import AccumulateOperator
from deltic.circuit.operators.fold_groups import FoldSums
from deltic.circuit.operators.over_ticks import KeepChange, OverTicksOperator, PreviousTick
from deltic.circuit.operators.watermark import WatermarkOperator

KEPT: Final = (AccumulateOperator, FoldSums, OverTicksOperator, WatermarkOperator)
"""Operators whose state depends on earlier ticks."""


def partial(circuit: Dataflow) -> frozenset[str]:
    """The arrangements that must be filled again when the number of shards has changed: those that are looked up although their rows
    may be on any shard, and all that is computed from the results."""
    refilled: set[str] = set()
    affected: set[int] = set()
    fed_back = {name for node in circuit.nodes if isinstance(node.operator, PreviousTick) for name in node.reads}
    for node in circuit.nodes:
        specs = (circuit.arrangements[name] for name in node.reads)
        anywhere = {spec.id for spec in specs if spec.partition is None and not spec.replicated}
        refilled |= anywhere
        if anywhere or affected.intersection(node.inputs) or refilled.intersection(node.reads):
            affected.add(node.id)
            refilled |= {node.owns} - fed_back if node.owns and not isinstance(node.operator, KEPT) else set()
    return frozenset(refilled)


def is_kept(circuit: Dataflow, node: Node) -> bool:
    """Whether the node has state that cannot be computed from other state. Windows of a table are filled from the table."""
    if isinstance(node.operator, WatermarkOperator):
        return circuit.nodes[node.inputs[0]].stream
    return isinstance(node.operator, (*KEPT, KeepChange))


def with_scopes(circuit: Dataflow, fresh: Set[str]) -> frozenset[str]:
    """`fresh`, and all arrangements of the scopes that own one of them.

    Another version of Deltic may have given some arrangements of a scope other ids.
    """
    scopes = (frozenset(node.inner) for node in circuit.nodes)
    return frozenset(fresh).union(*(inner for inner in scopes if not inner.isdisjoint(fresh)))
