"""Tables of Delta whose files this process can open: their log is read, and small tables are written, without a job of Spark's.

A table is the catalog's if its log has the id that Spark has said. What has features or types that are not listed here is left to Spark,
and so is what fails here: the rows are the same either way.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from deltic.connectors.frames import WEIGHT
from deltic.schema import Schema

FEED: Final = "delta.enableChangeDataFeed"
_READER: Final = 1
_WRITER: Final = 4
_WRITER_OF_FEATURES: Final = 7
_FEATURES: Final = frozenset({"appendOnly", "invariants", "changeDataFeed"})
_NUMBERS: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")
_TYPES: Final = frozenset({*_NUMBERS, "BOOLEAN", "STRING", "BINARY", "DATE", "TIMESTAMP"})
_ORDERED: Final = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT", "BOOLEAN", "STRING", "DATE", "TIMESTAMP"})
"""Types of which statistics are written."""
_SQL: Final = {"long": "BIGINT", "integer": "INT", "short": "SMALLINT", "byte": "TINYINT"}
"""Delta's names of types that SQL has under others."""
_TRUNCATED: Final = 64
"""How many bytes of a string its statistics have."""
_INSERTS: Final = pa.array(["insert", "update_postimage"])


class Replacement(Enum):
    """What became of rows that were to be written. FAILED: deltalake raised, and the table does not have the commit."""

    WRITTEN = "written"
    REFUSED = "refused"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class DirectTable:
    """table: as deltalake has it. folder: its files. feed: whether it has a change feed. partitions: its columns that its files lack."""

    table: Any
    folder: Path
    identity: str
    version: int
    feed: bool
    partitions: tuple[str, ...]

    @classmethod
    def at(cls, location: str) -> Self | None:
        """The table at a location; None if Spark alone can work with it."""
        folder = local(location)
        if importlib.util.find_spec("deltalake") is None or folder is None or not (folder / "_delta_log").is_dir():
            return None
        import deltalake  # noqa: PLC0415  an extra

        try:
            table = deltalake.DeltaTable(str(folder))
            protocol, metadata = table.protocol(), table.metadata()
        except (deltalake.exceptions.DeltaError, OSError):
            return None
        written = protocol.min_writer_version
        known = written <= _WRITER or (written == _WRITER_OF_FEATURES and set(protocol.writer_features or ()) <= _FEATURES)
        if protocol.min_reader_version != _READER or not known or _has_conditions(table, metadata.configuration):
            return None
        feed = metadata.configuration.get(FEED) == "true"
        return cls(table, folder, str(metadata.id), table.version(), feed, tuple(name.lower() for name in metadata.partition_columns))

    def columns(self) -> dict[str, str] | None:
        """The types of its columns in SQL, by name in lower case; None if one is nested."""
        from deltalake.schema import PrimitiveType  # noqa: PLC0415  an extra

        fields = self.table.schema().fields
        if not all(isinstance(field.type, PrimitiveType) for field in fields):
            return None
        return {field.name.lower(): _SQL.get(field.type.type, field.type.type.upper()) for field in fields}

    def changes(self, since: int, schema: Schema) -> pa.Table | None:
        """What has changed after a version, with weights; None if the log or a file is gone, or other than rows of these columns changed.

        As Delta's protocol has it: of each commit the files of its change feed, or, if it has none, the files that it adds and removes.
        """
        if not self.feed or self.partitions or since > self.version or not _plain(schema):
            return None
        parts = [schema.arrow.empty_table().append_column(WEIGHT, pa.array([], pa.int64()))]
        try:
            for version in range(since + 1, self.version + 1):
                actions = self._actions(version)
                if any({"metaData", "protocol"} & one.keys() for one in actions):
                    return None
                fed = [one["cdc"] for one in actions if "cdc" in one]
                parts += [self._rows(one, schema, None) for one in fed]
                for kind, weight in () if fed else (("add", 1), ("remove", -1)):
                    files = [one[kind] for one in actions if kind in one and one[kind]["dataChange"]]
                    parts += [self._rows(one, schema, weight) for one in files]
        except (pa.ArrowException, KeyError, OSError, ValueError):
            return None
        return pa.concat_tables(parts)

    def content(self, schema: Schema) -> pa.Table | None:
        """All rows of the version that was read; None if a file is gone or may hold rows that are deleted."""
        if self.partitions or not _plain(schema):
            return None
        try:
            files = pa.table(self.table.get_add_actions()).column("path").to_pylist()
            if any("%" in path for path in files):  # whether it is encoded is not known
                return None
            parts = [schema.arrow.empty_table(), *(self._rows({"path": path}, schema, 1).drop_columns(WEIGHT) for path in files)]
        except (pa.ArrowException, KeyError, OSError, ValueError):
            return None
        return pa.concat_tables(parts)

    def replace(self, schema: Schema, rows: pa.Table, transaction: tuple[str, int]) -> Replacement:
        """Makes the rows the table's in one commit, which follows the version that was read: if another writer was faster, it fails.

        transaction: an application and a number, for the log. REFUSED, with nothing attempted: deltalake would write other rows than Spark.
        """
        import deltalake  # noqa: PLC0415  an extra

        if self.partitions or not _plain(schema):  # deltalake writes some values of partitions in a form that Spark reads otherwise
            return Replacement.REFUSED
        own: Any = pa.schema(self.table.schema().to_arrow())
        if tuple(own.names) != schema.names:
            return Replacement.REFUSED
        try:
            written = rows.cast(_written(own))
        except (pa.ArrowException, ValueError):
            return Replacement.REFUSED
        # Without retries: a retry would keep the files that another writer has added.
        properties = deltalake.CommitProperties(max_commit_retries=0, app_transactions=[deltalake.Transaction(*transaction)])
        before = self.table.version()
        try:
            deltalake.write_deltalake(
                self.table, written, mode="overwrite", commit_properties=properties, writer_properties=_with_statistics(schema)
            )
        except Exception:  # whatever it was: the log says whether the commit took place
            return Replacement.WRITTEN if self._committed(before, transaction) else Replacement.FAILED
        return Replacement.WRITTEN

    def _committed(self, before: int, transaction: tuple[str, int]) -> bool:
        """Whether the first commit after a version is that of a transaction."""
        application, number = transaction
        try:
            noted = [one["txn"] for one in self._actions(before + 1) if "txn" in one]
        except (OSError, ValueError):
            return False
        return any((one.get("appId"), one.get("version")) == (application, number) for one in noted)

    def _actions(self, version: int) -> list[dict[str, Any]]:
        """Of one commit. Raises OSError if its file is gone."""
        with (self.folder / "_delta_log" / f"{version:020}.json").open(encoding="utf-8") as lines:
            return [json.loads(line) for line in lines if line.strip()]

    def _rows(self, file: Mapping[str, Any], schema: Schema, weight: int | None) -> pa.Table:
        """The rows of a file. weight: None if they say themselves what became of them. Raises OSError, KeyError or ValueError."""
        if file.get("deletionVector") is not None or "://" in file["path"]:
            raise ValueError(file["path"])
        read = pq.ParquetFile(self.folder / unquote(file["path"]), coerce_int96_timestamp_unit="us")
        if _legacy(read.schema_arrow.metadata or {}):
            raise ValueError(file["path"])
        rows = read.read()
        weights = pa.array([weight] * rows.num_rows, pa.int64())
        if weight is None:
            inserted = pc.is_in(rows.column("_change_type").cast(pa.string()), value_set=_INSERTS)
            weights = pc.if_else(inserted, pa.scalar(1, pa.int64()), pa.scalar(-1, pa.int64()))
        return rows.select(list(schema.names)).cast(_nullable(schema.arrow)).append_column(WEIGHT, weights)


def _legacy(metadata: Mapping[bytes, bytes]) -> bool:
    """Whether times in a file are in the calendar of Spark before version 3."""
    if any(key.startswith(b"org.apache.spark.legacy") for key in metadata):
        return True
    return metadata.get(b"org.apache.spark.version", b"3").startswith((b"1.", b"2."))


def _has_conditions(table: Any, configuration: Mapping[str, Any]) -> bool:
    """Whether it has constraints, or columns that are generated or have conditions."""
    constrained = any(key.startswith("delta.constraints.") for key in configuration)
    return constrained or any(key.startswith("delta.") for field in table.schema().fields for key in field.metadata)


def local(url: str) -> Path | None:
    """The path of a folder of this machine; None for one in an object store."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return None if parts.scheme else Path(url)


def _plain(schema: Schema) -> bool:
    return all(one.type.name.partition("(")[0] in _TYPES and not one.type.collation for one in schema)


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in schema])


def _with_statistics(schema: Schema) -> Any:
    """How files are written: with statistics of the columns alone for which they are what Spark takes them for.

    deltalake's ignore NaN, and it rounds those of a DECIMAL to a DOUBLE, so that Spark would skip a file that has the row.
    """
    from deltalake import ColumnProperties, WriterProperties  # noqa: PLC0415  an extra

    each = ColumnProperties(statistics_enabled="CHUNK")
    return WriterProperties(
        compression="SNAPPY",
        statistics_truncate_length=_TRUNCATED,
        default_column_properties=ColumnProperties(statistics_enabled="NONE"),
        column_properties={one.name: each for one in schema if one.type.name in _ORDERED and "." not in one.name},
    )


def _written(schema: pa.Schema) -> pa.Schema:
    """The columns without their metadata, and with strings as PyArrow casts to them."""
    plain = {"string_view": pa.string(), "binary_view": pa.binary()}
    return pa.schema([pa.field(field.name, plain.get(str(field.type), field.type), field.nullable) for field in schema])
