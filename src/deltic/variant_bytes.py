"""VARIANT as bytes: the two BINARYs of Parquet's VariantEncoding.md, a value and its metadata, which has the names of fields.

What always holds: a Writer gives the bytes that Spark's VariantBuilder gives, and `check` accepts nothing on which a function here fails or
makes more than the bytes hold. No function recurses: a value may be nested DEEPEST levels. What SQL does with values is defined in
expr/rows/variants.py.
"""

from __future__ import annotations

import datetime
import itertools
import math
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar
from typing import Literal as OneOf

from deltic.errors import MalformedVariant
from deltic.purity import shown

DEEPEST: Final = 1000
"""How deep a value may be nested, as in Jackson, which reads JSON for Spark."""
LONGEST: Final = 128 * 1024 * 1024
"""Of either part, as in Spark."""
_VERSION: Final = 1
_SHORT: Final = 0x3F
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND: Final = datetime.timedelta(microseconds=1)
_DIGITS: Final = {8: (4, 9), 9: (8, 18), 10: (16, 38)}
"""By the header of a DECIMAL: its bytes and digits."""
_KINDS: Final = {
    **{0: "NULL", 1: "BOOLEAN", 2: "BOOLEAN", 3: "BIGINT", 4: "BIGINT", 5: "BIGINT", 6: "BIGINT", 7: "DOUBLE", 8: "DECIMAL", 9: "DECIMAL"},
    **{10: "DECIMAL", 11: "DATE", 12: "TIMESTAMP", 13: "TIMESTAMP_NTZ", 14: "FLOAT", 15: "BINARY", 16: "STRING"},
}
_SIZES: Final = {0: 1, 1: 1, 2: 1, 3: 2, 4: 3, 5: 5, 6: 9, 7: 9, 8: 6, 9: 10, 10: 18, 11: 5, 12: 9, 13: 9, 14: 5}
_OTHERS: Final = {17: "TIME", 18: "TIMESTAMP in nanoseconds", 19: "TIMESTAMP_NTZ in nanoseconds", 20: "UUID"}


T = TypeVar("T")
Form = OneOf["object", "array", "scalar", "bytes", "place"]
Parts = tuple[bytes, bytes]
"""The value and its metadata."""


class VariantPlace(NamedTuple):
    """A value within a VARIANT, by where it begins."""

    value: bytes
    metadata: bytes
    position: int = 0

    @property
    def kind(self) -> str:
        """OBJECT, ARRAY, NULL, or the name of the SQL type of a scalar."""
        header = self.value[self.position]
        basic = header & 3
        return ("", "STRING", "OBJECT", "ARRAY")[basic] or _KINDS[header >> 2]

    @property
    def fields(self) -> list[tuple[str, VariantPlace]]:
        """Of an OBJECT, in the order of their names."""
        names = names_of(self.metadata)
        ids, offsets, start = _object(self.value, self.position)
        return [(names[id], self._replace(position=start + offset)) for id, offset in zip(ids, offsets, strict=False)]

    @property
    def elements(self) -> list[VariantPlace]:
        """Of an ARRAY."""
        offsets, start = _array(self.value, self.position)
        return [self._replace(position=start + offset) for offset in offsets[:-1]]

    def field(self, name: str) -> VariantPlace | None:
        """Of an OBJECT the field with this name."""
        return next((place for field_name, place in self.fields if field_name == name), None)

    @property
    def content(self) -> bytes:
        """The bytes of its value."""
        return self.value[self.position : self.position + _size(self.value, self.position)]

    @property
    def parts(self) -> Parts:
        """With the whole metadata, as Spark's variant_explode gives a part of a value."""
        return self.content, self.metadata

    @property
    def scalar(self) -> Any:
        """Of a value that is neither OBJECT nor ARRAY: a DECIMAL without zeros at the end, a TIMESTAMP in UTC."""
        value, position = self.value, self.position
        header = value[position]
        if header & 3 == 1:
            return value[position + 1 : position + 1 + (header >> 2)].decode()
        match header >> 2:
            case 0:
                return None
            case 1 | 2 as truth:
                return truth == 1
            case 3 | 4 | 5 | 6 as width:
                return _signed(value, position + 1, 1 << (width - 3))
            case 7:
                return struct.unpack_from("<d", value, position + 1)[0]
            case 14:
                return struct.unpack_from("<f", value, position + 1)[0]
            case 8 | 9 | 10 as digits:
                return _decimal(_signed(value, position + 2, _DIGITS[digits][0]), value[position + 1])
            case 11:
                return (_EPOCH + datetime.timedelta(days=_signed(value, position + 1, 4))).date()
            case 12 | 13 as zone:
                moment = _EPOCH + datetime.timedelta(microseconds=_signed(value, position + 1, 8))
                return moment if zone == 12 else moment.replace(tzinfo=None)
            case _:
                content = value[position + 5 : position + 5 + _unsigned(value, position + 1, 4)]
                return content.decode() if header >> 2 == 16 else content


def _decimal(unscaled: int, scale: int) -> Decimal:
    while scale and unscaled % 10 == 0:
        unscaled, scale = unscaled // 10, scale - 1
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


def _signed(data: bytes, position: int, width: int) -> int:
    return int.from_bytes(data[position : position + width], "little", signed=True)


def _unsigned(data: bytes, position: int, width: int) -> int:
    if position + width > len(data):
        raise MalformedVariant("they end too early")
    return int.from_bytes(data[position : position + width], "little")


def _list(data: bytes, position: int, count: int, width: int) -> list[int]:
    """`count` unsigned numbers."""
    if position + count * width > len(data):
        raise MalformedVariant("they end too early")
    return [int.from_bytes(data[i : i + width], "little") for i in range(position, position + count * width, width)]


def _object(value: bytes, position: int) -> tuple[list[int], list[int], int]:
    """(the ids of the names, the offsets of the fields and of the end, where the first field begins)."""
    header = value[position] >> 2
    count_width, id_width, width = (4 if header & 0x10 else 1), (header >> 2 & 3) + 1, (header & 3) + 1
    count, start = _unsigned(value, position + 1, count_width), position + 1 + count_width
    ids = _list(value, start, count, id_width)
    start += count * id_width
    return ids, _list(value, start, count + 1, width), start + (count + 1) * width


def _array(value: bytes, position: int) -> tuple[list[int], int]:
    """(the offsets of the elements and of the end, where the first element begins)."""
    header = value[position] >> 2
    count_width, width = (4 if header & 4 else 1), (header & 3) + 1
    count, start = _unsigned(value, position + 1, count_width), position + 1 + count_width
    return _list(value, start, count + 1, width), start + (count + 1) * width


def _size(value: bytes, position: int) -> int:
    """How many bytes the value takes. Raises MalformedVariant."""
    if position >= len(value):
        raise MalformedVariant("they end too early")
    header = value[position]
    match header & 3:
        case 1:
            return 1 + (header >> 2)
        case 2:
            _, offsets, start = _object(value, position)
            return start - position + offsets[-1]
        case 3:
            offsets, start = _array(value, position)
            return start - position + offsets[-1]
    number = header >> 2
    if number not in _KINDS:
        raise MalformedVariant(
            f"they hold a {_OTHERS[number]}, which is not supported" if number in _OTHERS else f"there is no type {number}"
        )
    return _SIZES[number] if number in _SIZES else 5 + _unsigned(value, position + 1, 4)


@lru_cache(maxsize=256)
def names_of(metadata: bytes) -> tuple[str, ...]:
    """The names of fields. Raises MalformedVariant."""
    if not metadata or metadata[0] & 0xF != _VERSION:
        raise MalformedVariant("the metadata is not of version 1")
    width = (metadata[0] >> 6) + 1
    count = _unsigned(metadata, 1, width)
    offsets = _list(metadata, 1 + width, count + 1, width)
    texts = metadata[1 + width * (count + 2) :]
    if offsets[0] or offsets != sorted(offsets) or offsets[-1] != len(texts):
        raise MalformedVariant("the names of fields are not where the metadata says")
    try:
        return tuple(texts[a:b].decode() for a, b in itertools.pairwise(offsets))
    except UnicodeDecodeError:
        raise MalformedVariant("the name of a field is not UTF-8") from None


def name_order(name: str) -> bytes:
    """The order of names in an OBJECT is that of Java's strings."""
    return name.encode("utf-16-be")


@dataclass(frozen=True, slots=True)
class _Whole:
    """An object, with the names of its fields, or an array, whose parts come first. start: of their results."""

    names: list[str] | None
    start: int


def folded(
    root: VariantPlace, scalar: Callable[[VariantPlace], T], array: Callable[[list[T]], T], object: Callable[[list[tuple[str, T]]], T]
) -> T:
    """The value, part by part: what the functions make of a scalar, and of the results of parts."""
    left: list[VariantPlace | _Whole] = [root]
    results: list[T] = []
    while left:
        one = left.pop()
        if isinstance(one, _Whole):
            parts = results[one.start :]
            del results[one.start :]
            results.append(array(parts) if one.names is None else object(list(zip(one.names, parts, strict=True))))
        elif one.kind == "OBJECT":
            fields = one.fields
            left += [_Whole([name for name, _ in fields], len(results)), *(place for _, place in reversed(fields))]
        elif one.kind == "ARRAY":
            left += [_Whole(None, len(results)), *reversed(one.elements)]
        else:
            results.append(scalar(one))
    return results[0]


def check(value: bytes, metadata: bytes) -> None:
    """Raises MalformedVariant unless they are a VARIANT. Cost: O(bytes)."""
    if max(len(value), len(metadata)) > LONGEST:
        raise MalformedVariant(f"they are longer than {LONGEST} bytes")
    names = names_of(metadata)
    left = [(0, len(value), 0)]
    while left:
        position, end, depth = left.pop()
        size = _size(value, position)
        if position + size > end or (depth == 0 and size != end):
            raise MalformedVariant("a part of them is longer than its place" if position + size > end else "there are bytes after them")
        if value[position] & 3 < 2:
            _check_scalar(VariantPlace(value, metadata, position))
        else:
            if depth == DEEPEST:
                raise MalformedVariant(f"they are nested deeper than {DEEPEST} levels")
            left += [(start, stop, depth + 1) for start, stop in _parts(value, position, names)]


def _parts(value: bytes, position: int, names: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Where each part of an OBJECT or ARRAY begins, and where it ends at the latest: no two share bytes."""
    if value[position] & 3 == 2:
        ids, offsets, start = _object(value, position)
        if any(id >= len(names) for id in ids):
            raise MalformedVariant("the metadata has no name for a field")
        keys = [name_order(names[id]) for id in ids]
        if any(a >= b for a, b in itertools.pairwise(keys)):
            raise MalformedVariant("the fields of an object are not in the order of their names")
    else:
        offsets, start = _array(value, position)
    ends = sorted(offsets)
    if ends[-1] != offsets[-1] or len(set(ends)) < len(ends):
        raise MalformedVariant("parts of an object or array overlap")
    following = dict(itertools.pairwise(ends))
    return ((start + offset, start + following[offset]) for offset in offsets[:-1])


def _check_scalar(place: VariantPlace) -> None:
    number = place.value[place.position] >> 2 if place.value[place.position] & 3 == 0 else -1
    if number in _DIGITS and place.value[place.position + 1] > _DIGITS[number][1]:
        raise MalformedVariant("a DECIMAL has too many places")
    try:
        scalar = place.scalar
    except UnicodeDecodeError:
        raise MalformedVariant("a STRING is not UTF-8") from None
    except OverflowError:
        raise MalformedVariant("a date outside the years 1 to 9999") from None
    if number in _DIGITS and len(scalar.as_tuple().digits) > _DIGITS[number][1]:
        raise MalformedVariant("a DECIMAL has too many digits")


def fault(value: Any, metadata: Any) -> str | None:
    """What is wrong with the two parts, for a message; None if they are a VARIANT."""
    if not isinstance(value, bytes) or not isinstance(metadata, bytes):
        return f"{shown(value)} and {shown(metadata)} are not bytes"
    try:
        check(value, metadata)
    except MalformedVariant as error:
        return error.message
    return None


@dataclass(frozen=True, slots=True)
class Single:
    """A number that is a FLOAT."""

    number: float


@dataclass(slots=True)
class Open:
    """An object or array that is being written: its parts, and of an object the ids of their names; the one that comes next."""

    is_object: bool
    parts: list[bytes]
    names: list[str]


class Writer:
    """Writes one VARIANT, part by part. Names get their ids in the order in which `name` is called."""

    __slots__ = ("_ids", "_open", "_result", "_written")

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._open: list[Open] = []
        self._result = b""
        self._written = 0

    def begin(self, *, is_object: bool) -> None:
        """Raises MalformedVariant if it would be nested too deeply."""
        if len(self._open) == DEEPEST:
            raise MalformedVariant(f"more than {DEEPEST} levels")
        self._open.append(Open(is_object, [], []))

    def name(self, name: str) -> None:
        """The name of the field that comes next."""
        self._ids.setdefault(name, len(self._ids))
        self._open[-1].names.append(name)

    def end(self) -> None:
        """Raises MalformedVariant for an object in which a name comes twice."""
        done = self._open.pop()
        if done.is_object and len(set(done.names)) < len(done.names):
            twice = next(name for name in done.names if done.names.count(name) > 1)
            raise MalformedVariant(f"the name {shown(twice)} comes twice in an object")
        self._put(self._object(done) if done.is_object else _joined(done.parts))

    def scalar(self, value: Any) -> None:
        """None, or a value of a type that VARIANT has: bool, int, Single, float, Decimal, str, bytes, date, datetime."""
        self._put(_scalar(value))

    def place(self, place: VariantPlace) -> None:
        """A part of another VARIANT."""
        self.tree(place, _form_of_place)

    def tree(self, value: Any, form: Callable[[Any], tuple[Form, Any]]) -> None:
        """A value of any kind. form: what it is, and its pairs of names and values, its values, or itself."""
        left: list[tuple[str | None, Any] | None] = [(None, value)]
        while left:
            top = left.pop()
            if top is None:
                self.end()
                continue
            if top[0] is not None:
                self.name(top[0])
            kind, content = form(top[1])
            if kind in ("object", "array"):
                self.begin(is_object=kind == "object")
                left += [None, *reversed(content if kind == "object" else [(None, one) for one in content])]
            elif kind == "scalar":
                self.scalar(content)
            elif kind == "place":
                self.place(content)
            else:
                self._put(content)

    def _put(self, data: bytes) -> None:
        self._written = max(self._written, len(data))
        if self._written > LONGEST:
            raise MalformedVariant(f"more than {LONGEST} bytes")
        if self._open:
            self._open[-1].parts.append(data)
        else:
            self._result = data

    def _object(self, done: Open) -> bytes:
        ids = [self._ids[name] for name in done.names]
        order = sorted(range(len(ids)), key=lambda i: name_order(done.names[i]))
        offsets, length = _offsets(done.parts)
        id_width, width, large = _width(max(ids, default=0)), _width(length), len(ids) > 0xFF
        header = bytes(((large << 6) | (id_width - 1) << 4 | (width - 1) << 2 | 2,)) + len(ids).to_bytes(4 if large else 1, "little")
        id_bytes = b"".join(ids[i].to_bytes(id_width, "little") for i in order)
        places = b"".join([*(offsets[i].to_bytes(width, "little") for i in order), length.to_bytes(width, "little")])
        return header + id_bytes + places + b"".join(done.parts)

    @property
    def result(self) -> Parts:
        """What was written. Raises MalformedVariant if the names are too long."""
        assert not self._open
        names = [name.encode() for name in self._ids]
        offsets, length = _offsets(names)
        width = _width(max(length, len(names)))
        numbers = [len(names), *offsets, length]
        metadata = (
            bytes((_VERSION | (width - 1) << 6,)) + b"".join(number.to_bytes(width, "little") for number in numbers) + b"".join(names)
        )
        if len(metadata) > LONGEST:
            raise MalformedVariant(f"more than {LONGEST} bytes")
        return self._result, metadata


def _form_of_place(place: VariantPlace) -> tuple[Form, Any]:
    if place.kind == "OBJECT":
        return "object", place.fields
    return ("array", place.elements) if place.kind == "ARRAY" else ("bytes", place.content)


def _offsets(parts: list[bytes]) -> tuple[list[int], int]:
    offsets, length = [], 0
    for part in parts:
        offsets.append(length)
        length += len(part)
    return offsets, length


def _joined(parts: list[bytes]) -> bytes:
    """An ARRAY."""
    offsets, length = _offsets(parts)
    width, large = _width(length), len(parts) > 0xFF
    header = bytes(((large << 4) | (width - 1) << 2 | 3,)) + len(parts).to_bytes(4 if large else 1, "little")
    return header + b"".join(offset.to_bytes(width, "little") for offset in (*offsets, length)) + b"".join(parts)


def _width(number: int) -> int:
    return 1 if number <= 0xFF else 2 if number <= 0xFFFF else 3 if number <= 0xFFFFFF else 4


def _scalar(value: Any) -> bytes:
    match value:
        case None:
            return b"\x00"
        case bool():
            return b"\x04" if value else b"\x08"
        case int():
            code = next(code for code in range(4) if -(1 << (8 << code) - 1) <= value < 1 << (8 << code) - 1)
            return bytes(((3 + code) << 2,)) + value.to_bytes(1 << code, "little", signed=True)
        case Single():
            return struct.pack("<Bf", 14 << 2, math.nan if math.isnan(value.number) else value.number)
        case float():
            return struct.pack("<Bd", 7 << 2, math.nan if math.isnan(value) else value)
        case str():
            text = value.encode()
            return bytes((len(text) << 2 | 1,)) + text if len(text) <= _SHORT else struct.pack("<BI", 16 << 2, len(text)) + text
        case bytes():
            return struct.pack("<BI", 15 << 2, len(value)) + value
        case Decimal():
            return _decimal_bytes(value)
        case datetime.datetime():
            micros = (value.replace(tzinfo=datetime.UTC) - _EPOCH) // _MICROSECOND
            return struct.pack("<Bq", (13 if value.tzinfo is None else 12) << 2, micros)
        case _:
            return struct.pack("<Bi", 11 << 2, (value - _EPOCH.date()).days)


def _decimal_bytes(value: Decimal) -> bytes:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or exponent > 0:
        raise MalformedVariant(f"{value} is not a DECIMAL")
    unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
    precision, scale = len(str(abs(unscaled))), -exponent
    code = next((code for code, (_, most) in _DIGITS.items() if precision <= most and scale <= most), None)
    if code is None:
        raise MalformedVariant("a DECIMAL of more than 38 digits")
    return bytes((code << 2, scale)) + unscaled.to_bytes(_DIGITS[code][0], "little", signed=True)
