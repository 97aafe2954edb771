"""Baselines: the explanations that others compute, as :class:`Explanation` objects."""

from collections.abc import Mapping

from propopt.explainers.aggregation import aggregate
from propopt.explainers.base import Baseline
from propopt.explainers.exact_lime import ExactLime
from propopt.explainers.gradient import Gradient
from propopt.explainers.lime import Lime
from propopt.explainers.lime_package import LimePackage
from propopt.explainers.peers import captum_attribution, quantus_explain_func
from propopt.explainers.shap import Shap
from propopt.explainers.smoothgrad import SmoothGrad
from propopt.explainers.tree_shap import TreeShap


__all__ = [
    "BASELINES",
    "Baseline",
    "ExactLime",
    "Gradient",
    "Lime",
    "LimePackage",
    "Shap",
    "SmoothGrad",
    "TreeShap",
    "aggregate",
    "captum_attribution",
    "quantus_explain_func",
]

BASELINES: Mapping[str, type[Baseline]] = {
    "gradient": Gradient,
    "lime": Lime,
    "shap": Shap,
    "smoothgrad": SmoothGrad,
    "exact_lime": ExactLime,
    "lime_package": LimePackage,
    "tree_shap": TreeShap,
}
"""Each baseline under the name that it has in files."""
