"""Property losses: each is a penalty of a linear map of the attributions."""

from propopt.losses.algebra import Bound, Objective, Program, PropertyLoss
from propopt.losses.completeness import Completeness
from propopt.losses.faithfulness import FunctionMatching, GradientMatching
from propopt.losses.robustness import (
    KernelRobustness,
    MaxDifferenceRobustness,
    PairwiseRobustness,
    SharedRobustness,
    Smoothness,
    Sparsity,
)


__all__ = [
    "Bound",
    "Completeness",
    "FunctionMatching",
    "GradientMatching",
    "KernelRobustness",
    "MaxDifferenceRobustness",
    "Objective",
    "PairwiseRobustness",
    "Program",
    "PropertyLoss",
    "SharedRobustness",
    "Smoothness",
    "Sparsity",
]
