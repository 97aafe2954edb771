"""Limits of LIME on texts for functions that can only be called, from samples.

- :func:`~propopt.lime.text.sampled.estimate.estimate_words`: samples of a function,
  :class:`~propopt.lime.text.sampled.estimate.SampledWords`, whose coefficients at any
  bandwidth come with standard errors;
- :class:`~propopt.lime.text.sampled.plan.SizePlan`: which sets of words are asked for.
"""

from propopt.lime.text.sampled.estimate import SampledWords, estimate_words
from propopt.lime.text.sampled.plan import SizePlan


__all__ = ["SampledWords", "SizePlan", "estimate_words"]
