"""Similarity graphs of points and features, stored or on grids."""

from propopt.base.suggestions import lazy_names as _lazy_names


# rooms above import single chapters, so each is loaded when first used
__getattr__, __dir__, __all__ = _lazy_names("po.graphs", __name__, __file__)
