"""Files as sources and sinks: Parquet, CSV and JSON lines in local folders, read in bounded portions, each row validated on its own."""

from deltic.connectors.files.folder import Entry
from deltic.connectors.files.portions import Portion
from deltic.connectors.files.reader import FileReader
from deltic.connectors.files.source import FileSource

__all__ = ["Entry", "FileReader", "FileSource", "Portion"]
