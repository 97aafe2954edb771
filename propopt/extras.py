"""Optional packages, imported when they are needed, and how each is installed."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping
from types import ModuleType

from propopt.errors import MissingExtra


EXTRAS: Mapping[str, str] = {
    "shap": "baselines",
    "lime": "baselines",
    "ecos": "solvers",
    "piqp": "solvers",
    "highspy": "solvers",
    "pyamg": "multigrid",
    "torch": "torch",
    "torchvision": "vision",
    "lightgbm": "boosting",
    "onnxruntime": "onnx",
    "captum": "peers",
    "dask": "dask",
    "shapiq": "shapley",
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
                f"{package} could not be imported ({error}); {remedy(package)}"
            ) from error


def remedy(package: str) -> str:
    """How to install the package."""
    return f'install it with: pip install "propopt[{EXTRAS[package]}]"'
