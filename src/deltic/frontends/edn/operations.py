"""The operations of a transaction: its forms, checked against the schema, with entity maps expanded into single datoms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias
from typing import Literal as OneOf

from deltic.errors import DelticError, Span, SyntaxFailure, TypeMismatch, UnknownName, Unsupported
from deltic.frontends.edn.schema import EdnAttribute, EdnSchema, is_lookup
from deltic.frontends.edn.values import (
    GREATEST_LONG,
    LEAST_LONG,
    Keyword,
    ListForm,
    LocatedForm,
    MapForm,
    SetForm,
    VectorForm,
    form_of,
    write,
)

OperationKind: TypeAlias = OneOf["add", "retract", "retract_entity", "cas"]
_ID: Final = LocatedForm(Keyword("db/id"))
_SHAPES: Final = {
    "db/add": ("add", "[:db/add entity :attribute value]"),
    "db/retract": ("retract", "[:db/retract entity :attribute value], or without the value"),
    "db.fn/retractAttribute": ("retract", "[:db.fn/retractAttribute entity :attribute]"),
    "db/retractEntity": ("retract_entity", "[:db/retractEntity entity]"),
    "db.fn/retractEntity": ("retract_entity", "[:db.fn/retractEntity entity]"),
    "db/cas": ("cas", "[:db/cas entity :attribute old new]"),
    "db.fn/cas": ("cas", "[:db.fn/cas entity :attribute old new]"),
}
_LENGTHS: Final = {"add": (4,), "retract": (3, 4), "retract_entity": (2,), "cas": (5,)}
_PLAIN: Final[dict[str, OperationKind]] = {":db/add": "add", ":db/retract": "retract"}
_PLAIN_TYPES: Final[dict[str, type]] = {"long": int, "string": str, "boolean": bool}
"""By kind, the type in Python of values that are stored as they are."""
DATA: Final = '[{:person/name "Ann"} [:db/add 1 :person/age 30]]'


@dataclass(frozen=True, slots=True)
class TemporaryId:
    """An entity that the transaction names: a string or a negative number, or the position of an entity map without an id."""

    name: str | int | tuple[int]

    def __str__(self) -> str:
        return repr(self.name)


@dataclass(frozen=True, slots=True)
class LookupRef:
    """An entity by the value of a unique attribute."""

    attribute: EdnAttribute
    value: Any
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"[:{self.attribute.name} {self.value!r}]"


EntityTerm: TypeAlias = int | TemporaryId | LookupRef


class FactOperation(NamedTuple):
    """One operation. value, old: a stored value; of a reference, an entity; None if there is none. source: what it was written as."""

    kind: OperationKind
    entity: EntityTerm
    attribute: EdnAttribute | None
    value: Any
    old: Any
    source: LocatedForm | Sequence[Any]

    @property
    def form(self) -> LocatedForm:
        """What it was written as."""
        return form_of(self.source)

    @property
    def span(self) -> Span | None:
        return self.form.span


def operations(data: LocatedForm | Sequence[Any], schema: EdnSchema) -> list[FactOperation]:
    """The operations of a transaction in order. data: a form, or values of Python. Raises subclasses of QueryError, with the place."""
    if not isinstance(data, LocatedForm):
        plain = _plain_operations(data, schema)
        if plain is not None:
            return plain
        data = form_of(data)
    if not isinstance(data.value, VectorForm | ListForm):
        raise SyntaxFailure("the transaction is not a vector", span=data.span, expected=DATA)
    expander = _Expander(schema)
    expanded: list[FactOperation] = []
    for form in data.value.parts:
        try:
            expanded += expander.expanded(form)
        except DelticError as error:
            place(error, form)
            raise
    return expanded


def _plain_operations(data: Sequence[Any], schema: EdnSchema) -> list[FactOperation] | None:
    """The operations of values of Python that add and retract values of plain types by entities' numbers; None if others are among them.

    Forms, which all others need, take several times as long to make as such an operation to apply.
    """
    plain: list[FactOperation] = []
    attributes: dict[str, tuple[EdnAttribute, type | None]] = {}
    for one in data:
        if type(one) not in (list, tuple) or len(one) != 4:
            return None
        name, entity, key, value = one
        if type(name) is not str or (kind := _PLAIN.get(name)) is None or type(key) is not str or type(entity) is not int:
            return None
        if (declared := attributes.get(key)) is None:
            attribute = schema.attributes.get(key[1:])
            if attribute is None or key[:1] != ":" or attribute.column is not None:
                return None
            declared = attributes[key] = attribute, int if attribute.is_ref else _PLAIN_TYPES.get(attribute.kind.name)
        attribute, expected = declared
        if type(value) is not expected or not 0 <= entity <= GREATEST_LONG:
            return None
        if type(value) is int and not (0 if attribute.is_ref else LEAST_LONG) <= value <= GREATEST_LONG:
            return None
        plain.append(FactOperation(kind, entity, attribute, value, None, one))
    return plain


def place(error: DelticError, form: LocatedForm) -> None:
    """Gives an error without a place that of the form, or its text if it came from Python."""
    if error.span is None:
        text = write(form)
        error.move(form.span or Span(text, 0, len(text), "<data>"))


class _Expander:
    def __init__(self, schema: EdnSchema) -> None:
        self.schema, self.maps = schema, 0

    def expanded(self, form: LocatedForm) -> Iterator[FactOperation]:
        match form.value:
            case MapForm():
                yield from self._entity_map(form)[1]
            case None:
                pass
            case VectorForm() | ListForm():
                yield self._operation(form, form.value.parts)
            case _:
                raise SyntaxFailure(f"{write(form)} is not an operation", span=form.span, expected=f"one of {DATA}")

    def _operation(self, form: LocatedForm, parts: Sequence[LocatedForm]) -> FactOperation:
        name = parts[0].value.name if parts and isinstance(parts[0].value, Keyword) else None
        if name is None or name not in _SHAPES:
            what = write(parts[0]) if parts else "an empty vector"
            expected = ", ".join(f":{one}" for one in _SHAPES)
            if name is not None and name.startswith("db.fn/"):
                raise Unsupported(f"the transaction function {what} is not supported", span=parts[0].span, expected=expected)
            raise UnknownName(f"{what} is not an operation", span=parts[0].span if parts else form.span, expected=expected)
        kind, shape = _SHAPES[name]
        if len(parts) not in _LENGTHS[kind] or (name == "db.fn/retractAttribute" and len(parts) != 3):
            raise SyntaxFailure(f":{name} has {len(parts) - 1} arguments", span=form.span, expected=shape)
        entity = self.entity(parts[1])
        if kind != "add" and isinstance(entity, TemporaryId):
            raise TypeMismatch("a temporary id names a new entity", span=parts[1].span, expected=f"an entity that exists, in :{name}")
        if kind == "retract_entity":
            return FactOperation("retract_entity", entity, None, None, None, form)
        attribute = self.schema.stored_attribute(parts[2])
        if kind == "cas":
            old = None if parts[3].value is None else self.value(attribute, parts[3])
            return FactOperation("cas", entity, attribute, self.value(attribute, parts[4]), old, form)
        value = self.value(attribute, parts[3]) if len(parts) == 4 else None
        return FactOperation("add" if kind == "add" else "retract", entity, attribute, value, None, form)

    def _entity_map(self, form: LocatedForm) -> tuple[EntityTerm, list[FactOperation]]:
        """(the entity, its operations)."""
        assert isinstance(form.value, MapForm)
        pairs = dict(form.value.pairs)
        self.maps += 1
        given = pairs.pop(_ID, None)
        entity = TemporaryId((self.maps,)) if given is None or given.value is None else self.entity(given)
        expanded: list[FactOperation] = []
        for key, value in pairs.items():
            expanded += self._entry(entity, key, value)
        return entity, expanded

    def _entry(self, entity: EntityTerm, key: LocatedForm, value: LocatedForm) -> Iterator[FactOperation]:
        attribute, is_reverse = self.schema.directed(key)
        attribute.check_stored(key)
        many = attribute.is_many or is_reverse
        for one in self._values(attribute, value) if many else [value]:
            if attribute.is_ref and isinstance(one.value, MapForm):
                other, nested = self._entity_map(one)
            else:
                other, nested = (self.value(attribute, one) if not is_reverse else self.entity(one)), []
            subject, target = (other, entity) if is_reverse else (entity, other)
            yield FactOperation("add", subject, attribute, target, None, LocatedForm(one.value, one.span or key.span))
            yield from nested

    def _values(self, attribute: EdnAttribute, form: LocatedForm) -> Sequence[LocatedForm]:
        """The values of a collection; a lookup ref is one value."""
        if not isinstance(form.value, VectorForm | ListForm | SetForm):
            return [form]
        if attribute.is_ref and is_lookup(form):
            return [form]
        return form.value.parts

    def value(self, attribute: EdnAttribute, form: LocatedForm) -> Any:
        """A stored value; of a reference, an entity."""
        return self.entity(form) if attribute.is_ref else attribute.value(form)

    def entity(self, form: LocatedForm) -> EntityTerm:
        """Raises TypeMismatch."""
        match form.value:
            case int() as number if not isinstance(number, bool) and number <= GREATEST_LONG:
                return TemporaryId(number) if number < 0 else number
            case str() as name:
                if name == "datomic.tx":
                    raise Unsupported("the entity of the transaction is not supported", span=form.span, remedy="use an entity of your own")
                return TemporaryId(name)
            case VectorForm() | ListForm() if is_lookup(form):
                attribute = self.schema.attribute(form.value.parts[0])
                attribute.check_unique(form.span)
                if attribute.is_ref or attribute.column is not None:
                    what = "reference" if attribute.is_ref else "column of a table"
                    raise Unsupported(f"a lookup by a {what} is not supported", span=form.span, remedy="use the entity's number")
                return LookupRef(attribute, attribute.value(form.value.parts[1]), form.span)
            case Keyword():
                raise Unsupported(
                    f"the ident {write(form)} is not supported", span=form.span, remedy="use a lookup ref: [:attribute value]"
                )
            case _:
                expected = "a number, a string or a negative number for a new entity, or [:attribute value]"
                raise TypeMismatch(f"{write(form)} is not an entity", span=form.span, expected=expected)
