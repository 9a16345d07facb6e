"""Encodes rows as the bytes of a file: Parquet, CSV, or JSON lines.

The same rows in the same order give the same bytes. Every value is exact, and file sources read the same value back: a timestamp is
in UTC with six decimal places, and so is a time; NaN and the infinities are NaN, Infinity and -Infinity, in JSON as strings; in CSV every
string is quoted, which distinguishes an empty one from NULL; in JSON a NULL is null; BINARY is text in base 64; an INTERVAL is the text
to which SQL casts it. The key of a MAP is a string in JSON: a nested one its text in JSON.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from deltic.intervals import render
from deltic.schema import DAY_TO_SECOND, TYPE, Type
from deltic.types import is_variant
from deltic.variant_bytes import VariantPlace
from deltic.variant_json import text_of

Format: TypeAlias = Literal["parquet", "csv", "json"]
_ROWS: Final = 1 << 16
_NOT_PLAIN: Final = r'["\\\x00-\x1f]'


def encoded(rows: pa.Table, format: str, *, header: bool = False, sep: str = ",") -> Iterator[pa.Buffer]:
    """The file's parts. header, sep: of CSV."""
    rows = rows.replace_schema_metadata(None).combine_chunks()
    match format:
        case "parquet":
            yield _parquet(rows)
        case "csv":
            yield _csv(rows, header, sep)
        case "json":
            for start in range(0, rows.num_rows, _ROWS):
                yield _json_lines(rows.slice(start, _ROWS))
        case _:
            raise AssertionError(f"the format {format}")


def _parquet(rows: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    return sink.getvalue()


def _csv(rows: pa.Table, header: bool, sep: str) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    for i, column in enumerate(rows.columns):
        if (type_ := _type_of(rows.field(i))) is not None and type_.is_interval:
            text = _rendered(column, type_)
            rows, column = rows.set_column(i, rows.field(i).name, text), text
        if pa.types.is_binary(column.type):
            rows = rows.set_column(i, rows.field(i).name, _base64(column))
        if pa.types.is_floating(column.type) and not pc.all(pc.is_finite(column)).as_py():
            rows = rows.set_column(i, rows.field(i).name, _float_text(column, ""))
    pyarrow.csv.write_csv(rows, sink, pyarrow.csv.WriteOptions(include_header=header, delimiter=sep))
    return sink.getvalue()


def _json_lines(rows: pa.Table) -> pa.Buffer:
    pieces: list[Any] = []
    for i, (field, column) in enumerate(zip(rows.schema, rows.columns, strict=True)):
        pieces += [("," if i else "{") + json.dumps(field.name, ensure_ascii=False) + ":", json_text(column, _type_of(field))]
    lines = pc.binary_join_element_wise(*pieces, "}\n", "", null_handling="replace", null_replacement="null")
    return pa.py_buffer(b"".join(lines.cast(pa.binary()).to_pylist()))


def json_text(column: pa.ChunkedArray[Any], type_: Type | None = None) -> pa.ChunkedArray[Any]:
    """The values as JSON; NULL for NULL. type_: where Arrow's type does not say it."""
    t, kind = pa.types, column.type
    if t.is_nested(kind):
        return pa.chunked_array([_json_nested(chunk, type_) for chunk in column.chunks], pa.string())
    if type_ is not None and type_.is_interval:
        return _within(_rendered(column, type_), '"')
    if t.is_floating(kind):
        return _float_text(column, '"')
    if t.is_string(kind):
        return _json_strings(column)
    if t.is_date(kind) or t.is_time(kind):
        return _within(column.cast(pa.string()), '"')
    if t.is_timestamp(kind):
        return _within(pc.strftime(column.cast(pa.timestamp("us")), "%Y-%m-%dT%H:%M:%S" + ("Z" if kind.tz else "")), '"')
    if t.is_duration(kind):
        return _within(_rendered(column, DAY_TO_SECOND), '"')
    if t.is_binary(kind):
        return _within(_base64(column), '"')
    return column.cast(pa.string())


def _type_of(field: pa.Field) -> Type | None:
    """The type of a column where Arrow's type does not say it."""
    name = (field.metadata or {}).get(TYPE.encode())
    return Type.parse(name.decode()) if name else DAY_TO_SECOND if pa.types.is_duration(field.type) else None


def _rendered(column: pa.ChunkedArray[Any], type_: Type) -> pa.ChunkedArray[Any]:
    texts = [None if value is None else render(value, type_) for value in column.to_pylist()]
    return pa.chunked_array([pa.array(texts, pa.string())])


def _json_nested(array: pa.Array, type_: Type | None) -> pa.Array:
    """Arrays and objects; the keys of a MAP are strings, NULL is null."""
    t, kind = pa.types, array.type
    types = [None] * kind.num_fields if type_ is None else [part.type for part in type_.parts]
    if is_variant(kind):
        values = array.to_pylist()
        texts = [None if value is None else text_of(VariantPlace(value["value"], value["metadata"])) for value in values]
        return pa.array(texts, pa.string())
    if t.is_struct(kind):
        pieces: list[Any] = []
        for i, (field, part, of_part) in enumerate(zip(kind, array.flatten(), types, strict=True)):
            pieces += [("," if i else "{") + json.dumps(field.name, ensure_ascii=False) + ":", _json_part(part, of_part)]
        text = pc.binary_join_element_wise(*pieces, "}", "") if pieces else pa.repeat("{}", len(array))
        return pc.if_else(array.is_valid(), text, pa.scalar(None, pa.string())) if array.null_count else text
    if t.is_map(kind):
        lists = array.cast(pa.list_(pa.struct([kind.key_field, kind.item_field])))
        keys, values = lists.flatten().flatten()
        of_key, of_value = types if len(types) == 2 else (None, None)
        parts = pc.binary_join_element_wise(_json_key(keys, of_key), _json_part(values, of_value), ":")
    else:
        lists, parts = array, _json_part(array.flatten(), types[0])
    counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    offsets = pa.array([0, *counts.cumsum().tolist()], pa.int32())
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, parts), ",")
    text = pc.binary_join_element_wise("{" if t.is_map(kind) else "[", joined, "}" if t.is_map(kind) else "]", "")
    return pc.if_else(array.is_valid(), text, pa.scalar(None, pa.string())) if array.null_count else text


def _json_key(array: pa.Array, type_: Type | None) -> pa.Array:
    """Keys of MAPs, as strings."""
    text = _json_part(array, type_)
    if pa.types.is_nested(array.type):
        return _combined(_json_strings(pa.chunked_array([text])))
    return text if pa.types.is_string(array.type) else pc.binary_join_element_wise('"', pc.replace_substring(text, '"', ""), '"', "")


def _json_part(array: pa.Array, type_: Type | None) -> pa.Array:
    text = json_text(pa.chunked_array([array]), type_)
    return pc.fill_null(_combined(text), "null")


def _combined(text: pa.Array | pa.ChunkedArray[Any]) -> pa.Array:
    return text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text


def _base64(column: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    texts = [None if value is None else base64.b64encode(value).decode() for value in column.to_pylist()]
    return pa.chunked_array([pa.array(texts, pa.string())])


def _json_strings(column: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    odd = pc.match_substring_regex(column, _NOT_PLAIN)
    quoted = _within(column, '"')
    if not pc.any(odd).as_py():
        return quoted
    escaped = [json.dumps(text, ensure_ascii=False) for text in column.filter(odd).to_pylist()]
    return pc.replace_with_mask(quoted.combine_chunks(), pc.fill_null(odd, False).combine_chunks(), pa.array(escaped, pa.string()))


def _float_text(column: pa.ChunkedArray[Any], quote: str) -> pa.ChunkedArray[Any]:
    """The shortest decimal texts that parse to the same numbers."""
    text = column.cast(pa.string())
    text = pc.if_else(pc.equal(text, "-0"), "-0.0", text)  # other readers would infer an integer
    text = pc.if_else(pc.is_nan(column), f"{quote}NaN{quote}", text)
    text = pc.if_else(pc.equal(column, float("inf")), f"{quote}Infinity{quote}", text)
    return pc.if_else(pc.equal(column, float("-inf")), f"{quote}-Infinity{quote}", text)


def _within(text: pa.ChunkedArray[Any], quote: str) -> pa.ChunkedArray[Any]:
    return pc.binary_join_element_wise(quote, text, quote, "")
