"""The function under explanation: values and gradients of formulas and of models."""

from propopt.functions.base import Function
from propopt.functions.cost import Cost, cost_of
from propopt.functions.differences import central_differences
from propopt.functions.images import ImageShape
from propopt.functions.jump_test import jump_test
from propopt.functions.jumps import Jumps
from propopt.functions.models.vision import (
    load_weights,
    normalisation,
    torchvision_model,
)
from propopt.functions.of_columns import Additive, Multiplicative
from propopt.functions.paper import (
    PAPER_FUNCTIONS,
    Exponential,
    Interactions,
    LinearPlusSine,
    LinearPlusSineOfExponential,
    Power,
    QuadraticPlusSine,
    Sine,
    SineOfExponential,
)
from propopt.functions.smoothing import (
    Changes,
    ExactMean,
    GrowingEstimate,
    SampledMean,
    SmoothedFunction,
    smoothed,
)
from propopt.functions.text import DocumentFunction, TextFunction, word_rule_of
from propopt.functions.wrapping import wrap
from propopt.structures.piecewise import is_piecewise_constant


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
