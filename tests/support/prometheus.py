"""Reads metrics in Prometheus's text format."""

from __future__ import annotations

import re
from typing import Final

_SAMPLE: Final = re.compile(r'([a-z_]+)(?:\{([a-z]+)="((?:[^"\\\n]|\\[\\"n])*)"\})? (-?[0-9.e+-]+)')


def samples(text: str) -> dict[tuple[str, str], float]:
    """By name and label. Each metric has its HELP and TYPE, once and before its samples."""
    found: dict[tuple[str, str], float] = {}
    declared: list[str] = []
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            declared.append(line.split()[2])
        elif not line.startswith("# HELP "):
            match = _SAMPLE.fullmatch(line)
            assert match is not None, line
            assert match[1] == declared[-1], "the samples of a metric are together, after its type"
            found[match[1], match[3] or ""] = float(match[4])
    assert len(declared) == len(set(declared))
    return found
