"""extend in its naive form: count, propose, validate, each a separate step over all prefixes, with memory in proportion to the work.

The reference for tests of `trace/extend.py`, which returns the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deltic.kernels.extend import HIGH, LOW, PLAIN
from deltic.kernels.memory import Words
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.extend import Directories, Extended, Measured, SpineVersion
from deltic.trace.probe import lookup, probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine
from deltic.trace.sums import split64
from deltic.trace.weights import multiply


def extend(
    directories: Directories,
    versions: Sequence[SpineVersion],
    keys: Sequence[Sequence[Words]],
    n: int,
    measures: Sequence[Measured],
    summed: bool,
    counters: Counters,
) -> Extended:
    """The same as `trace.extend.extend`."""
    assert all(version.spine.share is None for version in versions)
    proposals = [_proposed(version.spine, key, n, counters) for version, key in zip(versions, keys, strict=True)]
    counts = np.array([np.bincount(source, minlength=n) for source, _ in proposals])
    proposer = counts.argmin(axis=0)
    chosen = [(source[proposer[source] == i], words[proposer[source] == i]) for i, (source, words) in enumerate(proposals)]
    source, words = _distinct(np.concatenate([s for s, _ in chosen]), np.concatenate([w for _, w in chosen]))
    common = np.ones(len(source), bool)
    for version, key in zip(versions, keys, strict=True):
        matched, _, _ = probe(version.spine, [*(word[source] for word in key), words], (), counters)
        common &= np.bincount(matched, minlength=len(source)) > 0
    source, words = source[common], words[common]
    if not measures:
        return Extended(source, words, ())
    weights = tuple(_weight(versions, keys, measured, source, words, counters) for measured in measures)
    if summed:
        rows = consolidate(Rows((source,), weights))
        return Extended(rows.columns[0], rows.columns[0], rows.weights)
    live = np.logical_or.reduce([weight != 0 for weight in weights])
    return Extended(source[live], words[live], tuple(weight[live] for weight in weights))


def _proposed(spine: Spine, key: Sequence[Words], n: int, counters: Counters) -> tuple[Words, Words]:
    """(prefix, word) for every row under the key of a prefix."""
    source, (words,), _ = probe(spine, key, (len(key),), counters)
    return (source, words) if key else (np.repeat(np.arange(n), len(words)), np.tile(words, n))


def _distinct(source: Words, words: Words) -> tuple[Words, Words]:
    rows = consolidate(Rows((source, words), (np.ones(len(source), np.int64),)))
    return rows.columns[0], rows.columns[1]


def _weight(
    versions: Sequence[SpineVersion], keys: Sequence[Sequence[Words]], measured: Measured, source: Words, words: Words, counters: Counters
) -> Words:
    kind, *factors = measured
    product = np.ones(len(source), np.int64)
    for version, key, factor in zip(versions, keys, factors, strict=True):
        if factor >= 0:
            product = multiply(product, lookup(version.spine, [*(word[source] for word in key), words], counters)[factor])
    if kind == PLAIN:
        return product
    limbs = split64(words)
    return multiply(product, limbs[0] if kind == HIGH else limbs[1] if kind == LOW else words)
