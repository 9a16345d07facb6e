"""Circuits made in Python: streams with the operators' standard names, which build plan nodes.

The oracle evaluates what is built (`Circuit.outputs` are plans), and a session keeps it exact (`Session.install`).
"""

from deltic.frontends.python.circuit import Circuit, described
from deltic.frontends.python.functions import check_unchanged
from deltic.frontends.python.stream import IndexedStream, Stream, Trace

__all__ = ["Circuit", "IndexedStream", "Stream", "Trace", "check_unchanged", "described"]
