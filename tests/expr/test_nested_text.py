"""Text that is nested deeply: what a row gives depends on the row alone, not on how much of Python's stack the caller has used."""

from __future__ import annotations

import doctest
import io
import json
import random
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

import deltic
from deltic import json_decoding
from deltic.connectors.files.json import JsonFiles
from deltic.errors import EvaluationError, Unsupported
from deltic.expr import Column, Expr, Literal, resolve
from deltic.expr.interpreter import evaluate
from deltic.expr.rows import datetime_patterns, java_matching, java_sets, json_text
from deltic.json_decoding import DEEPEST, JsonDecoder, NestedTooDeeply
from deltic.schema import BIGINT, INT, STRING, VARIANT, Field, Schema, TableSchema
from deltic.types import DEEPEST as DEEPEST_TYPE

T = TypeVar("T")
TEXT = Column(0, STRING, True)
FRAMES = 800
"""Of 1,000: what is left is enough for any call, and too little for a recursion over the text."""


def of(value: str | int) -> Literal:
    return Literal(value, STRING if isinstance(value, str) else INT)


def below(frames: int, function: Callable[[], T]) -> T:
    """The function's result, called from a stack of so many frames more."""
    return function() if frames == 0 else below(frames - 1, function)


def arrays(levels: int, inner: str = "") -> str:
    return "[" * levels + inner + "]" * levels


def objects(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


def both(expr: Expr, text: str) -> Any:
    """The value on a row, which is the same from a deep stack."""
    json_text.parse.cache_clear()
    shallow = evaluate(expr, (text,))
    json_text.parse.cache_clear()
    assert below(FRAMES, lambda: evaluate(expr, (text,))) == shallow
    return shallow


def call(name: str, *others: str) -> Expr:
    return resolve(name, [TEXT, *map(of, others)])


VARIANT_OF = resolve("try_parse_json", [TEXT])
ON_ARRAYS = {
    "get_json_object": (call("get_json_object", "$"), arrays),
    "get_json_object of all": (call("get_json_object", "$[*]"), lambda levels: arrays(levels - 1)),
    "get_json_object far within": (call("get_json_object", "$" + "[0]" * 700), lambda levels: arrays(levels - 700)),
    "is_json": (call("is_json", "array"), lambda levels: True),
    "json_array_length": (call("json_array_length"), lambda levels: 1),
    "from_json": (call("from_json", "ARRAY<STRING>"), lambda levels: (arrays(levels - 1),)),
    "from_json as a VARIANT": (resolve("to_json", [call("from_json", "VARIANT")]), arrays),
    "parse_json": (resolve("to_json", [VARIANT_OF]), arrays),
    "schema_of_variant": (resolve("schema_of_variant", [VARIANT_OF]), lambda levels: "ARRAY<" * levels + "VOID" + ">" * levels),
}
ON_OBJECTS = {
    "get_json_object": (call("get_json_object", "$.a"), lambda levels: objects(levels - 1)),
    "get_json_object far within": (call("get_json_object", "$" + ".a" * 700), lambda levels: objects(levels - 700)),
    "is_json": (call("is_json", "object"), lambda levels: True),
    "json_object_keys": (call("json_object_keys"), lambda levels: ("a",)),
    "json_tuple": (call("json_field", "a"), lambda levels: objects(levels - 1)),
    "from_json": (call("from_json", "STRUCT<a: STRING>"), lambda levels: (objects(levels - 1),)),
    "parse_json": (resolve("to_json", [VARIANT_OF]), objects),
}


@pytest.mark.parametrize("name", ON_ARRAYS)
def test_nested_arrays(name: str) -> None:
    expr, expected = ON_ARRAYS[name]
    for levels in (800, 850, 900, DEEPEST):
        assert both(expr, arrays(levels)) == expected(levels)
    for levels in (DEEPEST + 1, 3 * DEEPEST, 100_000):
        assert both(expr, arrays(levels)) in (None, False)


@pytest.mark.parametrize("name", ON_OBJECTS)
def test_nested_objects(name: str) -> None:
    expr, expected = ON_OBJECTS[name]
    for levels in (800, 850, 900, DEEPEST):
        assert both(expr, objects(levels)) == expected(levels)
    for levels in (DEEPEST + 1, 3 * DEEPEST):
        assert both(expr, objects(levels)) in (None, False, (None,))


def test_brackets_in_strings_and_after_the_value_do_not_count() -> None:
    assert both(call("is_json", "array"), json.dumps(["[" * 5000, '"' + "{" * 5000])) is True
    assert both(call("json_array_length"), "[1, 2] " + "[" * 5000) == 2
    assert both(call("json_array_length"), "[" + "[]," * 5000 + "1]") == 5001


def test_paths_of_many_steps() -> None:
    for steps in (20, 21, 700):
        assert both(call("get_json_object", "$" + "[*]" * steps), arrays(900, "1")) is not None
        assert both(call("get_json_object", "$" + "[*]" * steps), arrays(5, "1")) is None


def test_one_name_many_times_within_itself() -> None:
    text = '{"a":{"b":1},"a":' * 900 + '{"b":2}' + "}" * 900
    assert both(call("get_json_object", "$" + ".a" * 900 + ".b"), text) == "1"


def test_schemas_of_variants_with_elements_that_are_nested_deeply() -> None:
    schema = resolve("schema_of_variant", [VARIANT_OF])
    for levels in (300, 900):
        assert both(schema, f"[{arrays(levels, '1')},{arrays(levels, '2')}]") == "ARRAY<" * (levels + 1) + "BIGINT" + ">" * (levels + 1)
        assert both(schema, f"[{arrays(levels, '1')},{arrays(levels, 'true')}]") == "ARRAY<" * (levels + 1) + "VARIANT" + ">" * (levels + 1)


def test_schema_of_json_has_the_limit_of_types() -> None:
    expected = "ARRAY<" * DEEPEST_TYPE + "BIGINT" + ">" * DEEPEST_TYPE
    for run in (lambda function: function(), lambda function: below(FRAMES, function)):
        schema = run(lambda: resolve("schema_of_json", [of(arrays(DEEPEST_TYPE, "1"))]))
        assert isinstance(schema, Literal) and schema.value == expected
        with pytest.raises(Unsupported, match="JSON of more than 100 levels"):
            run(lambda: resolve("schema_of_json", [of(arrays(DEEPEST_TYPE + 1, "1"))]))


def test_numbers_that_are_none_are_malformed_in_json_tuple_and_json_object_keys() -> None:
    for text in ('{"a": NaN}', '{"a": [1, -Infinity]}'):
        assert both(call("json_field", "a"), text) is None and both(call("json_object_keys"), text) is None


def test_a_delete_from_a_deep_stack_finds_its_row() -> None:
    rows = [{"id": levels, "text": text(levels)} for levels in (700, 850, 990, 1000, 1001) for text in (arrays, objects)]
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (id BIGINT, text STRING)")
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT id, json_array_length(text) AS n FROM t WHERE text IS JSON")
        with session.transaction() as tx:
            tx.insert("t", rows)
        assert len(session.view("v").rows()) == 8

        def delete() -> None:
            with session.transaction() as tx:
                tx.delete("t", rows)

        json_text.parse.cache_clear()
        below(FRAMES - 100, delete)
        assert session.view("v").rows() == []


@pytest.mark.parametrize("opening", ["(", "(?=", "(?<!", "[", "[^", "(?:a|"])
def test_nested_groups_and_classes_of_regular_expressions(opening: str) -> None:
    closing = "]" if opening[0] == "[" else ")"
    for levels in (50, java_sets.DEEPEST):
        pattern = opening * levels + "a" + closing * levels
        java_matching.compiled.cache_clear()
        assert java_matching.fault(pattern) is None
        java_matching.compiled.cache_clear()
        assert below(FRAMES, lambda pattern=pattern: java_matching.fault(pattern)) is None
    for levels in (java_sets.DEEPEST + 1, 250, 5000):
        pattern = opening * levels + "a" + closing * levels
        words = java_matching.fault(pattern)
        assert words is not None and "nested more than 100 deep" in words
        assert below(FRAMES, lambda pattern=pattern: java_matching.fault(pattern)) == words


def test_nested_sections_of_datetime_patterns() -> None:
    most = datetime_patterns.DEEPEST
    written = resolve("date_format", [resolve("to_timestamp_ntz", [TEXT]), of("[" * most + "yyyy" + "]" * most)])
    assert both(written, "2024-05-06") == "2024"
    words = datetime_patterns.fault("[" * (most + 1) + "yyyy", False)
    assert words is not None and "more than 20 optional sections" in words


def test_lines_of_json_files() -> None:
    fields = (Field("id", BIGINT), Field("v", VARIANT))

    def read(levels: int) -> tuple[int, list[str]]:
        text = f'{{"id": 1, "v": {arrays(levels)}}}\n'.encode()
        files = JsonFiles(TableSchema("t", Schema(fields)), fields)
        (block,) = files.blocks(io.BytesIO(text), "f", 0, lambda: None)
        return len(block.columns[0].array), [fault.reason for fault, _ in block.torn.values()]

    for levels in (850, 990, DEEPEST - 1):
        assert read(levels) == below(FRAMES, lambda levels=levels: read(levels)) == (1, [])
    refused = (0, ["JSON that is nested too deeply: more than 1000 levels"])
    assert read(DEEPEST) == below(FRAMES, lambda: read(DEEPEST)) == refused


def test_the_decoder_of_deep_text_is_the_other_one() -> None:
    result = doctest.testmod(json_decoding)
    assert result.attempted and not result.failed


def drawn(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.randrange(7 if depth < 4 else 5)
    if kind == 5:
        return [drawn(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind == 6:
        return {rng.choice(["a", "b", 'c"\\', "é\n", ""]): drawn(rng, depth + 1) for _ in range(rng.randrange(4))}
    return rng.choice([None, True, False, 0, -1, 2.5, 1e300, "", "x[", '"{', "é\U0001f600"])


def outcome(decode: Callable[[str], tuple[Any, int]], text: str) -> tuple[str, Any]:
    try:
        return "value", decode(text)
    except json.JSONDecodeError as error:
        return "error", (error.msg, error.pos)
    except ValueError as error:
        return "other", str(error)


@pytest.mark.parametrize("seed", range(4))
def test_both_ways_to_decode_agree(seed: int) -> None:
    """On random texts, whole and with characters taken out, put in and exchanged."""
    rng = random.Random(seed)
    for strict in (True, False):
        decoder = JsonDecoder(objects=tuple, floats=lambda text: ("float", text), integers=str, constants=json_text.refused, strict=strict)
        for _ in range(500):
            text = json.dumps(drawn(rng), ensure_ascii=rng.random() < 0.5, indent=rng.choice([None, 1]))
            for _ in range(rng.randrange(3)):
                place = rng.randrange(len(text) + 1)
                text = (
                    text[:place]
                    + rng.choice(["", ",", "]", "}", "[", "{", '"', ":", " ", "NaN", "\\", "\t", "1"])
                    + text[place + rng.randrange(3) :]
                )
            assert outcome(decoder._value, text) == outcome(decoder._decoder.raw_decode, text), text
            assert outcome(decoder.value, text) == outcome(decoder._value, text), text


def test_the_limit_of_the_decoder() -> None:
    decoder = JsonDecoder(objects=dict)
    for make in (arrays, objects):
        decoder.value(make(DEEPEST))
        with pytest.raises(NestedTooDeeply):
            decoder.value(make(DEEPEST + 1))
    with pytest.raises(EvaluationError):
        evaluate(resolve("parse_json", [TEXT]), (arrays(DEEPEST + 1),))
