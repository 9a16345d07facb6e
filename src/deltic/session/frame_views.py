"""Views that functions define by PySpark's DataFrames, as statements for the catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from deltic.errors import QueryError, SetupError
from deltic.frontends.statements import CreateView, Namespace, Statement
from deltic.purity import shown

if TYPE_CHECKING:
    from deltic.frontends.dataframes import Frames


@dataclass(frozen=True, slots=True)
class FrameView:
    """A function that defines the view `name`: part of a Program, or given to `Session.view_of`.

    function: returns a DataFrame; it takes no argument, or the SparkSession. It is still a function: a call calls it.
    """

    name: str
    function: Any = field(repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise QueryError(f"invalid name of a view {shown(self.name)}", expected="a text of at least one character")
        if not callable(self.function):
            remedy = "a function that makes the DataFrame: a finished one may belong to a server"
            raise QueryError(f"invalid definition of the view {self.name}: {shown(self.function)}", expected="a function", remedy=remedy)

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)


def view(function: Any = None, *, name: str = "") -> Any:
    """Decorates a function that returns a DataFrame: it defines the view of its name, or of `name`.

    The result is part of a `deltic.Program`, or given to `Session.view_of`. Raises QueryError.
    """
    if function is None:
        return lambda decorated: view(decorated, name=name)
    return FrameView(name or getattr(function, "__name__", ""), function)


def frames_over(namespace: Callable[[], Namespace]) -> Frames:
    """What makes DataFrames over a namespace. Raises SetupError without PySpark."""
    try:
        from deltic.frontends.dataframes import Frames  # noqa: PLC0415  needs the extra
    except ImportError as error:
        raise SetupError(f"DataFrames require PySpark with Connect: {error}", remedy='pip install "deltic[spark]"') from error
    return Frames(namespace)


def frame_statements(one: FrameView, frames: Frames, namespace: Namespace, *, or_replace: bool = False) -> Iterator[Statement]:
    """The definition of the view. Raises QueryError with the place in the user's program."""
    definition = frames.define(one.function)
    bound = definition.bound(namespace)
    yield CreateView(one.name, bound.plan, True, or_replace, False, definition.bound, definition.here, bound.depends_on, bound.calls)
