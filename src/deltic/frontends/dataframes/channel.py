"""A channel of Spark Connect that answers within the process: what PySpark's client asks while it makes a plan.

No server, no JVM and no socket: the channel is given to the public `SparkSession.builder.channelBuilder`. A request for rows is refused,
unless it comes from a project's module, outside of the functions that define its datasets: a Spark answers that.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import grpc
import pyarrow as pa
import pyspark
import pyspark.sql.connect.proto as pb
from pyspark.sql.connect.client import ChannelBuilder

from deltic.errors import DelticError
from deltic.frontends.dataframes.types import message_of, row_message
from deltic.frontends.sql.parse_statement import parse_columns, parse_type
from deltic.frontends.sql.sql_types import schema_of, sql_type
from deltic.schema import Schema

PLAN_ALONE: Final = "a view's definition cannot"
"""How the errors of calls begin that require rows."""
SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.python.sql.dataFrameDebugging.enabled": "true",
    "spark.sql.execution.pythonUDF.arrow.enabled": "false",
    "spark.sql.execution.pythonUDTF.arrow.enabled": "false",
    "spark.sql.pyspark.inferNestedDictAsStruct.enabled": "false",
    "spark.sql.pyspark.legacy.inferArrayTypeFromFirstElement.enabled": "false",
    "spark.sql.pyspark.legacy.inferMapTypeFromFirstPair.enabled": "false",
    "spark.sql.execution.pandas.convertToArrowArraySafely": "true",
    "spark.sql.execution.pandas.inferPandasDictAsMap": "false",
    "spark.sql.execution.pandas.structHandlingMode": "legacy",
    "spark.sql.execution.arrow.pyspark.selfDestruct.enabled": "false",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.session.localRelationCacheThreshold": str(1 << 40),
    "spark.sql.session.localRelationSizeLimit": str(1 << 41),
    "spark.sql.session.localRelationChunkSizeRows": "10000",
    "spark.sql.session.localRelationChunkSizeBytes": str(1 << 24),
    "spark.sql.session.localRelationBatchOfChunksSizeBytes": str(1 << 30),
}
"""What Deltic's SQL means by them, and what keeps rows of createDataFrame in their message."""


class RefusedRequest(grpc.RpcError):  # type: ignore[misc]
    """A request that a view's definition cannot make. error: what is wrong, if Deltic has found an error in the plan."""

    def __init__(self, message: str, error: DelticError | None = None) -> None:
        self.message, self.error = message, error
        super().__init__(message)

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNIMPLEMENTED

    def details(self) -> str:
        return self.message

    def trailing_metadata(self) -> tuple[tuple[str, str], ...]:
        return ()


class OuterSpark(Protocol):
    """A Spark, for code that is not a view's definition. Its methods raise QueryError."""

    def rows_of(self, message: pb.Relation) -> tuple[pa.Table, pb.DataType]:
        """The rows of a relation, and their type."""
        ...


@dataclass(slots=True)
class Service:
    """Answers requests by the name of their method.

    schema_of: of a plan that is made so far. keep_view: keeps a temporary view. outside: where rows can be had now, if anywhere.
    refused: the error of the last refusal.
    """

    schema_of: Callable[[pb.Plan], Schema]
    keep_view: Callable[[pb.CreateDataFrameViewCommand], None]
    outside: Callable[[], OuterSpark | None] = lambda: None
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    settings: dict[str, str] = field(default_factory=lambda: dict(SETTINGS))
    refused: DelticError | None = None

    def Config(self, request: pb.ConfigRequest) -> pb.ConfigResponse:
        response = pb.ConfigResponse(session_id=request.session_id, server_side_session_id=self.id)
        kind = request.operation.WhichOneof("op_type")
        assert kind is not None
        operation = getattr(request.operation, kind)
        match kind:
            case "set":
                for pair in operation.pairs:
                    _check_setting(pair.key, pair.value)
                    self.settings[pair.key] = pair.value
            case "unset":
                for key in operation.keys:
                    self.settings.pop(key, None)
            case "get_with_default":
                for pair in operation.pairs:
                    value = self.settings.get(pair.key, pair.value if pair.HasField("value") else None)
                    response.pairs.add(key=pair.key, value=value)
            case "get_all":
                for key, value in self.settings.items():
                    response.pairs.add(key=key, value=value)
            case "is_modifiable":
                for key in operation.keys:
                    response.pairs.add(key=key, value="true")
            case _:
                self._get(kind, operation.keys, response)
        return response

    def _get(self, kind: str, keys: Any, response: pb.ConfigResponse) -> None:
        for key in keys:
            if key in self.settings:
                response.pairs.add(key=key, value=self.settings[key])
            elif kind == "get":
                raise RefusedRequest(f"[SQL_CONF_NOT_FOUND] a view's definition has no setting {key}")
            else:
                response.pairs.add(key=key)

    def AnalyzePlan(self, request: pb.AnalyzePlanRequest) -> pb.AnalyzePlanResponse:
        response = pb.AnalyzePlanResponse(session_id=request.session_id, server_side_session_id=self.id)
        match request.WhichOneof("analyze"):
            case "ddl_parse":
                response.ddl_parse.parsed.CopyFrom(self._checked(lambda: _ddl(request.ddl_parse.ddl_string)))
            case "schema":
                response.schema.schema.CopyFrom(self._checked(lambda: row_message(self.schema_of(request.schema.plan))))
            case "is_streaming":
                response.is_streaming.is_streaming = False
            case "is_local":
                response.is_local.is_local = False
            case "spark_version":
                response.spark_version.version = pyspark.__version__
            case "persist" | "unpersist" as kind:
                getattr(response, kind).SetInParent()
            case kind:
                raise RefusedRequest(f"{PLAN_ALONE} look at data: {kind}")
        return response

    def _checked(self, answer: Callable[[], Any]) -> Any:
        """The answer; an error of Deltic's is kept for the caller, because PySpark hands on its text alone."""
        try:
            return answer()
        except DelticError as error:
            self.refused = error
            raise RefusedRequest(str(error), error) from error

    def ExecutePlan(self, request: pb.ExecutePlanRequest) -> Iterator[pb.ExecutePlanResponse]:
        command = request.plan.command
        parts = [pb.ExecutePlanResponse(result_complete=pb.ExecutePlanResponse.ResultComplete())]
        match command.WhichOneof("command_type") if request.plan.WhichOneof("op_type") == "command" else None:
            case "sql_command":
                relation = command.sql_command.input
                if not command.sql_command.HasField("input"):
                    relation = pb.Relation(sql=pb.SQL(query=command.sql_command.sql))
                result = pb.ExecutePlanResponse.SqlCommandResult(relation=relation)
                parts.insert(0, pb.ExecutePlanResponse(sql_command_result=result))
            case "create_dataframe_view":
                self._checked(lambda: self.keep_view(command.create_dataframe_view))
            case None if (outside := self.outside()) is not None:
                rows, type = self._checked(lambda: outside.rows_of(request.plan.root))
                parts = [pb.ExecutePlanResponse(schema=type), *map(_carrying, rows.to_batches()), *parts]
            case None if request.plan.root.WhichOneof("rel_type") == "catalog":
                raise RefusedRequest(f"{PLAN_ALONE} read the catalog: it is a plan that is kept up to date")
            case _:
                raise RefusedRequest(f"{PLAN_ALONE} look at data, or write it: it is a plan that is kept up to date")
        operation = request.operation_id or str(uuid.uuid4())
        for part in parts:
            part.session_id, part.server_side_session_id, part.operation_id = request.session_id, self.id, operation
            part.response_id = str(uuid.uuid4())
            yield part

    def ReleaseExecute(self, request: pb.ReleaseExecuteRequest) -> pb.ReleaseExecuteResponse:
        return pb.ReleaseExecuteResponse(session_id=request.session_id, server_side_session_id=self.id)

    def ReleaseSession(self, request: pb.ReleaseSessionRequest) -> pb.ReleaseSessionResponse:
        return pb.ReleaseSessionResponse(session_id=request.session_id, server_side_session_id=self.id)


def _check_setting(key: str, value: str) -> None:
    """Raises Refused for a value that Deltic's SQL does not have."""
    if value.lower() != SETTINGS.get(key, value).lower():
        raise RefusedRequest(f"a view cannot set {key} to {value!r}: in Deltic it is always {SETTINGS[key]!r}")


def _carrying(rows: pa.RecordBatch) -> pb.ExecutePlanResponse:
    """The response that has some rows."""
    written = pa.BufferOutputStream()
    with pa.ipc.new_stream(written, rows.schema) as stream:
        stream.write_batch(rows)
    batch = pb.ExecutePlanResponse.ArrowBatch(row_count=rows.num_rows, data=written.getvalue().to_pybytes())
    return pb.ExecutePlanResponse(arrow_batch=batch)


def _ddl(text: str) -> pb.DataType:
    """A type, or columns as the type of rows."""
    try:
        return message_of(sql_type(parse_type(text, "<type>")))
    except DelticError:
        return row_message(schema_of(parse_columns(text, "<type>")))


class Channel(grpc.Channel):  # type: ignore[misc]
    """A channel to a service in the process."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def _method(self, name: str) -> Callable[..., Any]:
        method = getattr(self._service, name.rsplit("/", 1)[-1], None)

        def call(request: Any, timeout: Any = None, metadata: Any = None, **others: Any) -> Any:
            if method is None:
                raise RefusedRequest(f"a view's definition cannot call {name}")
            return method(request)

        return call

    def unary_unary(self, method: str, *_: Any, **__: Any) -> Callable[..., Any]:
        return self._method(method)

    def unary_stream(self, method: str, *_: Any, **__: Any) -> Callable[..., Any]:
        return self._method(method)

    def stream_unary(self, method: str, *_: Any, **__: Any) -> Callable[..., Any]:
        return self._method(method)

    def stream_stream(self, method: str, *_: Any, **__: Any) -> Callable[..., Any]:
        return self._method(method)

    def subscribe(self, *_: Any, **__: Any) -> None:
        """The state of the connection never changes."""

    def unsubscribe(self, *_: Any) -> None:
        """As `subscribe`."""

    def close(self) -> None:
        """There is nothing to close."""

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *_: object) -> None:
        """As `close`."""


class InProcess(ChannelBuilder):
    """Builds the channel."""

    def __init__(self, service: Service) -> None:
        super().__init__()
        self._service = service

    @property
    def host(self) -> str:
        return "deltic"

    def toChannel(self) -> grpc.Channel:
        return Channel(self._service)
