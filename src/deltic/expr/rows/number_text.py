"""Numbers as text: java.text.DecimalFormat's and java.util.Formatter's forms, for the locale en-US."""

from __future__ import annotations

import datetime
import math
import re
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from typing import Final

from deltic.expr.rows.casts import EPOCH
from deltic.expr.rows.numbers import in_range
from deltic.expr.rows.utf16 import without_halves
from deltic.intervals import MICROSECOND, units_of
from deltic.java_floats import render_double, render_single
from deltic.schema import BIGINT, FLOAT, INT, INTEGER_BITS, VARIANT, Type
from deltic.times import NANOSECONDS, micros_of
from deltic.variant_bytes import VariantPlace
from deltic.variant_json import text_of

_WIDE: Final = Context(prec=800)
_PATTERN: Final = re.compile(r"(?P<whole>[#,]*[0,]*)(?:\.(?P<least>0*)(?P<most>#*))?")
_SPECIFIER: Final = re.compile(
    r"%(?:(?P<index>[1-9][0-9]*)\$|(?P<last><))?(?P<flags>[-#+ 0,(]*)(?P<width>[1-9][0-9]*)?(?:\.(?P<precision>[0-9]+))?(?P<kind>[a-zA-Z%])"
)
_ALLOWED: Final = {"d": "-+ 0,(", "o": "-#0", "x": "-#0", "f": "-#+ 0,(", "e": "-#+ 0(", "g": "-+ 0,(", "n": ""}
MOST_PLACES: Final = 340
_MOST_WIDTH: Final = 1_000_000


class FormatFault(Exception):
    """What is wrong with a format or its arguments, in words."""


@dataclass(frozen=True, slots=True)
class DecimalForm:
    """grouping: digits between commas, 0 for none. whole: the least digits before the point. least, most: digits after it."""

    grouping: int
    whole: int
    least: int
    most: int


def places_form(places: int) -> DecimalForm:
    """FORMAT_NUMBER's form for a number of places."""
    return DecimalForm(3, 1, places, places)


@lru_cache(maxsize=256)
def decimal_form(pattern: str) -> DecimalForm | None:
    """The form of a pattern of #, 0, commas and a point; None for others."""
    match = _PATTERN.fullmatch(pattern)
    if match is None or not pattern.strip(",.") or match["whole"].endswith(","):
        return None
    whole, least, most = match["whole"], len(match["least"] or ""), len(match["most"] or "")
    grouping = len(whole) - whole.rindex(",") - 1 if "," in whole else 0
    zeros = whole.count("0")
    if not whole.strip(",") and not least:
        least, most = 1, most - 1
    return DecimalForm(grouping, zeros if zeros or least or not whole.strip(",") else 1, least, least + most)


def format_decimal(value: float | Decimal | int, form: DecimalForm) -> str:
    """Rounded half even, as Java rounds: a DOUBLE by its shortest digits, and where these are a tie by its exact value.

    >>> format_decimal(12332.123456, places_form(4)), format_decimal(2.675, places_form(2)), format_decimal(-0.0, places_form(1))
    ('12,332.1235', '2.67', '-0.0')
    """
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"
    exact = Decimal(value)
    shown = Decimal(repr(value)) if isinstance(value, float) else exact
    rounded = _rounded(shown.copy_abs(), exact.copy_abs(), form.most)
    digits = f"{rounded:f}"
    whole, _, places = digits.partition(".")
    places = places.rstrip("0").ljust(form.least, "0")
    whole = whole.lstrip("0").rjust(form.whole, "0") if whole.strip("0") or form.whole else ""
    if not whole and not places:
        whole = "0"
    sign = "-" if value < 0 or math.copysign(1.0, value) < 0 else ""
    return sign + _grouped(whole, form.grouping) + ("." + places if places else "")


def _rounded(shown: Decimal, exact: Decimal, places: int) -> Decimal:
    step = Decimal(1).scaleb(-places)
    rounded = shown.quantize(step, ROUND_HALF_EVEN, _WIDE)
    if _WIDE.multiply(_WIDE.subtract(shown, rounded).copy_abs(), Decimal(2)) == step and exact != shown:
        return exact.quantize(step, ROUND_HALF_EVEN, _WIDE)
    return rounded


def _grouped(digits: str, size: int) -> str:
    if not size:
        return digits
    head = len(digits) % size
    return ",".join(part for part in (digits[:head], *(digits[k : k + size] for k in range(head, len(digits), size))) if part)


@dataclass(frozen=True, slots=True)
class Specifier:
    """%[index$][flags][width][.precision]kind; `argument` counts from 0, and is None for %% and %n."""

    argument: int | None
    flags: str
    width: int
    precision: int | None
    kind: str


@lru_cache(maxsize=256)
def specifiers(form: str) -> tuple[str | Specifier, ...]:
    """The texts and specifiers of a format. Raises FormatFault."""
    parts: list[str | Specifier] = []
    position, following, last = 0, 0, -1
    while (start := form.find("%", position)) >= 0:
        specifier = _SPECIFIER.match(form, start)
        if specifier is None:
            raise FormatFault(f"the specifier at {form[start : start + 10]!r} is invalid")
        if specifier["kind"] in "%n":
            argument = None
        elif specifier["last"]:
            argument = last
        elif specifier["index"]:
            argument = int(specifier["index"]) - 1
        else:
            argument, following = following, following + 1
        if argument is not None:
            if argument < 0:
                raise FormatFault("%< without an argument before it")
            last = argument
        parts += form[position:start], _checked(specifier, argument)
        position = specifier.end()
    return (*parts, form[position:])


def _checked(specifier: re.Match[str], argument: int | None) -> Specifier:
    kind, flags, width = specifier["kind"], specifier["flags"], int(specifier["width"] or 0)
    precision = None if specifier["precision"] is None else int(specifier["precision"])
    if kind not in "bBsScCdoxXeEfgGn%":
        raise FormatFault(f"the conversion %{kind} is not supported")
    if len(set(flags)) < len(flags) or width > _MOST_WIDTH or (precision or 0) > MOST_PLACES:
        raise FormatFault(f"the specifier {specifier[0]} is invalid")
    if not set(flags) <= set(_ALLOWED.get(kind.lower(), "-")) or (kind in "doxXcCn%" and precision is not None) or (kind == "n" and width):
        raise FormatFault(f"the specifier {specifier[0]} is invalid")
    if ({"-", "0"} & set(flags) and not width) or {"-", "0"} <= set(flags) or {"+", " "} <= set(flags):
        raise FormatFault(f"the specifier {specifier[0]} is invalid")
    return Specifier(argument, flags, width, precision, kind)


def format_values(form: str, values: tuple[object, ...], types: tuple[Type, ...]) -> str:
    """The format with its arguments, as java.util.Formatter writes them. Raises FormatFault."""
    return "".join(part if isinstance(part, str) else _specified(part, values, types) for part in specifiers(form))


def _specified(part: Specifier, values: tuple[object, ...], types: tuple[Type, ...]) -> str:
    if part.argument is None:
        return "\n" if part.kind == "n" else _padded("%", part)
    if part.argument >= len(values):
        raise FormatFault(f"there is no argument for %{part.kind}")
    value, type = _as_spark_holds_it(values[part.argument], types[part.argument])
    text = _converted(part, value, type)
    return _padded(text.upper() if part.kind in "BSCXEG" else text, part)


def _as_spark_holds_it(value: object, type: Type) -> tuple[object, Type]:
    """A DATE as its days since 1970, a timestamp or an INTERVAL as its microseconds or months, a TIME as its nanoseconds."""
    if type.is_interval and isinstance(value, datetime.timedelta | int):
        return units_of(value), BIGINT if type.is_day_time else INT
    match value:
        case datetime.datetime():
            return (value.replace(tzinfo=datetime.UTC) - EPOCH) // MICROSECOND, BIGINT
        case datetime.date():
            return (value - EPOCH.date()).days, INT
        case datetime.time():
            return micros_of(value) * NANOSECONDS, BIGINT
        case _:
            return value, type


def _padded(text: str, part: Specifier) -> str:
    """A character outside the Basic Multilingual Plane is two wide, as in Java."""
    missing = " " * (part.width - len(text.encode("utf-16-le")) // 2)
    return text + missing if "-" in part.flags else missing + text


def _converted(part: Specifier, value: object, type: Type) -> str:
    kind = part.kind.lower()
    if kind == "b":
        return _cut("false" if value is None or value is False else "true", part)
    if value is None:
        return _cut("null", part) if kind == "s" or part.precision is None or kind in "efg" else "null"
    match kind, value:
        case "s", _:
            return _cut(_text(value, type), part)
        case "c", int() if not isinstance(value, bool) and type.name != "BIGINT":
            if not 0 <= value <= 0x10FFFF or 0xD800 <= value < 0xE000:
                raise FormatFault(f"%c has no character {value}")
            return chr(value)
        case "d" | "o" | "x", int() if not isinstance(value, bool):
            return _integer(part, value, type)
        case "e" | "f" | "g", float():
            return _real(part, value)
    raise FormatFault(f"%{part.kind} does not take {type.sql}")


def _cut(text: str, part: Specifier) -> str:
    """A character of two UTF-16 units that is cut becomes a question mark."""
    if part.precision is None:
        return text
    units = text.encode("utf-16-be")[: 2 * part.precision]
    return without_halves(units.decode("utf-16-be", "surrogatepass"))


def _text(value: object, type: Type) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return render_single(value) if type == FLOAT else render_double(value)
        case Decimal():
            return f"{value:f}"
        case tuple() if type == VARIANT:
            return text_of(VariantPlace(*value))
        case _:
            return str(value)


def _integer(part: Specifier, value: int, type: Type) -> str:
    if part.kind == "d":
        return _signed(part, value < 0, f"{abs(value):,}" if "," in part.flags else str(abs(value)))
    assert in_range(value, type)
    bits = value % (1 << INTEGER_BITS[type.name])
    prefix = ("0" if part.kind == "o" else "0x") if "#" in part.flags else ""
    digits = f"{bits:o}" if part.kind == "o" else f"{bits:x}"
    return prefix + (digits.rjust(part.width - len(prefix), "0") if "0" in part.flags else digits)


def _signed(part: Specifier, negative: bool, digits: str, *, zeros: bool = True) -> str:
    """With the sign that the flags ask for, and zeros up to the width."""
    before = ("(" if "(" in part.flags else "-") if negative else "+" if "+" in part.flags else " " if " " in part.flags else ""
    after = ")" if before == "(" else ""
    if "0" in part.flags and zeros:
        digits = digits.rjust(part.width - len(before) - len(after), "0")
    return before + digits + after


def _real(part: Specifier, value: float) -> str:
    negative = math.copysign(1.0, value) < 0
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else _signed(part, negative, "Infinity", zeros=False)
    size, precision = Decimal(render_double(abs(value))), 6 if part.precision is None else part.precision
    match part.kind.lower():
        case "f":
            digits = _fixed(size, precision, "," in part.flags)
        case "e":
            digits = _scientific(size, precision)
        case _:
            digits = _general(size, precision, "," in part.flags)
    if "#" in part.flags and not precision:
        digits = digits.replace("e", ".e", 1) if "e" in digits else digits + "."
    return _signed(part, negative, digits)


def _fixed(size: Decimal, places: int, grouped: bool) -> str:
    rounded = size.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, _WIDE)
    return f"{rounded:,f}" if grouped else f"{rounded:f}"


def _scientific(size: Decimal, places: int) -> str:
    if not size:
        return f"{0:.{places}f}e+00"
    rounded = Context(prec=places + 1, rounding=ROUND_HALF_UP).create_decimal(size)
    exponent = rounded.adjusted()
    mantissa = rounded.scaleb(-exponent, _WIDE).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, _WIDE)
    return f"{mantissa:f}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _general(size: Decimal, precision: int, grouped: bool) -> str:
    """Significant digits: with an exponent below 10^-4 and from 10^precision on."""
    precision = precision or 1
    if not size:
        return _fixed(size, precision - 1, grouped)
    rounded = Context(prec=precision, rounding=ROUND_HALF_UP).create_decimal(size)
    if Decimal("0.0001") <= rounded < Decimal(10) ** precision:
        return _fixed(rounded, max(precision - rounded.adjusted() - 1, 0), grouped)
    return _scientific(size, precision - 1)
