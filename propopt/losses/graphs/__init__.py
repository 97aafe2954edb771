"""Similarity graphs of points and features, stored or on grids."""

import lazy_loader

from propopt.base.suggestions import suggesting_getattr as _suggesting_getattr


# rooms above import single chapters, so each is loaded when first used
_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = _suggesting_getattr("po.graphs", __all__, _load)
