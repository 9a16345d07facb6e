"""Spark's own SQL tests, tried here: `python -m benchmarks.spark_tests record FOLDER RECORDING [FILE …]`, then `… run RECORDING [FILE …]`.

`record` runs the files of FOLDER (`sql-tests/results` of the `tests` classifier of Maven's spark-sql_2.13; FILE is a path in it without
`.sql.out`, such as `count`, or a folder, such as `subquery`) in a real Spark. It keeps each query with its answer or refusal, and the
content of the views and tables that queries may read. `run` asks the same queries here, without Spark, and compares: same, refused (with
the reason), differs, and accepted though Spark refuses. Prints one line of JSON; `--list KIND` also prints the queries of a kind.
"""

from __future__ import annotations

import argparse
import json
import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.ipc
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import deltic
from benchmarks import harness
from deltic.errors import DelticError, UnknownName

MONTHS: Final = ("interval year", "interval month", "interval year to month")
KINDS: Final = ("same", "refused", "differs", "accepted")
QUERY: Final = re.compile(r"\s*(\(\s*)*(SELECT|WITH|VALUES|FROM|TABLE)\b", re.IGNORECASE)
CREATED: Final = re.compile(
    r"\s*CREATE\s+(?:OR\s+REPLACE\s+)?(?:GLOBAL\s+)?(?:TEMP(?:ORARY)?\s+)?(?:VIEW|TABLE)\s+(?:IF\s+NOT\s+EXISTS\s+)?`?(\w+)`?",
    re.IGNORECASE,
)
INSERTS: Final = re.compile(r"\s*WITH\b.*?\)\s*(?:FROM\s+\w+\s+)?INSERT\s+INTO\s+(?:TABLE\s+)?`?(\w+)`?", re.IGNORECASE | re.DOTALL)
"""A statement that begins as a query does."""
WRITTEN: Final = re.compile(
    r"\s*(?:INSERT\s+(?:INTO|OVERWRITE)|DROP\s+(?:VIEW|TABLE)(?:\s+IF\s+EXISTS)?)\s+(?:TABLE\s+)?`?(\w+)`?",
    re.IGNORECASE,
)
ELSEWHERE: Final = re.compile(r"\s*(USE|EXECUTE|WITH|FROM|MERGE|UPDATE|DELETE|TRUNCATE|ALTER)\b", re.IGNORECASE)
"""Statements after which any known relation may have other rows."""
SPARK_ONLY: Final = re.compile(
    r"\b(hll_\w+|theta_\w+|tuple_\w+|kll_\w+|st_\w+|current_(catalog|database|schema|user|path)|spark_catalog|reflect|java_method|input_file_\w+"
    r"|session_user|version|monotonically_increasing_id|spark_partition_id|rand|randn|uuid|shuffle|random|randstr|uniform"
    r"|from_avro|to_avro|schema_of_avro|from_protobuf|to_protobuf|(from|to|schema_of)_xml|xpath\w*|TABLESAMPLE)\b",
    re.IGNORECASE,
)
"""Catalogs, DataSketches, geometry, XML, Avro, Protobuf, and what is drawn at random."""
COMMENT: Final = re.compile(r"^\s*--[^\n]*\n?|/\*.*?\*/", re.MULTILINE | re.DOTALL)
DEFAULTS: Final = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"}


@dataclass(frozen=True, slots=True)
class Event:
    """What a test file did, in order. table: a relation that queries may read. query: its text; `refusal` is Spark's, "" if it has an
    answer. content: the Arrow file beside the recording, None where Spark's Arrow cannot hold it. settings: SQL settings that differ."""

    kind: str
    text: str
    types: tuple[tuple[str, str, bool], ...] = ()
    content: str | None = None
    refusal: str = ""
    settings: tuple[str, ...] = ()


def statements(path: Path) -> list[str]:
    """The statements of a results file."""
    parts = re.split(r"^-- !query\n", path.read_text(), flags=re.MULTILINE)[1:]
    return [part.split("\n-- !query schema\n")[0].strip() for part in parts]


def chosen(folder: Path, names: Sequence[str], suffix: str) -> list[Path]:
    """The files under each name, or all."""
    if not names:
        return _below(folder, suffix)
    files = [folder / f"{name}{suffix}" for name in names]
    return [path for file, name in zip(files, names, strict=True) for path in ([file] if file.exists() else _below(folder / name, suffix))]


def _below(folder: Path, suffix: str) -> list[Path]:
    return sorted(folder.rglob(f"*{suffix.removeprefix('/')}"))


class Recorder:
    """Runs one file in a Spark session of its own."""

    def __init__(self, spark: SparkSession, target: Path, database: str) -> None:
        self._spark, self._target = spark.newSession(), target
        self._settings: dict[str, str] = {}
        self._events: list[Event] = []
        self._target.mkdir(parents=True, exist_ok=True)
        for key, value in DEFAULTS.items():
            self._spark.conf.set(key, value)
        for statement in (f"DROP DATABASE IF EXISTS {database} CASCADE", f"CREATE DATABASE {database}", f"USE {database}"):
            self._spark.sql(statement)

    def record(self, texts: Sequence[str]) -> list[Event]:
        for text in texts:
            bare = COMMENT.sub("", text)
            if QUERY.match(bare) and not INSERTS.match(bare):
                self._query(text)
            else:
                self._set_up(bare, text)
        return self._events

    def _query(self, text: str) -> None:
        settings = tuple(f"{key}={value}" for key, value in self._settings.items())
        try:
            frame = self._spark.sql(text)
            types = _types(frame)
            frame.write.format("noop").mode("overwrite").save()
        except Exception as error:  # whatever Spark says is its refusal
            name = error.getCondition() if isinstance(error, PySparkException) else None
            self._events.append(Event("query", text, refusal=name or type(error).__name__, settings=settings))
            return
        self._events.append(Event("query", text, types, self._save(frame), settings=settings))

    def _set_up(self, bare: str, text: str) -> None:
        try:
            self._spark.sql(text).collect()
        except Exception:  # many files test what is refused
            return
        if match := re.match(r"\s*SET\s+([\w.]+)\s*=\s*(.*)", bare, re.IGNORECASE):
            self._settings[match[1]] = match[2].strip()
        elif match := re.match(r"\s*(?:RESET|UNSET)\s*([\w.]*)", bare, re.IGNORECASE):
            self._settings.pop(match[1], None) if match[1] else self._settings.clear()
        if match := CREATED.match(bare) or WRITTEN.match(bare):
            self._relation(match[1])
        elif ELSEWHERE.match(bare):
            for name in dict.fromkeys(event.text for event in self._events if event.kind == "table"):
                self._relation(name)

    def _relation(self, name: str) -> None:
        try:
            frame = self._spark.table(name)
        except PySparkException:
            self._events.append(Event("table", name))
            return
        frame = frame.drop(*(field.name for field in frame.schema.fields if field.dataType.simpleString() == "interval"))
        self._events.append(Event("table", name, _types(frame), self._save(frame)))

    def _save(self, frame: Any) -> str | None:
        name = f"{len(self._events)}.arrow"
        try:
            table = _held(frame).toArrow()
            with pa.ipc.new_file(str(self._target / name), table.schema) as writer:
                writer.write_table(table)
        except Exception:  # a type that Spark's Arrow has not
            return None
        return name


def _held(frame: Any) -> Any:
    """The frame with INTERVALs of months as INTs, since Spark's Arrow does not have them."""
    kinds = [field.dataType.simpleString() for field in frame.schema.fields]
    if not any(kind in MONTHS for kind in kinds):
        return frame
    columns = [f"CAST(CAST(c{i} AS INTERVAL MONTH) AS INT)" if kind in MONTHS else f"c{i}" for i, kind in enumerate(kinds)]
    return frame.toDF(*(f"c{i}" for i in range(len(kinds)))).selectExpr(*columns)


def _types(frame: Any) -> tuple[tuple[str, str, bool], ...]:
    """The columns' names, types as SQL has them, and whether they are nullable."""
    fields = frame.schema.fields
    return tuple((f.name, (f.metadata or {}).get("__CHAR_VARCHAR_TYPE_STRING", f.dataType.simpleString()), f.nullable) for f in fields)


def record(spark: SparkSession, folder: Path, target: Path, names: Sequence[str]) -> None:
    """Records the files that have no recording yet."""
    for path in chosen(folder, names, ".sql.out"):
        relative = path.relative_to(folder).as_posix().removesuffix(".sql.out")
        done = target / relative / "events.json"
        if done.exists():
            continue
        database = "t_" + re.sub(r"\W", "_", relative)
        recorded = Recorder(spark, target / relative, database).record(statements(path))
        done.write_text(json.dumps([{name: getattr(event, name) for name in Event.__slots__} for event in recorded]))
        harness.progress(f"{relative}: {len(recorded)} events")


def _spark(warehouse: Path) -> SparkSession:
    builder = SparkSession.builder.master("local[1]").appName("spark-tests").config("spark.sql.warehouse.dir", str(warehouse))
    spark = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "1").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    return spark


def events(path: Path) -> Iterator[Event]:
    for event in json.loads(path.read_text()):
        types = tuple((name, kind, nullable) for name, kind, nullable in event.pop("types"))
        yield Event(types=types, **{**event, "settings": tuple(event["settings"])})


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one query."""

    kind: str
    why: str
    file: str
    text: str


class Trial:
    """The queries of one file, run by this process."""

    def __init__(self, folder: Path, file: str) -> None:
        self._folder, self._file = folder, file
        self._relations: dict[str, Event] = {}
        self._session = deltic.Session()
        self._made: set[str] = set()

    def outcomes(self) -> Iterator[Outcome]:
        for event in events(self._folder / "events.json"):
            if event.kind == "table":
                self._forget(event)
            elif not SPARK_ONLY.search(event.text) and not event.settings:
                kind, why = self._tried(event)
                yield Outcome(kind, why, self._file, event.text)
        self._session.close()

    def _forget(self, event: Event) -> None:
        self._relations[event.text.lower()] = event
        if event.text.lower() in self._made:
            self._session.sql(f"DROP TABLE `{event.text}`")
            self._made.discard(event.text.lower())

    def _tried(self, event: Event) -> tuple[str, str]:
        columns = ", ".join(f"c{i}" for i in range(len(event.types)))
        for _ in range(30):
            try:
                self._session.sql(f"CREATE MATERIALIZED VIEW __q{f' ({columns})' if columns else ''} AS {event.text}")
                break
            except UnknownName as error:
                name = self._missing(error)
                if name is None:
                    return self._refused(event, error)
                try:
                    self._create(name)
                except DelticError as refusal:
                    self._session.sql(f"DROP TABLE IF EXISTS `{name}`")
                    return self._refused(event, refusal, f"relation {name}: ")
            except DelticError as error:
                return self._refused(event, error)
            except Exception as error:  # a raw error is a defect, and reported as one
                return "differs", f"raw {type(error).__name__}: {error}"[:200]
        try:
            return self._compared(event, self._session.view("__q").to_arrow())
        finally:
            self._session.sql("DROP VIEW __q")

    def _refused(self, event: Event, error: DelticError, prefix: str = "") -> tuple[str, str]:
        if event.refusal:
            return "same", "refused by both"
        return "refused", prefix + str(error).splitlines()[0]

    def _missing(self, error: UnknownName) -> str | None:
        match = re.search(r"table or view .(\w+)", error.message)
        name = match[1].lower() if match else None
        return name if name in self._relations and name not in self._made and self._relations[name].content else None

    def _create(self, name: str) -> None:
        event = self._relations[name]
        declared = ", ".join(f"`{column}` {kind}" for column, kind, _ in event.types)
        self._session.sql(f"CREATE TABLE `{name}` ({declared})")
        with self._session.transaction() as tx:
            tx.insert(name, content(self._folder, event).rename_columns([column for column, _, _ in event.types]))
        self._made.add(name)

    def _compared(self, event: Event, answer: pa.Table) -> tuple[str, str]:
        if event.refusal:
            return "accepted", event.refusal
        if event.content is None:
            return "refused", "Spark's Arrow cannot hold the answer"
        expected = content(self._folder, event)
        if len(expected.columns) != len(answer.columns):
            return "differs", f"{len(answer.columns)} columns, in Spark {len(expected.columns)}"
        kinds = [(str(a.type), str(b.type)) for a, b in zip(answer.columns, expected.columns, strict=True)]
        if unlike := [pair for pair in kinds if _plain(pair[0]) != _plain(pair[1])]:
            return "differs", f"type {unlike[0][0]}, in Spark {unlike[0][1]}"
        ours, theirs = rows(answer), rows(expected)
        if ours == theirs:
            return "same", ""
        return "differs", f"only here {list((ours - theirs).elements())[:3]}, only in Spark {list((theirs - ours).elements())[:3]}"[:400]


def _plain(kind: str) -> str:
    """The type without what differs for one type of SQL: a TIME within a STRUCT is in nanoseconds in Spark."""
    return kind.replace("large_", "").replace(" not null", "").replace("time64[ns]", "time64[us]")


def content(folder: Path, event: Event) -> pa.Table:
    assert event.content is not None
    with pa.OSFile(str(folder / event.content)) as file:
        return pa.ipc.open_file(file).read_all()


def rows(table: pa.Table) -> Counter[str]:
    """The rows as a multiset; NaN equals NaN, and 0.0 is not -0.0."""
    columns = [column.to_pylist() for column in table.columns]
    return Counter(repr(row) for row in zip(*columns, strict=True)) if columns else Counter()


def run(recording: Path, names: Sequence[str], listed: Sequence[str]) -> None:
    """Asks every recorded query here."""
    by_file: dict[str, Counter[str]] = {}
    reasons: Counter[str] = Counter()
    for path in chosen(recording, names, "/events.json"):
        file = path.parent.relative_to(recording).as_posix()
        outcomes = list(Trial(path.parent, file).outcomes())
        by_file[file] = Counter(outcome.kind for outcome in outcomes)
        for outcome in outcomes:
            if outcome.kind == "refused":
                reasons[re.sub(r"^\[[\w-]+\] <sql>:\d+:\d+: ", "", outcome.why)] += 1
            if outcome.kind in listed:
                print(f"--- {outcome.kind} {outcome.file}: {outcome.why}\n{outcome.text}\n")
        harness.progress(f"{file}: {dict(by_file[file])}")
    totals = sum(by_file.values(), Counter())
    queries = sum(totals.values())
    harness.emit(
        {
            "benchmark": "spark_tests",
            "queries": queries,
            **{kind: totals[kind] for kind in KINDS},
            "reasons": dict(reasons.most_common(60)),
            "files": {file: dict(counts) for file, counts in by_file.items()},
        }
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark_tests", description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="run the files in Spark, and keep what it answers")
    recording.add_argument("folder", type=Path)
    recording.add_argument("recording", type=Path)
    recording.add_argument("files", nargs="*")
    running = commands.add_parser("run", help="ask the recorded queries here")
    running.add_argument("recording", type=Path)
    running.add_argument("files", nargs="*")
    running.add_argument("--list", choices=KINDS, action="append", default=[], help="print the queries of a kind too")
    options = parser.parse_args()
    if options.command == "record":
        spark = _spark(options.recording / "warehouse")
        record(spark, options.folder, options.recording, options.files)
        spark.stop()
    else:
        run(options.recording, options.files, options.list)


if __name__ == "__main__":
    main()
