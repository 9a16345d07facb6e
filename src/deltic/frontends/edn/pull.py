"""Pull patterns over a schema: levels of entities, and what each entity of a level shows.

A level is one pattern, at one place of the query. The rows that trees are made of are (level, entity, slot, value): a fact of an entity is
in as many of them as levels show it, and not in a row for each tree or path that leads to it. pull_plan.py keeps these rows, and pulled.py
makes trees of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from deltic.errors import SyntaxFailure, TypeMismatch
from deltic.expr.nodes import Value
from deltic.frontends.edn.kinds import BIGDEC, BIGINT_KIND, decoded, encoded, kind_of
from deltic.frontends.edn.schema import EdnAttribute, EdnSchema
from deltic.frontends.edn.tree import PullPattern, PullSpec
from deltic.frontends.edn.values import Keyword, LocatedForm, write
from deltic.schema import BIGINT, BOOLEAN, DOUBLE, STRING, TIMESTAMP, Type

ID: Final = ":db/id"
VALUE_COLUMNS: Final[Mapping[Type, str]] = {
    BIGINT: "long",
    BIGINT_KIND.type: "bigint",
    BIGDEC.type: "bigdec",
    DOUBLE: "double",
    STRING: "text",
    BOOLEAN: "boolean",
    TIMESTAMP: "instant",
}
"""The columns of values by their type."""


@dataclass(frozen=True, slots=True)
class PullSlot:
    """What an entity of a level shows of an attribute.

    number: within the level. key: in the tree. default: if the entity has no value. level: that of the entities it refers to; None of
    other values, and of entities of which only the number is shown. depth: how often it may be followed on one path; None is any number.
    ends_cycles: whether an entity that it has led to on the path before is shown by its number.
    """

    number: int
    attribute: EdnAttribute
    is_reverse: bool
    key: str
    default: LocatedForm | None
    limit: int | None
    level: int | None
    depth: int | None
    ends_cycles: bool

    @property
    def is_single(self) -> bool:
        """Whether the tree has one value for it instead of a list: a component has one owner."""
        return self.attribute.is_component if self.is_reverse else not self.attribute.is_many

    @property
    def column(self) -> str:
        """The column that has its values."""
        return VALUE_COLUMNS[self.attribute.kind.type]

    def default_value(self) -> object:
        """The default as a value of Python."""
        assert self.default is not None
        kind = kind_of(self.default)
        return decoded(encoded(self.default, kind), kind)

    def shown(self, value: Value) -> object:
        """A stored value as one of Python; a reference as its entity's number."""
        return {ID: value} if self.attribute.is_ref else decoded(value, self.attribute.kind)


@dataclass(frozen=True, slots=True)
class PullLevel:
    """A pattern at its place. id_key: the key of the entity's number, if it is shown. components: whether it is that of all components."""

    number: int
    id_key: str | None
    slots: tuple[PullSlot, ...]
    components: bool


def levels_of(pattern: PullPattern, schema: EdnSchema) -> tuple[PullLevel, ...]:
    """The levels of a pattern, its own first. Raises UnknownName, SyntaxFailure and TypeMismatch."""
    maker = _Levels(schema)
    maker.level(pattern)
    return tuple(level for _, level in sorted(maker.levels.items()))


class _Levels:
    def __init__(self, schema: EdnSchema) -> None:
        self.schema = schema
        self.levels: dict[int, PullLevel] = {}
        self._count = 0
        self._components: int | None = None

    def level(self, pattern: PullPattern, *, components: bool = False) -> int:
        """The number of a new level; those of its parts are greater, apart from that of all components."""
        number, self._count = self._count, self._count + 1
        if components:
            self._components = number
        id_key = ID if pattern.has_wildcard else None
        slots: list[PullSlot] = []
        keys: dict[str, LocatedForm] = {}
        for spec in (*pattern.specs, *self._rest(pattern)):
            key = _key(spec.key or spec.attribute)
            if key in keys:
                shown = write(spec.key or spec.attribute)
                raise SyntaxFailure(f"the pattern has {shown} twice", span=spec.span, remedy='[:name :as "other"]')
            keys[key] = spec.attribute
            if write(spec.attribute) == ID:
                id_key = _id_key(spec, key)
            else:
                slots.append(self._slot(spec, key, number, len(slots)))
        self.levels[number] = PullLevel(number, id_key, tuple(slots), components)
        return number

    def _rest(self, pattern: PullPattern) -> Iterator[PullSpec]:
        """The attributes that a wildcard adds."""
        if pattern.has_wildcard:
            named = {write(spec.attribute)[1:] for spec in pattern.specs}
            yield from (PullSpec(one.form) for one in self.schema.attributes.values() if one.name not in named)

    def _slot(self, spec: PullSpec, key: str, level: int, number: int) -> PullSlot:
        attribute, is_reverse = self.schema.directed(spec.attribute)
        if spec.nested is not None and not attribute.is_ref:
            expected = "an attribute of references"
            raise TypeMismatch(f"the values of :{attribute.name} are not references", span=spec.span, expected=expected)
        target, depth = None, None
        match spec.nested:
            case PullPattern():
                target = self.level(spec.nested)
            case None:
                target = self._of_components() if attribute.is_component and not is_reverse else None
            case count:
                target, depth = level, count if isinstance(count, int) else None
        ends_cycles = target == level or (attribute.is_component and target is not None)
        return PullSlot(number, attribute, is_reverse, key, spec.default, spec.limit, target, depth, ends_cycles)

    def _of_components(self) -> int:
        """The level of components that have no pattern: all their attributes."""
        if self._components is None:
            self.level(PullPattern((), True, None), components=True)
        assert self._components is not None
        return self._components


def _id_key(spec: PullSpec, key: str) -> str:
    if spec.nested is not None or spec.default is not None or spec.limit is not None:
        raise SyntaxFailure(f"{ID} is the number of the entity", span=spec.span, expected=f'{ID} or [{ID} :as "n"]')
    return key


def _key(form: LocatedForm) -> str:
    """The key of a tree: a keyword with its colon, as transactions in Python accept it."""
    return form.value if isinstance(form.value, str) else write(Keyword(form.value.name) if isinstance(form.value, Keyword) else form)
