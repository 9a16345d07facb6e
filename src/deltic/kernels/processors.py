"""Processors that kernels are compiled for: this one, or the oldest one that precompiled kernels serve."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from typing import Final

import llvmlite.binding as llvm
from numba.core import config
from numba.core.codegen import get_host_cpu_features


@dataclass(frozen=True, slots=True)
class Processor:
    """LLVM's name of a processor, its features beyond those that the name implies, and what a machine that runs the code must have."""

    name: str
    features: str = ""
    needs: tuple[str, ...] = ()

    def fits(self) -> bool:
        """Whether this machine runs the code."""
        host = llvm.get_host_cpu_features() if self.needs else {}
        return all(host.get(need, False) for need in self.needs)


# Those of x86-64 with AVX2, of Intel since Haswell and of AMD since Zen, and all of 64-bit ARM.
_V2: Final = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
_V3: Final = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_PORTABLE: Final = {
    "x86_64": Processor("x86-64-v3", needs=_V3),
    "aarch64": Processor("generic"),
}


def own() -> Processor:
    """What numba compiles for in this process: this machine's processor, or the one that NUMBA_CPU_NAME names."""
    features = get_host_cpu_features() if config.CPU_FEATURES is None else config.CPU_FEATURES
    return Processor(config.CPU_NAME or llvm.get_host_cpu_name(), features)


def portable() -> Processor | None:
    """What precompiled kernels of this kind of machine are for; None if there are none."""
    return _PORTABLE.get({"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine()))
