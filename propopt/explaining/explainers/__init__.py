"""Baselines: the explanations that others compute, as :class:`Explanation` objects."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from propopt.base.suggestions import suggesting_getattr as _suggesting_getattr
from propopt.explaining.explainers.aggregation import aggregate
from propopt.explaining.explainers.baseline import Baseline, Gradient
from propopt.explaining.explainers.exact_limits import ExactLime
from propopt.explaining.explainers.lime_package import LimePackage
from propopt.explaining.explainers.local_lime import Lime
from propopt.explaining.explainers.main_effects import MainEffects, main_effects
from propopt.explaining.explainers.peers import captum_attribution, quantus_explain_func
from propopt.explaining.explainers.shapley_values import ExactShap, Shap, TreeShap
from propopt.explaining.explainers.smoothgrad import SmoothGrad
from propopt.explaining.explainers.tree_interactions import TreeInteractions


__all__ = [
    "BASELINES",
    "Baseline",
    "ExactLime",
    "ExactShap",
    "Gradient",
    "Lime",
    "LimePackage",
    "MainEffects",
    "Shap",
    "SmoothGrad",
    "TreeInteractions",
    "TreeShap",
    "aggregate",
    "captum_attribution",
    "main_effects",
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
    "exact_shap": ExactShap,
}
"""Each baseline under the name that it has in files."""

if not TYPE_CHECKING:  # for which every name would be an object
    __getattr__ = _suggesting_getattr("po.explainers", __all__)
