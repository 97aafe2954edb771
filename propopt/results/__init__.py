"""Results: what is found, what is proved of it, and how it is saved."""

from propopt.base.suggestions import lazy_names as _lazy_names


# rooms above and below import single chapters, so each is loaded when first used
__getattr__, __dir__, __all__ = _lazy_names("po.results", __name__, __file__)
