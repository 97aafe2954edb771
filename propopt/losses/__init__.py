"""Property losses: each is a penalty of a linear map of the attributions."""

import importlib

from propopt.base.suggestions import lazy_names as _lazy_names


# rooms above import single chapters, so each is loaded when first used
_others, __dir__, __all__ = _lazy_names("po.losses", __name__, __file__)


def __getattr__(name: str) -> object:
    if name == "graphs":  # `po.graphs`, a separate namespace
        return importlib.import_module("propopt.losses.graphs")
    return _others(name)
