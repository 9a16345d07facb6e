"""Ratios of the TPC-H benchmark."""

from __future__ import annotations

from benchmarks import harness, tpch_case


def _figures(milliseconds: float, cpu_ms: float, load_s: float) -> harness.Figures:
    return {"tick_ms": {"median": milliseconds}, "cpu_ms": {"median": cpu_ms}, "load_s": load_s, "load_cpu_s": 2 * load_s}


def test_a_tick_shorter_than_the_resolution_of_the_cpu_clock_is_taken_to_last_as_long() -> None:
    ratios = tpch_case.ratios(_figures(5.0, 0.0, 3.0), _figures(500.0, 800.0, 2.0), least_cpu_ms=10.0)
    assert ratios == {"faster": {"wall": 100.0, "cpu": 80.0}, "load_ratio": {"wall": 1.5, "cpu": 1.5}}
    ratios = tpch_case.ratios(_figures(5.0, 4.0, 3.0), _figures(500.0, 800.0, 2.0), least_cpu_ms=0.0)
    assert ratios["faster"]["cpu"] == 200.0
