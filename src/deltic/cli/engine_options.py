"""The options that say where the ticks of a command's session run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from types import ModuleType
from typing import Annotated, Final, Literal

from cyclopts import Parameter, validators

from deltic.cli.spark import opened_spark
from deltic.session import Session

Engine = Literal["spark", "embedded"]
AT_LEAST_ONE: Final = Parameter(validator=validators.Number(gte=1))


@Parameter(name="*")
@dataclass(frozen=True)
class EngineOptions:
    """Where ticks run.

    Parameters
    ----------
    engine
        Where ticks run: on Spark, or in this process.
    shards
        The number of parts into which the state is split.
    threads
        The most threads that compute a large tick in this process, each a shard or an operator at a time. Default: as many as there are
        processors.
    """

    engine: Engine = "embedded"
    shards: Annotated[int | None, AT_LEAST_ONE] = None
    threads: Annotated[int | None, AT_LEAST_ONE] = None

    @contextmanager
    def session(self, state: str | None, name: str, helpers: Sequence[ModuleType] = ()) -> Iterator[Session]:
        """A session of a state. name: of Spark's application. helpers: modules that Spark's workers do not have."""
        spark = nullcontext() if self.engine == "embedded" else opened_spark(None, name, helpers)
        with spark as on_spark, Session(spark=on_spark, state=state, shards=self.shards, threads=self.threads) as session:
            yield session
