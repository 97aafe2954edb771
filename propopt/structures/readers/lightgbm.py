"""LightGBM: estimators and native boosters; trees, margins and path-dependent values.

It compares numbers in float64; in a column without missing values in training, a
missing value counts as the number 0.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from typing import Any, Final, final

import numpy as np

from propopt.base.arrays import Array
from propopt.structures.boxes.boxes import TreeSum
from propopt.structures.kinds import fitted_value
from propopt.structures.readers.model_reader import (
    LINEAR_TREES,
    MarginRule,
    ModelReader,
)
from propopt.structures.readers.pipelines import ColumnView, ModelOutput
from propopt.structures.readers.tree_nodes import (
    Split,
    build_tree,
    coded_numbers,
    sum_of_trees,
    tree_score,
)


# ---- Native boosters as estimators


@final
@dataclass(frozen=True)
class LightGBMBooster:
    """A booster of LightGBM's native interface with the methods of an estimator."""

    booster_: Any  # the result of lightgbm.train; named as in estimators

    @property
    def n_features_in_(self) -> int:
        """The number of columns that the booster was trained on."""
        return int(self.booster_.num_feature())

    def predict(self, table: Any, *, raw_score: bool = False) -> Array:
        """Predictions of the booster, or the sums of its trees before any link."""
        return self.booster_.predict(table, raw_score=raw_score)


# ---- Objectives, and predictions of a booster


def _header(model: Any) -> Mapping[str, Any]:
    """The settings of a booster, since the dump of all trees is long."""
    return model.booster_.dump_model(num_iteration=1)


def _logit(model: Any) -> float | None:
    return _objective(_header(model))[2]


def _weight(model: Any) -> float:
    """1/T for a forest: the library predicts from the mean, but its scores are sums."""
    booster = model.booster_
    count = max(booster.best_iteration, 0) or booster.current_iteration()
    return 1.0 / count if _header(model)["average_output"] else 1.0


def _objective(dumped: Mapping[str, Any]) -> tuple[str, list[str], float | None]:
    """The name and settings of the objective, and the slope of a binary sigmoid.

    The dumped model states the objective as text, such as ``binary sigmoid:1``.
    """
    name, *settings = str(dumped.get("objective", "")).split() or [""]
    given = dict(s.split(":") for s in settings if ":" in s)
    return name, settings, float(given.get("sigmoid", 1)) if name == "binary" else None


_VALUES: Final = frozenset(
    {
        "",  # a user's objective
        "fair",
        "huber",
        "lambdarank",
        "mape",
        "quantile",
        "rank_xendcg",
        "regression",
        "regression_l1",
    }
)
"""Objectives with the prediction as score."""


def _direct_estimator(model: Any) -> Callable[..., Array] | None:
    """A call of the booster for numeric tables, ten times faster than the model's."""
    # other parameters than the estimator's are passed to the booster at prediction
    parameters = signature(type(model)).parameters
    others = {key: x for key, x in model.get_params().items() if key not in parameters}
    if any("thread" in key for key in others):
        return None
    return partial(_of_booster, model, others)


def _of_booster(
    model: Any, settings: Mapping[str, Any], table: Any, raw_score: bool = False
) -> Array:
    return model.booster_.predict(  # another one after refitting
        table, raw_score=raw_score, **{**settings, "num_threads": 1}
    )


# ---- Trees


def _trees(model: Any, output: ModelOutput, view: ColumnView) -> TreeSum | None:
    """The sum of trees i = score (mod K), or for random forests their mean."""
    header = _header(model)
    booster = model.booster_
    count = header["num_tree_per_iteration"]
    name, settings, logit = _objective(header)
    plain = name in _VALUES and "sqrt" not in settings
    score = tree_score(output, count, is_value=plain, logit=logit)
    if score is None:
        return None
    index, factor = score
    dumped = booster.dump_model()
    chosen = dumped["tree_info"][index::count]
    weight = factor / (len(chosen) if dumped["average_output"] else 1)
    trees = [build_tree(t["tree_structure"], partial(_split, weight)) for t in chosen]
    categories = booster.pandas_categorical or []
    return sum_of_trees(
        trees, 0.0, view, lambda table: coded_numbers(table, categories)
    )


def _split(weight: float, node: Mapping[str, Any]) -> Split | float | None:
    """A node; None for linear leaves, and for splits that treat 0.0 as missing."""
    if "leaf_value" in node:
        return None if "leaf_const" in node else weight * node["leaf_value"]
    feature = int(node["split_feature"])
    left = node["left_child"]
    right = node["right_child"]
    shares = _count(left) / _count(node), _count(right) / _count(node)
    if node["decision_type"] == "==":
        codes = np.array(str(node["threshold"]).split("||"), dtype=np.intp)
        listed = np.isin(np.arange(codes.max() + 1), codes)
        return Split(feature, np.inf, False, left, right, listed, shares)
    threshold = float(node["threshold"])
    if node["missing_type"] == "NaN":
        missing = bool(node["default_left"])
    elif node["missing_type"] == "None":
        missing = threshold >= 0.0
    else:
        return None
    return Split(feature, threshold, missing, left, right, shares=shares)


def _count(node: Mapping[str, Any]) -> float:
    """The number of training rows that reach a node."""
    return float(node.get("internal_count", node.get("leaf_count", np.nan)))


# ---- The classes of the library


def _classifies(model: Any) -> bool:
    name, _, _ = _objective(_header(model))
    return name in ("binary", "multiclass", "multiclassova")


def _constant_if(model: Any) -> tuple[()] | None:
    """No conditions for constant leaves; None for leaves with linear models."""
    settings = model.booster_.params
    values = (settings.get(name) for name in ("linear_tree", "linear_trees"))
    is_linear = any(str(value).lower() in ("true", "1", "+") for value in values)
    return None if is_linear else ()


def _columns(model: Any) -> list[str] | None:
    """The names of the columns; None for arrays, whose columns the library names."""
    names: list[str] = model.booster_.feature_name()
    return None if names == [f"Column_{j}" for j in range(len(names))] else names


def _text(booster: Any) -> bytes:
    return str(booster.model_to_string()).encode()


_MARGIN: Final = MarginRule("predict", {"raw_score": True}, _logit, _weight)

_ESTIMATOR: Final = ModelReader(
    trees=_trees,
    margin=_MARGIN,
    direct=_direct_estimator,
    inexact=LINEAR_TREES,
)
_MODEL: Final = ModelReader(
    columns=_columns,
    text=lambda model: _text(model.booster_),
)

LIGHTGBM: Final[Mapping[str, ModelReader]] = {
    "lightgbm.Booster": ModelReader(wraps=LightGBMBooster, text=_text),
    "lightgbm.LGBMClassifier": replace(
        _ESTIMATOR,
        has_custom_objective=lambda model: callable(model.objective),
    ),
    "lightgbm.LGBMModel": replace(
        _MODEL,
        constant_if=lambda model: None if fitted_value(model, "linear_tree") else (),
    ),
    "lightgbm.LGBMRanker": replace(_ESTIMATOR, direct=None),
    "lightgbm.LGBMRegressor": _ESTIMATOR,
    "propopt.LightGBMBooster": replace(
        _MODEL,
        wrapped=lambda model: model.booster_,
        trees=_trees,
        inexact=LINEAR_TREES,
        margin=_MARGIN,
        explains_margin=_classifies,
        direct=lambda model: partial(_of_booster, model, {}),
        constant_if=_constant_if,
    ),
}
