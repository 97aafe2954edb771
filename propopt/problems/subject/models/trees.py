"""Trees, forests and gradient boosting, of scikit-learn and of LightGBM."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
from pydantic import Field
from scipy.sparse import issparse
from sklearn import ensemble, tree
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from propopt import extras
from propopt.problems.section import Positive
from propopt.problems.subject.models.base import Making, TaskSection


Trees: TypeAlias = Annotated[int, Field(ge=1, le=10_000)]
Depth: TypeAlias = Annotated[int, Field(ge=1, le=1_000)]
Leaf: TypeAlias = Annotated[int, Field(ge=1, le=1_000_000)]
Leaves: TypeAlias = Annotated[int, Field(ge=2, le=100_000)]


class TreesSection(TaskSection):
    """Trees: settings and defaults are those of the estimators of that name."""

    takes_missing: ClassVar[bool] = True
    estimator: ClassVar[str]
    """The name of the class, without Classifier or Regressor."""

    def make(self, making: Making) -> Any:
        name = "Classifier" if making.task == "classification" else "Regressor"
        kind = getattr(self._package(), f"{self.estimator}{name}")
        settings = {name: getattr(self, name) for name in self._own()}
        trees = kind(**settings, **self._fixed(), random_state=making.seed)
        if making.vectorizer is None:
            return make_pipeline(_as_numbers(making.categorical), trees)
        return make_pipeline(making.vectorizer.make(), *self._between(), trees)

    def _package(self) -> Any:
        return ensemble

    def _between(self) -> list[Any]:
        """What stands between counts of words, which are sparse, and the trees."""
        return []

    def _fixed(self) -> dict[str, Any]:
        """What a file does not choose."""
        return {}

    @classmethod
    def _own(cls) -> list[str]:
        """The settings of the estimator."""
        return [n for n in cls.model_fields if n not in {"kind", *_COMMON}]


_COMMON = frozenset(TaskSection.model_fields)


class TreeModel(TreesSection):
    """One decision tree, which is fitted fast."""

    words: ClassVar[str] = "a tree"
    estimator: ClassVar[str] = "DecisionTree"

    kind: Literal["tree"]
    max_depth: Depth | None = None
    min_samples_leaf: Leaf = 1

    def _package(self) -> Any:
        return tree


class ForestModel(TreesSection):
    """A random forest."""

    words: ClassVar[str] = "a forest"
    estimator: ClassVar[str] = "RandomForest"

    kind: Literal["forest"]
    n_estimators: Trees = 100
    max_depth: Depth | None = None
    min_samples_leaf: Leaf = 1


class ExtraTreesModel(TreesSection):
    """Extremely randomized trees."""

    words: ClassVar[str] = "a forest of extremely randomized trees"
    estimator: ClassVar[str] = "ExtraTrees"

    kind: Literal["extra_trees"]
    n_estimators: Trees = 100
    max_depth: Depth | None = None
    min_samples_leaf: Leaf = 1


class GradientBoostingModel(TreesSection):
    """Gradient boosting."""

    words: ClassVar[str] = "gradient boosting"
    takes_missing: ClassVar[bool] = False
    estimator: ClassVar[str] = "GradientBoosting"

    kind: Literal["gradient_boosting"]
    n_estimators: Trees = 100
    max_depth: Depth | None = 3
    learning_rate: Positive = 0.1
    min_samples_leaf: Leaf = 1


class HistGradientBoostingModel(TreesSection):
    """Gradient boosting on histograms, for many rows."""

    words: ClassVar[str] = "gradient boosting"
    estimator: ClassVar[str] = "HistGradientBoosting"

    kind: Literal["hist_gradient_boosting"]
    max_iter: Trees = 100
    max_depth: Depth | None = None
    max_leaf_nodes: Leaves | None = 31
    learning_rate: Positive = 0.1
    min_samples_leaf: Leaf = 20

    def _between(self) -> list[Any]:
        return [FunctionTransformer(_dense, accept_sparse=True)]


class LightGbmModel(TreesSection):
    """LightGBM, with the same answers on any machine."""

    words: ClassVar[str] = "LightGBM"
    estimator: ClassVar[str] = "LGBM"

    kind: Literal["lightgbm"]
    n_estimators: Trees = 100
    max_depth: Literal[-1] | Depth = -1
    num_leaves: Leaves = 31
    learning_rate: Positive = 0.1
    min_child_samples: Leaf = 20

    def _package(self) -> Any:
        return extras.require("lightgbm")

    def _fixed(self) -> dict[str, Any]:
        return {
            "n_jobs": 1,
            "deterministic": True,
            "force_row_wise": True,
            "verbosity": -1,
        }


def _as_numbers(categorical: tuple[str, ...]) -> Any:
    """What makes an array from the columns; trees do not see their scale."""
    if not categorical:
        return FunctionTransformer(_array)
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    categories = ("categories", encoder, list(categorical))
    return ColumnTransformer([categories], remainder="passthrough")


def _dense(counts: Any) -> Any:
    return counts.toarray() if issparse(counts) else np.asarray(counts)


def _array(table: Any) -> Any:
    """Without names, which LightGBM takes for JSON."""
    return np.asarray(table, dtype=float)
