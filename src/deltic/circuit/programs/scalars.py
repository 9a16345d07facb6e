"""Compiles expressions to the operations of `filter` and `compute` instructions (`kernels/scalars.py`).

Always: the operations give the values of the expression on every row on which it has one, and fail on the others. An expression that they
cannot compute raises NoOperations: its operator then runs by its `step`. Strings are compared by their ids, for equality alone. FLOAT and
DOUBLE are compared by their words, whose order is theirs but for -0.0, which equals 0.0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from deltic.circuit.programs.assembler import Assembler
from deltic.circuit.programs.nested import Fields
from deltic.expr.arrays.dates import CALENDAR, DAY
from deltic.expr.nodes import Call, Case, Cast, Column, Constants, Expr, Literal, Value, unwidened
from deltic.kernels import instructions, scalars
from deltic.schema import BIGINT, BOOLEAN, DATE, DOUBLE, FLOAT, STRING, Field, Schema, Type
from deltic.trace.encoding import Layout, encode_words
from deltic.trace.sums import NARROW, QUOTIENT_SCALE, bound
from deltic.types import INTEGER_BITS

MOST_MEMBERS: Final = 32
"""Constants of IN that are compared one after another."""
MOST_LANES: Final = 256
"""Lanes of an instruction, which take 6 KB of the arena each."""
DEEPEST: Final = 64
"""Calls within calls."""
LEAST_WORD: Final = -(2**63)
NEGATIVE_ZERO: Final = -1
"""The word of -0.0."""


class NoOperations(Exception):
    """The operations do not compute this expression, or not with values of these types. Caught by the emitters."""


class Operations:
    """The operations so far, over rows of a schema. Each value is in a lane of its own; equal expressions share one.

    fields: of STRUCTs, that are words of the rows.
    """

    def __init__(self, source: Schema, to: Assembler, fields: Fields | None = None) -> None:
        self._source, self._layout, self._to = source, Layout.of(source), to
        self._fields = fields or Fields(source)
        self.code: list[int] = []
        self.data: list[int] = []
        """What operations read besides lanes; it follows them."""
        self.lanes = 0
        self._of: dict[Expr, int] = {}
        self._unsigned: dict[int, int] = {}
        self._depth = 0

    @property
    def operands(self) -> tuple[int, ...]:
        """The last operands of the instruction."""
        return self.lanes, len(self.code) // scalars.OPERATION, *self.code, *self.data

    def value(self, expr: Expr) -> int:
        """The lane of an expression."""
        expr = unwidened(expr)
        if expr not in self._of:
            if self._depth == DEEPEST or self.lanes > MOST_LANES:
                raise NoOperations
            self._depth += 1
            self._of[expr] = self._computed(expr)
            self._depth -= 1
        return self._of[expr]

    def emit(self, operation: int, *operands: int) -> int:
        """The lane that the operation sets."""
        self.write(operation, self.lanes, *operands)
        self.lanes += 1
        return self.lanes - 1

    def write(self, operation: int, *operands: int) -> None:
        """An operation that sets no lane, or the lane that is its first operand."""
        self.code += [operation, *operands, *([0] * (scalars.OPERATION - 1 - len(operands)))]

    def _computed(self, expr: Expr) -> int:
        if (read := self._fields.of(expr)) is not None:
            return self._words(read.value, read.start)
        match expr:
            case Column():
                return self._column(expr)
            case Literal():
                return self.literal(expr.value, expr.type)
            case Case():
                return self._case(expr)
            case Cast() if not expr.lenient:
                return self._cast(expr)
            case Call() if (operations := CALLS.get(expr.function)) is not None:
                return operations(self, expr)
        raise NoOperations

    def _column(self, column: Column) -> int:
        field = self._source[column.index]
        if field.type != column.type:
            raise NoOperations
        return self._words(field, self._layout.slices[column.index].start)

    def _words(self, field: Field, start: int) -> int:
        """The lane of words of the input."""
        if field.type.is_decimal and field.type.precision > NARROW:
            kind = scalars.WIDE_MARKED if field.nullable else scalars.WIDE
        elif field.type == BIGINT:
            kind = scalars.FLAGGED if field.nullable else scalars.PLAIN
        else:
            kind = scalars.MARKED if field.nullable else scalars.PLAIN
        return self.emit(kind, start)

    def literal(self, value: Value, type: Type) -> int:
        """The lane of a constant."""
        if value is None:
            return self.emit(scalars.NOTHING)
        if type == STRING and isinstance(value, str):
            return self.text(value, made=True)
        if type.has_bytes:
            raise NoOperations
        words = [int(word[0]) for word in encode_words(pa.array([value], type.arrow), Field("", type, False))]
        high, low = (words[0], words[1] ^ LEAST_WORD) if len(words) == 2 else (words[0] >> 63, words[0])
        return self.emit(scalars.CONSTANT_VALUE, low, high)

    def text(self, value: str, *, made: bool = False) -> int:
        """The lane of a text. made: it is a value. Else values are compared with it: without an id, it has one that no value has."""
        if made:
            self._to.made[value] = None
        return self.emit(scalars.TEXT, instructions.STATE + self._to.texts.setdefault(value, len(self._to.texts)))

    def unsigned_zero(self, lane: int) -> int:
        """A FLOAT or DOUBLE with 0.0 for -0.0."""
        if lane not in self._unsigned:
            zero, negative = (self.emit(scalars.CONSTANT_VALUE, word, word >> 63) for word in (0, NEGATIVE_ZERO))
            self._unsigned[lane] = self.emit(scalars.CHOOSE, self.emit(scalars.EQUAL, lane, negative), zero, lane)
        return self._unsigned[lane]

    def pattern(self, value: Expr, pieces: Sequence[bytes]) -> int:
        """The lane of whether a text is these pieces with any text between them."""
        if value.type != STRING:
            raise NoOperations
        lane, place = self.value(value), len(self.data)
        self._to.strings = True
        self.data.append(len(pieces))
        for piece in pieces:
            padded = piece + bytes(-len(piece) % 8)
            self.data += [len(piece), *np.frombuffer(padded, "<i8").tolist()]
        return self.emit(scalars.LIKE, lane, place)

    def _case(self, case: Case) -> int:
        result = self.value(_typed(case.otherwise, case.type))
        for condition, value in reversed(case.branches):
            result = self.emit(scalars.CHOOSE, self.value(condition), self.value(_typed(value, case.type)), result)
        return result

    def _cast(self, cast: Cast) -> int:
        source, target, lane = cast.argument.type, cast.type, self.value(cast.argument)
        if source == target or (source.is_float and target == DOUBLE):
            return lane
        if source.is_integer and target == DOUBLE:
            return self.emit(scalars.REAL, lane)
        if target.is_integer and (source.is_integer or source == BOOLEAN):
            bits = INTEGER_BITS[target.name]
            return lane if source == BOOLEAN or INTEGER_BITS[source.name] <= bits else _fitted(self, lane, target)
        if not (target.is_decimal and (source.is_integer or source.is_decimal)):
            raise NoOperations
        places = target.scale - source.scale
        if places < 0 or digits_of(source) + places > target.precision:
            raise NoOperations
        return self.scaled(lane, places, digits_of(source))

    def scaled(self, lane: int, places: int, digits: int) -> int:
        """A number of so many digits times 10^places."""
        if places == 0:
            return lane
        if places > NARROW or digits + places > scalars.DIGITS:
            raise NoOperations
        power = self.emit(scalars.CONSTANT_VALUE, 10**places, 0)
        return self.emit(scalars.MULTIPLY_WIDE if digits + places > NARROW else scalars.MULTIPLY, lane, power)


Compiler = Callable[[Operations, Call], int]
"""From a call to the lane of its value."""


def _typed(expr: Expr, type: Type) -> Expr:
    """The expression, if it has the type, or is NULL."""
    if expr.type != type and not (isinstance(expr, Literal) and expr.value is None):
        raise NoOperations
    return expr


def digits_of(type: Type) -> int:
    """The most digits of a number of the type."""
    return type.precision if type.is_decimal else len(str(2 ** (INTEGER_BITS[type.name] - 1)))


def _is_wide(type: Type) -> bool:
    return type.is_decimal and type.precision > NARROW


def _reals(to: Operations, call: Call, operation: int) -> int:
    """Of FLOAT and DOUBLE. A FLOAT is rounded once more, which gives the same as if it had been rounded once."""
    lane, *rest = (to.value(_typed(argument, call.type)) for argument in call.arguments)
    for other in rest:
        lane = to.emit(operation, lane, other)
        lane = to.emit(scalars.SINGLE, lane) if call.type == FLOAT else lane
    return lane


def _sum(narrow: int, wide: int, real: int) -> Compiler:
    """+ and -: of integers, of floats, or of decimals whose result has all digits."""

    def operations(to: Operations, call: Call) -> int:
        if call.type.is_float:
            return _reals(to, call, real)
        first, *rest = call.arguments
        if call.type.is_integer:
            lane = to.value(_typed(first, call.type))
            for argument in rest:
                lane = _fitted(to, to.emit(narrow, lane, to.value(_typed(argument, call.type))), call.type)
            return lane
        if not call.type.is_decimal or len(rest) != 1 or call.type.scale != max(argument.type.scale for argument in call.arguments):
            raise NoOperations
        sides = [to.scaled(to.value(side), call.type.scale - side.type.scale, side.type.precision) for side in call.arguments]
        return _fitted(to, to.emit(wide if _is_wide(call.type) else narrow, *sides), call.type)

    return operations


def _product(to: Operations, call: Call) -> int:
    if call.type.is_float:
        return _reals(to, call, scalars.MULTIPLY_REAL)
    left, right = call.arguments
    if call.type.is_integer:
        return _fitted(to, to.emit(scalars.MULTIPLY, to.value(_typed(left, call.type)), to.value(_typed(right, call.type))), call.type)
    if not call.type.is_decimal or call.type.scale != left.type.scale + right.type.scale:
        raise NoOperations
    operation = scalars.MULTIPLY_WIDE if _is_wide(call.type) else scalars.MULTIPLY
    return _fitted(to, to.emit(operation, to.value(left), to.value(right)), call.type)


def _fitted(to: Operations, lane: int, type: Type) -> int:
    """A lane that fails where the value does not fit the type. Sums and products of decimals of fewer than 38 digits always fit."""
    if type.is_integer:
        half = 1 << (INTEGER_BITS[type.name] - 1)
        return lane if type == BIGINT else to.emit(scalars.FIT, lane, -half, half - 1)
    return to.emit(scalars.FIT_WIDE, lane) if type.precision == scalars.DIGITS else lane


def _division(operation: int) -> Compiler:
    def operations(to: Operations, call: Call) -> int:
        if not call.type.is_integer:
            raise NoOperations
        return to.emit(operation, *(to.value(_typed(argument, call.type)) for argument in call.arguments))

    return operations


def _quotient(to: Operations, call: Call) -> int:
    """Of floats; of decimals, rounded as `divide` of `expr/arrays/decimal_arithmetic.py` rounds it."""
    if call.type.is_float:
        return _reals(to, call, scalars.DIVIDE_REAL)
    left, right = call.arguments
    if not (call.type.is_decimal and left.type.is_decimal and right.type.is_decimal):
        raise NoOperations
    twice = right.type.precision + call.type.scale >= scalars.DIGITS
    places = (QUOTIENT_SCALE if twice else call.type.scale) - left.type.scale + right.type.scale
    between = QUOTIENT_SCALE - call.type.scale if twice else 0
    if places < 0 or between > scalars.DIGITS:
        raise NoOperations
    sides = to.value(left), to.value(right)
    place = len(to.data)
    to.data += [places, *(bound(between) if twice else (0, 0)), *bound(call.type.precision)]
    return to.emit(scalars.DIVIDE_WIDE, *sides, place)


def _normalized(to: Operations, call: Call) -> int:
    """As a key: there is one NaN in words."""
    if not call.type.is_float:
        raise NoOperations
    return to.unsigned_zero(to.value(call.arguments[0]))


def _negative(to: Operations, call: Call) -> int:
    return _negated(to, to.value(call.arguments[0]), call.type)


def _negated(to: Operations, lane: int, type: Type) -> int:
    if type.is_float:
        return to.emit(scalars.MULTIPLY_REAL, lane, to.literal(-1.0, type))
    if not type.is_integer:
        raise NoOperations
    return _fitted(to, to.emit(scalars.SUBTRACT, to.literal(0, type), lane), type)


def _absolute(to: Operations, call: Call) -> int:
    lane = to.value(call.arguments[0])
    return to.emit(scalars.CHOOSE, to.emit(scalars.LESS, lane, to.literal(0, BIGINT)), _negated(to, lane, call.type), lane)


def _compared(to: Operations, left: Expr, right: Expr, *, ordered: bool) -> tuple[int, int]:
    """The lanes of two values of one type whose words compare as they do."""
    type = left.type
    if right.type != type or (type.has_bytes and (ordered or type != STRING)):
        raise NoOperations
    return _operand(to, left), _operand(to, right)


def _operand(to: Operations, expr: Expr) -> int:
    if isinstance(expr, Literal) and expr.type == STRING and isinstance(expr.value, str):
        return to.text(expr.value)
    return to.unsigned_zero(to.value(expr)) if expr.type.is_float else to.value(expr)


def _comparison(narrow: int, wide: int, *, swapped: bool = False, ordered: bool = True, negated: bool = False) -> Compiler:
    def operations(to: Operations, call: Call) -> int:
        left, right = _compared(to, *call.arguments, ordered=ordered)
        sides = (right, left) if swapped else (left, right)
        lane = to.emit(wide if _is_wide(call.arguments[0].type) else narrow, *sides)
        return to.emit(scalars.NOT, lane) if negated else lane

    return operations


def _same(to: Operations, call: Call) -> int:
    if _is_wide(call.arguments[0].type):
        raise NoOperations
    return to.emit(scalars.SAME, *_compared(to, *call.arguments, ordered=False))


def _connective(operation: int) -> Compiler:
    def operations(to: Operations, call: Call) -> int:
        lane = to.value(call.arguments[0])
        for argument in call.arguments[1:]:
            lane = to.emit(operation, lane, to.value(argument))
        return lane

    return operations


def _null_test(*, negated: bool) -> Compiler:
    def operations(to: Operations, call: Call) -> int:
        lane = to.emit(scalars.IS_PRESENT, to.value(call.arguments[0]))
        return to.emit(scalars.NOT, lane) if negated else lane

    return operations


def _coalesced(to: Operations, call: Call) -> int:
    *rest, lane = [to.value(_typed(argument, call.type)) for argument in call.arguments]
    for first in reversed(rest):
        lane = to.emit(scalars.COALESCE, first, first, lane)
    return lane


def _membership(to: Operations, call: Call) -> int:
    """IN: equal to one of the items, or else to NULL if that is one of them."""
    value, first, *nulls = call.arguments
    if not isinstance(first, Constants) or not 0 < len(first.values) <= MOST_MEMBERS or _is_wide(value.type):
        raise NoOperations
    items: Sequence[Expr] = [Literal(item, first.type) for item in first.values]
    lanes = [to.emit(scalars.EQUAL, *_compared(to, value, item, ordered=False)) for item in items]
    lanes += [to.value(null) for null in nulls]
    result = lanes[0]
    for lane in lanes[1:]:
        result = to.emit(scalars.OR, result, lane)
    return result


def _shift(operation: int, unit: int) -> Compiler:
    """A date or a time and a number of units, of so many microseconds; whole days of a date. Fails outside of the calendar."""

    def operations(to: Operations, call: Call) -> int:
        moment, count = call.arguments
        if call.type not in CALENDAR or not count.type.is_integer:
            raise NoOperations
        lane = to.value(count)
        if call.type != DATE and unit > 1:
            lane = to.emit(scalars.MULTIPLY, lane, to.emit(scalars.CONSTANT_VALUE, unit, 0))
        return to.emit(scalars.FIT, to.emit(operation, to.value(_typed(moment, call.type)), lane), *CALENDAR[call.type])

    return operations


def _part_of_date(operation: int) -> Compiler:
    def operations(to: Operations, call: Call) -> int:
        if call.arguments[0].type != DATE:
            raise NoOperations
        return to.emit(operation, to.value(call.arguments[0]))

    return operations


def _like(to: Operations, call: Call) -> int:
    value, *constants = call.arguments
    texts = [constant.value for constant in constants if isinstance(constant, Literal) and isinstance(constant.value, str)]
    if len(texts) < len(constants):
        raise NoOperations
    pattern, escape = texts
    pieces, i = [""], 0
    while i < len(pattern):
        if pattern[i] == escape:
            i += 1
            pieces[-1] += pattern[i]
        elif pattern[i] == "_":
            raise NoOperations
        elif pattern[i] == "%":
            pieces.append("")
        else:
            pieces[-1] += pattern[i]
        i += 1
    return to.pattern(value, [piece.encode() for piece in pieces])


def _part_of_text(before: bool, after: bool) -> Compiler:
    """Whether a text has another one as a part: at its end if nothing may follow, at its begin if nothing may precede."""

    def operations(to: Operations, call: Call) -> int:
        value, sought = call.arguments
        if not isinstance(sought, Literal) or sought.type != STRING or not isinstance(sought.value, str):
            raise NoOperations
        return to.pattern(value, [*([b""] * before), sought.value.encode(), *([b""] * after)])

    return operations


CALLS: Final[dict[str, Compiler]] = {
    "add": _sum(scalars.ADD, scalars.ADD_WIDE, scalars.ADD_REAL),
    "subtract": _sum(scalars.SUBTRACT, scalars.SUBTRACT_WIDE, scalars.SUBTRACT_REAL),
    "multiply": _product,
    "divide": _quotient,
    "remainder": _division(scalars.REMAINDER),
    "integral_divide": _division(scalars.QUOTIENT),
    "negate": _negative,
    "abs": _absolute,
    "normalize": _normalized,
    "equal": _comparison(scalars.EQUAL, scalars.EQUAL_WIDE, ordered=False),
    "not_equal": _comparison(scalars.EQUAL, scalars.EQUAL_WIDE, ordered=False, negated=True),
    "less": _comparison(scalars.LESS, scalars.LESS_WIDE),
    "less_equal": _comparison(scalars.LESS_EQUAL, scalars.LESS_EQUAL_WIDE),
    "greater": _comparison(scalars.LESS, scalars.LESS_WIDE, swapped=True),
    "greater_equal": _comparison(scalars.LESS_EQUAL, scalars.LESS_EQUAL_WIDE, swapped=True),
    "same": _same,
    "not": lambda to, call: to.emit(scalars.NOT, to.value(call.arguments[0])),
    "and": _connective(scalars.AND),
    "or": _connective(scalars.OR),
    "is_null": _null_test(negated=True),
    "is_not_null": _null_test(negated=False),
    "coalesce": _coalesced,
    "in": _membership,
    "like": _like,
    "startswith": _part_of_text(before=False, after=True),
    "endswith": _part_of_text(before=True, after=False),
    "contains": _part_of_text(before=True, after=True),
    "add_days": _shift(scalars.ADD, DAY),
    "subtract_days": _shift(scalars.SUBTRACT, DAY),
    "add_microseconds": _shift(scalars.ADD, 1),
    "year": _part_of_date(scalars.YEAR),
    "month": _part_of_date(scalars.MONTH),
    "day": _part_of_date(scalars.DAY),
}
"""By the name of the function."""
