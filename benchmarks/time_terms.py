"""Terms of TIME by function: literals, casts, arithmetic, and the functions that make and take times of day.

Those that are TIME(p) with p < 6 are shown by TYPEOF, since Arrow does not say p.
"""

from __future__ import annotations

from typing import Final

T: Final = "TIME '12:34:56.789123'"
U: Final = "TIME '23:59:59.999999'"
_TEXTS: Final = "CASE WHEN i > 0 THEN '1:2:3.45' WHEN i < 0 THEN 'T23:59 ' WHEN i = 0 THEN '12:00:00.1234567 am' ELSE s END"
"""Text that is a TIME in some rows."""
_TIME: Final = "CASE WHEN i > 0 THEN TIME '00:00:00' WHEN i < 0 THEN TIME '23:59:59.999999' WHEN i = 0 THEN TIME '09:30:15.5' END"
"""A TIME of each row, NULL in some."""
_MOMENT: Final = "time_from_micros(pmod(l, 86400000000))"
_NARROW: Final = "CAST('12:34:56.789123' AS TIME(3))"
_UNITS: Final = ("HOUR", "minute", "Second", "MILLISECOND", "microsecond")

TIMES: Final = {
    "time": [
        f"time({_TEXTS})",
        f"TRY_CAST({_TEXTS} AS TIME)",
        *(
            f"TRY_CAST('{text}' AS TIME)"
            for text in ("24:00", "1:60", "1:2:60", "T5", "5", "1:2 pm", "13:00 AM", "0:10 PM", "1:2:", "1:2:3.x")
        ),
        f"CAST({_MOMENT} AS STRING)",
        *(
            f"CAST({_MOMENT} AS {type})"
            for type in ("INT", "BIGINT", "SMALLINT", "TINYINT", "DECIMAL(10, 2)", "DECIMAL(20, 9)", "DECIMAL(4, 0)")
        ),
        f"TRY_CAST({_MOMENT} AS TINYINT)",
        *(f"CAST(CAST({_MOMENT} AS TIME({places})) AS STRING)" for places in range(7)),
        f"typeof({_NARROW})",
        f"CAST({_NARROW} AS STRING)",
        f"{_MOMENT} = {_TIME}",
        f"{_MOMENT} BETWEEN '09:00' AND {U}",
        f"{_MOMENT} IN ({T}, {_TIME})",
        f"greatest({_MOMENT}, {_TIME})",
        f"coalesce({_TIME}, '01:02')",
        f"array_sort(array({_MOMENT}, {_TIME}, {T}))",
        f"named_struct('a', {_MOMENT}, 'b', array({_TIME}))",
        f"map({T}, {_TIME})",
        f"concat({_MOMENT}, s)",
        f"typeof(array({_NARROW}))",
    ],
    "+": [
        f"{_TIME} + INTERVAL '0' SECOND",
        f"{_TIME} + INTERVAL '1:30' MINUTE TO SECOND",
        f"{_MOMENT} + make_dt_interval(0, 0, t, 0)",
        f"INTERVAL '1' HOUR + {_MOMENT}",
        f"typeof({_NARROW} + INTERVAL '1' MINUTE)",
        f"typeof({_NARROW} + INTERVAL '1' SECOND)",
        f"CAST({_NARROW} + INTERVAL '1' MINUTE AS STRING)",
        "CAST(CAST('1:2:3.789' AS TIME(0)) + INTERVAL '1' HOUR AS STRING)",
        f"{_TIME} + NULL",
    ],
    "-": [
        f"{_MOMENT} - {_TIME}",
        f"{_MOMENT} - INTERVAL '00:00:00.000001' HOUR TO SECOND",
        f"{_MOMENT} - make_dt_interval(0, 0, t, 0)",
        f"{_MOMENT} - '09:00'",
        f"'09:00' - {_MOMENT}",
        f"{_NARROW} - {_MOMENT}",
        f"typeof({T} - {U})",
    ],
    "try_add": [f"try_add({_MOMENT}, make_dt_interval(0, t, 0, 0))", f"try_add(INTERVAL '1' HOUR, {_TIME})"],
    "try_subtract": [f"try_subtract({_MOMENT}, make_dt_interval(0, t, 0, 0))", f"try_subtract({_MOMENT}, {_TIME})"],
    "make_time": [
        "make_time(pmod(i, 24), pmod(j, 60), pmod(p, 60))",
        "make_time(i, j, p)",
        "make_time(12, 30, x)",
        "make_time(12, 30, 59.9999995)",
        "make_time(12, 30, 59.9999994)",
        "make_time('7', 30L, '5.5')",
    ],
    "to_time": [
        "to_time('12:34:56.789')",
        f"to_time({_TEXTS})",
        "to_time(k, 'HH:mm a')",
        "to_time(k, 'yyyy-MM-dd HH:mm:ss')",
        "to_time('12.34', 'HH.mm')",
        "to_time('07:05:09 PM', 'hh:mm:ss a')",
        "to_time('12:00+01:00', 'HH:mmXXX')",
    ],
    "try_to_time": [
        f"try_to_time({_TEXTS})",
        "try_to_time(k, 'hh:mm a')",
        "try_to_time(k, 'yyyy-MM-dd HH:mm:ss')",
        "try_to_time(k, 'd/M/yyyy H:m')",
        "try_to_time(s, 'bbb')",
        "try_to_time(k)",
    ],
    "time_diff": [
        *(f"time_diff('{unit}', {_MOMENT}, {_TIME})" for unit in _UNITS),
        f"time_diff('{_UNITS[0]}', {_NARROW}, '23:00')",
        f"time_diff(s, {_MOMENT}, {_TIME})",
        f"time_diff(CASE WHEN b THEN 'HOUR' ELSE 'SECOND' END, {_MOMENT}, {_TIME})",
    ],
    "time_trunc": [
        *(f"time_trunc('{unit}', {_MOMENT})" for unit in _UNITS),
        f"time_trunc(CASE WHEN b THEN 'HOUR' ELSE 'SECOND' END, {_MOMENT})",
        f"time_trunc('day', {_TIME})",
        "time_trunc('minute', '1:2:3')",
        f"typeof(time_trunc('HOUR', {_NARROW}))",
    ],
    "time_from_seconds": [
        "time_from_seconds(pmod(i, 86400))",
        "time_from_seconds(t)",
        "time_from_seconds(l)",
        "time_from_seconds(pmod(p, 86400))",
        "time_from_seconds(0.5D)",
        "time_from_seconds(86399.999999D)",
        "time_from_seconds(CAST(i AS DOUBLE))",
        "time_from_seconds(w)",
    ],
    "time_from_millis": ["time_from_millis(pmod(l, 86400000))", "time_from_millis(i)", "time_from_millis(l)"],
    "time_from_micros": [_MOMENT, "time_from_micros(i)", "time_from_micros(l)"],
    "time_to_seconds": [f"time_to_seconds({_MOMENT})", f"time_to_seconds({_NARROW})", "time_to_seconds(NULL)"],
    "time_to_millis": [f"time_to_millis({_MOMENT})", f"time_to_millis({_NARROW})"],
    "time_to_micros": [f"time_to_micros({_MOMENT})", f"time_to_micros({_NARROW})"],
    "hour": [f"hour({_MOMENT})", f"hour({_NARROW})"],
    "minute": [f"minute({_MOMENT})"],
    "second": [f"second({_MOMENT})"],
    "extract": [
        *(f"extract({field} FROM {_MOMENT})" for field in ("HOUR", "MINUTE", "SECOND")),
        f"extract(SECOND FROM CAST({_MOMENT} AS TIME(2)))",
        "extract(SECOND FROM CAST('1:2:3.456' AS TIME(1)))",
    ],
    "date_part": [f"date_part('secs', {_MOMENT})", f"date_part('h', {_NARROW})"],
    "make_timestamp": [
        f"make_timestamp(d, {_MOMENT})",
        "make_timestamp(d)",
        f"make_timestamp(DATE '2021-03-28', {_MOMENT}, 'Europe/Paris')",
        "make_timestamp(DATE '2021-10-31', TIME '02:30:00', 'Europe/Paris')",
        "make_timestamp(DATE '2021-10-31', NULL)",
    ],
    "make_timestamp_ltz": [f"make_timestamp_ltz(d, {_MOMENT})", f"make_timestamp_ltz(DATE '2020-01-01', {_TIME}, '+05:30')"],
    "make_timestamp_ntz": [f"make_timestamp_ntz(d, {_MOMENT})", f"make_timestamp_ntz(d, {_NARROW})"],
    "try_make_timestamp": [f"try_make_timestamp(d, {_TIME})", "try_make_timestamp(d)"],
    "try_make_timestamp_ltz": [f"try_make_timestamp_ltz(d, {_TIME})"],
    "try_make_timestamp_ntz": [f"try_make_timestamp_ntz(d, {_TIME})"],
    "hash": [f"hash({_MOMENT}, {_TIME})", f"hash(array({_MOMENT}), {_NARROW})"],
    "xxhash64": [f"xxhash64({_MOMENT}, {_TIME})", f"xxhash64(named_struct('a', {_MOMENT}))"],
    "to_json": [f"to_json(named_struct('a', {_MOMENT}, 'b', array({_TIME})))", f"to_json(map({T}, {_TIME}))"],
    "from_json": [
        f"from_json(concat('{{\"a\":\"', {_TEXTS}, '\"}}'), 'a TIME')",
        """from_json('{"a":"x","b":["1:2 PM","T5"]}', 'a TIME, b ARRAY<TIME>')""",
    ],
    "hex": [f"hex({_MOMENT})", f"hex({_NARROW})"],
    "format_string": [
        f"format_string('%s|%d|%x|%,d|%030d|%b|%S', {', '.join([_MOMENT] * 7)})",
        f"format_string('%s', {_NARROW})",
        f"format_string('%s', {_TIME})",
        f"format_string('%c', {T})",
    ],
    "to_csv": [f"to_csv(named_struct('a', {_MOMENT}, 'b', {_TIME}))"],
    "from_csv": ["from_csv('1:2 PM,x,23:59:59.9999999', 'a TIME, b TIME, c TIME')"],
}
