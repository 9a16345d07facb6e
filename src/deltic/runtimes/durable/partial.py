"""Partial results: what each shard has computed of its own rows alone, and what is computed from that.

Most state is spread by a key, and whoever looks up a key asks the shard that the key hashes to: a row finds its way after the number of
shards has changed, since the batches that have it are then listed in its new shard too. Operators hold that so:

- join, semijoin, antijoin: both sides are spread by all words of the key that is looked up;
- distinct and the set operations look up whole rows, spread by some of their words;
- aggregate: its sums, limbs, extremes and its memory are looked up by the group, and spread by its words;
- a table looks up its key, or whole rows, and is spread by them;
- what every shard has all of (what the steps of a spread recursion join) may be looked up anywhere;
- on the home shard everything stays there.

But the first k rows of each shard, and each shard's own MIN or MAX, are looked up where the rows happen to lie. With other shards the
same rows would be elsewhere, so that their deletion would not find them. This state is dropped and filled again. What a relation was in
other ticks cannot be: it is spread by whole rows, and kept.
"""

from __future__ import annotations

from deltic.circuit.nodes import Circuit
from deltic.circuit.operators.over_ticks import OverTicks


def partial(circuit: Circuit) -> frozenset[str]:
    """The arrangements that have to be filled again when the number of shards has changed: those that are looked up though their rows
    may lie anywhere, and all that is computed from the results."""
    found: set[str] = set()
    affected: set[int] = set()
    for node in circuit.nodes:
        specs = (circuit.arrangements[name] for name in node.reads)
        anywhere = {spec.id for spec in specs if spec.partition is None and not spec.replicated}
        found |= anywhere
        if anywhere or affected.intersection(node.inputs) or found.intersection(node.reads):
            affected.add(node.id)
            found |= {node.owns} if node.owns and not isinstance(node.operator, OverTicks) else set()
    return frozenset(found)
