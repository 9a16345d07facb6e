"""Precompiles the kernels into the wheel, when asked: `HATCH_BUILD_HOOK_ENABLE_CUSTOM=true pip wheel --no-deps .`

Otherwise `pip install .` would compile for one or two minutes without a word. A wheel without them compiles them where it is used.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PrecompiledKernels(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        self.folder = Path(tempfile.mkdtemp(prefix="deltic-kernels-"))
        environment = {**os.environ, "PYTHONPATH": str(Path(self.root) / "src")}
        subprocess.run([sys.executable, "-m", "deltic.kernels.precompile", str(self.folder)], env=environment, check=True)
        build_data["force_include"][str(self.folder)] = "deltic/kernels/precompiled"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            shutil.rmtree(self.folder)
