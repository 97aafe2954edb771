"""The function under explanation: values and gradients of formulas and of models."""

from propopt.functions.cost import Cost, cost_of
from propopt.functions.differences import central_differences, jump_test
from propopt.functions.formulas import (
    PAPER_FUNCTIONS,
    Additive,
    Exponential,
    Interactions,
    LinearPlusSine,
    LinearPlusSineOfExponential,
    Multiplicative,
    Power,
    QuadraticPlusSine,
    Sine,
    SineOfExponential,
)
from propopt.functions.function import Function
from propopt.functions.gaussian_means import Changes, SmoothedFunction
from propopt.functions.images import (
    ImageShape,
    load_weights,
    normalisation,
    torchvision_model,
)
from propopt.functions.jumps import Jumps
from propopt.functions.means import ExactMean
from propopt.functions.sampled_means import GrowingEstimate, SampledMean
from propopt.functions.smoothing import smoothed
from propopt.functions.texts import DocumentFunction, TextFunction
from propopt.functions.wrapping import word_rule_of, wrap
from propopt.structures.boosters import is_piecewise_constant


__all__ = [
    "PAPER_FUNCTIONS",
    "Additive",
    "Changes",
    "Cost",
    "DocumentFunction",
    "ExactMean",
    "Exponential",
    "Function",
    "GrowingEstimate",
    "ImageShape",
    "Interactions",
    "Jumps",
    "LinearPlusSine",
    "LinearPlusSineOfExponential",
    "Multiplicative",
    "Power",
    "QuadraticPlusSine",
    "SampledMean",
    "Sine",
    "SineOfExponential",
    "SmoothedFunction",
    "TextFunction",
    "central_differences",
    "cost_of",
    "is_piecewise_constant",
    "jump_test",
    "load_weights",
    "normalisation",
    "smoothed",
    "torchvision_model",
    "word_rule_of",
    "wrap",
]
