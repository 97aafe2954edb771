"""Baselines: the explanations that others compute, as :class:`Explanation` objects."""

from collections.abc import Mapping

from propopt.explainers.aggregation import aggregate
from propopt.explainers.base import Explainer
from propopt.explainers.gradient import Gradient
from propopt.explainers.lime import Lime
from propopt.explainers.lime_package import TabularLime
from propopt.explainers.shap import Shap
from propopt.explainers.smoothgrad import SmoothGrad


__all__ = [
    "EXPLAINERS",
    "Explainer",
    "Gradient",
    "Lime",
    "Shap",
    "SmoothGrad",
    "TabularLime",
    "aggregate",
]

EXPLAINERS: Mapping[str, type[Explainer]] = {
    "gradient": Gradient,
    "lime": Lime,
    "shap": Shap,
    "smoothgrad": SmoothGrad,
    "tabular_lime": TabularLime,
}
"""Each baseline under the name that it has in files."""
