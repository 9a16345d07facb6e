"""Lets a function of the user's make a DataFrame, and binds it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from inspect import Parameter, signature
from threading import RLock
from typing import Any, Final

import pyspark.sql.connect.proto as pb
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame as AnyFrame
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.connect.udf import UserDefinedFunction as ConnectFunction
from pyspark.sql.udf import UserDefinedFunction

from deltic.errors import CatalogError, QueryError, Span, TypeMismatch, Unsupported
from deltic.frontends.dataframes.binder import FrameBinder
from deltic.frontends.dataframes.channel import PLAN_ALONE, InProcess, OuterSpark, Service
from deltic.frontends.dataframes.places import Site, Sites, caller, is_users
from deltic.frontends.dataframes.relations import bind
from deltic.frontends.dataframes.types import type_of
from deltic.frontends.sql.environment import Environment
from deltic.frontends.statements import BoundView, Namespace
from deltic.plan.signs import as_view
from deltic.reentrant import free_after_fork
from deltic.schema import NULL, Schema

_MODE: Final = "SPARK_CONNECT_MODE_ENABLED"
_LOCK: Final = free_after_fork(RLock())
"""PySpark chooses Connect's functions by a variable of the process."""
_LATER: Final = "return the DataFrame, and read the view's rows: session.view(name).rows(); groupBy().count() is a DataFrame of the count"


@dataclass(frozen=True, slots=True)
class TemporaryView:
    """A DataFrame with a name for spark.table and spark.sql."""

    name: str
    message: pb.Relation


def _binder(namespace: Namespace, views: Iterable[TemporaryView], sites: Sites, here: Span) -> FrameBinder:
    """A binder over a namespace in which each temporary view hides what has its name."""
    binder = FrameBinder(namespace, Environment(namespace), sites, here)
    for view in views:
        binder = replace(binder, env=binder.env.with_cte(view.name, bind(view.message, binder).alone().plan))
    return binder


@dataclass(frozen=True, slots=True)
class FrameDefinition:
    """A DataFrame that defines a view: its message, and where it was made. views: the temporary views of its function, in order."""

    message: pb.Relation
    sites: Sites
    here: Span
    views: tuple[TemporaryView, ...] = ()

    def bound(self, namespace: Namespace) -> BoundView:
        """The view over a namespace. Raises QueryError."""
        binder = _binder(namespace, self.views, self.sites, self.here)
        frame = bind(self.message, binder).alone()
        seen: set[str] = set()
        for field_ in frame.plan.schema:
            if field_.name.lower() in seen:
                remedy = "select(…), drop(…) or withColumnRenamed(…)"
                raise QueryError(f"two columns of the view are called {field_.name!r}", span=self.here, remedy=remedy)
            seen.add(field_.name.lower())
            if field_.type == NULL:
                remedy = 'cast it: lit(None).cast("int")'
                raise TypeMismatch(f"the column {field_.name!r} is only NULL and has no type", span=self.here, remedy=remedy)
        return BoundView(as_view(frame.plan), tuple(sorted(binder.env.reads)), tuple(sorted(binder.calls)))


@dataclass(slots=True)
class Frames:
    """Makes DataFrames over the tables and views of a namespace. namespace: as of now. prepare: what is bound for a message.

    outside: a Spark for code that is not in a function of `define`.
    """

    namespace: Callable[[], Namespace]
    prepare: Callable[[pb.Relation], pb.Relation] = lambda message: message
    outside: OuterSpark | None = None
    _sites: Sites = field(default_factory=Sites)
    _session: SparkSession | None = None
    _service: Service | None = None
    _making: bool = False
    _views: list[TemporaryView] | None = None
    """The temporary views that the function that defines a view now has made, in order."""

    @property
    def making(self) -> bool:
        """Whether a function is making a DataFrame now."""
        return self._making

    @property
    def spark(self) -> SparkSession:
        """The SparkSession whose plans are bound here."""
        if self._session is None or self._session.is_stopped:
            self._service = Service(self._schema, self._keep_view, lambda: self.outside if self._views is None else None)
            builder: Any = InProcess(self._service)
            self._session = SparkSession.builder.channelBuilder(builder).create()
        return self._session

    def define(self, function: Callable[..., Any], here: Span | None = None) -> FrameDefinition:
        """The definition that a function of no arguments, or of the SparkSession, returns as a DataFrame. Raises QueryError.

        here: the place of a function that is not the user's.
        """
        here = here or _of_code(function)
        with self.active() as spark, self._with_views() as views:
            try:
                frame = function(spark) if _takes_session(function, here) else function()
            except PySparkException as error:
                refused = None if self._service is None else self._service.refused
                if refused is not None:
                    raise refused from error
                site = _raised_at(error)
                message = str(error).partition("\n")[0]
                remedy = _LATER if message.startswith(PLAN_ALONE) else None
                raise QueryError(message, span=site.span if site else here, remedy=remedy) from error
            if spark.is_stopped:
                raise QueryError("the function stopped its SparkSession, which is Deltic's", span=here, remedy="leave out stop()")
            if not isinstance(frame, DataFrame):
                found = "a DataFrame of a running Spark, which keeps its plan" if isinstance(frame, AnyFrame) else type(frame).__name__
                expected = "a DataFrame made of session.frame(name) or spark.table(name)"
                raise QueryError(f"the function returned {found}", span=here, expected=expected)
            message = frame._plan.to_proto(spark.client).root
            kept = tuple(views)
        return FrameDefinition(message, self._sites, self._sites.span(message.common.plan_id) or here, kept)

    @contextmanager
    def _with_views(self) -> Iterator[list[TemporaryView]]:
        """A block that can make temporary views."""
        before, self._views = self._views, []
        try:
            yield self._views
        finally:
            self._views = before

    def _keep_view(self, command: pb.CreateDataFrameViewCommand) -> None:
        """createOrReplaceTempView, and createTempView. One that is replaced stays for those made of it."""
        name, site = command.name, caller(sys._getframe())
        here = None if site is None else site.span
        if self._views is None or command.is_global:
            remedy = "createOrReplaceTempView in a function of view_of" if command.is_global else None
            raise Unsupported(f"the temporary view {name} is not supported here", span=here, remedy=remedy)
        if not command.replace and any(one.name.lower() == name.lower() for one in self._views):
            raise CatalogError(f"there is a temporary view {name} already", span=here, remedy="createOrReplaceTempView")
        self._views.append(TemporaryView(name, command.input))

    def _schema(self, plan: pb.Plan) -> Schema:
        """Of a DataFrame that is being made."""
        if self.outside is not None and self._views is None:
            limited = pb.Relation(limit=pb.Limit(input=plan.root, limit=0))
            return Schema(tuple(type_of(self.outside.rows_of(limited)[1], None).parts))
        namespace = self.namespace()
        here = self._sites.span(plan.root.common.plan_id) or Span("schema", 0, 6, "<dataframe>")
        views = tuple(replace(one, message=self.prepare(one.message)) for one in self._views or ())
        return bind(self.prepare(plan.root), _binder(namespace, views, self._sites, here)).alone().plan.schema

    @contextmanager
    def active(self) -> Iterator[SparkSession]:
        """The session for a block in which users' code makes DataFrames, whose places are recorded."""
        with self._active() as spark, self._sites.recorded(), _functions_of_modules():
            yield spark

    @contextmanager
    def _active(self) -> Iterator[SparkSession]:
        """The session as the active and the default one of PySpark, whose functions make Connect's expressions."""
        with _LOCK:
            before = os.environ.get(_MODE)
            default, active = SparkSession._default_session, getattr(SparkSession._active_session, "session", None)
            os.environ[_MODE] = "1"
            try:
                spark = self.spark
                if self._service is not None:
                    self._service.refused = None
                SparkSession._default_session, SparkSession._active_session.session = spark, spark
                self._making = True
                yield spark
            finally:
                self._making = False
                SparkSession._default_session, SparkSession._active_session.session = default, active
                if before is None:
                    del os.environ[_MODE]
                else:
                    os.environ[_MODE] = before


@contextmanager
def _functions_of_modules() -> Iterator[None]:
    """Lets what udf() returned before, when a module was imported, be called: it is of the classic kind, which calls the JVM."""
    classic = UserDefinedFunction.__call__

    def call(self: Any, *columns: Any, **named: Any) -> Any:
        kind, deterministic = self.evalType, self.deterministic
        return ConnectFunction(self.func, self._returnType, self._name, kind, deterministic)(*columns, **named)

    setattr(UserDefinedFunction, "__call__", call)  # noqa: B010  mypy: a method
    try:
        yield
    finally:
        setattr(UserDefinedFunction, "__call__", classic)  # noqa: B010


def _takes_session(function: Callable[..., Any], here: Span) -> bool:
    required = [
        one
        for one in signature(function).parameters.values()
        if one.default is Parameter.empty and one.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    ]
    if len(required) > 1 or any(one.kind is Parameter.KEYWORD_ONLY for one in required):
        names = ", ".join(one.name for one in required)
        raise QueryError(f"the function requires {names}", span=here, expected="no argument, or the SparkSession alone")
    return len(required) == 1


def _of_code(function: Callable[..., Any]) -> Span:
    """The place of a function."""
    code = getattr(function, "__code__", None)
    name = getattr(function, "__name__", "view")
    return Span(name, 0, len(name), "<dataframe>") if code is None else Site(code.co_filename, code.co_firstlineno, name).span


def _raised_at(error: BaseException) -> Site | None:
    """The user's last call before an error."""
    trace, site = error.__traceback__, None
    while trace is not None:
        if is_users(trace.tb_frame):
            called = "" if trace.tb_next is None else trace.tb_next.tb_frame.f_code.co_name
            site = Site(trace.tb_frame.f_code.co_filename, trace.tb_lineno, called)
        trace = trace.tb_next
    return site
