"""Sources and sinks: how changes come in, and how views go out.

What a connector is made of (docs/extending.md): the protocols SourceSpec, Source, SinkSpec and Sink, and the records that they exchange.
"""

from __future__ import annotations

from deltic.connectors.connector import SinkConnector, SinkSpec, SourceConnector, SourceSpec
from deltic.connectors.sink import Owner, Sink
from deltic.connectors.source import DeadLetter, Offsets, Source, SourceBatch
from deltic.options import Option, Options

__all__ = [
    "DeadLetter",
    "Offsets",
    "Option",
    "Options",
    "Owner",
    "Sink",
    "SinkConnector",
    "SinkSpec",
    "Source",
    "SourceBatch",
    "SourceConnector",
    "SourceSpec",
]
