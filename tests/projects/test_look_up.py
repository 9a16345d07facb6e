"""Looking up the tables of a project: one question for a schema, the log of those in Delta, and Spark where these do not say enough."""

from __future__ import annotations

import dataclasses
import json
import socket
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from deltic.errors import QueryError
from deltic.frontends.sql.parse_dataset import parse_definitions
from deltic.schema import BIGINT, STRING, TIMESTAMP, Field, Schema, decimal
from deltic.types import Type

pytest.importorskip("pyspark.sql.connect.proto")
from pyspark.sql.types import LongType, StringType, StructField, StructType

deltalake = pytest.importorskip("deltalake")

from deltic.projects.declared import declared_schema  # noqa: E402  needs the extra
from deltic.projects.definitions import Dataset, FilePlace  # noqa: E402  needs the extra
from deltic.projects.layout import TableLayout, partitions_of  # noqa: E402  needs the extra
from deltic.projects.names import Names  # noqa: E402  needs the extra
from deltic.projects.notes import NOTE, ProjectNotes  # noqa: E402  needs the extra
from deltic.projects.server import Server, check_reachable  # noqa: E402  needs the extra
from deltic.projects.tables import CatalogTables  # noqa: E402  needs the extra

COLUMNS = {"k": "BIGINT", "n": "DECIMAL(9,2)", "at": "TIMESTAMP", "s": "STRING"}


class FakeServer(Server):
    """A catalog of tables by name: a folder in Delta, and its id as Spark says it."""

    def __init__(self, folders: dict[str, Path], identity: str = "", *, lists: bool = True) -> None:
        super().__init__(Names(), {}, "sc://nowhere")
        self.folders, self.identity, self.lists, self.asked = folders, identity, lists, list[str]()

    def exists(self, identifier: str) -> bool:
        self.asked.append(f"exists {identifier}")
        return identifier.strip("`") in self.folders

    def sql(self, statement: str, **frames: Any) -> list[Any]:
        self.asked.append(statement)
        if statement.startswith("SHOW TABLE EXTENDED"):
            if not self.lists:
                raise QueryError("Spark: [UNSUPPORTED] this catalog does not list tables so")
            return [self.row(name, folder) for name, folder in self.folders.items()] + [{**self.row("temp", Path()), "isTemporary": True}]
        if statement.startswith("DESCRIBE DETAIL"):
            return [{"id": self.identity}]
        if statement.startswith(("CREATE TABLE", "ALTER TABLE", "DROP TABLE", "COMMENT ON", "BEGIN")):
            return []
        assert statement.startswith("DESCRIBE EXTENDED"), statement
        name = statement.split("`")[1]
        return [("k", "bigint", None), ("Provider", "delta", ""), ("Location", str(self.folders[name]), "")]

    def row(self, name: str, folder: Path) -> dict[str, Any]:
        comment = "Comment: mine\nProvider: csv\nLocation: /elsewhere"
        text = f"Catalog: spark_catalog\nTable: {name}\nType: MANAGED\nProvider: delta\n{comment}\nLocation: file:{folder}\n\n"
        return {"tableName": name.upper(), "isTemporary": False, "information": text}


class Tables(CatalogTables):
    def _default_format(self) -> str:
        return "parquet"

    def _columns(self, dataset: Dataset) -> dict[str, str]:
        return {"from": "Spark"}


def dataset(name: str) -> Dataset:
    return Dataset(name, f"`{name}`", "materialized view", FilePlace("a.sql", 1), format="delta")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    types = ("long", "decimal(9,2)", "timestamp", "string")
    fields = [deltalake.Field(name, deltalake.schema.PrimitiveType(type)) for name, type in zip(COLUMNS, types, strict=True)]
    deltalake.DeltaTable.create(str(tmp_path / "t"), deltalake.Schema(fields))
    return tmp_path / "t"


def looked_up(server: Server, identities: dict[str, str], *names: str) -> dict[str, Any]:
    tables = Tables(server, "/storage", "/state", ProjectNotes(identities=identities))
    tables.look_up(map(dataset, names))
    return tables._layouts


def test_tables_whose_id_is_noted_take_one_question(folder: Path) -> None:
    noted = deltalake.DeltaTable(str(folder)).metadata().id
    server = FakeServer({"v": folder}, noted)
    assert looked_up(server, {"v": noted, "w": "another"}, "v", "w", "temp") == {"v": TableLayout("delta", COLUMNS, ())}
    assert server.asked == ["SHOW TABLE EXTENDED IN `spark_catalog`.`default` LIKE 'v|w|temp'"]
    assert server.located("`v`")["Location"] == f"file:{folder}"


def test_the_id_is_asked_for_once(folder: Path) -> None:
    noted = deltalake.DeltaTable(str(folder)).metadata().id
    server, identities = FakeServer({"v": folder}, noted), {"v": "that of an earlier table"}
    assert looked_up(server, identities, "v") == {"v": TableLayout("delta", COLUMNS, ())} and identities == {"v": noted}
    assert server.asked[1:] == ["DESCRIBE DETAIL `v`"]


def test_a_folder_that_is_not_the_table_of_the_catalog_is_not_read(folder: Path) -> None:
    server, identities = FakeServer({"v": folder}, "the table of another machine"), dict[str, str]()
    assert looked_up(server, identities, "v") == {"v": TableLayout("delta", {"from": "Spark"}, ())} and not identities


def test_catalogs_that_do_not_list_are_asked_for_each_table(folder: Path) -> None:
    noted = deltalake.DeltaTable(str(folder)).metadata().id
    server = FakeServer({"v": folder}, noted, lists=False)
    assert looked_up(server, {"v": noted}, "v", "w") == {"v": TableLayout("delta", COLUMNS, ()), "w": None}
    assert {"exists `v`", "exists `w`", "DESCRIBE EXTENDED `v`"} < set(server.asked)


def test_names_that_a_pattern_cannot_have_are_asked_for_alone(folder: Path) -> None:
    server = FakeServer({"a*b": folder}, deltalake.DeltaTable(str(folder)).metadata().id)
    assert looked_up(server, {}, "a*b") == {"a*b": TableLayout("delta", COLUMNS, ())}
    assert server.asked[0] == "exists `a*b`"


def test_nested_columns_are_those_that_spark_says(tmp_path: Path) -> None:
    nested = deltalake.schema.ArrayType(deltalake.schema.PrimitiveType("long"), contains_null=True)
    made = deltalake.DeltaTable.create(str(tmp_path / "n"), deltalake.Schema([deltalake.Field("a", nested)]))
    server = FakeServer({"v": tmp_path / "n"}, made.metadata().id)
    assert looked_up(server, {}, "v") == {"v": TableLayout("delta", {"from": "Spark"}, ())}


def test_a_table_that_has_been_made_again_is_looked_up_again(folder: Path) -> None:
    server = FakeServer({"v": folder}, "")
    server.listed(("spark_catalog", "default"), {"v": "`v`"})
    server.forget("`v`")
    assert not server.is_listed("`v`") and cast(Any, server.located("`v`"))["Location"] == str(folder)


def test_tables_that_are_not_there_are_created(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noted = deltalake.DeltaTable(str(folder)).metadata().id
    server = FakeServer({"v": folder}, noted)
    monkeypatch.setattr(Server, "under", lambda *_: nullcontext())
    tables = Tables(server, "/storage", "/state", ProjectNotes(identities={"v": noted}))
    tables.look_up([dataset("v"), dataset("w")])
    schema = Schema((Field("k", BIGINT), Field("n", decimal(9, 2)), Field("at", TIMESTAMP), Field("s", STRING)))
    assert [tables.differs(dataset(name), schema) for name in "vw"] == [False, True]
    assert (tables.create(dataset("v"), schema), tables.create(dataset("w"), schema)) == ("kept", "new")
    assert [one for one in server.asked if one.startswith("CREATE")] == [
        "CREATE TABLE `w` (`k` BIGINT, `n` DECIMAL(9,2), `at` TIMESTAMP, `s` STRING) USING delta"
    ]


def created(folder: Path, monkeypatch: pytest.MonkeyPatch, schema: Schema, **changed: Any) -> tuple[str, list[str]]:
    """What becomes of the table of a streaming table, and the statements. changed: parts of the dataset."""
    noted = deltalake.DeltaTable(str(folder)).metadata().id
    server = FakeServer({"v": folder}, noted)
    monkeypatch.setattr(Server, "under", lambda *_: nullcontext())
    tables, from_nothing = Tables(server, "/storage", "/state", ProjectNotes(identities={"v": noted})), changed.pop("from_nothing", False)
    one = dataclasses.replace(dataset("v"), **{"kind": "streaming table", **changed})
    tables.look_up([one])
    return tables.create(one, schema, from_nothing=from_nothing), server.asked[1:]


FIELDS = (Field("k", BIGINT), Field("n", decimal(9, 2)), Field("at", TIMESTAMP), Field("s", STRING))


def test_a_streaming_table_gets_columns_and_keeps_its_rows(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    more = Schema((*FIELDS, Field("new", STRING), Field("n2", BIGINT)))
    assert created(folder, monkeypatch, more) == ("extended", ["ALTER TABLE `v` ADD COLUMNS (`new` STRING, `n2` BIGINT)"])
    assert created(folder, monkeypatch, Schema(FIELDS[:2])) == ("kept", [])
    done, asked = created(folder, monkeypatch, Schema(FIELDS[:2]), from_nothing=True)
    assert (
        done == "again"
        and asked[0] == "DROP TABLE `v`"
        and asked[1].startswith("CREATE TABLE `v` (`k` BIGINT, `n` DECIMAL(9,2)) USING delta")
    )
    assert created(folder, monkeypatch, Schema(FIELDS[:2]), kind="materialized view") == ("pending", [])


@pytest.mark.parametrize(
    ("schema", "changed", "message"),
    [
        (Schema((Field("k", STRING),)), {}, "a.sql:1: the table v has the column k BIGINT, its flows return STRING"),
        (Schema(FIELDS), {"format": "parquet"}, "a.sql:1: the table v has the format delta, not parquet"),
    ],
)
def test_a_streaming_table_is_not_dropped(
    folder: Path, monkeypatch: pytest.MonkeyPatch, schema: Schema, changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(QueryError) as raised:
        created(folder, monkeypatch, schema, **changed)
    assert raised.value.message == message and raised.value.remedy == "--full-refresh v, which reads its streams again"
    assert created(folder, monkeypatch, schema, **changed, from_nothing=True)[0] == "again"


NOTED = StructType([StructField("k", LongType(), False, {"comment": "it's the key"}), StructField("s", StringType(), True)])


@pytest.mark.parametrize(
    "declared",
    ['k BIGINT NOT NULL COMMENT "it\'s the key", s STRING', NOTED, "CREATE"],
    ids=["DDL", "StructType", "SQL"],
)
def test_columns_are_created_as_they_are_declared(folder: Path, monkeypatch: pytest.MonkeyPatch, declared: Any) -> None:
    if declared == "CREATE":
        columns = 'k BIGINT NOT NULL COMMENT "it\'s the key", s VARCHAR(9)'
        (statement,) = parse_definitions(f"CREATE MATERIALIZED VIEW v ({columns}) AS SELECT 1 AS k, 'a' AS s", "a.sql")
        declared = cast(Any, statement).clauses.columns
    monkeypatch.setattr(Server, "under", lambda *_: nullcontext())
    server = FakeServer({}, "")
    tables, one = Tables(server, "/storage", "/state", ProjectNotes()), dataclasses.replace(dataset("v"), schema=declared)
    schema = declared_schema(one)
    assert schema is not None and tables.create(one, schema) == "new"
    assert server.asked == ["CREATE TABLE `v` (`k` BIGINT NOT NULL COMMENT 'it\\'s the key', `s` STRING) USING delta"]


def test_a_column_of_limited_text_is_the_same_the_next_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limited = Schema((*FIELDS[:3], Field("s", Type("VARCHAR", 20))))
    assert created(folder, monkeypatch, limited) == ("kept", [])


def test_a_server_that_is_not_there_is_an_error_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("grpc_proxy", "https_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(QueryError, match=rf"there is no Spark Connect server at sc://127.0.0.1:{port}: .*refused"):
            _ = Server(Names(), {}, f"sc://127.0.0.1:{port}/;token=secret").session
        unused.listen()
        check_reachable(f"sc://127.0.0.1:{port}/;user_id=me")
    for url in ("http://host", "sc://", "host:15002"):
        with pytest.raises(QueryError, match="invalid URL of a server"):
            check_reachable(url)


class Frame:
    """A DataFrame that is written to files."""

    def __init__(self) -> None:
        self.write, self.written = self, list[str]()

    def format(self, name: str) -> Frame:
        return self

    def mode(self, mode: str) -> Frame:
        return self

    def partitionBy(self, *names: str) -> Frame:
        return self

    def save(self, location: str) -> None:
        Path(location).mkdir(parents=True)
        (Path(location) / "part.parquet").write_text("new")


def pending(
    storage: Path, monkeypatch: pytest.MonkeyPatch, found: TableLayout, **changed: Any
) -> tuple[CatalogTables, Dataset, FakeServer]:
    """A view whose table has other columns."""
    monkeypatch.setattr(Server, "under", lambda *_: nullcontext())
    server = FakeServer({"v": storage})
    server._session = cast(Any, SimpleNamespace(catalog=SimpleNamespace(refreshTable=lambda name: None)))
    tables, one = Tables(server, str(storage), "/state", ProjectNotes()), dataclasses.replace(dataset("v"), **changed)
    tables._layouts = {"v": found}
    assert tables.create(one, Schema((Field("k", BIGINT), Field("n", STRING)))) == "pending" and server.asked == []
    return tables, one, server


def test_a_view_of_files_with_other_columns_is_exchanged_when_its_rows_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tmp_path / "_deltic_tables" / "v" / "before"
    before.mkdir(parents=True)
    (before / "part.parquet").write_text("old")
    found = TableLayout("parquet", {"k": "BIGINT"}, ())
    tables, one, server = pending(tmp_path, monkeypatch, found, format="parquet", partitions=("n",), comment="it's")
    location = tables.replace(one, cast(Any, Frame()), str(before))
    assert server.asked == [
        f"ALTER TABLE `v` SET LOCATION '{before}-dropped'",
        "BEGIN DROP TABLE `v`; CREATE TABLE `v` (`k` BIGINT, `n` STRING) USING parquet PARTITIONED BY (`n`) "
        f"COMMENT 'it\\'s' LOCATION '{location}'; END",
    ]
    assert (before / "part.parquet").read_text() == "old", "queries that read it can end"
    assert sorted(folder.name for folder in before.parent.iterdir()) == sorted(["before", Path(location or "").name])
    tables.replace(one, cast(Any, Frame()), location)
    assert server.asked[2].startswith("ALTER TABLE `v` SET LOCATION"), "once"


def test_a_view_in_delta_with_other_columns_is_exchanged_in_one_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeServer, "sql", lambda self, statement, **frames: self.asked.append(statement) or [])
    declared = StructType([StructField("k", LongType(), True, {"comment": "the key"}), StructField("n", StringType())])
    tables, one, server = pending(tmp_path, monkeypatch, TableLayout("delta", {"k": "INT", "n": "STRING"}, ()), schema=declared)
    assert tables.direct(one) is None, "rows of other columns are not written to it"
    assert tables.replace(one, cast(Any, Frame()), None) is None
    assert server.asked == [
        "CREATE OR REPLACE TABLE `v` USING delta AS SELECT * FROM {rows}",
        "ALTER TABLE `v` ALTER COLUMN `k` COMMENT 'the key'",
    ]


def test_a_table_that_is_partitioned_otherwise_is_exchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {"k": "BIGINT", "n": "STRING"}
    pending(tmp_path, monkeypatch, TableLayout("parquet", columns, ("k",)), format="parquet", partitions=("n",))
    pending(tmp_path, monkeypatch, TableLayout("parquet", columns, ("k",)), format="parquet")
    server = FakeServer({})
    for known in (("n",), None):
        tables, one = Tables(server, "/storage", "/state", ProjectNotes()), dataclasses.replace(dataset("v"), partitions=("N",))
        tables._layouts = {"v": TableLayout("delta", columns, known)}
        assert tables.create(one, Schema((Field("k", BIGINT), Field("n", STRING)))) == "kept"
    stream = dataclasses.replace(one, kind="streaming table", partitions=())
    tables._layouts = {"v": TableLayout("delta", columns, ("k", "n"))}
    with pytest.raises(QueryError, match=r"a.sql:1: the table v is partitioned by \(k, n\)"):
        tables.create(stream, Schema((Field("k", BIGINT), Field("n", STRING))))


def test_the_columns_of_partitions_are_those_that_spark_lists() -> None:
    assert partitions_of({"Partition Columns": "[`Day`, `a``b`]"}) == ("day", "a`b") and partitions_of({}) == ()


def test_a_table_that_stays_gets_other_comments_and_properties(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Server, "under", lambda *_: nullcontext())
    server, notes, schema = FakeServer({}), ProjectNotes(), Schema((Field("k", BIGINT),))

    def kept(**changed: Any) -> list[str]:
        tables = Tables(server, "/storage", "/state", ProjectNotes(**json.loads(json.dumps(notes.json()))[NOTE]))
        tables._layouts = {"v": TableLayout("delta", {"k": "BIGINT"}, ())}
        server.asked.clear()
        assert tables.create(dataclasses.replace(dataset("v"), **changed), schema) == "kept"
        notes.remarks = tables._notes.remarks
        return server.asked

    declared = StructType([StructField("k", LongType(), True, {"comment": "the key"})])
    assert kept(comment="a") == [], "what it has is not known"
    assert kept(comment="it's", properties={"p": "1"}, schema=declared) == [
        "COMMENT ON TABLE `v` IS 'it\\'s'",
        "ALTER TABLE `v` SET TBLPROPERTIES ('p' = '1')",
        "ALTER TABLE `v` ALTER COLUMN `k` COMMENT 'the key'",
    ]
    assert kept(comment="it's", properties={"p": "1"}, schema=declared) == []
    assert kept(properties={"q": 2}) == [
        "COMMENT ON TABLE `v` IS NULL",
        "ALTER TABLE `v` SET TBLPROPERTIES ('q' = '2')",
        "ALTER TABLE `v` ALTER COLUMN `k` COMMENT ''",
    ]


@pytest.mark.parametrize(("format", "known"), [("orc", {}), ("delta", {"k": "a partition"})])
def test_spark_does_not_change_comments_of_partitions_of_files(format: str, known: dict[str, str]) -> None:
    tables = Tables(FakeServer({}), "/storage", "/state", ProjectNotes())
    one = dataclasses.replace(dataset("v"), schema="k BIGINT COMMENT 'a partition'", format=format, partitions=("K",))
    assert tables._remarks(one).columns == known
