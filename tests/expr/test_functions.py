"""Functions are records: complete or refused at import, in one file each, and compared with somebody who shares no code with them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.function_comparison import bound
from benchmarks.function_terms import TERMS
from deltic.errors import UnknownName
from deltic.expr import Call, Column, Expr, children, known_functions, resolve
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.columns import evaluate_columns
from deltic.expr.functions import TOPICS
from deltic.expr.functions.signature import TEXT, takes
from deltic.expr.interpreter import evaluate
from deltic.expr.registry import FUNCTIONS, Function, Nulls, Rewrite, register
from deltic.schema import INT, STRING
from expr_terms import all_terms

COMPLETE: dict[str, Any] = {
    "signature": takes([TEXT], STRING),
    "rows": lambda call, text: text,
    "arrays": per_distinct,
    "can_fail": False,
}


@pytest.mark.parametrize(
    ("missing", "words"),
    [("signature", "a signature"), ("rows", "a row form"), ("arrays", "an array form"), ("can_fail", "can_fail")],
)
def test_a_record_that_lacks_a_part_is_refused_by_name(missing: str, words: str) -> None:
    given = {form: value for form, value in COMPLETE.items() if form != missing}
    with pytest.raises(TypeError, match=f"^the function shout lacks {words}$"):
        Function(name="shout", **given)


@pytest.mark.parametrize("word", ["upper", "ucase", "||"])
def test_a_duplicate_name_is_refused_and_nothing_is_registered(word: str) -> None:
    free = Rewrite(name="free_name", build=lambda name, arguments, span: arguments[0])
    with pytest.raises(ValueError, match=r"the name .* is already registered"):
        register(free, Function(name="shout", aliases=(word,), **COMPLETE))
    assert "shout" not in FUNCTIONS and "free_name" not in known_functions()


def test_a_call_of_a_function_that_is_not_registered_says_so() -> None:
    call = Call("shout", (Column(0, STRING, True),), STRING, True)
    for run in (lambda: evaluate(call, ("a",)), lambda: evaluate_columns(call, [], 1)):
        with pytest.raises(UnknownName, match="the function shout is not registered"):
            run()


def test_functions_per_distinct_argument_are_strict() -> None:
    assert [f.name for f in FUNCTIONS.values() if f.arrays is per_distinct and f.nulls in (Nulls.SEEN, Nulls.LAZY)] == []


def _called(expr: Expr) -> Iterator[str]:
    if isinstance(expr, Call):
        yield expr.function
    for part in children(expr):
        yield from _called(part)


def test_every_function_is_among_the_terms_compared_with_spark() -> None:
    terms = [bound(name, sql) for name, texts in TERMS.items() for sql in texts]
    compared = {name for term in [*all_terms(), *terms] for name in _called(term.expr)}
    assert {record.name for records in TOPICS.values() for record in records if isinstance(record, Function)} - compared == {
        "normalize",  # SQL has no word for it
        "zero_signs",  # nor for this: test_meaning
        "widened",  # nor for this
        "sorted_maps",  # of GROUP BY of MAPs
        "frequency",  # of percentile's third argument
        "session_end",  # of session_window: tests/circuit/test_sessions.py
        "fails",
        "shown_failure",
        "threshold",  # of joins: tests/session/test_monotone_conditions.py
        "sequence_count",  # of calls of table functions: test_errors_as_data
        "generate_series_count",
        "window_starts_count",
        "shown_row",  # of isolated errors: tests/runtimes/test_errors_as_data.py
        "only_row",  # of scalar subqueries: tests/session/test_subqueries.py
        "in_range",  # nor for this one: test_ranges compares its columns with its rows
        "is_json",  # Spark has no IS JSON: test_meaning
        "json_field",  # of json_tuple, a table function: test_generators
        "variant_entries",  # of variant_explode, a table function: test_variants
        "chain",  # test_wide_expressions compares it with the nested operators that it replaces
    }


SAMPLE = '''
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.functions import TOPICS
from deltic.expr.functions.signature import INTEGER, TEXT, takes
from deltic.expr.registry import Function, register
from deltic.schema import STRING


def shift(call, text, by):
    """Caesar's cipher."""
    return "".join(chr((ord(c) - 97 + by) % 26 + 97) if "a" <= c <= "z" else c for c in text)


register(Function(name="caesar", aliases=("shift_letters",), signature=takes([TEXT, INTEGER], STRING), can_fail=False, rows=shift,
                  arrays=per_distinct))
'''

PROGRAM = """
import caesar
import deltic

session = deltic.Session()
session.sql("CREATE TABLE t (s STRING)")
session.sql("CREATE MATERIALIZED VIEW v AS SELECT caesar(s, 1) AS c, count(*) AS n FROM t WHERE shift_letters(s, 2) <> 'zz' GROUP BY ALL")
with session.transaction() as tx:
    tx.insert("t", [{"s": s} for s in ("abc", "abc", "xyz", "xx", None, "É")])
print(sorted(map(tuple, (row.values() if isinstance(row, dict) else row for row in session.view("v").rows())), key=str))
"""


def test_a_function_is_one_file(tmp_path: Path) -> None:
    """Of a sample function nothing else has to be written: no entry in a table of the engine's, of SQL's or of the optimizer's."""
    (tmp_path / "caesar.py").write_text(SAMPLE, encoding="utf-8")
    assert len(list(tmp_path.iterdir())) == 1
    paths = [str(tmp_path), str(Path(__file__).resolve().parents[2] / "src")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[('bcd', 2), ('yza', 1), ('É', 1)]"
    assert "caesar" not in known_functions()


def test_a_rewrite_is_never_a_call() -> None:
    assert "instr" not in FUNCTIONS and resolve("instr", [Column(0, STRING, False), Column(1, STRING, False)]).type == INT
