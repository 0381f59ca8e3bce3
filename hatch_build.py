"""Put compiled kernels into the wheel if ``SMALTO_PREBUILD`` is set.

    SMALTO_PREBUILD=1 python -m build --wheel

It may also name levels of processors ("v2,v3"), and ``SMALTO_PREBUILD_FAMILIES`` the families of
kernels ("lasso,learning"). Without it the wheel is pure Python. See CONTRIBUTING.md.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Where Numba has wheels: our files have no further needs.
_PLATFORMS = {
    ("linux", "x86_64"): "manylinux_2_17_x86_64.manylinux2014_x86_64",
    ("linux", "aarch64"): "manylinux_2_17_aarch64.manylinux2014_aarch64",
    ("darwin", "x86_64"): "macosx_11_0_x86_64",
    ("darwin", "aarch64"): "macosx_11_0_arm64",
    ("win32", "x86_64"): "win_amd64",
}


class PrebuiltKernels(BuildHookInterface):
    """Compile the kernels and include them."""

    def dependencies(self) -> list[str]:
        """Return what compiling needs: all that smalto needs."""
        return list(self.metadata.core.dependencies) if _wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the kernels before the wheel is packed."""
        if not _wanted() or version == "editable":
            return
        sys.path.insert(0, str(Path(self.root) / "src"))
        from smalto.kernels.prebuilt_files import machine
        from smalto.prebuilding import build

        self._folder = tempfile.TemporaryDirectory()
        levels = None if _wanted() == ["1"] else _wanted()
        files = build(Path(self._folder.name), levels, _listed("SMALTO_PREBUILD_FAMILIES") or None)
        for path in files:
            build_data["force_include"][str(path)] = f"smalto/kernels/prebuilt/{path.name}"
        build_data["pure_python"] = False
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        build_data["tag"] = f"{python}-none-{_PLATFORMS[sys.platform, machine()]}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact: str) -> None:
        """Remove the files that are in the wheel now."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()


def _wanted() -> list[str]:
    return _listed("SMALTO_PREBUILD")


def _listed(variable: str) -> list[str]:
    return [part.strip() for part in os.environ.get(variable, "").split(",") if part.strip()]
