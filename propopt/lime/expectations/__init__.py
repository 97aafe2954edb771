"""Expectations under weighted laws, and the limits of LIME that follow from them."""

from propopt.lime.expectations.factor_means import FactorMeans
from propopt.lime.expectations.limits import ExactLimits, Limits


__all__ = ["ExactLimits", "FactorMeans", "Limits"]
