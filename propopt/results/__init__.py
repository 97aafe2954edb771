"""Results: what is found, what is proved of it, and how it is saved."""

import lazy_loader


# rooms above and below import single chapters, so each is loaded when first used
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
