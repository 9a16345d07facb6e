"""Users' table functions: the rows that a function returns for a row or a record batch, checked against their schema.

On batches a function returns one record batch: the columns of the schema, and `_row`, the position in the argument of the row
from which each row was computed. Rows may be in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from deltic.errors import EvaluationError, ImpureFunction
from deltic.expr.failures import at_row, row_of
from deltic.expr.nodes import PythonFunction, UserFunction, Value
from deltic.expr.python import call_function, checked_array, checked_value, converted, element_of, result_columns, row_class
from deltic.purity import shown
from deltic.schema import Schema
from deltic.types import frozen_list

ROW: Final = "_row"


@dataclass(frozen=True, slots=True)
class BesideRow:
    """A function of a row: its first `kept` columns, followed by each row that a function returns for the values of the others.

    columns: those of the rows that the function returns, against which its rows are checked. outer: a row without any is followed by NULLs.
    """

    columns: tuple[PythonFunction, ...]
    kept: int
    outer: bool = False

    def __call__(self, row: Sequence[Any]) -> list[tuple[Value, ...]]:
        """Raises EvaluationError with the place and the arguments of the call."""
        kept, arguments = tuple(row[: self.kept]), tuple(row[self.kept :])
        try:
            returned = call_function(self.columns[0], list(converted(self.columns[0], arguments)))
            rows = [(*kept, *_checked(self.columns, result)) for result in returned]
            return rows if rows or not self.outer else [(*kept, *(None for _ in self.columns))]
        except ImpureFunction:
            raise
        except EvaluationError as error:
            message = f"{error.message}, called with ({', '.join(map(shown, arguments))})"
            raise EvaluationError(message, span=error.span, expected=error.expected, remedy=error.remedy) from error.__cause__


def rows_of_table_function(function: UserFunction, schema: Schema, row: Sequence[Value], input: Schema) -> list[tuple[Value, ...]]:
    """The rows, of `schema`, that the function returns for one row of schema `input`. Raises EvaluationError."""
    if function.on_batches:
        arrays = [pa.array([value], field.type.arrow) for value, field in zip(row, input, strict=True)]
        _, columns = arrays_of_table_function(function, schema, arrays, 1)
        return list(zip(*(frozen_list(column) for column in columns), strict=True))
    return _rows(function, result_columns(function, schema), row)


def arrays_of_table_function(
    function: UserFunction, schema: Schema, arguments: Sequence[pa.Array], length: int
) -> tuple[pa.Array, list[pa.Array]]:
    """(int64[m], columns): the position of the input row and the columns of each of the m rows returned for `length` rows.

    One call per row, or a single call on batches; no call without rows. Raises EvaluationError with the row.
    """
    if not length:
        return pa.array([], pa.int64()), [pa.array([], field.type.arrow) for field in schema]
    if function.on_batches:
        return _arrays_of_batch(function, schema, arguments, length)
    columns, positions, rows = result_columns(function, schema), list[int](), list[tuple[Value, ...]]()
    inputs = zip(*(frozen_list(argument) for argument in arguments), strict=True) if arguments else [()] * length
    for position, row in enumerate(inputs):
        try:
            rows += _rows(function, columns, row)
        except EvaluationError as error:
            raise at_row(error, position) from error.__cause__
        positions += [position] * (len(rows) - len(positions))
    arrays = [pa.array([row[i] for row in rows], field.type.arrow) for i, field in enumerate(schema)]
    return pa.array(positions, pa.int64()), arrays


def _rows(function: UserFunction, columns: Sequence[PythonFunction], row: Sequence[Value]) -> list[tuple[Value, ...]]:
    if isinstance(function.call, BesideRow):
        return function.call(row)
    (names,) = function.parameters
    assert names is not None
    results = call_function(columns[0], [row_class(names)(*row)], of_row=True)
    return [_checked(columns, result) for result in results]


def _checked(columns: Sequence[PythonFunction], result: object) -> tuple[Value, ...]:
    return tuple(checked_value(column, element_of(column, result)) for column in columns)


def _arrays_of_batch(function: UserFunction, schema: Schema, arguments: Sequence[pa.Array], length: int) -> tuple[pa.Array, list[pa.Array]]:
    (names,) = function.parameters
    assert names is not None
    columns = result_columns(function, schema)
    try:
        result = call_function(columns[0], [pa.RecordBatch.from_arrays(list(arguments), list(names))])
        positions = _positions(function, schema, result, length)
    except EvaluationError as error:
        raise at_row(error, 0) from error.__cause__
    try:
        return positions, [checked_array(c, result.column(f.name), result.num_rows) for c, f in zip(columns, schema, strict=True)]
    except EvaluationError as error:
        raise at_row(error, positions[row_of(error)].as_py() if len(positions) else 0) from error.__cause__


def _positions(function: UserFunction, schema: Schema, result: object, length: int) -> pa.Array:
    """The column `_row` of a result, checked."""
    expected = f"a record batch of the columns {', '.join(schema.names)} and {ROW}, the position of the input row of each row"
    if not isinstance(result, pa.RecordBatch | pa.Table):
        raise EvaluationError(f"the function {function.name} returned {type(result).__name__} {shown(result)}", expected=expected)
    if sorted(result.schema.names) != sorted((*schema.names, ROW)):
        raise EvaluationError(f"the function {function.name} returned the columns {', '.join(result.schema.names)}", expected=expected)
    column = result.column(ROW)
    positions = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    bounds = pc.min_max(positions).as_py() if pa.types.is_integer(positions.type) else None
    if bounds is None or positions.null_count or (len(positions) and not 0 <= bounds["min"] <= bounds["max"] < length):
        raise EvaluationError(
            f"the function {function.name} returned {shown(positions)} as {ROW}", expected=f"integers from 0 to {length - 1}, no NULL"
        )
    return positions.cast(pa.int64())
