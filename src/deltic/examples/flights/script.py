"""The script flights.sql, whole and view by view."""

from __future__ import annotations

import re
from importlib import resources
from typing import Final

NAME: Final = "flights.sql"
TEXT: Final = resources.files(__package__).joinpath(NAME).read_text(encoding="utf-8")
TABLES: Final = tuple(re.findall(r"CREATE TABLE (\w+)", TEXT))
QUERIES: Final = dict(re.findall(r"CREATE MATERIALIZED VIEW (\w+) AS\n(.*?);", TEXT, re.DOTALL))
"""The SELECT of each view, as it stands in the script."""
READS: Final = {view: tuple(re.findall(r"\b(?:FROM|JOIN) (\w+)", query)) for view, query in QUERIES.items()}
"""The tables that each view reads, each as many times as it is read."""
