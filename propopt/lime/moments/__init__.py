"""Means and covariances of bits: all that a surrogate has to know of them.

- :class:`~propopt.lime.moments.base.BitMoments`: what is asked of them;
  :class:`~propopt.lime.moments.base.BitLimits`: limits of LIME that have them.
- :class:`~propopt.lime.moments.independent.IndependentBits`: of tables.
- :class:`~propopt.lime.moments.exchangeable.ExchangeableBits`: of texts.
"""

from propopt.lime.moments.base import BitLimits, BitMoments
from propopt.lime.moments.exchangeable import ExchangeableBits
from propopt.lime.moments.independent import IndependentBits


__all__ = ["BitLimits", "BitMoments", "ExchangeableBits", "IndependentBits"]
