"""What is very long, and what only looks like a literal: an answer or one clear error, in no time."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from deltic import Session
from deltic.errors import EvaluationError, TypeMismatch
from deltic.expr import Column, Literal, can_fail, cast, resolve
from deltic.expr.columns import evaluate_columns
from deltic.expr.interpreter import evaluate
from deltic.expr.rows.text import MAX_LENGTH
from deltic.schema import BIGINT, DATE, DOUBLE, INT, STRING, TIMESTAMP, TIMESTAMP_NTZ, Type, decimal
from expr_check import check
from expr_terms import Term

TEXT = Column(0, STRING, True)


def texts(rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    return pa.table({"text": pa.array([text for (text,) in rows], pa.string())})


def of(value: str | int | None) -> Literal:
    return Literal(value, STRING if isinstance(value, str) else INT)


MULTIPLYING = [
    ("repeat", "x", [of(2_000_000_000)]),
    ("lpad", "x", [of(2_000_000_000), of("ab")]),
    ("rpad", "x", [of(MAX_LENGTH + 1), of(" ")]),
    ("replace", "x" * 20_000, [of("x"), of("y" * 1000)]),
]


@pytest.mark.parametrize(("function", "value", "others"), MULTIPLYING)
def test_a_string_that_a_function_multiplies_is_limited(function: str, value: str, others: list[Literal]) -> None:
    expr = resolve(function, [TEXT, *others])
    assert can_fail(expr)
    with pytest.raises(EvaluationError, match=f"{function} would make a string of [0-9,]+ characters") as by_row:
        evaluate(expr, (value,))
    with pytest.raises(EvaluationError) as by_column:
        evaluate_columns(expr, [pa.array(["", value])], 2)
    assert str(by_row.value) == str(by_column.value) and by_row.value.expected == f"at most {MAX_LENGTH:,} characters"


def test_strings_at_the_length_limit_are_accepted() -> None:
    for expr in (resolve("repeat", [TEXT, of(MAX_LENGTH // 2)]), resolve("lpad", [TEXT, of(MAX_LENGTH), of("x")])):
        assert len(str(evaluate(expr, ("ab",)))) == MAX_LENGTH
        assert evaluate_columns(expr, [pa.array(["ab"])], 1)[0].as_py() == evaluate(expr, ("ab",))
    assert not can_fail(resolve("lpad", [TEXT, of(MAX_LENGTH)])) and not can_fail(resolve("replace", [TEXT, of("ab"), of("c")]))


LONG = [
    ("9" * 100_000, DOUBLE, float("inf")),
    ("-1." + "3" * 100_000, decimal(6, 4), Decimal("-1.3333")),
    ("0." + "0" * 100_000 + "1", DOUBLE, 0.0),
    ("0" * 100_000 + "7", decimal(38, 0), Decimal(7)),
    ("0." + "0" * 50_000 + "25e50001", decimal(3, 1), Decimal("2.5")),
    ("2." + "5" + "0" * 5_000, decimal(1, 0), Decimal(3)),
    ("1." + "4" + "9" * 5_000, decimal(1, 0), Decimal(1)),
    # 1 + 2^-53 lies midway between two doubles; one more digit, however far, decides.
    ("1.00000000000000011102230246251565404236316680908203125" + "0" * 5_000, DOUBLE, 1.0),
    ("1.00000000000000011102230246251565404236316680908203125" + "0" * 5_000 + "1", DOUBLE, 1.0000000000000002),
    ("1e" + "9" * 100_000, DOUBLE, float("inf")),
    ("1e-" + "9" * 100_000, DOUBLE, 0.0),
]  # fmt: skip


@pytest.mark.parametrize(("text", "type", "value"), LONG, ids=range(len(LONG)))
def test_numbers_of_a_hundred_thousand_digits(text: str, type: Type, value: float | Decimal) -> None:
    made = cast(of(text), type)
    assert isinstance(made, Literal) and made.value == value
    with pytest.raises(EvaluationError):
        evaluate(cast(of("9" * 100_000), BIGINT), ())
    with pytest.raises(EvaluationError):
        evaluate(cast(of("9" * 100_000), decimal(38, 0)), ())


def test_a_cast_of_a_literal_has_the_digits_of_its_type() -> None:
    d = Column(0, decimal(3, 0), True)
    assert resolve("/", [d, of(3)]).type == decimal(9, 6)
    assert resolve("/", [d, cast(of(3), BIGINT)]).type == decimal(24, 21)
    assert resolve("+", [d, cast(Literal("3", STRING), INT)]).type == decimal(11, 0)
    assert resolve("+", [d, resolve("positive", [of(3)])]).type == decimal(11, 0)


def test_a_cast_of_a_literal_in_sql() -> None:
    session = Session()
    session.sql("CREATE TABLE t (d DECIMAL(3,0)); CREATE MATERIALIZED VIEW v AS SELECT d / CAST(3 AS BIGINT) AS q, d / 3 AS r FROM t")
    with session.transaction() as tx:
        tx.insert("t", [{"d": Decimal(2)}])
    table = session.view("v").to_arrow()
    assert [field.type for field in table.schema] == [pa.decimal128(24, 21), pa.decimal128(9, 6)]
    assert table.to_pylist() == [{"q": Decimal("0.666666666666666666667"), "r": Decimal("0.666667")}]


def test_a_cast_of_a_literal_to_the_type_that_it_has_counts_the_digits_of_the_type() -> None:
    session = Session()
    session.sql("CREATE TABLE t (d DECIMAL(3,0)); CREATE MATERIALIZED VIEW v AS SELECT d + CAST(1 AS INT) AS a, d + 1 AS b FROM t")
    assert [field.type for field in session.view("v").to_arrow().schema] == [pa.decimal128(11, 0), pa.decimal128(4, 0)]


def test_initcap_of_a_final_sigma() -> None:
    assert evaluate(resolve("initcap", [TEXT]), ("ΑΣ ΣΑΣ ΣΑ Σ",)) == "Ας Σας Σα Σ"


@pytest.mark.parametrize("day", ["0000-01-01", "0000-12-31", "0001-01-01"])
@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize(("type_", "rest"), [(DATE, ""), (TIMESTAMP, " 00:00:00"), (TIMESTAMP_NTZ, " 23:59:59.5")])
def test_text_with_year_0_is_malformed(type_: Type, rest: str, lenient: bool, day: str) -> None:
    check(Term("year 0", cast(TEXT, type_, lenient=lenient)), [(None,), (day + rest,), ("2024-02-29" + rest,)], texts)


@pytest.mark.parametrize("digits", [1000, 1001, 5000])
def test_a_number_in_json_has_a_thousand_digits_at_most_as_in_jackson(digits: int) -> None:
    """In text it may have any number of digits."""
    session, text = Session(), "9" * digits
    session.sql("""
        CREATE TABLE t (s STRING);
        CREATE MATERIALIZED VIEW v AS SELECT from_json(s, 'a STRING').a AS text, from_json(s, 'a DECIMAL(38, 2)').a AS number FROM t;
        CREATE MATERIALIZED VIEW w AS SELECT from_csv(get_json_object(s, '$.a'), 'a DECIMAL(38, 0)').a AS number FROM t;
    """)

    def read(json: str) -> list[tuple[object, ...]]:
        with session.transaction() as tx:
            tx.insert("t", [{"s": json}])
        try:
            return [tuple(session.view(name).rows()[0].values()) for name in ("v", "w")]
        finally:
            with session.transaction() as tx:
                tx.delete("t", [{"s": json}])

    assert read(f'{{"a": {text}}}') == [(text if digits == 1000 else None, None), (None,)]
    assert read(f'{{"a": "{text}"}}') == [(text, None), (None,)]
    assert read(f'{{"a": "0.{text}"}}') == [(f"0.{text}", Decimal(1)), (Decimal(1),)]


def test_null_and_empty_arrays_without_a_type() -> None:
    session = Session()
    session.sql("CREATE TABLE t (s STRING); CREATE MATERIALIZED VIEW v AS SELECT decode(NULL, NULL, 'n') AS a, NULL <=> NULL AS b FROM t")
    with session.transaction() as tx:
        tx.insert("t", [{"s": "x"}])
    assert session.view("v").rows() == [{"a": "n", "b": True}]
    with pytest.raises(TypeMismatch, match="an empty MAP has no types of keys and values"):
        session.sql("CREATE MATERIALIZED VIEW w AS SELECT map_from_arrays(array(), array()) AS m FROM t")
