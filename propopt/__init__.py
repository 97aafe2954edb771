"""propopt: explanations optimized for the properties you choose, with proof."""

import lazy_loader


# the public names stand in __init__.pyi; each module is imported when first used
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = "0.1.0"
