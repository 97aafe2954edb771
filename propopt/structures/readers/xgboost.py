"""XGBoost: estimators and native boosters; trees, margins and path-dependent values.

Trees (``gbtree``, ``dart``) compare in float32: values below a threshold go left, and
listed categories go right.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, final

import numpy as np
import scipy.sparse as sp

from propopt.base.arrays import Array, Mask, filled
from propopt.base.extras import require
from propopt.structures.boxes.boxes import SINGLE_TOLERANCE, TreeSum
from propopt.structures.boxes.sets import Tree, node_shares
from propopt.structures.kinds import fitted_value
from propopt.structures.readers.model_reader import (
    LINEAR_TREES,
    MarginRule,
    ModelReader,
)
from propopt.structures.readers.pipelines import ColumnView, ModelOutput
from propopt.structures.readers.tree_nodes import (
    TreeScore,
    below_in_single,
    coded_numbers,
    sum_of_trees,
    tree_score,
)


# ---- Native boosters as estimators


@final
@dataclass(frozen=True)
class XGBoostBooster:
    """A booster of XGBoost's native interface with the methods of an estimator."""

    booster_: Any  # the result of xgboost.train

    @property
    def feature_names_in_(self) -> list[str] | None:
        """The names of the columns that the booster was trained on, if they had any."""
        return self.booster_.feature_names

    @property
    def n_features_in_(self) -> int:
        """The number of columns that the booster was trained on."""
        return int(self.booster_.num_features())

    def predict(
        self, table: Any, *, output_margin: bool = False, base_margin: Any = None
    ) -> Array:
        """Predictions of the booster, in the units of its objective."""
        matrix = require("xgboost").DMatrix(
            table, enable_categorical=True, base_margin=base_margin
        )
        return self.booster_.predict(matrix, output_margin=output_margin)


# ---- Trees


_LOGITS: Final = frozenset({"binary:logistic", "reg:logistic"})
"""Objectives with the log-odds as score."""

_VALUES: Final = frozenset(
    {
        "binary:logitraw",
        "rank:map",
        "rank:ndcg",
        "rank:pairwise",
        "reg:absoluteerror",
        "reg:pseudohubererror",
        "reg:quantileerror",
        "reg:squarederror",
        "reg:squaredlogerror",
    }
)
"""Objectives with the prediction as score."""


def _estimator(model: Any, output: ModelOutput, view: ColumnView) -> TreeSum | None:
    """An output of an estimator as a sum of trees, up to its best round."""
    missing = fitted_value(model, "missing", np.nan)
    absent = None if missing is None or np.isnan(missing) else float(missing)
    booster = model.get_booster()
    best = booster.attr("best_iteration")
    rounds = 0 if best is None else int(best) + 1
    return _booster(booster, rounds, output, view, absent)


def _booster(
    booster: Any,
    rounds: int,
    output: ModelOutput,
    view: ColumnView,
    absent: float | None = None,
) -> TreeSum | None:
    """The sum of the trees of the first rounds, or of all trees for 0 rounds.

    Besides NaN the number ``absent`` may stand for missing values.
    """
    learner = json.loads(booster.save_raw("json"))["learner"]
    if learner["gradient_booster"]["name"] not in ("dart", "gbtree"):
        return None
    score = _score(learner, output)
    if score is None:
        return None
    index, factor = score
    weighted_trees = _trees_of_score(learner, rounds, index)
    if weighted_trees is None:
        return None
    trees = [_tree(nodes, index, factor * weight) for nodes, weight in weighted_trees]
    row = np.full((1, booster.num_features()), np.nan, dtype=np.float32)
    of_missing = booster.inplace_predict(
        row, iteration_range=(0, rounds), predict_type="margin", validate_features=False
    )
    whole = factor * float(np.ravel(of_missing)[index])
    base = whole - _sum_of_missing(trees)
    categories = _categories(learner)
    return sum_of_trees(
        trees,
        base,
        view,
        lambda table: _numbers(table, categories),
        SINGLE_TOLERANCE,
        absent,
    )


def _score(learner: Mapping[str, Any], output: ModelOutput) -> TreeScore | None:
    objective = learner["objective"]["name"]
    parameters = learner["learner_model_param"]
    count = max(int(parameters["num_class"]), int(parameters.get("num_target", 1)), 1)
    logit = 1.0 if objective in _LOGITS else None
    return tree_score(output, count, is_value=objective in _VALUES, logit=logit)


def _trees_of_score(
    learner: Mapping[str, Any], rounds: int, index: int
) -> list[tuple[Mapping[str, Any], float]] | None:
    """The trees of one score up to a round, with their weights.

    A tree with vectors in its leaves belongs to every score. None for models of early
    versions of the library, which stored these elsewhere.
    """
    model = _model(learner)
    trees = model["trees"]
    groups = model["tree_info"]
    weights = learner["gradient_booster"].get("weight_drop", [1.0] * len(trees))
    count = len(trees) if rounds == 0 else model["iteration_indptr"][rounds]
    vectors = [_leaf_size(tree) > 1 for tree in trees[:count]]
    if any(v and "leaf_weights" not in trees[i] for i, v in enumerate(vectors)):
        return None
    chosen = [i for i in range(count) if vectors[i] or groups[i] == index]
    return [(trees[i], weights[i]) for i in chosen]


def _model(learner: Mapping[str, Any]) -> Mapping[str, Any]:
    booster = learner["gradient_booster"]
    return booster.get("gbtree", booster)["model"]


def _leaf_size(tree: Mapping[str, Any]) -> int:
    return int(tree["tree_param"]["size_leaf_vector"])


def _tree(nodes: Mapping[str, Any], index: int, weight: float) -> Tree:
    left = np.array(nodes["left_children"])
    right = np.array(nodes["right_children"])
    conditions = np.array(nodes["split_conditions"], dtype=np.float32)
    values = conditions  # at leaves these are the values
    if (size := _leaf_size(nodes)) > 1:  # (leaves, K); the second child is the leaf
        weights = np.array(nodes["leaf_weights"], np.float32).reshape(-1, size)
        values = np.zeros(len(left), np.float32)
        values[left < 0] = weights[right[left < 0], index]
    missing_left = np.array(nodes["default_left"]) > 0
    inner = left >= 0
    listed = _listed(nodes)
    swapped = np.isin(np.arange(len(left)), list(listed))
    return Tree.of(
        np.where(inner, nodes["split_indices"], -1),
        below_in_single(conditions),
        np.where(swapped, right, left),
        np.where(swapped, left, right),
        weight * values.astype(np.float64),
        missing_left ^ swapped,
        listed,
        node_shares(np.array(nodes["sum_hessian"], np.float64), left, right),
    )


def _listed(nodes: Mapping[str, Any]) -> dict[int, Mask]:
    """The categories that go right, by node."""
    listed = {}
    for node, start, size in zip(
        nodes["categories_nodes"],
        nodes["categories_segments"],
        nodes["categories_sizes"],
        strict=True,
    ):
        codes = np.array(nodes["categories"][start : start + size], dtype=np.intp)
        listed[node] = np.isin(np.arange(codes.max(initial=-1) + 1), codes)
    return listed


def _sum_of_missing(trees: Sequence[Tree]) -> float:
    """The sum of the trees for a row without any number."""
    total = 0.0
    for tree in trees:
        node = 0
        while tree.feature[node] >= 0:
            side = tree.left if tree.missing_left[node] else tree.right
            node = int(side[node])
        total += float(tree.value[node])
    return total


def _categories(learner: Mapping[str, Any]) -> list[list[Any] | None]:
    """The categories of each categorical column, as versions from 3.1 on store them."""
    encodings = _model(learner).get("cats", {}).get("enc", [])
    if not encodings:
        return []
    kinds = enumerate(learner["feature_types"])
    return [_names(encodings[k]) for k, kind in kinds if kind == "c"]


def _names(encoding: Mapping[str, Any]) -> list[Any]:
    """Integers, or text, of which the bytes are stored in one sequence."""
    if "offsets" not in encoding:
        return list(encoding["values"])
    text = np.array(encoding["values"]).astype(np.uint8).tobytes()
    return [text[start:end].decode() for start, end in pairwise(encoding["offsets"])]


def _numbers(table: Any, categories: Sequence[Any]) -> Array:
    """Numbers of a table; entries that a sparse array does not store are missing."""
    if sp.issparse(table):
        return filled(table, np.nan)
    return coded_numbers(table, categories)


# ---- The classes of the library


def _learner(booster: Any) -> Any:
    return json.loads(booster.save_config())["learner"]


def _logit(booster: Any) -> float | None:
    logits = {"binary:logistic": 1.0, "binary:logitraw": 1.0}
    return logits.get(_learner(booster)["objective"]["name"])


def _classifies(booster: Any) -> bool:
    objective = str(_learner(booster)["objective"]["name"])
    return objective.startswith(("binary:", "multi:"))


def _constant_if(booster: Any) -> tuple[()] | None:
    is_linear = _learner(booster)["gradient_booster"]["name"] == "gblinear"
    return None if is_linear else ()


def _n_labels(model: Any) -> int:
    parameters = _learner(model.get_booster())["learner_model_param"]
    return int(parameters.get("num_target", 1))


def _text(booster: Any) -> bytes:
    return bytes(booster.save_raw(raw_format="json"))


def _given_margin(model: Any, table: Any, margins: Array | None) -> Any:
    """Margins of an estimator, whose intercept a base margin replaces."""
    return model.predict(table, **_OF_MARGIN, base_margin=margins)


_OF_MARGIN: Final = {"output_margin": True}

_ESTIMATOR: Final = ModelReader(
    trees=_estimator,
    inexact=LINEAR_TREES,
    margin=MarginRule(
        "predict",
        _OF_MARGIN,
        lambda model: (
            None if callable(model.objective) else _logit(model.get_booster())
        ),
    ),
)

XGBOOST: Final[Mapping[str, ModelReader]] = {
    "propopt.XGBoostBooster": ModelReader(
        wrapped=lambda model: model.booster_,
        trees=lambda model, output, view: _booster(model.booster_, 0, output, view),
        inexact=LINEAR_TREES,
        margin=MarginRule("predict", _OF_MARGIN, lambda model: _logit(model.booster_)),
        explains_margin=lambda model: _classifies(model.booster_),
        constant_if=lambda model: _constant_if(model.booster_),
        given_margin=_given_margin,
        text=lambda model: _text(model.booster_),
    ),
    "xgboost.Booster": ModelReader(wraps=XGBoostBooster, text=_text),
    "xgboost.XGBClassifier": replace(
        _ESTIMATOR,
        has_custom_objective=lambda model: callable(model.objective),
        given_margin=_given_margin,
        takes_numbers=True,
        n_labels=_n_labels,
    ),
    "xgboost.XGBModel": ModelReader(
        constant_if=lambda model: (
            None if fitted_value(model, "booster") == "gblinear" else ()
        ),
        given_margin=_given_margin,
        text=lambda model: _text(model.get_booster()),
    ),
    "xgboost.XGBRFClassifier": _ESTIMATOR,
    "xgboost.XGBRFRegressor": _ESTIMATOR,
    "xgboost.XGBRanker": _ESTIMATOR,
    "xgboost.XGBRegressor": replace(_ESTIMATOR, takes_numbers=True),
}
