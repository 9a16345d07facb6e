"""Attributes that are columns of tables: a row is facts of the entity whose number is the row's key. Nothing is copied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, TypeGuard

from deltic.errors import CatalogError, TypeMismatch, UnknownName, Unsupported, did_you_mean
from deltic.frontends.edn.kinds import ANY, BIGDEC, BIGINT_KIND, BOOLEAN_KIND, DOUBLE_KIND, INSTANT, LONG, STRING_KIND, EdnKind
from deltic.frontends.edn.schema import COLUMN_TYPES, EdnAttribute, EdnSchema, TableColumn
from deltic.frontends.statements import Namespace
from deltic.schema import BOOLEAN, STRING, TIMESTAMP, StreamSchema, TableSchema, Type

_KINDS: Final = {BOOLEAN: BOOLEAN_KIND, STRING: STRING_KIND, TIMESTAMP: INSTANT}


def with_tables(schema: EdnSchema, tables: Mapping[str, str], namespace: Namespace) -> EdnSchema:
    """The schema with an attribute `name/column` for each column of the tables, by name, whose type a kind of values has.

    What the schema declares of such an attribute, as that it is a reference, stays. Raises UnknownName, CatalogError and TypeMismatch.
    """
    attributes, others = dict(schema.attributes), dict(schema.other_columns)
    for name, table_name in tables.items():
        table = _table(table_name, namespace)
        for field in table.schema.read:
            kind = _kind(field.type)
            declared = attributes.get(f"{name}/{field.name}", EdnAttribute(f"{name}/{field.name}"))
            if kind is not None:
                attributes[declared.name] = replace(_checked(declared, kind), column=TableColumn(table.name, field.name))
            elif declared.name in attributes:
                what = f"the column of :{declared.name} is of type {field.type.sql}, whose values are no facts"
                raise Unsupported(what, span=declared.span, expected=COLUMN_TYPES)
            else:
                others[declared.name] = field.type
    return EdnSchema(schema.store, attributes, others, {**schema.tables, **tables})


def without_dropped(schema: EdnSchema, namespace: Namespace) -> EdnSchema:
    """The schema without the attributes of columns that the namespace lacks, or has with values of another kind."""

    def is_there(attribute: EdnAttribute) -> bool:
        if attribute.column is None:
            return True
        table = namespace.relation(attribute.column.table)
        fields = table.schema.read.fields if _has_entities(table) else ()
        return any(field.name == attribute.column.name and _kind(field.type) == attribute.kind for field in fields)

    attributes = {name: one for name, one in schema.attributes.items() if is_there(one)}
    tables = {name: table for name, table in schema.tables.items() if _has_entities(namespace.relation(table))}
    return EdnSchema(schema.store, attributes, schema.other_columns, tables)


def _has_entities(relation: object) -> TypeGuard[TableSchema]:
    return isinstance(relation, TableSchema) and len(relation.key) == 1 and relation.schema[relation.key[0]].type.is_integer


def _table(name: str, namespace: Namespace) -> TableSchema:
    table = namespace.relation(name)
    if not isinstance(table, TableSchema) or isinstance(table, StreamSchema):
        remedy = did_you_mean(name, [one for one in namespace.names() if isinstance(namespace.relation(one), TableSchema)])
        raise UnknownName(f"there is no table {name}", remedy=remedy or "create it first: CREATE TABLE …")
    if not _has_entities(table):
        expected = "a PRIMARY KEY of one column of whole numbers, which number the entities"
        raise CatalogError(f"the rows of {table.name} are not entities", expected=expected)
    return table


def _kind(type_: Type) -> EdnKind | None:
    if type_.is_integer:
        return LONG
    if type_.is_decimal and type_.scale == 0:
        return BIGINT_KIND
    if type_.is_decimal and type_.scale <= BIGDEC.type.scale and type_.precision - type_.scale <= BIGDEC.type.precision - BIGDEC.type.scale:
        return BIGDEC
    return DOUBLE_KIND if type_.is_float else _KINDS.get(type_)


def _checked(declared: EdnAttribute, kind: EdnKind) -> EdnAttribute:
    if declared.kind not in (kind, ANY):
        expected = f":db.type/{kind}, or no :db/valueType"
        raise TypeMismatch(f"the column of :{declared.name} has values of kind {kind}", span=declared.span, expected=expected)
    if declared.is_many:
        raise CatalogError(f"the column of :{declared.name} has one value", span=declared.span, remedy="leave :db/cardinality out")
    return replace(declared, kind=kind)
