"""The schema of a store: its attributes, and a table for each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Final, NoReturn
from typing import Literal as OneOf

from deltic.errors import CatalogError, Span, SyntaxFailure, TypeMismatch, UnknownName, Unsupported, did_you_mean
from deltic.expr.nodes import Value
from deltic.frontends.edn.kinds import ANY, BIGDEC, BIGINT_KIND, KINDS, LONG, EdnKind, accepts, encoded, kind_of
from deltic.frontends.edn.values import Keyword, ListForm, LocatedForm, MapForm, VectorForm, write
from deltic.schema import BIGINT, Field, Schema, TableSchema, Type

REF: Final = "db.type/ref"
_TYPES: Final = {f"db.type/{name}": kind for name, kind in KINDS.items()} | {REF: LONG}
_DIGITS: Final = {BIGINT_KIND: "at most 38 digits", BIGDEC: "at most 20 digits before the point, and 18 after it"}
COLUMN_TYPES: Final = "a column of whole numbers, floats, DECIMALs of the digits of bigints and bigdecs, STRING, BOOLEAN or TIMESTAMP"
_WITHOUT_EFFECT: Final = ("db/doc", "db/index", "db/ident")
_ADDITIONS: Final = ("db/valueType", "db/cardinality", "db/unique", "db/isComponent")


def is_lookup(form: LocatedForm) -> bool:
    """Whether the form is a lookup ref, [:attribute value], which stands for an entity."""
    return isinstance(form.value, VectorForm | ListForm) and len(form.value.parts) == 2 and isinstance(form.value.parts[0].value, Keyword)


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table whose rows are facts of the entities that the table's key numbers."""

    table: str
    name: str


@dataclass(frozen=True, slots=True)
class EdnAttribute:
    """An attribute. name: without the colon. unique: how a value identifies its entity, if it does. kind: of its values. column: if it is
    one of a table."""

    name: str
    kind: EdnKind = ANY
    is_ref: bool = False
    is_many: bool = False
    unique: OneOf["identity", "value"] | None = None
    is_component: bool = False
    column: TableColumn | None = None
    span: Span | None = field(default=None, compare=False, repr=False)

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def form(self) -> LocatedForm:
        """Its name."""
        return LocatedForm(Keyword(self.name), self.span)

    @property
    def options(self) -> LocatedForm:
        """What a schema says of it, as a map."""
        options = {"db/valueType": REF if self.is_ref else None if self.kind == ANY else f"db.type/{self.kind.name}"}
        options["db/cardinality"] = "db.cardinality/many" if self.is_many else None
        options["db/unique"] = None if self.unique is None else f"db.unique/{self.unique}"
        pairs = [(LocatedForm(Keyword(key)), LocatedForm(Keyword(value))) for key, value in options.items() if value is not None]
        pairs += [(LocatedForm(Keyword("db/isComponent")), LocatedForm(True))] if self.is_component else []
        return LocatedForm(MapForm(tuple(pairs)))

    def check_unique(self, span: Span | None) -> None:
        """Raises TypeMismatch unless a value identifies its entity, as a lookup ref at `span` requires."""
        if self.unique is None:
            remedy = "add :db/unique :db.unique/identity to its schema"
            raise TypeMismatch(f":{self.name} is not unique, so it finds no entity", span=span, remedy=remedy)

    def value(self, form: LocatedForm) -> Value:
        """The stored value of a constant that is not a reference. Raises TypeMismatch."""
        kind = kind_of(form)
        if kind == ANY and self.kind in _DIGITS and isinstance(form.value, int | Decimal):
            raise TypeMismatch(f"{write(form)} has too many digits", span=form.span, expected=_DIGITS[self.kind])
        if not accepts(self.kind, form):
            what = "value with no kind of its own" if kind == ANY else str(kind)
            expected = "an entity's number" if self.is_ref else f"a {self.kind}"
            raise TypeMismatch(f"the values of :{self.name} are not of kind {what}", span=form.span, expected=expected)
        if isinstance(form.value, float) and form.value != form.value:
            raise TypeMismatch("##NaN is equal to no value, so it cannot be found again", span=form.span, remedy="leave the attribute out")
        return encoded(form, self.kind)

    def check_stored(self, form: LocatedForm) -> None:
        """Raises Unsupported for a column, which transactions do not change."""
        if self.column is not None:
            what = f":{self.name} is a column of the table {self.column.table}"
            raise Unsupported(what, span=form.span, expected="an attribute of the store", remedy="change the table")


@dataclass(frozen=True, slots=True)
class EdnSchema:
    """A store's attributes by name. Each is a table of entities and values, or a column; of cardinality one, the entity is its key.

    other_columns: by the names that they would have, the types of columns that are no attributes. tables: those of the columns, by the
    namespaces of their attributes.
    """

    store: str
    attributes: Mapping[str, EdnAttribute]
    other_columns: Mapping[str, Type] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)

    def table_name(self, attribute: EdnAttribute) -> str:
        return f"{self.store}/{attribute.name}"

    def table(self, attribute: EdnAttribute) -> TableSchema:
        schema = Schema((Field("e", BIGINT, False), Field("v", attribute.kind.type, False)))
        return TableSchema(self.table_name(attribute), schema, (0, 1) if attribute.is_many else (0,))

    def attribute(self, form: LocatedForm) -> EdnAttribute:
        """The attribute that a form names. Raises UnknownName and SyntaxFailure."""
        if not isinstance(form.value, Keyword):
            raise SyntaxFailure(f"{write(form)} is not an attribute", span=form.span, expected="a keyword such as :person/name")
        attribute = self.attributes.get(form.value.name)
        if attribute is None:
            if (type_ := self.other_columns.get(form.value.name)) is not None:
                what = f"{write(form)} is a column of type {type_.sql}, whose values are no facts"
                raise Unsupported(what, span=form.span, expected=COLUMN_TYPES)
            names = [f":{name}" for name in self.attributes]
            remedy = did_you_mean(write(form), names) or "add it to the schema of the store"
            raise UnknownName(f"the store {self.store} has no attribute {write(form)}", span=form.span, remedy=remedy)
        return attribute

    def stored_attribute(self, form: LocatedForm) -> EdnAttribute:
        """The attribute that a form names. Raises Unsupported for a column."""
        attribute = self.attribute(form)
        attribute.check_stored(form)
        return attribute

    def directed(self, form: LocatedForm) -> tuple[EdnAttribute, bool]:
        """(the attribute that a form names, whether the form names its reverse, :ns/_name). Raises also TypeMismatch."""
        forward = _reversed(form)
        attribute = self.attribute(forward or form)
        if forward is not None and not attribute.is_ref:
            raise TypeMismatch(f"the values of :{attribute.name} are not references", span=form.span, expected="an attribute of references")
        return attribute, forward is not None

    @property
    def stored(self) -> Iterator[EdnAttribute]:
        """The attributes that transactions change: those that are not columns."""
        return (one for one in self.attributes.values() if one.column is None)

    @property
    def text(self) -> str:
        """The attributes that are not columns, in EDN, which `schema_of` accepts."""
        return _text(self.stored)

    @property
    def columns_text(self) -> str:
        """What the schema adds to columns, likewise."""
        columns = (one if one.is_ref else replace(one, kind=ANY) for one in self.attributes.values() if one.column is not None)
        return _text(one for one in columns if one.options.value != MapForm(()))

    def extended(self, other: EdnSchema) -> EdnSchema:
        """With the attributes of another schema of the store. Raises CatalogError if one is declared otherwise."""
        for name, one in other.attributes.items():
            if self.attributes.get(name, one) != one:
                raise CatalogError(f"the attribute :{name} of the store {self.store} is declared otherwise", span=one.span)
        others, tables = {**self.other_columns, **other.other_columns}, {**self.tables, **other.tables}
        return EdnSchema(self.store, {**self.attributes, **other.attributes}, others, tables)


def _text(attributes: Iterable[EdnAttribute]) -> str:
    return write(MapForm(tuple((one.form, one.options) for one in attributes)))


def _reversed(key: LocatedForm) -> LocatedForm | None:
    """The attribute :a/b of :a/_b; None of another keyword."""
    name = key.value.name if isinstance(key.value, Keyword) else ""
    before, _, last = name.rpartition("/")
    if not last.startswith("_"):
        return None
    return LocatedForm(Keyword(f"{before}/{last[1:]}" if before else last[1:]), key.span)


def schema_of(store: str, form: LocatedForm) -> EdnSchema:
    """The schema in DataScript's form, {:person/name {:db/unique :db.unique/identity} …}, or Datomic's, [{:db/ident :person/name …} …].

    Raises subclasses of QueryError.
    """
    attributes: dict[str, EdnAttribute] = {}
    for name, options in _entries(form):
        if not isinstance(name.value, Keyword):
            raise SyntaxFailure(f"{write(name)} is not an attribute", span=name.span, expected="a keyword such as :person/name")
        same = next((one for one in attributes if one.lower() == name.value.name.lower()), None)
        if same is not None:
            remedy = "rename one: names of tables are case-insensitive"
            raise CatalogError(f"the attributes :{same} and {write(name)} have the same name", span=name.span, remedy=remedy)
        if name.value.name.split("/")[0] in ("db", "db.fn", "db.type"):
            raise CatalogError(f"the attribute {write(name)} is reserved", span=name.span, remedy="use another namespace")
        if name.value.name.split("/")[-1].startswith("_"):
            remedy = "rename it: an underscore stands for the reverse of an attribute"
            raise CatalogError(f"the attribute {write(name)} begins with an underscore", span=name.span, remedy=remedy)
        attributes[name.value.name] = _attribute(name, options)
    if not attributes:
        raise SyntaxFailure("the schema has no attributes", span=form.span, expected="{:person/name {:db/valueType :db.type/string} …}")
    return EdnSchema(store, attributes)


def _entries(form: LocatedForm) -> list[tuple[LocatedForm, MapForm]]:
    pairs: list[tuple[LocatedForm | None, LocatedForm]]
    if isinstance(form.value, VectorForm):
        pairs = [(_ident(one), one) for one in form.value.parts]
    elif isinstance(form.value, MapForm):
        pairs = list(form.value.pairs)
    else:
        raise SyntaxFailure("the schema is not a map", span=form.span, expected="{:person/name {:db/valueType :db.type/string} …}")
    entries = []
    for name, options in pairs:
        if not isinstance(options.value, MapForm):
            raise SyntaxFailure("the options of an attribute are not a map", span=options.span, expected="{:db/valueType … }")
        if name is None:
            raise SyntaxFailure("the attribute has no name", span=options.span, expected="{:db/ident :person/name …}")
        entries.append((name, options.value))
    return entries


def _ident(form: LocatedForm) -> LocatedForm | None:
    pairs = form.value.pairs if isinstance(form.value, MapForm) else ()
    return next((value for key, value in pairs if key.value == Keyword("db/ident")), None)


def _attribute(name: LocatedForm, options: MapForm) -> EdnAttribute:
    kind, is_ref, is_many, is_component = ANY, False, False, False
    unique: OneOf["identity", "value"] | None = None
    for key, value in options.pairs:
        text = write(value)[1:]
        match write(key)[1:]:
            case "db/valueType":
                if text not in _TYPES:
                    _refuse(value, "value type", [f":{one}" for one in _TYPES])
                kind, is_ref = _TYPES[text], text == REF
            case "db/cardinality":
                if text not in ("db.cardinality/one", "db.cardinality/many"):
                    _refuse(value, "cardinality", [":db.cardinality/one", ":db.cardinality/many"])
                is_many = text == "db.cardinality/many"
            case "db/unique":
                if text not in ("db.unique/identity", "db.unique/value"):
                    _refuse(value, "uniqueness", [":db.unique/identity", ":db.unique/value"])
                unique = "identity" if text == "db.unique/identity" else "value"
            case "db/isComponent":
                is_component = value.value is True
            case other if other not in _WITHOUT_EFFECT:
                expected = ", ".join(f":{one}" for one in _ADDITIONS)
                raise Unsupported(f"the option {write(key)} of an attribute", span=key.span, expected=expected)
    if is_component and not is_ref:
        remedy = "add :db/valueType :db.type/ref"
        raise TypeMismatch(f"{write(name)} has components, which are references", span=name.span, remedy=remedy)
    assert isinstance(name.value, Keyword)
    return EdnAttribute(name.value.name, kind, is_ref, is_many, unique, is_component, span=name.span)


def _refuse(form: LocatedForm, what: str, supported: list[str]) -> NoReturn:
    raise Unsupported(f"the {what} {write(form)} is not supported", span=form.span, expected=", ".join(supported))
