"""The studies in ``benchmarks/``, which stands beside the package and not in it."""

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType


def study(name: str) -> ModuleType:
    """The module of that name."""
    root = str(Path(__file__).parents[2])
    sys.path.insert(0, root)
    try:
        return import_module(f"benchmarks.{name}")
    finally:
        sys.path.remove(root)
