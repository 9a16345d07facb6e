"""Sequence columns of changes that stay on Spark, encoded by the function that its tasks run."""

from __future__ import annotations

import pyarrow as pa
import pytest

from deltic.circuit.pending import UNORDERED
from deltic.errors import FrameError
from deltic.trace.identity import Identity
from hand_circuit import CUSTOMERS

pytest.importorskip("pyspark")

from deltic.connectors.frames import change_frame
from deltic.runtimes.spark.changes import Encoder, InputPort

LEAST, MOST = -(1 << 63), (1 << 63) - 1


def ordinals(*sequence: int) -> list[int]:
    """What orders upserts with these values, in the order of the rows."""
    n = len(sequence)
    columns = {"id": list(range(n)), "region": ["a"] * n, "_op": ["upsert"] * n, "at": pa.array(sequence, pa.int64())}
    encoder, frame = Encoder(InputPort(CUSTOMERS, (0,), "table:customers", 0), 1, Identity.drawn(), "at"), pa.table(columns)
    assert len(encoder.messages(frame)) == 1
    ordered: list[int] = encoder._ordinals(frame, change_frame(frame, CUSTOMERS, "at")).tolist()
    return ordered


def test_ordinals_have_the_order_of_the_sequence() -> None:
    values = [7, LEAST + 1, MOST, -1, 0, -2, 1]
    found = ordinals(*values)
    assert UNORDERED not in found
    assert sorted(range(len(values)), key=found.__getitem__) == sorted(range(len(values)), key=values.__getitem__)


def test_the_least_number_is_refused() -> None:
    with pytest.raises(FrameError) as caught:
        ordinals(5, LEAST)
    assert caught.value.message == f"table customers: the sequence column at has the value {LEAST}"
