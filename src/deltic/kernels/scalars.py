"""The operations of a `filter` or `compute` instruction of a level program, which evaluate scalar expressions over rows (`evaluation.py`).

Operations work on *lanes*. A lane holds a value for each row of a block: its word, a state (NULL, PRESENT or FAILED), and the high word of
a decimal of more than 18 digits. In the table of lanes these are addresses. That of the states is 0 if all values are present, that of the
high words if the value is its word alone. The value of a row that is not present is any word. A row fails where SQL raises an error. SQL
ignores one that fails in a branch that it does not take: so operations pass failures on, and what reads the rows declines if one is left.

An operation is five words: its opcode, the lane that it sets, and three operands, lanes unless its description says otherwise.
"""

from __future__ import annotations

VALUE, STATE, HIGH, LANE = range(4)
"""Words of a lane in the table. And how many they are."""

NULL, PRESENT, FAILED = range(3)

OPERATION = 5
"""Words of an operation."""
BLOCK = 256
"""Rows for which all operations run before the next rows: their lanes stay in the processor's cache."""

PLAIN, MARKED, FLAGGED, WIDE, WIDE_MARKED, CONSTANT_VALUE, TEXT, NOTHING = range(8)
"""A column of the input, by the position of its first word: never NULL; with the marker of NULL; with a flag before it; of two words.
A constant: its word and its high word. The id of a text, by its number. NULL."""
ADD, SUBTRACT, MULTIPLY, REMAINDER, QUOTIENT, FIT = range(16, 22)
"""Of integers, which fail outside 64 bits, and towards zero. FIT: fails outside of the least and the greatest value, which are the other
operands."""
EQUAL, LESS, LESS_EQUAL, SAME = range(22, 26)
ADD_REAL, SUBTRACT_REAL, MULTIPLY_REAL, DIVIDE_REAL, REAL, SINGLE = range(26, 32)
"""Of doubles. DIVIDE_REAL: fails by 0. REAL: the double nearest to an integer. SINGLE: of a double, the nearest one that a FLOAT can be."""
NOT, AND, OR, IS_PRESENT, CHOOSE, COALESCE = range(32, 38)
"""CHOOSE: a condition, the value if it is TRUE, the value if not."""
ADD_WIDE, SUBTRACT_WIDE, MULTIPLY_WIDE, FIT_WIDE, EQUAL_WIDE, LESS_WIDE, LESS_EQUAL_WIDE = range(40, 47)
"""Of decimals, which fail outside 127 bits. FIT_WIDE: fails with more than 38 digits."""
YEAR, MONTH, DAY = range(48, 51)
LIKE = 51
"""Of a text, and the place of a pattern (`like.py`) after the operations."""
DIVIDE_WIDE = 52
"""Of decimals, and the place of the operands of `quotients.quotient` after the operations. Fails by 0, and where it does not fit."""
TEXT_WORD = 53
"""Of the id of a text, or NULL's marker: one of the words that sort like it (`text.py`), by its number. Fails where the strings do not have
the text."""
KEEP, PUT, PUT_MARKED, PUT_FLAGGED, PUT_WIDE, PUT_WIDE_MARKED, PUT_STATE, PUT_VALUE, PUT_LIMB, PUT_ROUNDED = range(56, 66)
"""They read the lane. KEEP: the rows for which it is TRUE. The others write it to the columns of the output from the second operand on:
the last four as measures, in which NULL is 0, the limb that the third operand names, of the value or of it rounded to a double."""

UPPER = 4
"""The limb with the sign of a number of one word."""
LOW_HALF = 0xFFFFFFFF
DIGITS = 38
"""The most digits of a decimal."""
BOUND_HIGH, BOUND_LOW = 10**DIGITS >> 64, 10**DIGITS & (2**64 - 1)
"""10^38, whose low word has no sign bit."""
