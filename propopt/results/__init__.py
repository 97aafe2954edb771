"""Results: what is found, what is proved of it, and how it is saved."""

import lazy_loader


# rooms above and below import single chapters, so each is loaded when first used
_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    try:
        return _load(name)
    except AttributeError as error:
        from propopt.base.words_of_others import no_name_of_module

        raise no_name_of_module("po.results", name, error) from None
