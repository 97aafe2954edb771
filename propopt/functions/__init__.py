"""The function under explanation: values and gradients of formulas and of models."""

from propopt.functions.formulas import (
    PAPER_FUNCTIONS,
    Additive,
    Multiplicative,
    Power,
    Sine,
)
from propopt.functions.function import Function
from propopt.functions.gaussian_means import SmoothedFunction
from propopt.functions.images import (
    ImageShape,
    load_weights,
    normalisation,
    torchvision_model,
)
from propopt.functions.smoothing import smoothed
from propopt.functions.texts import TextFunction
from propopt.functions.wrapping import wrap
from propopt.tables.documents import TextSchema
from propopt.tables.schema import TableSchema


__all__ = [
    "PAPER_FUNCTIONS",
    "Additive",
    "Function",
    "ImageShape",
    "Multiplicative",
    "Power",
    "Sine",
    "SmoothedFunction",
    "TableSchema",
    "TextFunction",
    "TextSchema",
    "load_weights",
    "normalisation",
    "smoothed",
    "torchvision_model",
    "wrap",
]
