"""Optional packages, which extras install, and plugins of other packages."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any, Final

from propopt.base.errors import MissingExtra


# ---- Optional packages: imported when needed, with a hint how to install them


EXTRAS: Mapping[str, str] = {
    "shap": "baselines",
    "lime": "baselines",
    "ecos": "solvers",
    "piqp": "solvers",
    "highspy": "solvers",
    "torch": "torch",
    "lightgbm": "boosting",
    "onnxruntime": "onnx",
    "captum": "peers",
    "dask": "dask",
    "distributed": "dask",
    "pyarrow": "parquet",
    "shapiq": "peers",
    "jinja2": "report",
}
"""The extra of propopt that installs each package."""


_NO_MEMORY: Final = ("failed to map segment", "Cannot allocate memory")
"""What the linker says if memory does not suffice for a library."""


def require(module: str) -> ModuleType:
    """Import a module; :class:`MissingExtra` has the command that installs it."""
    package = module.partition(".")[0]
    with warnings.catch_warnings():
        # warnings about the source of the package, such as deprecated calls of
        # matplotlib, which users of propopt cannot change
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(module)
        except ImportError as error:
            if any(words in str(error) for words in _NO_MEMORY):
                raise MemoryError(f"{package} is not imported: {error}") from error
            raise MissingExtra(
                f"{package} could not be imported ({error}); {install_hint(package)}"
            ) from error


def install_hint(package: str) -> str:
    """The command that installs an optional package."""
    return f'install it with: pip install "propopt[{EXTRAS[package]}]"'


# ---- Plugins: entry points of other packages, loaded when needed


@cache
def plugins(group: str) -> Mapping[str, EntryPoint]:
    """The entry points of a group by name."""
    return {entry.name: entry for entry in entry_points(group=group)}


def load_plugin(entry: EntryPoint) -> Any:
    """The object of an entry point; :class:`MissingExtra` if it cannot be imported."""
    try:
        return entry.load()
    except Exception as error:
        raise MissingExtra(
            f"{distribution_of(entry)} is broken: its {entry.name!r} of the group "
            f"{entry.group} ({entry.value}) raises {type(error).__name__}: {error}; "
            "upgrade or uninstall it"
        ) from error


def distribution_of(entry: EntryPoint) -> str:
    """The package of an entry point, and its version."""
    package = entry.dist
    return "a package" if package is None else f"{package.name} {package.version}"
