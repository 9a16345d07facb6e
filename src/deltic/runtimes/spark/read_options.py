"""The checked options of a read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final
from urllib.parse import unquote, urlsplit

from deltic.errors import SetupError
from deltic.runtimes.spark.feed import EARLIEST, LATEST

_KNOWN: Final = ("path", "view", "epoch", "columns", "pushdown", "changes", "startingEpoch", "endingEpoch")
LOCATION: Final = "location"
"""What Spark's catalog makes of the path of a table, as a URL, among the table's properties."""
_OPTION: Final = "option."


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """root: the state folder. columns: names as they were given. pushdown: whether the reader takes filters.

    starting, ending: epochs of changes. given: the options by their names in lower case.
    """

    root: str
    view: str
    epoch: int | None = None
    columns: tuple[str, ...] | None = None
    pushdown: bool = False
    changes: bool = False
    starting: str | None = None
    ending: int | None = None
    given: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(options: Mapping[str, str]) -> ReadOptions:
        """Raises SetupError for missing, unknown and contradictory options."""
        given = {name.lower(): value for name, value in options.items()}
        names = {name.lower(): name for name in _KNOWN}
        location = given.get(LOCATION)
        if location is not None:
            given = _of_catalog(given) | {"path": _state_of(location)}
        for name in sorted(given.keys() - names.keys()):
            near = get_close_matches(name, names, 1)
            remedy = f"did you mean {names[near[0]]}?" if near else None
            raise SetupError(f"the format deltic has no option {name}", expected=f"one of {', '.join(_KNOWN)}", remedy=remedy)
        columns = given.get("columns")
        starting = given.get("startingepoch")
        return ReadOptions(
            root=_required(given, "path", 'the state folder: .load("…")'),
            view=_required(given, "view", 'a view: .option("view", "…")'),
            epoch=_number(given, "epoch"),
            columns=None if columns is None else tuple(name.strip() for name in columns.split(",")),
            pushdown=_truth(given, "pushdown"),
            changes=_changes(given),
            starting=None if starting is None else _start(starting),
            ending=_number(given, "endingEpoch"),
            given=given,
        )


def _required(given: Mapping[str, str], name: str, what: str) -> str:
    if not (value := given.get(name)):
        raise SetupError(f"the format deltic requires the option {name}", expected=what)
    return value


def _of_catalog(given: Mapping[str, str]) -> dict[str, str]:
    """The options among the properties of a table that is created."""
    return {name.removeprefix(_OPTION): value for name, value in given.items() if name.startswith(_OPTION)}


def _state_of(location: str) -> str:
    """The state folder at a location in a catalog.

    >>> _state_of("file:/data/a%20b"), _state_of("s3a://bucket/state")
    ('/data/a b', 's3://bucket/state')
    """
    parts = urlsplit(location)
    return unquote(parts.path) if parts.scheme == "file" else location.replace("s3a://", "s3://", 1)


def _truth(given: Mapping[str, str], name: str, default: str = "false") -> bool:
    value = given.get(name, default).lower()
    if value not in ("true", "false"):
        raise SetupError(f"invalid value {value!r} of the option {name}", expected="true or false")
    return value == "true"


def _number(given: Mapping[str, str], name: str) -> int | None:
    value = given.get(name.lower())
    if value is None:
        return None
    if not value.isdecimal():
        raise SetupError(f"invalid value {value!r} of the option {name}", expected="the number of an epoch")
    return int(value)


def _start(value: str) -> str:
    if not value.isdecimal() and value.lower() not in (EARLIEST, LATEST):
        raise SetupError(f"invalid value {value!r} of the option startingEpoch", expected=f"the number of an epoch, {EARLIEST} or {LATEST}")
    return value.lower()


def _changes(given: Mapping[str, str]) -> bool:
    """Whether changes are read: by the option itself, or implied by an option that only changes have."""
    implied = "startingepoch" in given or "endingepoch" in given
    changes = _truth(given, "changes", str(implied))
    if implied and not changes:
        raise SetupError("startingEpoch and endingEpoch require changes, but the option changes is false", remedy="remove one of them")
    if changes and "epoch" in given:
        raise SetupError("the option epoch applies to a view's content, not to its changes", remedy="use startingEpoch and endingEpoch")
    return changes
