"""Property losses: each is a penalty of a linear map of the attributions."""

import importlib

import lazy_loader

from propopt.base.suggestions import suggesting_getattr as _suggesting_getattr


# rooms above import single chapters, so each is loaded when first used
_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
_others = _suggesting_getattr("po.losses", __all__, _load)


def __getattr__(name: str) -> object:
    if name == "graphs":  # `po.graphs`, a separate namespace
        return importlib.import_module("propopt.losses.graphs")
    return _others(name)
