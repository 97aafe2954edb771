"""Packages beside the required ones: extras of ours, and what others add to ours."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

from propopt.base.errors import MissingExtra


# ---- Optional packages, imported when they are needed, and how each is installed


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
    "shapiq": "peers",
    "jinja2": "report",
}
"""By package, the extra of ours that installs it."""


def require(module: str) -> ModuleType:
    """The module, or :class:`MissingExtra` with the command that installs it."""
    package = module.partition(".")[0]
    with warnings.catch_warnings():
        # What an import says here concerns that package's own source (deprecated
        # matplotlib calls, invalid escapes); the user of propopt can do nothing.
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(module)
        except ImportError as error:
            raise MissingExtra(
                f"{package} could not be imported ({error}); {install_hint(package)}"
            ) from error


def install_hint(package: str) -> str:
    """How to install the package."""
    return f'install it with: pip install "propopt[{EXTRAS[package]}]"'


# ---- What other packages add, by entry points: named at once, loaded when needed


@cache
def plugins(group: str) -> Mapping[str, EntryPoint]:
    """The entry points of a group, by their names."""
    return {entry.name: entry for entry in entry_points(group=group)}


def load_plugin(entry: EntryPoint) -> Any:
    """What an entry point names; :class:`MissingExtra` if that cannot be imported."""
    try:
        return entry.load()
    except Exception as error:
        raise MissingExtra(
            f"{distribution_of(entry)} is broken: its {entry.name!r} of the group "
            f"{entry.group} ({entry.value}) raises {type(error).__name__}: {error}; "
            "upgrade or uninstall it"
        ) from error


def distribution_of(entry: EntryPoint) -> str:
    """What was installed with an entry point, and its version."""
    own = entry.dist
    return "a package" if own is None else f"{own.name} {own.version}"
