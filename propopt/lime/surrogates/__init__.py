"""Coefficients of functions that can only be called, from samples of a law.

- :func:`~propopt.lime.surrogates.estimate.estimate_limits`: limits with standard
  errors.
"""

from propopt.lime.surrogates.estimate import EstimatedLimits, estimate_limits
from propopt.lime.surrogates.stratified import stratified_uniforms


__all__ = ["EstimatedLimits", "estimate_limits", "stratified_uniforms"]
