"""Relations of the oracle: multisets of Python rows, with SQL's equality of rows instead of Python's.

In Python True = 1 = 1.0 and 0.0 = -0.0 are one dictionary key, and NaN differs from itself. Here two rows are equal iff their values have
equal classes and are equal, where NaN equals NaN and the sign of zero counts. Keys (joins, groups, DISTINCT, set operations) are coarser:
`normal` maps -0.0 to 0.0 first.
It uses no kernels, NumPy or Arrow, so that the engines are checked by independent code.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping

from deltic.expr.nodes import Value

Row = tuple[Value, ...]


class Relation(Mapping[Row, int]):
    """Rows with nonzero weights, consolidated on construction: the weights of equal rows are added. Immutable.

    >>> Relation([((0.0,), 1), ((-0.0,), 2), ((0.0,), -1), ((float("nan"),), 1), ((float("nan"),), 1)])
    Relation({(-0.0,): 2, (nan,): 2})
    """

    __slots__ = ("_weights",)

    def __init__(self, pairs: Iterable[tuple[Row, int]] = ()) -> None:
        weights: dict[Hashable, tuple[Row, int]] = {}
        for row, weight in pairs:
            key = identity(row)
            weights[key] = (row, weights[key][1] + weight if key in weights else weight)
        self._weights = {key: pair for key, pair in weights.items() if pair[1] != 0}

    def __getitem__(self, row: Row) -> int:
        return self._weights[identity(row)][1]

    def __iter__(self) -> Iterator[Row]:
        return (row for row, _ in self._weights.values())

    def __len__(self) -> int:
        return len(self._weights)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        relation = other if isinstance(other, Relation) else Relation(other.items())
        return self._content() == relation._content()

    def __hash__(self) -> int:
        return hash(self._content())

    def _content(self) -> frozenset[tuple[Hashable, int]]:
        return frozenset((key, weight) for key, (_, weight) in self._weights.items())

    def __repr__(self) -> str:
        return f"Relation({dict(self.pairs())!r})"

    def pairs(self) -> Collection[tuple[Row, int]]:
        """As items(), without a lookup of every row."""
        return self._weights.values()

    def __add__(self, other: Relation) -> Relation:
        return Relation([*self.pairs(), *other.pairs()])

    def __sub__(self, other: Relation) -> Relation:
        return Relation([*self.pairs(), *((row, -weight) for row, weight in other.pairs())])


def identity(row: Row) -> Hashable:
    """Equal iff the rows are equal: values of equal classes, NaN equal to NaN, 0.0 different from -0.0."""
    return tuple([(value.__class__, _identity(value) if isinstance(value, float | tuple) else value) for value in row])


def _identity(value: float | Row) -> Hashable:
    return identity(value) if isinstance(value, tuple) else repr(value)


def normal(value: Value) -> Value:
    """The value as part of a key: 0.0 for -0.0.

    >>> normal(-0.0), normal(2.5)
    (0.0, 2.5)
    """
    if isinstance(value, tuple):
        return tuple(map(normal, value))
    return 0.0 if isinstance(value, float) and value == 0.0 else value


def normal_row(row: Row) -> Row:
    """The row with every value as part of a key."""
    return tuple(normal(value) for value in row)


def key_of(values: Iterable[Value]) -> Hashable:
    """Equal iff two lists of values are equal as keys: NULL equals NULL, NaN equals NaN, -0.0 equals 0.0."""
    return identity(normal_row(tuple(values)))
