"""The graph of wiki_vote.parquet, in the folder that DELTIC_DATA names."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from benchmarks.checks import Words
from benchmarks.engine import Absent

FILE = "wiki_vote.parquet"


def directed() -> Words:
    """The votes (source, target) as int64[n, 2], each once; `Absent` without the file."""
    folder = os.environ.get("DELTIC_DATA")
    if folder is None:
        raise Absent(f"DELTIC_DATA does not name the folder of {FILE}")
    file = Path(folder) / FILE
    if not file.exists():
        raise Absent(f"there is no {FILE} in the folder that DELTIC_DATA names")
    votes = pq.read_table(file)
    return np.column_stack([np.asarray(votes[name]).astype(np.int64) for name in ("src", "dst")])


def undirected() -> Words:
    """Each pair of nodes with a vote once, the smaller first."""
    ends = np.sort(directed(), axis=1)
    return np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0)
