"""JSON lines: one object per line, in UTF-8. Field names are case-insensitive; a missing field is NULL, an unknown one an error of the row.

Numbers are JSON numbers, DECIMAL also a string; strings, dates and timestamps are strings; BINARY is a string in base 64; an INTERVAL is a
string, one of years and months also the number of its months; an ARRAY is an array, a STRUCT and a MAP are objects; a VARIANT is any value,
also null. FLOAT and DOUBLE take NaN, Infinity and -Infinity beside numbers, as words or as strings. Every line counts as a row, even an
empty one, which is skipped.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import IO, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.json import ParseOptions, ReadOptions, read_json

from deltic.connectors.files.converting import by_halves
from deltic.connectors.files.portions import Fault, ParsedBlock, ParsedColumn, quoted, remedy_for_extra
from deltic.connectors.files.text import MOST_DIGITS, expected_text, from_text, is_no_number, parse
from deltic.errors import MalformedVariant, SourceError
from deltic.intervals import UNITS
from deltic.json_decoding import JsonDecoder, NestedTooDeeply
from deltic.schema import INT, Field, TableSchema, Type
from deltic.types import INTERVALS
from deltic.variant_bytes import Writer
from deltic.variant_json import Pairs as _Object
from deltic.variant_json import WrittenNumber as _Number
from deltic.variant_json import form_of_json

_BYTES: Final = 4 << 20
_LONGEST: Final = 64 << 20
_ROWS: Final = 1 << 16
_WHITE: Final = b" \t\r"
_IN_STRINGS: Final = ("STRING", "CHAR", "VARCHAR", "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIME", *INTERVALS)
_DIGITS: Final = bytes.maketrans(b"123456789.E", b"0000000000e")
_DECODER: Final = JsonDecoder(objects=_Object, floats=_Number, integers=_Number, constants=_Number)
_Row = list[object]


class JsonFiles:
    """Reads the columns `fields` of `table`'s files."""

    def __init__(self, table: TableSchema, fields: Sequence[Field]) -> None:
        self._table, self._fields = table.name, fields
        self._places = {field.name.lower(): i for i, field in enumerate(fields)}
        self._listed = "one JSON object on each line, with the fields " + ", ".join(field.name for field in fields)

    def blocks(self, file: IO[bytes], name: str, start: int, check: Callable[[], None]) -> Iterator[ParsedBlock]:
        """Blocks of at most 65,536 lines after the first `start`."""
        position = 0
        for lines in self._chunks(file, name):
            skipped = max(0, min(start - position, len(lines)))
            for i in range(skipped, len(lines), _ROWS):
                yield self._block(lines[i : i + _ROWS], position + i + 1)
            position += len(lines)

    def _chunks(self, file: IO[bytes], name: str) -> Iterator[list[bytes]]:
        """Lists of lines without their line ends, a few MiB at a time."""
        rest: list[bytes] = []
        position = 0
        while block := file.read(_BYTES):
            if not position and not rest:
                block = block.removeprefix(codecs.BOM_UTF8)
            end = block.rfind(b"\n")
            if end >= 0:
                lines = b"".join([*rest, block[:end]]).split(b"\n")
                rest = []
                position += len(lines)
                yield lines
            rest.append(block[end + 1 :])
            if sum(map(len, rest)) > _LONGEST:
                message = f"table {self._table}: the file {name} has a line of more than {_LONGEST >> 20} MiB after line {position}"
                raise SourceError(message, expected=self._listed)
        lines = b"".join(rest).split(b"\n")
        yield lines if lines[-1] else lines[:-1]

    def _block(self, lines: list[bytes], first: int) -> ParsedBlock:
        stripped = [line.strip(_WHITE) for line in lines]
        texts = [line for line in stripped if line]
        if len(texts) == len(lines):
            numbers = np.arange(first, first + len(lines))
        else:
            numbers = np.array([first + i for i, line in enumerate(stripped) if line], np.int64)
        columns, torn = self._read(texts)
        whole = [i for i in range(len(texts)) if i not in torn] if torn else range(len(texts))
        broken = {int(numbers[i]): (fault, _shown(texts[i])) for i, fault in torn.items()}
        if torn:
            numbers = numbers[np.array(whole, np.int64)]
        return ParsedBlock(first, len(lines), numbers, columns, broken, lambda i: _shown(texts[whole[i]]))

    def _read(self, texts: Sequence[bytes]) -> tuple[list[ParsedColumn], dict[int, Fault]]:
        """(columns of the valid lines, fault by index of each invalid line)."""
        torn: dict[int, Fault] = {}
        parts = by_halves(
            len(texts), lambda start, end: self._fast(texts[start:end]), lambda start, end: self._each(texts[start:end], start, torn)
        )
        return [_joined([part[i] for part in parts]) for i in range(len(self._fields))], torn

    def _fast(self, texts: Sequence[bytes]) -> list[ParsedColumn]:
        """Parses all lines at once. Raises pa.ArrowException if some line must be parsed alone."""
        if not texts:
            return [ParsedColumn(pa.array([], field.type.arrow), {}) for field in self._fields]
        if any(field.type.held.is_nested for field in self._fields):
            raise pa.ArrowInvalid("nested values are read one by one")
        if not all(text[0] == ord("{") and text[-1] == ord("}") for text in texts):
            raise pa.ArrowInvalid("not an object on each line")
        spelled = self._spelling(texts[0])
        read = pa.schema([(name, _read_type(field.type)) for name, field in zip(spelled, self._fields, strict=True)])
        joined = b"\n".join(texts)
        self._refuse_odd_decimals(joined, spelled)
        table = read_json(
            pa.BufferReader(joined),
            ReadOptions(use_threads=False, block_size=len(joined) + 1),
            ParseOptions(explicit_schema=read, unexpected_field_behavior="error"),
        )
        if table.num_rows != len(texts):
            raise pa.ArrowInvalid("not one object on each line")
        return [_fitted(table.column(name), field.type) for name, field in zip(spelled, self._fields, strict=True)]

    def _refuse_odd_decimals(self, texts: bytes, spelled: Sequence[str]) -> None:
        """Raises for decimals that Arrow would let overflow, or whose exponent may crash it."""
        names = [name for name, field in zip(spelled, self._fields, strict=True) if field.type.is_decimal]
        if not names:
            return
        digits = texts.translate(_DIGITS)
        suspect = b"0e" in digits or b"\\u" in texts
        if b"0" * (MOST_DIGITS + 1) in digits or (suspect and _exponent(tuple(names)).search(texts)):
            raise pa.ArrowInvalid("decimals that Arrow does not take")

    def _spelling(self, text: bytes) -> list[str]:
        """The fields' names as the line spells them."""
        names = [field.name for field in self._fields]
        decoded = _decoded(text)
        for name, _ in decoded if isinstance(decoded, _Object) else ():
            if (place := self._places.get(name.lower())) is not None:
                names[place] = name
        return names

    def _each(self, texts: Sequence[bytes], start: int, torn: dict[int, Fault]) -> list[ParsedColumn]:
        rows: list[_Row] = []
        for i, text in enumerate(texts):
            decoded = self._row(text)
            if isinstance(decoded, Fault):
                torn[start + i] = decoded
            else:
                rows.append(decoded)
        return [_gathered([row[i] for row in rows], field.type) for i, field in enumerate(self._fields)]

    def _row(self, text: bytes) -> _Row | Fault:
        decoded = _decoded(text)
        if isinstance(decoded, Fault):
            return Fault(decoded.reason, self._listed)
        if not isinstance(decoded, _Object):
            return Fault(f"found {_kind(decoded)}", self._listed)
        row: _Row = [None] * len(self._fields)
        seen = set()
        for name, value in decoded:
            place = self._places.get(name.lower())
            if place is None:
                return Fault(f"the field {quoted(name)} is unknown", self._listed, remedy_for_extra(name))
            if place in seen:
                return Fault(f"the field {quoted(name)} comes twice (case does not count)", self._listed)
            seen.add(place)
            row[place] = _value(value, self._fields[place].type)
        return row


@lru_cache(maxsize=256)
def _exponent(names: tuple[str, ...]) -> re.Pattern[bytes]:
    """A number with an exponent, or with an escape, in a field of these names or of one that is written with an escape."""
    fields = b"|".join(b'"' + re.escape(name.encode()) + b'"' for name in names)
    return re.compile(rb'(?:%s|\\.[^"\\]*")\s*:\s*"?[-+.0-9]*[eE\\]' % fields)


def _read_type(target: Type) -> pa.DataType:
    return pa.string() if target.name in _IN_STRINGS else target.arrow


def _fitted(read: pa.ChunkedArray[Any], target: Type) -> ParsedColumn:
    """A column parsed by Arrow. Raises pa.ArrowInvalid if Arrow may have accepted more than we do."""
    array = pa.concat_arrays(read.chunks)
    if target.is_decimal or target.name in _IN_STRINGS:
        array.validate(full=True)
    if target.is_float and pc.any(pc.is_inf(array)).as_py():
        raise pa.ArrowInvalid("a number may be beyond the range")
    return from_text(target).column(array) if target.name in _IN_STRINGS[1:] else ParsedColumn(array, {})


def _joined(parts: list[ParsedColumn]) -> ParsedColumn:
    if len(parts) == 1:
        return parts[0]
    faults: dict[int, Fault] = {}
    position = 0
    for part in parts:
        faults.update({position + i: fault for i, fault in part.faults.items()})
        position += len(part.array)
    return ParsedColumn(pa.concat_arrays([part.array for part in parts]), faults)


def _gathered(values: list[object], target: Type) -> ParsedColumn:
    faults = {i: value for i, value in enumerate(values) if isinstance(value, Fault)}
    return ParsedColumn(pa.array([None if isinstance(value, Fault) else value for value in values], target.arrow), faults)


def _decoded(text: bytes) -> object:
    """The value on a line, or a Fault."""
    try:
        return _DECODER.whole(text.decode())
    except UnicodeDecodeError as error:
        return Fault(f"byte 0x{text[error.start]:02x} is not UTF-8", "")
    except json.JSONDecodeError as error:
        return Fault(f"not JSON at character {error.colno}: {error.msg}", "")
    except NestedTooDeeply as error:
        return Fault(f"JSON that is nested too deeply: {error}", "")


def _value(value: object, target: Type) -> object:
    """A value of the type, or a Fault."""
    if target.name == "VARIANT":
        return _variant(value)
    if value is None:
        return None
    if target.is_nested:
        return _nested(value, target)
    if isinstance(value, bool):
        return value if target.name == "BOOLEAN" else _mistyped(value, target)
    if isinstance(value, _Number):
        if target.is_year_month:
            return _months(value, target)
        return parse(value, target) if target.is_numeric else _mistyped(value, target)
    if not isinstance(value, str):
        return _mistyped(value, target)
    if not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
        return Fault("half of a surrogate pair", "text in Unicode")
    if target.is_decimal or target.name in _IN_STRINGS or (target.is_float and is_no_number(value)):
        return parse(value, target)
    return _mistyped(value, target)


def _variant(value: object) -> object:
    """Any value, also null."""
    writer = Writer()
    try:
        writer.tree(value, form_of_json)
    except MalformedVariant as error:
        return Fault(error.message, "a value that a VARIANT holds")
    except UnicodeEncodeError:
        return Fault("half of a surrogate pair", "text in Unicode")
    return writer.result


def _months(value: _Number, target: Type) -> object:
    """A year-month interval that is written as a number of months."""
    months = parse(value, INT)
    if isinstance(months, Fault) or months % UNITS[target.fields[1]]:
        return _mistyped(value, target)
    return months


def _nested(value: object, target: Type) -> object:
    """A value of the type: an ARRAY from an array, a STRUCT and a MAP from an object. Or the first Fault in it."""
    types = [part.type for part in target.parts]
    if target.name == "ARRAY":
        if type(value) is not list:
            return _mistyped(value, target)
        return _whole([_value(part, types[0]) for part in value])
    if not isinstance(value, _Object):
        return _mistyped(value, target)
    if target.name == "MAP":
        keys, items = _whole([_key(key, types[0]) for key, _ in value]), _whole([_value(item, types[1]) for _, item in value])
        if isinstance(keys, Fault) or isinstance(items, Fault):
            return keys if isinstance(keys, Fault) else items
        twice = len(set(keys)) < len(keys)
        return Fault("a key of a MAP comes twice", expected_text(target)) if twice else tuple(zip(keys, items, strict=True))
    places = {part.name.lower(): i for i, part in enumerate(target.parts)}
    row: list[object] = [None] * len(types)
    for name, part in value:
        place = places.pop(name.lower(), None)
        if place is None:
            return Fault(f"the field {quoted(name)} is unknown, or comes twice", f"the fields {', '.join(p.name for p in target.parts)}")
        row[place] = _value(part, types[place])
    return _whole(row)


def _key(text: str, target: Type) -> object:
    """The key of a MAP, which is text: a nested one in JSON."""
    if not target.is_nested:
        return _value(text, target) if target.name == "STRING" else parse(text, target)
    value = _decoded(text.encode(errors="surrogatepass"))
    return value if isinstance(value, Fault) else _value(value, target)


def _whole(values: list[object]) -> tuple[object, ...] | Fault:
    """The values, or the first Fault among them."""
    return next((value for value in values if isinstance(value, Fault)), None) or tuple(values)


def _mistyped(value: object, target: Type) -> Fault:
    return Fault(f"found {_kind(value)}", expected_text(target))


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, _Number):
        return f"the number {quoted(value)[1:-1]}"
    if isinstance(value, str):
        return f"the string {quoted(value)}"
    return "null" if value is None else "an object" if isinstance(value, _Object) else "an array"


def _shown(text: bytes) -> str:
    return text.decode(errors="backslashreplace")
