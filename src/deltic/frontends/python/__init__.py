"""Circuits in Python: streams, whose methods have the operators' standard names and build plan nodes.

The oracle evaluates the plans (`Circuit.outputs`), and a session keeps them exact (`Session.install`).
"""

from deltic.frontends.lateness import Delay
from deltic.frontends.python.accumulators import Encoded, MapOf, SetOf
from deltic.frontends.python.circuit import Circuit, Lateness, described
from deltic.frontends.python.functions import check_unchanged
from deltic.frontends.python.scalars import UDF
from deltic.frontends.python.schemas import Columns
from deltic.frontends.python.stream import Accumulators, IndexedStream, Stream, Trace

__all__ = [
    "UDF",
    "Accumulators",
    "Circuit",
    "Columns",
    "Delay",
    "Encoded",
    "IndexedStream",
    "Lateness",
    "MapOf",
    "SetOf",
    "Stream",
    "Trace",
    "check_unchanged",
    "described",
]
