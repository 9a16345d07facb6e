"""Cases as Python source, so that one that failed stays as it was when the generator of programs changes."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import hashlib
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from programs import Case

FOLDER: Final = Path(__file__).resolve().parents[1] / "regressions"


def source_of(value: Any) -> str:
    """An expression that makes the value: plain data, frozen dataclasses and nodes of plans.

    >>> source_of((float("nan"), decimal.Decimal("1.50"), datetime.date(2024, 1, 2), {"a": [None]}))
    '(float("nan"), decimal.Decimal(\\'1.50\\'), datetime.date(2024, 1, 2), {\\'a\\': [None]})'
    """
    match value:
        case enum.Enum():
            return f"{_name(type(value))}.{value.name}"
        case float() if value != value or value in (float("inf"), float("-inf")):
            return f'float("{value}")'
        case None | bool() | int() | float() | str() | bytes():
            return repr(value)
        case decimal.Decimal():
            return f"decimal.{value!r}"
        case datetime.date() | datetime.time() | datetime.timedelta() | datetime.timezone():
            return repr(value)
        case tuple():
            return f"({', '.join(map(source_of, value))}{',' * (len(value) == 1)})"
        case list():
            return f"[{', '.join(map(source_of, value))}]"
        case Mapping():
            return f"{{{', '.join(f'{source_of(k)}: {source_of(v)}' for k, v in value.items())}}}"
    assert dataclasses.is_dataclass(value), f"{type(value)} cannot be written"
    parts = (f"{f.name}={source_of(getattr(value, f.name))}" for f in dataclasses.fields(value) if f.init and f.name != "span")
    return f"{_name(type(value))}({', '.join(parts)})"


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def write(program: Case, folder: Path = FOLDER) -> Path:
    """The file that keeps the case; one that is the same has the same name."""
    source = source_of(program)
    modules = sorted({"datetime", "decimal", "deltic.expr.nodes", "deltic.plan.nodes", "deltic.schema", "programs"})
    lines = ["# A case that once failed, as it was shrunk.", *(f"import {module}" for module in modules if f"{module}." in source)]
    path = folder / f"case_{hashlib.sha256(source.encode()).hexdigest()[:12]}.py"
    folder.mkdir(exist_ok=True)
    path.write_text("\n".join([*lines, "", f"CASE = {source}", ""]), encoding="utf-8")
    return path


def read(path: Path) -> Case:
    """The case of a file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    case: Case = module.CASE
    return case
