"""Scripts with sources and sinks: what they mean, and that options come through however they are written."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

import deltic
from deltic.connectors.files.connector import FileSinkSpec, FileSourceSpec
from deltic.connectors.registry import sink_spec, source_spec
from deltic.errors import QueryError
from deltic.frontends.sql import CreateSink, CreateTable, DropSink, Statement, bind_query, parse_script
from deltic.schema import BIGINT, INT, Field, Schema, TableSchema
from parts import slow
from random_options import TEXTS, random_csv, random_source, written_options
from seeds import rotating
from sql_data import TestCatalog

ROOT = Path(__file__).parents[2]


def one(sql: str) -> Statement:
    (statement,) = parse_script(sql, "s", TestCatalog())
    return statement


def source_of(clauses: str) -> FileSourceSpec:
    statement = one(f"CREATE TABLE x (a INT) {clauses}")
    assert isinstance(statement, CreateTable)
    return declared(statement)


def declared(statement: CreateTable) -> FileSourceSpec:
    assert statement.source is not None
    spec = source_spec(statement.table, statement.source)
    assert isinstance(spec, FileSourceSpec)
    return spec


def sink_of(clauses: str) -> FileSinkSpec:
    statement = one(f"CREATE SINK s FROM v {clauses}")
    assert isinstance(statement, CreateSink)
    spec = sink_spec(statement.name, statement.sink)
    assert isinstance(spec, FileSinkSpec)
    return spec


def written(source: FileSourceSpec | FileSinkSpec) -> str:
    return source.span.text[source.span.start : source.span.end]


def test_a_table_of_files() -> None:
    sql = (
        "CREATE TABLE IF NOT EXISTS orders (id BIGINT, `n b` INT NOT NULL, PRIMARY KEY (id)) USING Parquet "
        "OPTIONS (path '../in', op_column '_op', on_error 'dead_letter', dead_letter_path 'letters') COMMENT 'all orders'"
    )
    statement = one(sql)
    assert isinstance(statement, CreateTable)
    assert statement.table == TableSchema("orders", Schema((Field("id", BIGINT, False), Field("n b", INT, False))), (0,))
    source = declared(statement)
    assert (source.format, source.path, source.op_column) == ("parquet", "../in", "_op")
    assert (source.on_error, source.dead_letter_path) == ("dead_letter", "letters")
    assert written(source) == "'../in'"
    span = source.dead_letter_span
    assert span is not None
    assert sql[span.start : span.end] == "'letters'"


def test_defaults_are_those_of_spark() -> None:
    source = source_of("USING csv OPTIONS (path 'in')")
    assert (source.op_column, source.on_error, source.dead_letter_path) == (None, "fail", None)
    assert (source.header, source.sep, source.null_value) == (False, ",", "")
    sink = sink_of("USING csv OPTIONS (path 'out', mode 'changes')")
    assert (sink.header, sink.sep) == (False, ",")


def test_a_table_without_using_has_no_source() -> None:
    statement = one("CREATE TABLE options (options INT, location INT) COMMENT 'USING parquet'")
    assert isinstance(statement, CreateTable)
    assert (statement.table.name, statement.source) == ("options", None)


@pytest.mark.parametrize(
    "options",
    [
        "OPTIONS (path 'in', header TRUE, sep '\\t', nullValue 'NA')",
        "OPTIONS ('path' 'in', \"header\" 'true', 'sep' '\t', 'nullValue' 'NA')",
        "OPTIONS (`path` = 'in', HEADER = true, Sep = '\\u0009', nullvalue = \"NA\")",
        "OPTIONS('path'='in','header'='TRUE','delimiter'='\\t','NULLVALUE'='NA')",
        "LOCATION 'in' OPTIONS (header TRUE, sep '\t', nullValue r'NA')",
        "COMMENT 'x' OPTIONS (/* the header */ header TRUE, -- and\n sep '\t', nullValue 'NA') LOCATION \"in\"",
    ],
)
def test_options_may_be_written_as_in_spark(options: str) -> None:
    expected = FileSourceSpec("csv", "in", None, "fail", None, True, "\t", "NA", source_of("USING json LOCATION 'x'").span)
    assert source_of(f"USING csv {options}") == expected


def test_append_only_is_the_default() -> None:
    assert source_of("USING json OPTIONS (path 'in', append_only 'true')") == source_of("USING json OPTIONS (path 'in')")
    both = source_of("USING json OPTIONS (path 'in', append_only FALSE, op_column 'op')")
    assert both.op_column == "op"


def test_a_sink() -> None:
    sql = "create sink if not exists `my sink` from v using CSV options (path 's3://b/out', mode 'SNAPSHOT', header true, sep ';')"
    statement = one(sql)
    assert isinstance(statement, CreateSink)
    assert (statement.name, statement.view, statement.if_not_exists) == ("my sink", "v", True)
    assert [sql[span.start : span.end] for span in (statement.span, statement.view_span)] == ["`my sink`", "v"]
    sink = sink_spec(statement.name, statement.sink)
    assert sink == FileSinkSpec("csv", "s3://b/out", "snapshot", True, ";", statement.span)
    assert written(sink) == "'s3://b/out'"


def test_drop_sink() -> None:
    first, second = parse_script("DROP SINK s; drop sink if exists `my sink`", "s", TestCatalog())
    assert isinstance(first, DropSink)
    assert (first.name, first.if_exists) == ("s", False)
    assert isinstance(second, DropSink)
    assert (second.name, second.if_exists) == ("my sink", True)


def test_places_are_of_the_whole_script() -> None:
    text = "CREATE TABLE a (id INT);\nCREATE SINK b FROM v\n  USING parquet OPTIONS (path 'x', mode 'chnages')"
    sink = list(parse_script(text, "script.sql", TestCatalog()))[1]
    assert isinstance(sink, CreateSink)
    with pytest.raises(QueryError) as caught:
        sink_spec(sink.name, sink.sink)
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (3, 41)


def test_a_sink_is_not_a_query() -> None:
    with pytest.raises(QueryError, match="expected one query"):
        bind_query("DROP SINK s", "s", TestCatalog())


@pytest.mark.parametrize("seeds", [range(50), *slow(rotating(1_000))], ids=len)
def test_random_options_of_a_source_come_through(seeds: range) -> None:
    for seed in seeds:
        check_source_options(seed)


def check_source_options(seed: int) -> None:
    chance = random.Random(seed)
    format, options = random_source(chance)
    source = source_of(f"USING {format} OPTIONS{written_options(options, chance)}")
    assert (source.format, source.path, source.op_column) == (format, options["path"], options.get("op_column"))
    assert (source.on_error, source.dead_letter_path) == (options.get("on_error", "fail"), options.get("dead_letter_path"))
    assert (source.header, source.null_value) == (options.get("header") == "true", options.get("nullValue", ""))
    assert source.sep == options.get("sep", options.get("delimiter", ","))


@pytest.mark.parametrize("seeds", [range(50), *slow(rotating(1_000))], ids=len)
def test_random_options_of_a_sink_come_through(seeds: range) -> None:
    for seed in seeds:
        check_sink_options(seed)


def check_sink_options(seed: int) -> None:
    chance = random.Random(seed)
    format, mode = chance.choice(("parquet", "csv", "json")), chance.choice(("changes", "snapshot"))
    options = {"path": chance.choice(TEXTS), "mode": mode, **random_csv(format, chance, False)}
    sink = sink_of(f"USING {format} OPTIONS{written_options(options, chance)}")
    assert (sink.format, sink.path, sink.mode) == (format, options["path"], mode)
    assert (sink.header, sink.sep) == (options.get("header") == "true", options.get("sep", options.get("delimiter", ",")))


@pytest.mark.parametrize("seeds", [range(100), *slow(rotating(1_000))], ids=len)
def test_a_statement_with_missing_or_duplicate_words_is_refused_with_a_place_or_accepted(seeds: range) -> None:
    for seed in seeds:
        check_mutated_statement(seed)


def check_mutated_statement(seed: int) -> None:
    chance = random.Random(seed)
    words = re.findall(
        r"'[^']*'|\w+|\S",
        "CREATE TABLE x (a INT) USING csv OPTIONS (path 'in', header TRUE, sep = ';') COMMENT 'c'"
        if seed % 2
        else "CREATE SINK IF NOT EXISTS s FROM v USING csv OPTIONS (path 'out', mode 'changes', sep = ';') LOCATION 'out'",
    )
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(words))
        words[at : at + 1] = chance.choice(([], [words[at]] * 2, [chance.choice(words)]))
    try:
        for statement in parse_script(" ".join(words), "s", TestCatalog()):
            if isinstance(statement, CreateTable) and statement.source is not None:
                declared(statement)
            if isinstance(statement, CreateSink):
                sink_spec(statement.name, statement.sink)
    except QueryError as error:
        assert error.span is not None


SCRIPTS = re.findall(r"^```sql\n(.*?)^```", (ROOT / "docs" / "sql.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_the_scripts_of_the_guide_are_understood() -> None:
    assert SCRIPTS
    for script in SCRIPTS:
        with deltic.Session() as session:
            session.sql(script)
            assert session.sources
            assert session.sinks
