"""One line from a model of texts and documents to an optimized explanation.

- :mod:`propopt.explaining.texts.explain`: documents, explained together.
- :mod:`propopt.explaining.texts.targets`: what attributions of words aim at.
- :mod:`propopt.explaining.texts.optimum`: the best that are robust over shared words.
"""
