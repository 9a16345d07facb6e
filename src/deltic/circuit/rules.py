"""Delta rules of a multiway join as data: the order in which words are bound, the arrangements that are read, and how weights multiply.

A rule starts from the rows of one input's change. A prefix is a row of the words bound so far, by position: those of the start, then those
that each step appends. Every occurrence of a relation contributes its weight once: that of the start at the start, any other in the step
that binds its last word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal as OneOf
from typing import TypeVar

from deltic.circuit.operators.map import Map
from deltic.trace.extend import HIGH, LOW, PLAIN, WHOLE, Measured

Limb = OneOf["whole", "high", "low"]
Pair = tuple[int, int]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RuleAtom:
    """An occurrence of a relation in a step: an arrangement whose first len(key) words equal the prefix's words at the positions `key`.

    port: the input of the node that is its change. width, weights: the number of words and weights of its rows. new: whether this tick's
    change is included. leaf: whether the step binds its last word, and so multiplies with its weight.
    """

    port: int
    arrangement: str
    width: int
    key: tuple[int, ...]
    new: bool
    leaf: bool
    weights: int = 1


@dataclass(frozen=True, slots=True)
class PrefixFilter:
    """Keeps the prefixes for which the map's predicate is true. words: positions of the words that form a row of the map's source.

    The predicate must not be able to fail.
    """

    map: Map
    words: tuple[int, ...]

    def __post_init__(self) -> None:
        assert self.map.predicate is not None and not self.map.measures and not self.map.fallible
        assert self.map.layout.width == len(self.words)


@dataclass(frozen=True, slots=True)
class Extend:
    """Binds one word: each value that follows the key in every atom. A word that nothing reads is summed over.

    For an atom that is not a leaf it only tests whether any batch has a row with this prefix, whatever the row's weight.
    """

    atoms: tuple[RuleAtom, ...]
    predicate: PrefixFilter | None = None

    def __post_init__(self) -> None:
        assert self.atoms and all(len(a.key) < a.width and (len(a.key) + 1 == a.width or not a.leaf) for a in self.atoms)

    @property
    def width(self) -> int:
        """The number of words that it appends."""
        return 1


@dataclass(frozen=True, slots=True)
class Fetch:
    """Binds all remaining words of one relation. If none remain, it looks up the weight of the prefix in the relation."""

    atom: RuleAtom
    predicate: PrefixFilter | None = None

    def __post_init__(self) -> None:
        assert self.atom.leaf and self.atom.key

    @property
    def atoms(self) -> tuple[RuleAtom, ...]:
        return (self.atom,)

    @property
    def width(self) -> int:
        """The number of words that it appends."""
        return self.atom.width - len(self.atom.key)


Step = Extend | Fetch


@dataclass(frozen=True, slots=True)
class Product:
    """An output weight: a product of one weight of each occurrence, and possibly of a word.

    factors: the position of each factor among the weights of its occurrence, the start first, then the leaf atoms in order of the steps;
    () takes the first weight of each. word: the position of a word that is a factor too, whole or as one of its limbs
    (word = high · 2^32 + low).
    """

    factors: tuple[int, ...] = ()
    word: int | None = None
    limb: Limb = "whole"

    def factor(self, occurrence: int) -> int:
        return self.factors[occurrence] if self.factors else 0


@dataclass(frozen=True, slots=True)
class Rule:
    """A delta rule.

    port: the input whose change it starts from. start: the words of the change that form the first prefix; ONE adds the constant 1, by
    which flag words are looked up. output: the prefix positions of the output words. weights: the output weights. limbs: pairs (high, low)
    of output weights whose value is high · 2^32 + low, where the relations have such weights; limbs of words are derived. dimensions: the
    cube's dimension of each position; None, or absent, for none.
    """

    port: int
    start: tuple[int, ...]
    steps: tuple[Step, ...]
    output: tuple[int, ...]
    weights: tuple[Product, ...] = (Product(),)
    limbs: tuple[Pair, ...] = ()
    dimensions: tuple[int | None, ...] = ()
    plan: RulePlan = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "plan", _planned(self))


@dataclass(frozen=True, slots=True)
class Scaling:
    """Multiplies columns of weights with words: output column i is input column columns[i] times the (word, limb) words[i], if any."""

    columns: tuple[int, ...]
    words: tuple[tuple[int, Limb] | None, ...]


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step and the computation of its weights. Weights are carried in columns, one for each distinct product so far.

    position: that of the first word that it appends. kept: the positions that its predicate or a later step reads. summed: whether it sums
    over the words that it binds. measured: the weights that an Extend requests from the kernel; a Fetch reads those of the relation.
    pairs: for each output column (input column, measured weight). limbs: pairs (high, low) of output columns. scaling: applied last.
    """

    step: Step
    position: int
    kept: tuple[int, ...]
    summed: bool
    measured: tuple[Measured, ...]
    pairs: tuple[Pair, ...]
    limbs: tuple[Pair, ...]
    scaling: Scaling | None

    def reads(self, position: int) -> bool:
        """Whether the word at a position that it binds is read, by this step or a later one."""
        return position in self.kept or (self.scaling is not None and any(w is not None and w[0] == position for w in self.scaling.words))


@dataclass(frozen=True, slots=True)
class RulePlan:
    """A rule's steps. factors: the weights of the change that form the first columns. final: the column of each output weight."""

    factors: tuple[int, ...]
    scaling: Scaling | None
    steps: tuple[PlannedStep, ...]
    final: tuple[int, ...]


def _planned(rule: Rule) -> RulePlan:
    products = rule.weights
    all_limbs = (*rule.limbs, *_word_limbs(products))
    factors, final = _numbered(p.factor(0) for p in products)
    position, occurrence = len(rule.start), 1
    scaling, final = _scaled(products, final, range(position))
    planned = []
    for number, step in enumerate(rule.steps):
        bound = range(position, position + step.width)
        kept = _read_after(rule, number)
        summed = isinstance(step, Extend) and position not in kept
        summed = summed or (isinstance(step, Fetch) and kept.isdisjoint(bound) and not any(p.word in bound for p in products))
        leaves = [i for i, atom in enumerate(step.atoms) if atom.leaf]
        assert leaves or not summed, "a word that nothing reads is the last word of some relation"
        measured, chosen = _measured(products, step, leaves, occurrence, position if summed else None)
        pairs, columns = _numbered(zip(final, chosen, strict=True)) if leaves else ((), final)
        limbs = tuple((columns[high], columns[low]) for high, low in all_limbs if columns[high] != columns[low]) if leaves else ()
        scaling_after, final = (None, columns) if summed else _scaled(products, columns, bound)
        planned.append(PlannedStep(step, position, tuple(sorted(kept)), summed, measured, pairs, limbs, scaling_after))
        position, occurrence = position + step.width, occurrence + len(leaves)
    return RulePlan(factors, scaling, tuple(planned), final)


def _word_limbs(products: Sequence[Product]) -> list[Pair]:
    """The pairs (high, low) of positions of products that differ in the limb of one word."""
    positions = {product: position for position, product in enumerate(products)}
    pairs = [(positions.get(replace(p, limb="high")), position) for position, p in enumerate(products) if p.limb == "low"]
    return [(high, low) for high, low in pairs if high is not None]


def _numbered(items: Iterable[T]) -> tuple[tuple[T, ...], tuple[int, ...]]:
    """(the distinct items, the position of each item among them)."""
    distinct: dict[T, int] = {}
    positions = tuple([distinct.setdefault(item, len(distinct)) for item in items])
    return tuple(distinct), positions


def _scaled(products: Sequence[Product], columns: Sequence[int], bound: range) -> tuple[Scaling | None, tuple[int, ...]]:
    """(how the products are multiplied with the words at the positions `bound`, the column of each product afterwards)."""
    words = [(p.word, p.limb) if p.word is not None and p.word in bound else None for p in products]
    if not any(words):
        return None, tuple(columns)
    distinct, positions = _numbered(zip(columns, words, strict=True))
    return Scaling(tuple(c for c, _ in distinct), tuple(w for _, w in distinct)), positions


def _read_after(rule: Rule, number: int) -> set[int]:
    """The positions that are read after the step has bound its words."""
    step = rule.steps[number]
    read = {*rule.output, *(step.predicate.words if step.predicate else ())}
    for later in rule.steps[number + 1 :]:
        read.update(word for atom in later.atoms for word in atom.key)
        read.update(later.predicate.words if later.predicate else ())
    end = len(rule.start) + sum(s.width for s in rule.steps[: number + 1])
    return {word for word in read if word < end}


def _measured(
    products: Sequence[Product], step: Step, leaves: Sequence[int], occurrence: int, summed: int | None
) -> tuple[tuple[Measured, ...], tuple[int, ...]]:
    """(the weights requested from the step, the position among them of each product's factor). summed: the position summed over, if any."""
    if isinstance(step, Fetch):
        return (), tuple(p.factor(occurrence) for p in products)
    kinds = {"whole": WHOLE, "high": HIGH, "low": LOW}
    measured: list[Measured] = []
    chosen = []
    for product in products:
        factors = [-1] * len(step.atoms)
        for k, leaf in enumerate(leaves):
            factors[leaf] = product.factor(occurrence + k)
        kind = kinds[product.limb] if summed is not None and product.word == summed else PLAIN
        for each in (HIGH, LOW) if kind in (HIGH, LOW) else (kind,):
            if (each, *factors) not in measured:
                measured.append((each, *factors))
        chosen.append(measured.index((kind, *factors)))
    return (tuple(measured), tuple(chosen)) if leaves else ((), ())
