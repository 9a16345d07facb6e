"""Forms of functions and operators that Spark's own tests have: terms in SQL over the columns of `function_samples`, by what they are about."""

# ruff: noqa: E501  data
from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_TEXTS: Final = ("CAST(d AS STRING)", "CAST(ts AS STRING)", "k")

RARER: Final[Mapping[str, list[str]]] = {
    "text with interval": [
        *(f"{text} {sign} {interval}" for text in _TEXTS for sign in "+-" for interval in ("INTERVAL 2 DAYS", "INTERVAL '1:02' HOUR TO MINUTE", "make_dt_interval(0, h)")),
        *(f"{interval} + {text}" for text in _TEXTS for interval in ("INTERVAL 2 DAYS", "d - e")), "s + INTERVAL 1 DAY",
    ],
    "moment with NULL": [
        f"{term}" for moment in ("d", "ts", "CAST(ts AS TIMESTAMP_NTZ)") for call in (f"{moment} + NULL", f"NULL + {moment}", f"{moment} - NULL", f"NULL - {moment}") for term in (call, f"typeof({call})")
    ],
    "div": ["div(i, j)", "div(p, 2)", "div(d - e, INTERVAL 2 DAYS)", "div(make_ym_interval(t, h), INTERVAL '5' MONTH)"],
    "extract": ["extract('year', d)", "extract('MINUTES', ts)", "extract('DAYOFWEEK_ISO', d)", "extract('week', ts)"],
    "width_bucket": ["width_bucket(d - e, INTERVAL -10 DAYS, INTERVAL 1000 DAYS, 7)", "width_bucket(make_ym_interval(t, h), INTERVAL 5 YEARS, INTERVAL -50 MONTHS, h)", "width_bucket(ts - tt, INTERVAL '0' SECOND, INTERVAL '1:2' HOUR TO MINUTE, i)"],
    "to_csv": ["to_csv(struct(i, CAST(s AS BINARY)))", "to_csv(named_struct('b', unhex('00ff2c'), 'c', X''))"],
    "from_json": [
        *(f"to_json(from_json('{{\"a\": {value}, \"b\": 1}}', 'a INTERVAL {type}, b INT'))" for type in ("DAY", "DAY TO SECOND", "YEAR TO MONTH", "MONTH")
          for value in ('"1"', '"1-2"', '"x"', "1", "null", '"INTERVAL \\\'1\\\' DAY"', '"INTERVAL \\\'1-2\\\' YEAR TO MONTH"', '"1 02:03:04"', '"-1 02:03:04.5"')),
        "from_json(to_json(struct(d - e AS a)), 'a INTERVAL DAY')", "from_json(to_json(map('a', d - e)), 'MAP<STRING, INTERVAL DAY>')",
    ],
    "collated formats": [
        "format_string('%s|%s' COLLATE UTF8_LCASE, s, s COLLATE UTF8_LCASE) = 'ABC|ABC'", "collation(format_string('%s', s COLLATE UTF8_LCASE))", "format_string('%5s', s COLLATE UTF8_LCASE)",
        "format_number(p, '#,###.0' COLLATE UTF8_LCASE)", "collation(format_number(p, '#' COLLATE UTF8_LCASE))", "json_array_length(js COLLATE UTF8_LCASE)",
        "to_binary(s COLLATE UTF8_LCASE, 'utf-8')", "try_to_binary(s COLLATE UTF8_LCASE, 'hex' COLLATE UTF8_LCASE)",
    ],
}  # fmt: skip
