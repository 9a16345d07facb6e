"""Users' table functions: the rows that a function gives for one row, or for the rows of a record batch, checked against their schema.

On batches a function gives one record batch: a column of each name of the schema, and `_row`, the position in its argument of the row
that each of its rows comes from. Rows may come in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from deltic.errors import EvaluationError
from deltic.expr.failures import at_row, row_of
from deltic.expr.nodes import PythonFunction, UserFunction, Value
from deltic.expr.python import called, fitting, fitting_array, part_of, row_class
from deltic.purity import shown
from deltic.schema import Schema

ROW: Final = "_row"


def rows_of_table_function(function: UserFunction, made: Schema, row: Sequence[Value], given: Schema) -> list[tuple[Value, ...]]:
    """The rows, of schema `made`, for one row of schema `given`. Raises EvaluationError."""
    if function.on_batches:
        arrays = [pa.array([value], field.type.arrow) for value, field in zip(row, given, strict=True)]
        _, columns = arrays_of_table_function(function, made, arrays, 1)
        return list(zip(*(column.to_pylist() for column in columns), strict=True))
    return _rows(function, _columns(function, made), row)


def arrays_of_table_function(
    function: UserFunction, made: Schema, arguments: Sequence[pa.Array], length: int
) -> tuple[pa.Array, list[pa.Array]]:
    """For `length` rows, the columns of the rows that the function gives for them, and before these the position of each one's row (int64).

    One call for each row, or one for all on batches; none if there are no rows. Raises EvaluationError with the row.
    """
    if not length:
        return pa.array([], pa.int64()), [pa.array([], field.type.arrow) for field in made]
    if function.on_batches:
        return _arrays_of_batch(function, made, arguments, length)
    columns, positions, rows = _columns(function, made), list[int](), list[tuple[Value, ...]]()
    given = zip(*(argument.to_pylist() for argument in arguments), strict=True) if arguments else [()] * length
    for position, row in enumerate(given):
        try:
            rows += _rows(function, columns, row)
        except EvaluationError as error:
            raise at_row(error, position) from error.__cause__
        positions += [position] * (len(rows) - len(positions))
    arrays = [pa.array([row[i] for row in rows], field.type.arrow) for i, field in enumerate(made)]
    return pa.array(positions, pa.int64()), arrays


def _columns(function: UserFunction, made: Schema) -> list[PythonFunction]:
    return [PythonFunction(function, (), i, field.type, field.nullable) for i, field in enumerate(made)]


def _rows(function: UserFunction, columns: Sequence[PythonFunction], row: Sequence[Value]) -> list[tuple[Value, ...]]:
    (names,) = function.parameters
    assert names is not None
    given = called(columns[0], [row_class(names)(*row)])
    return [tuple(fitting(column, part_of(column, one)) for column in columns) for one in given]


def _arrays_of_batch(function: UserFunction, made: Schema, arguments: Sequence[pa.Array], length: int) -> tuple[pa.Array, list[pa.Array]]:
    (names,) = function.parameters
    assert names is not None
    columns = _columns(function, made)
    try:
        given = called(columns[0], [pa.RecordBatch.from_arrays(list(arguments), list(names))])
        positions = _positions(function, made, given, length)
    except EvaluationError as error:
        raise at_row(error, 0) from error.__cause__
    try:
        return positions, [fitting_array(c, given.column(f.name), given.num_rows) for c, f in zip(columns, made, strict=True)]
    except EvaluationError as error:
        raise at_row(error, positions[row_of(error)].as_py() if len(positions) else 0) from error.__cause__


def _positions(function: UserFunction, made: Schema, given: object, length: int) -> pa.Array:
    """The column `_row` of what the function gave."""
    expected = f"a record batch of the columns {', '.join(made.names)} and {ROW}, the position of the row that each row comes from"
    if not isinstance(given, pa.RecordBatch | pa.Table):
        raise EvaluationError(f"the function {function.name} gave {type(given).__name__} {shown(given)}", expected=expected)
    if sorted(given.schema.names) != sorted((*made.names, ROW)):
        raise EvaluationError(f"the function {function.name} gave the columns {', '.join(given.schema.names)}", expected=expected)
    column = given.column(ROW)
    positions = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    bounds = pc.min_max(positions).as_py() if pa.types.is_integer(positions.type) else None
    if bounds is None or positions.null_count or (len(positions) and not 0 <= bounds["min"] <= bounds["max"] < length):
        raise EvaluationError(
            f"the function {function.name} gave {shown(positions)} as {ROW}", expected=f"integers from 0 to {length - 1}, no NULL"
        )
    return positions.cast(pa.int64())
