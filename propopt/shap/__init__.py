"""The interface of the package ``shap``, on exact structures of models.

``from propopt.shap import TreeExplainer`` replaces ``from shap import TreeExplainer``.
The package ``shap`` is imported only to return a ``shap.Explanation``.
"""

from typing import TYPE_CHECKING

from propopt.base.suggestions import suggesting_getattr as _suggesting_getattr
from propopt.shap.explainer import Explainer
from propopt.shap.explanation import Explanation
from propopt.shap.trees import TreeExplainer


__all__ = ["Explainer", "Explanation", "TreeExplainer"]

if not TYPE_CHECKING:  # for which every name would be an object
    __getattr__ = _suggesting_getattr("po.shap", __all__)
