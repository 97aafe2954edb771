"""The function under explanation: values and gradients of formulas and of models."""

from propopt.functions.base import Function
from propopt.functions.differences import central_differences
from propopt.functions.grid import grid
from propopt.functions.models import wrap
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


__all__ = [
    "PAPER_FUNCTIONS",
    "Exponential",
    "Function",
    "Interactions",
    "LinearPlusSine",
    "LinearPlusSineOfExponential",
    "Power",
    "QuadraticPlusSine",
    "Sine",
    "SineOfExponential",
    "central_differences",
    "grid",
    "wrap",
]
