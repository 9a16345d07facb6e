"""Delta rules of a multiway join: what is bound in which order, from which arrangements, as data; and how their weights come about.

A rule starts from the rows of one input's change. A prefix is a row of words bound so far, by position: those of the start, then what each
step appends. Every occurrence of a relation gives its weight once: the start's with the start, another's in the step that binds its last
word.
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
class Atom:
    """A relation's part in a step: an arrangement whose first len(key) words are bound by the prefix's words `key`.

    port: which input of the node is its change. width, weights: of its rows. new: whether it is read with this tick's change.
    leaf: whether the step binds its last word, so that its weight enters.
    """

    port: int
    arrangement: str
    width: int
    key: tuple[int, ...]
    new: bool
    leaf: bool
    weights: int = 1


@dataclass(frozen=True, slots=True)
class Filter:
    """Keeps the prefixes whose words `words`, as a row of the map's source, its predicate holds of. It must not be able to fail."""

    map: Map
    words: tuple[int, ...]

    def __post_init__(self) -> None:
        assert self.map.predicate is not None and not self.map.measures and not self.map.fallible
        assert self.map.layout.width == len(self.words)


@dataclass(frozen=True, slots=True)
class Extend:
    """Binds one word: each that the next words of all atoms have under their keys. If nothing reads it, it is summed over.

    Of an atom that is no leaf it only asks whether rows begin so, in any batch, whatever their weights.
    """

    atoms: tuple[Atom, ...]
    predicate: Filter | None = None

    def __post_init__(self) -> None:
        assert self.atoms and all(len(a.key) < a.width and (len(a.key) + 1 == a.width or not a.leaf) for a in self.atoms)

    @property
    def width(self) -> int:
        """How many words it appends."""
        return 1


@dataclass(frozen=True, slots=True)
class Fetch:
    """Binds all further words of one relation; there may be none: then it says whether, and how often, the prefix is in it."""

    atom: Atom
    predicate: Filter | None = None

    def __post_init__(self) -> None:
        assert self.atom.leaf and self.atom.key

    @property
    def atoms(self) -> tuple[Atom, ...]:
        return (self.atom,)

    @property
    def width(self) -> int:
        """How many words it appends."""
        return self.atom.width - len(self.atom.key)


Step = Extend | Fetch


@dataclass(frozen=True, slots=True)
class Product:
    """An output weight.

    factors: which weight of each occurrence it multiplies: the start's, then that of each leaf atom in order of the steps; () is the first
    of each. word: the position of a word that it is multiplied with as well, or with a limb of it: word = high · 2^32 + low.
    """

    factors: tuple[int, ...] = ()
    word: int | None = None
    limb: Limb = "whole"

    def factor(self, occurrence: int) -> int:
        return self.factors[occurrence] if self.factors else 0


@dataclass(frozen=True, slots=True)
class Rule:
    """port: the input whose change it starts from. start: the words of the change that are the first prefix.

    output: prefix positions of the output words. dimensions: of a cube, that of each position; None, or missing, if it has none.
    weights: those of the output. limbs: pairs (high, low) of output weights that stand for
    high · 2^32 + low, in so far as relations have such weights; limbs of words need not be named.
    """

    port: int
    start: tuple[int, ...]
    steps: tuple[Step, ...]
    output: tuple[int, ...]
    weights: tuple[Product, ...] = (Product(),)
    limbs: tuple[Pair, ...] = ()
    dimensions: tuple[int | None, ...] = ()
    plan: Plan = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "plan", _planned(self))


@dataclass(frozen=True, slots=True)
class Scaling:
    """For each column of weights after it, which column before it that is, and the (word, limb) that it is multiplied with, if any."""

    columns: tuple[int, ...]
    words: tuple[tuple[int, Limb] | None, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """A step and what its weights are made of. Weights are carried in columns, one for each different product so far.

    at: the position of the first word that it appends. kept: the positions that are read afterwards, its predicate included.
    summed: whether it sums over what it binds. wanted: the weights that an Extend wants of the kernel; those of a Fetch are the relation's.
    pairs: for each column afterwards (column before, weight wanted). limbs: pairs (high, low) of these columns. scaling: what comes then.
    """

    step: Step
    at: int
    kept: tuple[int, ...]
    summed: bool
    wanted: tuple[Measured, ...]
    pairs: tuple[Pair, ...]
    limbs: tuple[Pair, ...]
    scaling: Scaling | None

    def reads(self, position: int) -> bool:
        """Whether a word that it binds is read, by itself or later."""
        return position in self.kept or (self.scaling is not None and any(w is not None and w[0] == position for w in self.scaling.words))


@dataclass(frozen=True, slots=True)
class Plan:
    """A rule, step by step. factors: which weights of the change are the first columns. final: the column of each output weight."""

    factors: tuple[int, ...]
    scaling: Scaling | None
    stages: tuple[Stage, ...]
    final: tuple[int, ...]


def _planned(rule: Rule) -> Plan:
    products = rule.weights
    all_limbs = (*rule.limbs, *_word_limbs(products))
    factors, final = _numbered(p.factor(0) for p in products)
    at, occurrence = len(rule.start), 1
    scaling, final = _scaled(products, final, range(at))
    stages = []
    for number, step in enumerate(rule.steps):
        bound = range(at, at + step.width)
        kept = _read_after(rule, number)
        summed = isinstance(step, Extend) and at not in kept
        summed = summed or (isinstance(step, Fetch) and kept.isdisjoint(bound) and not any(p.word in bound for p in products))
        leaves = [i for i, atom in enumerate(step.atoms) if atom.leaf]
        assert leaves or not summed, "a word that nothing reads is some relation's last one"
        wanted, chosen = _wanted(products, step, leaves, occurrence, at if summed else None)
        pairs, columns = _numbered(zip(final, chosen, strict=True)) if leaves else ((), final)
        limbs = tuple((columns[high], columns[low]) for high, low in all_limbs if columns[high] != columns[low]) if leaves else ()
        scaling_after, final = (None, columns) if summed else _scaled(products, columns, bound)
        stages.append(Stage(step, at, tuple(sorted(kept)), summed, wanted, pairs, limbs, scaling_after))
        at, occurrence = at + step.width, occurrence + len(leaves)
    return Plan(factors, scaling, tuple(stages), final)


def _word_limbs(products: Sequence[Product]) -> list[Pair]:
    """The pairs (high, low) of products with the limbs of one word."""
    places = {product: place for place, product in enumerate(products)}
    pairs = [(places.get(replace(p, limb="high")), place) for place, p in enumerate(products) if p.limb == "low"]
    return [(high, low) for high, low in pairs if high is not None]


def _numbered(items: Iterable[T]) -> tuple[tuple[T, ...], tuple[int, ...]]:
    """(the different items, the number of each)."""
    numbers: dict[T, int] = {}
    places = tuple([numbers.setdefault(item, len(numbers)) for item in items])
    return tuple(numbers), places


def _scaled(products: Sequence[Product], columns: Sequence[int], bound: range) -> tuple[Scaling | None, tuple[int, ...]]:
    """How the products are multiplied with the words at `bound`, and the column of each then."""
    words = [(p.word, p.limb) if p.word is not None and p.word in bound else None for p in products]
    if not any(words):
        return None, tuple(columns)
    different, places = _numbered(zip(columns, words, strict=True))
    return Scaling(tuple(c for c, _ in different), tuple(w for _, w in different)), places


def _read_after(rule: Rule, number: int) -> set[int]:
    """The positions that are read once the step has bound its words."""
    step = rule.steps[number]
    read = {*rule.output, *(step.predicate.words if step.predicate else ())}
    for later in rule.steps[number + 1 :]:
        read.update(word for atom in later.atoms for word in atom.key)
        read.update(later.predicate.words if later.predicate else ())
    end = len(rule.start) + sum(s.width for s in rule.steps[: number + 1])
    return {word for word in read if word < end}


def _wanted(
    products: Sequence[Product], step: Step, leaves: Sequence[int], occurrence: int, summed: int | None
) -> tuple[tuple[Measured, ...], tuple[int, ...]]:
    """(the weights that are wanted of the step, which of them each product has for its factor). summed: the position summed over."""
    if isinstance(step, Fetch):
        return (), tuple(p.factor(occurrence) for p in products)
    kinds = {"whole": WHOLE, "high": HIGH, "low": LOW}
    wanted: list[Measured] = []
    chosen = []
    for product in products:
        factors = [-1] * len(step.atoms)
        for k, leaf in enumerate(leaves):
            factors[leaf] = product.factor(occurrence + k)
        kind = kinds[product.limb] if summed is not None and product.word == summed else PLAIN
        for each in (HIGH, LOW) if kind in (HIGH, LOW) else (kind,):
            if (each, *factors) not in wanted:
                wanted.append((each, *factors))
        chosen.append(wanted.index((kind, *factors)))
    return (tuple(wanted), tuple(chosen)) if leaves else ((), ())
