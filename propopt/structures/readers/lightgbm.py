"""LightGBM: estimators and native boosters; trees, margins and path-dependent values.

It compares numbers in float64; where a column had no missing value in training, one is
the number 0.0.
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
from propopt.structures.readers.model_reader import MarginRule, ModelReader
from propopt.structures.readers.pipelines import ColumnView, ModelOutput
from propopt.structures.readers.tree_nodes import (
    Split,
    TreeScore,
    coded_numbers,
    sum_of_trees,
    written,
)


# ---- Boosters of the native interface, as estimators


@final
@dataclass(frozen=True)
class LightGBMBooster:
    """A booster of LightGBM's native interface."""

    booster: Any  # what lightgbm.train returns

    @property
    def n_features_in_(self) -> int:
        return int(self.booster.num_feature())

    def predict(self, table: Any) -> Array:
        """What the booster predicts, in the units of its objective."""
        predicted: Array = self.booster.predict(table)
        return predicted

    def scores(self, table: Any) -> Array:
        """The sums of its trees, before any link."""
        scores: Array = self.booster.predict(table, raw_score=True)
        return scores


# ---- Objectives, and how a booster is asked


def _logit(booster: Any) -> float | None:
    told = booster.dump_model(num_iteration=1)
    _, _, slope = _objective(told)
    if slope is not None and told["average_output"]:  # the mean of a random forest
        slope /= max(booster.best_iteration, 0) or booster.current_iteration()
    return slope


def _objective(
    dumped: Mapping[str, Any],
) -> tuple[str, list[str], float | None]:
    """The name, the settings, and of what is binary the slope of the sigmoid.

    Of a model that was dumped, which tells of it in words: ``binary sigmoid:1``.
    """
    name, *settings = str(dumped.get("objective", "")).split() or [""]
    given = dict(s.split(":") for s in settings if ":" in s)
    return name, settings, float(given.get("sigmoid", 1)) if name == "binary" else None


_VALUES: Final = frozenset(
    {
        "",  # an objective of the user's own, which the library does not know
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
"""Objectives whose scores are what is predicted."""


def _scores_are_values(dumped: Mapping[str, Any]) -> bool:
    """Whether a dumped model predicts the sums of its trees, or their mean."""
    name, settings, _ = _objective(dumped)
    return name in _VALUES and "sqrt" not in settings


def _predicts_scores(model: LightGBMBooster) -> bool:
    told = model.booster.dump_model(num_iteration=1)
    return _scores_are_values(told) and not told["average_output"]


def _direct_estimator(model: Any) -> Callable[..., Array] | None:
    """Its booster, asked for a table of numbers, which takes a tenth of the time."""
    # what an estimator does not know by name, its booster is given at prediction
    known = signature(type(model)).parameters
    others = {key: x for key, x in model.get_params().items() if key not in known}
    if any("thread" in key for key in others):
        return None
    return partial(_of_booster, model, "booster_", others)


def _of_booster(
    model: Any,
    name: str,
    settings: Mapping[str, Any],
    table: Any,
    raw_score: bool = False,
) -> Array:
    booster = getattr(model, name)  # of a model that is fitted again it is another
    said: Array = booster.predict(
        table, raw_score=raw_score, **{**settings, "num_threads": 1}
    )
    return said


# ---- Trees


def _trees(booster: Any, output: ModelOutput, view: ColumnView) -> TreeSum | None:
    """The sum of trees, tree i of score i mod K; of forests the margin alone is one."""
    told = booster.dump_model(num_iteration=1)  # all of its trees are many words
    count = told["num_tree_per_iteration"]
    logit, plain = _objective(told)[2], _scores_are_values(told)
    score = TreeScore.of(output, count, is_value=plain, logit=logit)
    if score is None:
        return None
    model = booster.dump_model()
    own = model["tree_info"][score.place :: count]
    averaged = model["average_output"] and output.name != "margin"
    weight = score.factor / (len(own) if averaged else 1)
    trees = [written(t["tree_structure"], partial(_split, weight)) for t in own]
    categories = booster.pandas_categorical or []
    return sum_of_trees(
        trees, 0.0, view, lambda table: coded_numbers(table, categories)
    )


def _split(weight: float, node: Mapping[str, Any]) -> Split | float | None:
    """A node; None of linear models in leaves, and where 0.0 is missing, too."""
    if "leaf_value" in node:
        return None if "leaf_const" in node else weight * node["leaf_value"]
    feature = int(node["split_feature"])
    left, right = node["left_child"], node["right_child"]
    if node["decision_type"] == "==":
        codes = np.array(str(node["threshold"]).split("||"), dtype=np.intp)
        listed = np.isin(np.arange(codes.max() + 1), codes)
        return Split(feature, np.inf, False, left, right, listed)
    threshold = float(node["threshold"])
    if node["missing_type"] == "NaN":
        return Split(feature, threshold, bool(node["default_left"]), left, right)
    if node["missing_type"] == "None":
        return Split(feature, threshold, threshold >= 0.0, left, right)
    return None


# ---- What the library's classes are


def _classifies(booster: Any) -> bool:
    name, _, _ = _objective(booster.dump_model(num_iteration=1))
    return name in ("binary", "multiclass", "multiclassova")


def _constant_if(booster: Any) -> tuple[()] | None:
    """Leaves may hold linear models."""
    settings = (booster.params.get(name) for name in ("linear_tree", "linear_trees"))
    is_linear = any(str(value).lower() in ("true", "1", "+") for value in settings)
    return None if is_linear else ()


def _text(booster: Any) -> bytes:
    return str(booster.model_to_string()).encode()


def _path_values(booster: Any, table: Any) -> Any:
    return booster.predict(table, pred_contrib=True)


_ESTIMATOR: Final = ModelReader(
    trees=lambda model, output, view: _trees(model.booster_, output, view),
    direct=_direct_estimator,
)

LIGHTGBM: Final[Mapping[str, ModelReader]] = {
    "lightgbm.Booster": ModelReader(wraps=LightGBMBooster, text=_text),
    "lightgbm.LGBMClassifier": replace(
        _ESTIMATOR,
        margin=MarginRule(
            "predict", {"raw_score": True}, lambda model: _logit(model.booster_)
        ),
        has_custom_objective=lambda model: callable(model.objective),
    ),
    "lightgbm.LGBMModel": ModelReader(
        constant_if=lambda model: (
            None if model.get_params().get("linear_tree", False) else ()
        ),
        path_values=lambda model, table: _path_values(model.booster_, table),
        text=lambda model: _text(model.booster_),
    ),
    "lightgbm.LGBMRanker": replace(_ESTIMATOR, direct=None),
    "lightgbm.LGBMRegressor": _ESTIMATOR,
    "propopt.LightGBMBooster": ModelReader(
        trees=lambda model, output, view: _trees(model.booster, output, view),
        margin=MarginRule("scores", {}, lambda model: _logit(model.booster)),
        explains_margin=lambda model: _classifies(model.booster),
        direct=lambda model: partial(_of_booster, model, "booster", {}),
        constant_if=lambda model: _constant_if(model.booster),
        predicts_scores=_predicts_scores,
        path_values=lambda model, table: _path_values(model.booster, table),
        text=lambda model: _text(model.booster),
    ),
}
