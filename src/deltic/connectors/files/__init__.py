"""Files as changes of tables: Parquet, CSV and JSON lines in a local folder, read in bounded portions, each row judged by itself."""

from deltic.connectors.files.folder import Entry
from deltic.connectors.files.portions import Letter, Portion
from deltic.connectors.files.reader import FileReader

__all__ = ["Entry", "FileReader", "Letter", "Portion"]
