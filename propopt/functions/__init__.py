"""The function under explanation: values and gradients of formulas and of models."""

import lazy_loader


# rooms above import single chapters, so each is loaded when first used
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
