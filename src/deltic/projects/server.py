"""The Spark of a project's run: a Spark Connect server, remote or in this process. Started when it is first needed."""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast
from urllib.parse import urlsplit

import pyarrow as pa
import pyspark.sql.connect.proto as pb
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.plan import LogicalPlan
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.connect.types import pyspark_types_to_proto_types
from pyspark.sql.types import StructField, StructType

from deltic.errors import QueryError
from deltic.frontends.dataframes.types import type_of
from deltic.projects.names import Names, quoted
from deltic.projects.settings import SETTINGS
from deltic.runtimes.spark.datasource import DelticSource
from deltic.runtimes.spark.types import spark_type
from deltic.schema import Field, Schema

if TYPE_CHECKING:
    from pyspark.sql.connect.client import SparkConnectClient

PLUGIN: Final = "org.apache.spark.sql.connect.SparkConnectPlugin"
_TRACES: Final = "org.apache.spark.sql.connect.utils.ErrorUtils"
"""The logger by which a server prints the trace of each error that it answers with."""
_OF_ERRORS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""The loggers by which PySpark prints each such error again."""
_SESSION_CATALOG: Final = "spark.sql.catalog.spark_catalog"
T = TypeVar("T")
AT_ONCE: Final = 4
"""How many questions Spark gets at a time."""
_SAID: Final = "Spark: "
CONNECT_S: Final = 20.0
DEFAULT_PORT: Final = 15002
_PROXIES: Final = ("grpc_proxy", "https_proxy", "http_proxy")
_MODE: Final = ("SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE", "SPARK_LOCAL_REMOTE")


class MessagePlan(LogicalPlan):
    """A relation that is a message already."""

    def __init__(self, message: pb.Relation) -> None:
        super().__init__(None)
        self._message = message

    def plan(self, session: SparkConnectClient) -> pb.Relation:
        return self._message


class Server:
    """remote: its URL; None starts one in this process, with the project's configuration. names: of the project."""

    def __init__(self, names: Names, configuration: Mapping[str, str], remote: str | None = None) -> None:
        self.names, self._configuration, self._remote = names, configuration, remote
        self._session: SparkSession | None = None
        self._local: Any = None
        self.url: str | None = remote
        """Where the session is, once there is one."""
        self._registered = False
        self._described: dict[str, Mapping[str, str]] = {}
        self._meanings: dict[str, str] | None = None
        self._listed: dict[str, Mapping[str, str]] = {}
        self._starting, self._settings = threading.RLock(), threading.RLock()
        self._counting = threading.Lock()
        self.rows_read = 0
        """How many rows of sources this run has fetched."""

    @property
    def session(self) -> SparkSession:
        """The session, whose current schema is the project's."""
        with self._starting:
            if self._session is None:
                if self._remote is not None:
                    check_reachable(self._remote)
                with _classic():
                    self.url = self._remote or self._start()
                    self._session = SparkSession.builder.remote(self.url).create()
                for name in _OF_ERRORS:  # they are raised here, once, with their places
                    PySparkLogger.getLogger(name).disabled = True
                for key, value in self._configuration.items():
                    self._set(key, value)
                if self.names.home != Names().home:
                    self._use(self.names.home)
            return self._session

    def table(self, identifier: str) -> DataFrame:
        frame: Any = self.session.table(identifier)
        return cast(DataFrame, frame)

    def files(self, format: str, place: str) -> DataFrame:
        """The files of a folder."""
        frame: Any = self.session.read.format(format).load(place)
        return cast(DataFrame, frame)

    def message(self, frame: Any) -> pb.Relation:
        """The relation of a DataFrame of this server."""
        plan: LogicalPlan = frame.__dict__["_plan"]
        return plan.to_proto(self.session.client).root

    def frame(self, message: pb.Relation) -> DataFrame:
        return DataFrame(MessagePlan(message), self.session)

    def schema(self, message: pb.Relation, names: Names, settings: Mapping[str, str]) -> Schema:
        """The columns of a relation. Raises QueryError."""
        with self.under(names, settings), spark_errors():
            row = pyspark_types_to_proto_types(self.frame(message).schema)
        return Schema(tuple(Field(one.name, type_of(one.data_type, None).read, one.nullable) for one in row.struct.fields))

    def settings(self) -> Mapping[str, str]:
        """What a remote server, or one that has been started, has for the settings that decide what queries mean. Raises QueryError."""
        if self._remote is None and self._session is None:
            return {}
        if self._meanings is None:
            with spark_errors():
                values = {key: self.session.conf.get(key, None) for key in SETTINGS}
            self._meanings = {key: value for key, value in values.items() if value is not None}
        return self._meanings

    def rows(self, message: pb.Relation) -> pa.Table:
        """All rows of a relation. Raises QueryError."""
        with spark_errors():
            rows = self.frame(message).toArrow()
        self.read(rows.num_rows)
        return rows

    def rows_of(self, message: pb.Relation) -> tuple[pa.Table, pb.DataType]:
        """The rows of a relation that a module of the project reads, and their type. Raises QueryError."""
        with spark_errors():
            frame = self.frame(message)
            return frame.toArrow(), pyspark_types_to_proto_types(frame.schema)

    def of_rows(self, rows: pa.Table, schema: Schema) -> Any:
        """Rows of these columns as a DataFrame of the server: there may be none."""
        typed = StructType([StructField(one.name, spark_type(one.type.read)) for one in schema])
        return self.session.createDataFrame(rows, typed)

    def read(self, rows: int) -> None:
        """Counts rows of a source."""
        with self._counting:
            self.rows_read += rows

    def described(self, identifier: str) -> Mapping[str, str]:
        """What the catalog says about a table, looked up once. Raises QueryError."""
        if identifier not in self._described:
            self._described[identifier] = {row[0]: row[1] or "" for row in self.sql(f"DESCRIBE EXTENDED {identifier}")}
        return self._described[identifier]

    def is_listed(self, identifier: str) -> bool:
        """Whether `listed` has found a table."""
        return identifier in self._listed

    def located(self, identifier: str) -> Mapping[str, str]:
        """The provider and the location of a table: what has been listed or described."""
        return self._listed.get(identifier) or self.described(identifier)

    def listed(self, home: tuple[str, str], tables: Mapping[str, str]) -> dict[str, Mapping[str, str]]:
        """What the catalog says about those tables of a schema that there are, by one question. Raises QueryError.

        tables: identifiers, by name in lower case. Columns, and what a format has of its own, are not in it, unlike in `described`.
        """
        pattern = "|".join(tables)
        rows = self.sql(f"SHOW TABLE EXTENDED IN {quoted(home)} LIKE '{pattern}'")
        information = {row["tableName"].lower(): _pairs(row["information"]) for row in rows if not row["isTemporary"]}
        about: dict[str, Mapping[str, str]] = {tables[name]: pairs for name, pairs in information.items() if name in tables}
        self._listed |= about
        return about

    def forget(self, identifier: str) -> None:
        """To be called when a table has been created, or its location has changed."""
        self._described.pop(identifier, None)
        self._listed.pop(identifier, None)

    def sql(self, statement: str, **frames: Any) -> list[Any]:
        """Runs a statement, in which {name} is one of the frames; returns its rows. Raises QueryError."""
        with spark_errors():
            frame = self.session.sql(statement, **frames)
            return frame.collect() if frame.columns else []

    @contextmanager
    def under(self, names: Names, settings: Mapping[str, str]) -> Iterator[None]:
        """The session with other settings, and another current schema, for a block: one thread at a time."""
        with self._settings:
            session = self.session
            before: dict[str, str | None] = {key: session.conf.get(key, None) for key in settings}
            moved = (names.catalog, names.schema) != self.names.home
            try:
                for key, value in settings.items():
                    session.conf.set(key, value)
                if moved:
                    self._use((names.catalog, names.schema))
                yield
            finally:
                if moved:
                    self._use(self.names.home)
                for key, old in before.items():
                    session.conf.unset(key) if old is None else session.conf.set(key, old)

    def register(self) -> None:
        """Makes the format deltic one of the session's. Raises QueryError if its catalog cannot read tables in it."""
        if self._registered:
            return
        if (catalog := self.session.conf.get(_SESSION_CATALOG, None)) not in (None, "builtin"):
            message = f"a live table requires Spark's own session catalog, which {_SESSION_CATALOG} = {catalog} replaces"
            raise QueryError(message, remedy="leave out the table property deltic.table")
        with spark_errors():
            self.session.dataSource.register(DelticSource)
        self._registered = True

    def exists(self, identifier: str) -> bool:
        """Whether a table or view has this name."""
        with spark_errors():
            return bool(self.session.catalog.tableExists(identifier))

    def close(self) -> None:
        """Ends the session; and the server, if this process started it."""
        if self._session is not None:
            self._session.client.close()
            self._session = None
        if self._local is not None:
            self._local.stop()
            self._local = None

    def _use(self, home: tuple[str, str]) -> None:
        self.sql(f"USE {quoted(home)}")

    def _set(self, key: str, value: str) -> None:
        """Settings of the server as a whole are those with which it was started."""
        try:
            assert self._session is not None
            self._session.conf.set(key, value)
        except PySparkException as error:
            if self._remote is not None and "CANNOT_MODIFY" not in str(error):
                raise QueryError(f"the setting {key} of the project: {first_line(error)}") from error

    def _start(self) -> str:
        """A server in this process, on the loopback address."""
        from deltic.runtimes.spark.session import local_session  # noqa: PLC0415  starts a JVM

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        token = str(uuid.uuid4())
        settings = {
            "spark.plugins": PLUGIN,
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(port),
            "spark.connect.authenticate.token": token,
        }
        self._local = local_session(name="deltic pipelines", settings={**self._configuration, **settings})
        log4j = self._local._jvm.org.apache.logging.log4j
        log4j.core.config.Configurator.setLevel(_TRACES, log4j.Level.OFF)
        return f"sc://localhost:{port}/;token={token}"


def _pairs(text: str) -> dict[str, str]:
    """Lines of a name and a value. Of a name that occurs twice the first counts, but for Location, which follows texts of the user's."""
    pairs: dict[str, str] = {}
    for line in text.splitlines():
        name, separator, value = line.partition(": ")
        if separator and (name not in pairs or name == "Location"):
            pairs[name] = value
    return pairs


def together(work: Iterable[Callable[[], T]]) -> list[T]:
    """The results of several calls, which wait for Spark at the same time. Raises the first error, when all have ended."""
    calls = list(work)
    if len(calls) < 2:
        return [call() for call in calls]
    with ThreadPoolExecutor(min(AT_ONCE, len(calls)), "deltic-projects") as pool:
        return [done.result() for done in [pool.submit(call) for call in calls]]


def check_reachable(url: str) -> None:
    """Raises QueryError if nothing listens at the URL of a server: PySpark would try for minutes. Not if a proxy may be on the way."""
    parts = urlsplit(url)
    if parts.scheme != "sc" or not parts.hostname:
        raise QueryError(f"invalid URL of a server {url!r}", expected="sc://host:15002, for example")
    if any(os.environ.get(name) for name in _PROXIES):
        return
    try:
        with socket.create_connection((parts.hostname, parts.port or DEFAULT_PORT), CONNECT_S):
            pass
    except (OSError, ValueError) as error:
        where = f"sc://{parts.netloc}"
        raise QueryError(f"there is no Spark Connect server at {where}: {error}", remedy="start it, or leave out --remote") from error


@contextmanager
def _classic() -> Iterator[None]:
    """A block in which PySpark's own environment does not decide what kind of session is made."""
    before = {name: os.environ.pop(name, None) for name in _MODE}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is not None:
                os.environ[name] = value


@contextmanager
def spark_errors(place: str = "") -> Iterator[None]:
    """Spark's errors as ours, after a text that says what they are about."""
    try:
        yield
    except PySparkException as error:
        raise QueryError(f"{place}{_SAID}{first_line(error)}") from error
    except QueryError as error:
        if place and error.message.startswith(_SAID):
            raise QueryError(f"{place}{error.message}") from error
        raise


def first_line(error: BaseException) -> str:
    """What an error of Spark's says, without its plan."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
