"""Proofs about attributions: bounds, Hessians, near-optimal sets, sampling errors."""

import lazy_loader

from propopt.base.suggestions import suggesting_getattr as _suggesting_getattr


_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = _suggesting_getattr("po.proofs", __all__, _load)
