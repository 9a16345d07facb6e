"""Relations of Spark Connect's messages: what they read, and the same relations over other tables.

A message is never changed in place. Names of datasets are looked up by their keys; a file, a topic or a query of a database that is read
is a source of its own, which its message identifies.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyspark.sql.connect.proto as pb

from deltic.errors import QueryError
from deltic.frontends.dataframes.expressions import name_parts
from deltic.frontends.sql import tree
from deltic.frontends.sql.lexer import QUOTED, WORD, tokenize
from deltic.frontends.sql.parse_dataset import dotted, parse_project_query
from deltic.projects.names import Names
from deltic.types import backquoted

Replace = Callable[[pb.Relation], pb.Relation | None]
_SHOWN_PATH: Final = 60


@dataclass(frozen=True, slots=True)
class SourceRead:
    """A table or source that a relation reads. key: of a table as in `Names.key`; of a source, its format, place and a hash."""

    key: str
    message: pb.Relation
    streaming: bool
    named: bool


def reads(message: pb.Relation, names: Names) -> list[SourceRead]:
    """What a relation reads, also in the texts of spark.sql."""
    collected: list[SourceRead] = []
    for relation in _relations(message):
        match relation.WhichOneof("rel_type"):
            case "read":
                collected.append(_read(relation, names))
            case "sql":
                collected += reads_of_text(relation.sql.query, names)
    return collected


def reads_of_text(text: str, names: Names) -> list[SourceRead]:
    """What a query reads. Of one that Deltic cannot parse, every name that may be a relation's."""
    try:
        query = parse_project_query(text, "<sql>")
    except QueryError:
        return [_named(name, names, streaming=False) for name in _names(text)]
    ctes = {cte.name.text.lower() for node in tree.walk(query) if isinstance(node, tree.WholeQuery) for cte in node.ctes}
    tables = [node for node in tree.walk(query) if isinstance(node, tree.TableName) and node.name.text.lower() not in ctes]
    return [_named(node.name.text, names, streaming=node.stream) for node in tables]


def _names(text: str) -> Iterator[str]:
    """Dotted names in a text."""
    try:
        tokens = tokenize(text, "<sql>")
    except QueryError:
        return
    parts: list[str] = []
    dot = False
    for token in tokens:
        if token.kind in (WORD, QUOTED) and (dot or not parts):
            parts.append(token.text)
            dot = False
        elif token.word == "." and parts and not dot:
            dot = True
        else:
            yield from (dotted(parts),) if parts and len(parts) <= 3 else ()
            parts, dot = ([token.text] if token.kind in (WORD, QUOTED) else []), False
    yield from (dotted(parts),) if parts and len(parts) <= 3 else ()


def _named(name: str, names: Names, *, streaming: bool) -> SourceRead:
    message = pb.Relation()
    message.read.named_table.unparsed_identifier = names.identifier(name)
    message.read.is_streaming = streaming
    return SourceRead(names.key(name), message, streaming, True)


def _read(relation: pb.Relation, names: Names) -> SourceRead:
    read = relation.read
    plain = pb.Relation(read=read)  # a copy: the relation may be rewritten in place
    if read.WhichOneof("read_type") == "named_table" and not read.named_table.options:
        return SourceRead(names.key(read.named_table.unparsed_identifier), plain, read.is_streaming, True)
    digest = hashlib.sha256(plain.SerializeToString(deterministic=True)).hexdigest()[:8]
    if read.WhichOneof("read_type") == "named_table":
        shown = names.key(read.named_table.unparsed_identifier)
    else:
        place = ",".join(read.data_source.paths) or read.data_source.options.get("path", "")
        shown = f"{read.data_source.format or 'files'}:{place[-_SHOWN_PATH:]}"
    return SourceRead(f"{shown}#{digest}", plain, read.is_streaming, False)


def rewritten(message: pb.Relation, replace: Replace) -> pb.Relation:
    """The relation in which `replace` has replaced relations; it returns None for those that stay."""
    copy = pb.Relation()
    copy.CopyFrom(message)
    _rewrite(copy, replace)
    return copy


def _rewrite(message: Any, replace: Replace) -> None:
    if isinstance(message, pb.Relation) and (other := replace(message)) is not None:
        message.CopyFrom(other)
        return
    for part in _parts(message):
        _rewrite(part, replace)


def _relations(message: Any) -> Iterator[pb.Relation]:
    if isinstance(message, pb.Relation):
        yield message
    for part in _parts(message):
        yield from _relations(part)


def _parts(message: Any) -> Iterator[Any]:
    """The messages within a message, except those of maps of plain values."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            if field.message_type.fields_by_name["value"].message_type is not None:
                yield from value.values()
        elif hasattr(value, "ListFields"):
            yield value
        else:
            yield from value


def under_key(relation: pb.Relation, read: SourceRead) -> pb.Relation:
    """The read of a relation by its key alone, under the last part of the name that it has in the program."""
    table = pb.Relation()
    table.read.named_table.unparsed_identifier = backquoted(read.key)
    if not read.named:
        table.common.CopyFrom(relation.common)
        return table
    last = name_parts(relation.read.named_table.unparsed_identifier)[-1]
    return aliased(table, last, relation)


def aliased(relation: pb.Relation, alias: str, place: pb.Relation) -> pb.Relation:
    """The relation under an alias, in the place of another one."""
    named = pb.Relation()
    named.common.CopyFrom(place.common)
    named.subquery_alias.alias = alias
    named.subquery_alias.input.CopyFrom(relation)
    return named


def query_message(text: str) -> pb.Relation:
    """spark.sql(text)."""
    message = pb.Relation()
    message.sql.query = text
    return message


def with_references(message: pb.Relation, references: dict[str, pb.Relation]) -> pb.Relation:
    """A query in which names stand for relations."""
    if not references:
        return message
    whole = pb.Relation()
    whole.with_relations.root.CopyFrom(message)
    for name, relation in references.items():
        reference = whole.with_relations.references.add()
        reference.subquery_alias.alias = name
        reference.subquery_alias.input.CopyFrom(relation)
    return whole
