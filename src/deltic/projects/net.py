"""The net change of a view since an epoch, as rows to be merged into a table.

The rows that a key has now replace those that the table has under it, so a change that is merged twice changes nothing. The table may have
the view as of that epoch or of a later one, which a run has merged and not noted: keys whose changes cancel are merged too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from deltic.runtimes.sought import SoughtValues
from deltic.schema import Schema
from deltic.session import Session
from deltic.session.definitions import Stored
from deltic.session.view import View
from deltic.trace.spine import Spine
from deltic.types import Type

DELETES: Final = "__deltic_deletes"


@dataclass(frozen=True, slots=True)
class NetChange:
    """key: names of columns. unique: whether a key has one row at most; otherwise all columns are the key. changed: how many keys.

    rows: the view's rows of keys that have changed, and rows that DELETES marks: of a unique key that has no row now; of every other key.
    """

    key: tuple[str, ...]
    unique: bool
    rows: pa.Table
    changed: int


def key_of(session: Session, view: str) -> tuple[str, ...]:
    """The columns that identify a row of a view; empty if its rows may be equal."""
    stored = session._definitions.stored(view)
    order, key = stored.spec.order, stored.spec.key
    return tuple(stored.reader.schema[i].name for i in order[:key]) if key < len(order) else ()


def net_change(session: Session, name: str, since: int) -> NetChange | None:
    """What has changed in a view after an epoch; None if a MERGE cannot compare its keys. Raises StateError as `View.changes`."""
    view = session.view(name)
    unique = key_of(session, name)
    key = unique or tuple(view.schema.names)
    if not all(_comparable(view.schema[view.schema.find(one)[0]].type) for one in key):
        return None
    keys = changed_keys(view, key, since, session.epoch)
    rows = rows_of(view, key, keys)
    if unique:
        own = {_identity(row) for row in _tuples(rows, key)}
        deleted_keys = [one for one in keys if _identity(one) not in own]
    else:
        deleted_keys = keys
    return NetChange(key, bool(unique), _marked(view.schema, rows, [dict(zip(key, one, strict=True)) for one in deleted_keys]), len(keys))


def changed_keys(view: View, columns: tuple[str, ...], since: int, until: int) -> list[tuple[Any, ...]]:
    """The values in some columns of the rows that changed after one epoch and up to another, each once. Raises StateError."""
    parts = (_tuples(view.changes(epoch), columns) for epoch in range(since + 1, until + 1))
    return list({_identity(key): key for part in parts for key in part}.values())


def rows_of(view: View, columns: Sequence[str], keys: Sequence[tuple[Any, ...]]) -> pa.Table:
    """The rows of a view that have one of several different keys in some columns; see `View.lookup`."""

    def matches(stored: Stored, spines: Sequence[Spine]) -> pa.Table:
        fields = stored.spec.shape.schema
        positions = [fields.find(name)[0] for name in columns]
        order = sorted(range(len(columns)), key=positions.__getitem__)
        first, *others = (tuple(key[i] for i in order) for key in keys)
        return view._table(stored, spines, SoughtValues(view.name, fields, tuple(sorted(positions)), first, tuple(others)))

    return view._contents.read(view.name, matches) if keys else view.schema.arrow.empty_table()


def _identity(key: tuple[Any, ...]) -> tuple[str, ...]:
    """Equal for keys that are equal in Spark: NULLs, NaNs, and zeros of either sign."""
    return tuple(repr(0.0 if isinstance(value, float) and value == 0 else value) for value in key)


def _tuples(table: pa.Table, names: tuple[str, ...] | list[str]) -> list[tuple[Any, ...]]:
    lists = [table.column(name).to_pylist() for name in names]
    return list(zip(*lists, strict=True))


def _comparable(type: Type) -> bool:
    """Whether Spark's <=> compares values of a frame with those of a table as Deltic does."""
    return not type.parts and not type.collation and type.name not in ("VARIANT", "VOID") and not type.name.startswith("INTERVAL")


def _marked(schema: Schema, rows: pa.Table, deleted_keys: list[dict[str, Any]]) -> pa.Table:
    nullable = pa.schema([field.with_nullable(True) for field in schema.arrow])
    deleted = pa.Table.from_pylist(deleted_keys, schema=nullable)
    whole = pa.concat_tables([rows.cast(nullable), deleted])
    return whole.append_column(DELETES, pa.array([False] * rows.num_rows + [True] * len(deleted_keys), pa.bool_()))
