"""Coefficients of functions that can only be called, from samples of a law.

- :func:`~propopt.lime.surrogates.estimate.estimate_limits`:
  :class:`~propopt.lime.surrogates.estimated.EstimatedLimits`, with standard errors.
- :func:`~propopt.lime.surrogates.stratified.stratified_uniforms`: what draws are made
  of; :mod:`~propopt.lime.surrogates.neighbourhoods` has samples for regressions.
"""

from propopt.lime.surrogates.estimate import estimate_limits
from propopt.lime.surrogates.estimated import EstimatedLimits
from propopt.lime.surrogates.stratified import stratified_uniforms


__all__ = ["EstimatedLimits", "estimate_limits", "stratified_uniforms"]
