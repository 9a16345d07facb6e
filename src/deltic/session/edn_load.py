"""Facts as columns: frames of the entities and values of attributes, checked as the additions of a transaction are, all at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltic.connectors.frames import rows_frame
from deltic.errors import ConstraintViolation, DataError, DelticError
from deltic.frontends.edn.kinds import ANY, CHAR, DOUBLE_KIND, KEYWORD, SYMBOL, UUID, EdnKind, decoded
from deltic.frontends.edn.read import read
from deltic.frontends.edn.schema import EdnAttribute
from deltic.frontends.edn.values import LocatedForm, form_of, write
from deltic.schema import TableSchema

_TEXTS = (ANY, KEYWORD, SYMBOL, CHAR, UUID)
"""The kinds whose values are given as texts: of EDN, or of a UUID."""


def fact_rows(frame: Any, attribute: EdnAttribute, table: TableSchema) -> pa.Table:
    """The rows of an attribute's table, each (entity, value) once; of cardinality one, the last of each entity.

    frame: its columns are e and v. Raises FrameError, DataError and TypeMismatch.
    """
    rows = rows_frame(frame, table)
    if len(rows) and (least := pc.min(rows["e"]).as_py()) < 0:
        raise DataError(f":{attribute.name} of entity {least}", expected="an entity's number", remedy="temporary ids are for transact")
    if attribute.is_ref and len(rows) and (least := pc.min(rows["v"]).as_py()) < 0:
        raise DataError(f"{least} as a value of :{attribute.name}", expected="an entity's number", remedy="temporary ids are for transact")
    if attribute.kind in _TEXTS:
        rows = rows.set_column(1, "v", _texts(rows["v"], attribute))
    elif attribute.kind == DOUBLE_KIND:
        if pc.any(pc.is_nan(rows["v"])).as_py():
            attribute.value(LocatedForm(float("nan")))
        rows = rows.set_column(1, "v", pc.add(rows["v"], 0.0))  # -0.0 is 0.0
    return rows if attribute.is_many else _last_of_each_entity(rows)


def _texts(column: pa.ChunkedArray, attribute: EdnAttribute) -> pa.ChunkedArray:
    """The stored texts of values. O(rows + different values)."""
    encoded = pc.dictionary_encode(column).combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = pa.concat_arrays(encoded.chunks) if encoded.num_chunks else pa.array([], pa.dictionary(pa.int32(), pa.string()))
    stored = [_text(text, attribute) for text in encoded.dictionary.to_pylist()]
    return pa.chunked_array([pa.array(stored, pa.string()).take(encoded.indices)])


def _text(text: str, attribute: EdnAttribute) -> Any:
    """Raises TypeMismatch, SyntaxFailure."""
    try:
        return attribute.value(read(f'#uuid "{text}"' if attribute.kind == UUID else text))
    except DelticError as error:
        raise DataError(
            f"{text!r} as a value of :{attribute.name}: {error.message}", expected=_shape(attribute.kind), remedy=error.remedy
        ) from error


def _shape(kind: EdnKind) -> str:
    return "the text of a UUID" if kind == UUID else "the text of a value in EDN" if kind == ANY else f"the text of a {kind} in EDN"


def _last_of_each_entity(rows: pa.Table) -> pa.Table:
    entities = rows["e"].to_numpy()
    _, last = np.unique(entities[::-1], return_index=True)
    return rows if len(last) == len(entities) else rows.take(pa.array(np.sort(len(entities) - 1 - last)))


def check_unique(rows: pa.Table, stored: pa.Table, attribute: EdnAttribute) -> None:
    """stored: the facts before. Raises ConstraintViolation for a value that two entities would have. O(facts of the attribute)."""
    if not attribute.is_many and len(stored):
        stored = stored.filter(pc.invert(pc.is_in(stored["e"], rows["e"].combine_chunks())))
    columns = ["e", "v"]
    pairs = pa.concat_tables([stored.select(columns), rows.select(columns)], promote_options="permissive")
    counted = pairs.group_by("v").aggregate([("e", "min"), ("e", "max")])
    shared = counted.filter(pc.not_equal(counted["e_min"], counted["e_max"]))
    if len(shared):
        first = shared.slice(0, 1).to_pylist()[0]
        text = write(form_of(decoded(first["v"], attribute.kind)))
        message = f"the value {text} of :{attribute.name} is unique, and would be of entities {first['e_min']} and {first['e_max']}"
        raise ConstraintViolation(message, expected="values of one entity each")
