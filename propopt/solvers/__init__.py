"""Solvers: each refuses with a reason, prepares once and solves for many weights."""

from propopt.base.suggestions import lazy_names as _lazy_names


# rooms above import single chapters, so each is loaded when first used
__getattr__, __dir__, __all__ = _lazy_names("po.solvers", __name__, __file__)
