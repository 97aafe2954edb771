"""Compile propopt/base/kernels.c, where there is a compiler, for a wheel.

Without one the wheel is of Python alone, and NumPy does the same more slowly.
``python hatch_build.py`` compiles in the checkout, as ``pip install -e .`` does.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import platform_tags


SOURCE = "propopt/base/kernels.c"
LIBRARY = "propopt/base/libkernels." + ("dll" if sys.platform == "win32" else "so")
COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-std=c11", "-O3", "-ffp-contract=off", "-fPIC", "-shared")
"""Those of every machine: no -march, no -ffast-math."""


class Kernels(BuildHookInterface):
    """The hook of wheels and of editable installs."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        del version
        failure = compile_kernels(Path(self.root))
        if failure is not None:
            self.app.display_warning(f"propopt is built without kernels: {failure}")
            return
        build_data["artifacts"].append(f"/{LIBRARY}")  # which git ignores
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{next(iter(platform_tags()))}"


def compile_kernels(root: Path) -> str | None:
    """Make the library in its place, or say why it could not be made.

    ``CC`` names the compiler, and ``CFLAGS`` has flags besides, as they do elsewhere.
    An old library goes, and no program that has loaded it notices.
    """
    source, library = root / SOURCE, root / LIBRARY
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    compiler = shlex.split(os.environ.get("CC", ""))
    if not compiler:
        found = next(filter(None, map(shutil.which, COMPILERS)), None)
        compiler = [] if found is None else [found]
    if not compiler:
        library.unlink(missing_ok=True)
        return "there is no C compiler"
    own = (*FLAGS, *shlex.split(os.environ.get("CFLAGS", "")))
    with tempfile.TemporaryDirectory(
        dir=library.parent, prefix=".libkernels"
    ) as folder:
        made = Path(folder) / library.name
        what = (f"-DPROPOPT_SOURCE={digest}", str(source), "-o", str(made))
        try:
            subprocess.run(
                [*compiler, *own, *what], check=True, capture_output=True, text=True
            )
        except (OSError, subprocess.CalledProcessError) as error:
            library.unlink(missing_ok=True)
            return f"{error}\n{getattr(error, 'stderr', '')}".strip()
        made.replace(library)
    return None


if __name__ == "__main__":
    sys.exit(compile_kernels(Path(__file__).parent))
