"""Proofs about attributions: bounds, Hessians, near-optimal sets, sampling errors."""

from propopt.base.suggestions import lazy_names as _lazy_names


__getattr__, __dir__, __all__ = _lazy_names("po.proofs", __name__, __file__)
