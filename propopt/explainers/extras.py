"""Optional packages, imported when they are needed."""

from __future__ import annotations

import importlib
import warnings
from types import ModuleType

from propopt.errors import MissingExtra


def require(module: str) -> ModuleType:
    """The module, or :class:`MissingExtra` with the command that installs it."""
    with warnings.catch_warnings():
        # What an import says here concerns that package's own source (deprecated
        # matplotlib calls, invalid escapes); the user of propopt can do nothing.
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(module)
        except ImportError as error:
            raise MissingExtra(
                f"{module.partition('.')[0]} could not be imported ({error}); install "
                'it with: pip install "propopt[baselines]"'
            ) from error
