"""SQL of Spark and of other systems that Deltic does not support: by position and first words, each with a remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from deltic.errors import Span, Unsupported

if TYPE_CHECKING:
    from deltic.frontends.sql.cursor import TokenCursor

LEAVE_OUT: Final = "leave it out"
ORDERED_LIST: Final = "sort_array(collect_list(struct(y, x))).x has the values of x in the order of y"
_TRANSACTION = "change tables with session.transaction(): insert, upsert, delete"
_PIVOT = ("PIVOT and UNPIVOT are not supported after LATERAL VIEW", "a subquery in FROM")
_SAMPLE = ("TABLESAMPLE is not supported: its result changes from run to run", "filter on a hash of the key")
_TRAVEL = ("time travel is not supported", "leave it out")
_TRAVELS = ("VERSION AS OF", "TIMESTAMP AS OF", "FOR VERSION", "FOR TIMESTAMP", "FOR SYSTEM_VERSION", "FOR SYSTEM_TIME")
_EMITTED = ("EMIT … is not supported", "leave it out: a view follows every change; EMIT ON WINDOW CLOSE gives each window once")
_SUBSCRIBED = "session.view(name).subscribe(function) calls it with each change"
_FOLDERS = "all files lie in the folder itself"
_UPSERT = "MERGE INTO … USING … ON … WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *, or upsert in session.transaction()"
_SCHEMAS = ("schemas are not created", "leave it out: a name may have one, as in sales.orders")

Refusals = Mapping[str, Sequence[tuple[tuple[str, ...], str, str]]]
"""By the first word: all words, the message and the remedy."""


def by_first(table: Mapping[str, tuple[str, str]]) -> Refusals:
    """The refusals of these words: each a message and a remedy."""
    refusals: dict[str, list[tuple[tuple[str, ...], str, str]]] = {}
    for words, (message, remedy) in table.items():
        split = tuple(words.split())
        refusals.setdefault(split[0], []).append((split, message, remedy))
    return refusals


AFTER_VALUE: Final[Refusals] = by_first(
    {
        "->": ("a lambda is not allowed here", "a higher-order function, such as transform(a, x -> x + 1)"),
        "=>": ("an argument with a name is not allowed here", "f(x => 1), with the name of a parameter"),
        "??": ("?? is not supported", "coalesce(a, b)"),
        "AT TIME ZONE": ("AT TIME ZONE is not supported: timestamps are in UTC", "from_utc_timestamp(t, 'Europe/Berlin'), the time there"),
    }
)
"""After a value; the place is the value and the word."""

AFTER_OPERAND: Final[Refusals] = by_first({"OVER": ("OVER belongs to the call of a window function", "row_number() OVER (ORDER BY x)")})
"""After an operand that is not the call of a function; the place is the word."""

OPERANDS: Final[Refusals] = by_first(
    {
        "IDENTIFIER (": ("IDENTIFIER() requires a name, as one string", "write the name, or IDENTIFIER(:name) with args="),
        "TABLE (": ("a table as an argument is not supported", "a view"),
        "SYMMETRIC": ("BETWEEN SYMMETRIC is not supported", "BETWEEN least(a, b) AND greatest(a, b)"),
        "ASYMMETRIC": ("BETWEEN ASYMMETRIC is not supported", LEAVE_OUT),
        "[": ("arrays are not written in brackets", "array(a, b)"),
        "{": ("structs and maps are not written in braces", "struct(a AS x, b AS y), or map(key, value)"),
    }
)
"""Where an operand is expected; the place is the word."""

AFTER_ARGUMENT: Final[Refusals] = by_first(
    {
        "AS": ("names in parentheses are not supported here", "struct(value AS name), or named_struct('name', value)"),
        **dict.fromkeys(("PARTITION BY", "DISTRIBUTE BY", "WITH SINGLE"), ("functions of tables are not supported", "a view")),
        "ORDER BY": (
            "ORDER BY is not supported between the arguments of a function",
            f"LISTAGG(…) WITHIN GROUP (ORDER BY …); {ORDERED_LIST}",
        ),
    }
)
"""After an argument of a call, and in rows in parentheses."""

AFTER_DISTINCT: Final[Refusals] = by_first(
    {"ON (": ("DISTINCT ON is not supported", "SELECT … QUALIFY row_number() OVER (PARTITION BY x ORDER BY y) = 1")}
)
"""After DISTINCT of a select list."""

AFTER_ITEM: Final[Refusals] = by_first(
    {
        **dict.fromkeys(("USING", "ROW FORMAT"), ("TRANSFORM … USING is not supported", "a function in Python over the rows of a view")),
        "INTO": ("SELECT … INTO is not supported", "CREATE VIEW name AS SELECT …"),
        "EXCLUDE (": ("EXCLUDE is not supported", "* EXCEPT (column, …)"),
        "REPLACE (": (
            "REPLACE is not supported here",
            "* EXCEPT (…) REPLACE (expression AS column) RENAME (column AS name), in this order",
        ),
    }
)

_FETCH: Final = dict.fromkeys(("FETCH FIRST", "FETCH NEXT"), ("FETCH is not supported", "LIMIT n"))
_SOURCES: Final = {
    **_FETCH,
    "TABLESAMPLE": _SAMPLE,
    "FOR SYSTEM_TIME AS OF": (
        "FOR SYSTEM_TIME AS OF is not supported",
        "leave it out: a row of a stream is joined with the rows that the table has in the tick; ASOF JOIN looks back in time",
    ),
    **{words: _TRAVEL for words in _TRAVELS},
    **dict.fromkeys(("EMIT CHANGES", "EMIT FINAL", "EMIT AFTER", "EMIT ON UPDATE"), _EMITTED),
    "MATCH_RECOGNIZE (": (
        "MATCH_RECOGNIZE is not supported",
        "lag() and lead() OVER (PARTITION BY … ORDER BY …), or a join with later rows",
    ),
    "USING SAMPLE": _SAMPLE,
    "FOR UPDATE": ("FOR UPDATE is not supported", LEAVE_OUT),
    "WITH (": ("options of a table in FROM are not supported", "OPTIONS (…) of CREATE TABLE"),
}
AFTER_SOURCE: Final = by_first(_SOURCES)

CLAUSES: Final[Refusals] = by_first(
    {
        **{words: (f"{words} is not supported", _UPSERT) for words in ("ON CONFLICT", "ON DUPLICATE")},
        **dict.fromkeys(("PIVOT (", "UNPIVOT (", "UNPIVOT INCLUDE", "UNPIVOT EXCLUDE"), _PIVOT),
        **_SOURCES,
    }
)
"""Clauses of a query; the place is the words."""

STATEMENTS: Final[Refusals] = by_first(
    {
        **{word: (f"{word} is not supported in a script", _TRANSACTION) for word in ("COPY", "LOAD")},
        **{f"ALTER {kind}": (f"ALTER {kind} is not supported", "DROP and CREATE it again") for kind in ("STREAM", "SINK", "FUNCTION")},
        **{words: (f"{words} is not supported", _UPSERT) for words in ("UPSERT", "REPLACE INTO", "INSERT OR REPLACE", "INSERT OR IGNORE")},
        **{word: (f"{word} is not supported", LEAVE_OUT) for word in ("ANALYZE", "COMMENT ON", "GRANT", "OPTIMIZE", "REVOKE", "VACUUM")},
        "REFRESH": ("REFRESH is not supported", "leave it out: every view is exact after each tick"),
        "USE": _SCHEMAS,
        "SHOW": ("SHOW is not supported in a script", "session.tables and session.views; in `deltic sql`, SHOW TABLES"),
        **dict.fromkeys(
            ("DESCRIBE", "DESC"),
            (
                "DESCRIBE is not supported in a script",
                "session.table(name).schema, session.view(name).schema; in `deltic sql`, DESCRIBE name",
            ),
        ),
        **{word: (f"{word} is not a statement", _SUBSCRIBED) for word in ("SUBSCRIBE", "TAIL")},
        "PIVOT": ("PIVOT is not a statement", "SELECT * FROM t PIVOT (sum(x) FOR k IN ('a', 'b'))"),
        "CREATE OR REPLACE SINK": ("CREATE OR REPLACE SINK is not supported", "DROP SINK, then CREATE SINK"),
    }
)

CREATED: Final[Refusals] = by_first(
    {
        **{word: (f"{word} is not supported", LEAVE_OUT) for word in ("EXTERNAL", "LOCAL", "GLOBAL", "UNLOGGED", "TRANSIENT")},
        **dict.fromkeys(("TEMPORARY TABLE", "TEMP TABLE"), ("TEMPORARY tables are not supported", LEAVE_OUT)),
        "STREAMING": ("STREAMING TABLE is not supported", "CREATE TABLE, fed with session.apply()"),
        **dict.fromkeys(("INDEX", "UNIQUE INDEX"), ("indexes are not created", "leave it out: views keep the indexes that they need")),
        **dict.fromkeys(("SCHEMA", "DATABASE"), _SCHEMAS),
        **dict.fromkeys(
            ("SOURCE", "CONNECTION"),
            ("sources are not created", "CREATE TABLE name (column type, …) USING parquet, csv or json OPTIONS (path '…')"),
        ),
        "TYPE": ("types are not created", "STRING for the words of an enumeration, STRUCT<…> for fields"),
    }
)
"""After CREATE."""

COLUMN: Final[Refusals] = by_first(
    {
        "CHECK": ("CHECK is not supported", "a view of the rows that break the rule"),
        "UNIQUE": ("UNIQUE is not supported", "PRIMARY KEY, or a view of the values that occur twice"),
        "REFERENCES": ("REFERENCES is not supported", "a view with LEFT ANTI JOIN of the rows that break it"),
        "FOREIGN KEY": ("FOREIGN KEY is not supported", "a view with LEFT ANTI JOIN of the rows that break it"),
        "WATERMARK FOR": (
            "WATERMARK FOR is not supported",
            "LATENESS INTERVAL … after the type of the column, in CREATE STREAM or CREATE TABLE",
        ),
        "NOT ENFORCED": ("NOT ENFORCED is not supported: a primary key is enforced", LEAVE_OUT),
        "GENERATED": ("GENERATED columns are not supported", "compute the column in a view"),
        **dict.fromkeys(("AUTO_INCREMENT", "AUTOINCREMENT"), ("keys are not generated", "give each row its key")),
        "[": ("types of arrays are not written in brackets", "ARRAY<type>"),
        "UNSIGNED": ("UNSIGNED is not supported", "the next larger type: BIGINT for INT, DECIMAL(20, 0) for BIGINT"),
    }
)
"""In the columns of CREATE TABLE."""

ALTERED_COLUMN: Final[Refusals] = by_first(
    {
        **dict.fromkeys(("FIRST", "AFTER"), ("the place of a new column is not supported", "leave it out: it comes after the others")),
        "PRIMARY KEY": ("a primary key cannot be added", "make a new table with it"),
        "LATENESS": ("LATENESS cannot be added", "make a new table with it"),
    }
)
"""In the columns of ALTER TABLE … ADD COLUMN."""

AFTER_TABLE: Final[Refusals] = by_first(
    {
        "TBLPROPERTIES": ("TBLPROPERTIES is not supported", "put what says how files are read and written into OPTIONS (…)"),
        "PARTITIONED": (f"PARTITIONED BY is not supported: {_FOLDERS}", LEAVE_OUT),
        "CLUSTERED": (f"CLUSTERED BY is not supported: {_FOLDERS}", LEAVE_OUT),
        "CLUSTER": (f"CLUSTER BY is not supported: {_FOLDERS}", LEAVE_OUT),
        "STORED": ("STORED AS is not supported", "USING parquet, csv or json"),
        "ROW": ("ROW FORMAT is not supported", "USING csv OPTIONS (path '…', sep '…')"),
        "LIKE": ("CREATE TABLE … LIKE is not supported", "list the columns"),
        "WITH (": ("WITH (…) is not supported", "USING parquet, csv or json OPTIONS (path '…')"),
        **dict.fromkeys(
            ("AS", "SELECT", "WITH"),
            (
                "a query is not supported here",
                "CREATE MATERIALIZED VIEW v AS the query; CREATE SINK name FROM v writes it",
            ),
        ),
    }
)
"""After the name or the columns of CREATE TABLE."""

AFTER_VIEW: Final[Refusals] = by_first(
    {
        "USING": ("USING is not allowed here", "CREATE TABLE name (column type, …) USING parquet OPTIONS (path '…')"),
        "TBLPROPERTIES": ("TBLPROPERTIES is not supported", LEAVE_OUT),
        "SCHEMA": ("WITH SCHEMA is not supported", LEAVE_OUT),
        "WITH SCHEMA": ("WITH SCHEMA is not supported", LEAVE_OUT),
    }
)


FUNCTIONS: Final = {
    "age": "a - b",
    **dict.fromkeys(("mz_now", "proctime"), "current_timestamp(), in WHERE"),
    **dict.fromkeys(
        ("read_csv", "read_csv_auto", "read_parquet", "parquet_scan", "read_json", "read_json_auto"),
        "session.load, or CREATE TABLE … USING csv, parquet or json OPTIONS (path '…')",
    ),
    "arbitrary": "any_value(x)",
    "array_to_string": "array_join(array, ',')",
    "unnest": "explode(array)",
    **dict.fromkeys(("arg_max", "argmax"), "max_by(x, y)"),
    **dict.fromkeys(("arg_min", "argmin"), "min_by(x, y)"),
    "array_concat": "concat(a, b)",
    "array_length": "array_size(a)",
    "date_bin": "time_bucket(INTERVAL '1' HOUR, ts)",
    **dict.fromkeys(("epoch", "unixepoch"), "unix_timestamp(ts)"),
    "epoch_ms": "unix_millis(ts), or timestamp_millis(n) back",
    "generate_array": "sequence(first, last)",
    "getdate": "current_timestamp()",
    "group_concat": "listagg(x, ',')",
    **dict.fromkeys(("iff", "iif"), "if(condition, a, b)"),
    **dict.fromkeys(("json_agg", "jsonb_agg"), "to_json(collect_list(x))"),
    **dict.fromkeys(("json_build_object", "json_object", "jsonb_build_object"), "to_json(struct(x AS a, y AS b))"),
    **dict.fromkeys(("json_extract", "json_extract_string", "json_value", "json_query"), "get_json_object(text, '$.a')"),
    **dict.fromkeys(("list", "grouparray"), "collect_list(x)"),
    "list_contains": "array_contains(a, x)",
    **dict.fromkeys(("list_value", "array_construct"), "array(a, b)"),
    **dict.fromkeys(("map_agg", "object_agg", "json_object_agg"), "map_from_entries(collect_list(struct(k, v)))"),
    **dict.fromkeys(("quantile_cont", "quantile"), "percentile(x, 0.5)"),
    "quantile_disc": "percentile_disc(0.5) WITHIN GROUP (ORDER BY x)",
    **dict.fromkeys(("regexp_matches", "regexp_match"), "regexp_extract_all(text, pattern, 0), or text RLIKE pattern"),
    "row": "struct(a, b)",
    "safe_cast": "try_cast(x AS type)",
    "safe_divide": "try_divide(a, b)",
    **{f"sha{bits}": f"sha2(x, {bits})" for bits in (224, 256, 384, 512)},
    **dict.fromkeys(("string_split", "string_to_array", "str_split"), "split(text, pattern)"),
    "strftime": "date_format(ts, 'yyyy-MM-dd')",
    "strpos": "instr(text, part)",
    "strptime": "to_timestamp(text, 'yyyy-MM-dd')",
    "struct_pack": "struct(a AS x, b AS y)",
    "sysdate": "current_timestamp()",
    "approx_distinct": "approx_count_distinct(x)",
    "uniq": "count(DISTINCT x)",
}
"""What serves instead of functions of other systems."""

_WINDOWS: Final = {
    "tumble": "GROUP BY window(ts, '1 hour')",
    "hop": "GROUP BY window(ts, '1 hour', '10 minutes'): the size, then the slide",
    "session": "GROUP BY session_window(ts, '5 minutes')",
    "cumulate": "GROUP BY window(ts, '10 minutes') in a view, and over it sum(n) OVER (PARTITION BY the day ORDER BY the window)",
}
_FIELDS: Final = {"_start": ".start", "_end": ".end", "_rowtime": ".end", "_proctime": ".end"}


def flink(name: str) -> tuple[str, str] | None:
    """The message and the remedy for a windowing function of Flink, or for a start or an end of one."""
    kind, field = next(((name.removesuffix(end), of) for end, of in _FIELDS.items() if name.endswith(end)), (name, ""))
    if kind not in _WINDOWS or (field and kind == "cumulate"):
        return None
    window = "session_window" if kind == "session" else "window"
    return f"{name.upper()} is Flink's, not Spark's", f"{window}{field} beside {_WINDOWS[kind]}" if field else _WINDOWS[kind]


def refuse_flink(cursor: TokenCursor) -> None:
    """Raises Unsupported at `TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), …))`, also without the outer TABLE()."""
    at = cursor.position + 2 * cursor.sees("TABLE", "(")
    name, *rest = cursor.tokens[at : at + 3]
    if [one.word for one in rest] == ["(", "TABLE"] and (refusal := flink(name.word.lower())) is not None:
        window = "session_window" if name.word == "SESSION" else "window"
        remedy = refusal[1] if name.word == "CUMULATE" else f"SELECT {window}.start, {window}.end, … FROM t {refusal[1]}"
        raise Unsupported(refusal[0], span=cursor.of(name), remedy=remedy)


def refuse(cursor: TokenCursor, refusals: Refusals, start: int | None = None) -> None:
    """Raises Unsupported if one of these comes next. start: where the place begins; None is at the words."""
    for words, message, remedy in refusals.get(cursor.word, ()):
        if cursor.sees(*words):
            last = cursor.tokens[cursor.position + len(words) - 1 - (words[-1] == "(" and len(words) > 1)]
            span = Span(cursor.text, cursor.token.start if start is None else start, last.end, cursor.name)
            raise Unsupported(message, span=span, remedy=remedy)
