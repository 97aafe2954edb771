"""Results: what is found, what is proved of it, and how it is saved."""

import lazy_loader

from propopt.base.words_of_others import other_words as _other_words


# rooms above and below import single chapters, so each is loaded when first used
_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = _other_words("po.results", __all__, _load)
