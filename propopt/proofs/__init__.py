"""What is proved of attributions: bounds, Hessians, near-optimal sets, errors."""

import lazy_loader

from propopt.base.words_of_others import other_words as _other_words


_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = _other_words("po.proofs", __all__, _load)
