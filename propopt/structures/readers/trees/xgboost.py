"""XGBoost with trees (``gbtree``, ``dart``): estimators, and native boosters.

Numbers are compared in float32, and what is less than a threshold goes left. Listed
categories go right.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import scipy.sparse as sp

from propopt._typing import Array, Truths
from propopt.structures.boosters import XGBoostBooster
from propopt.structures.boxes import SINGLE_TOLERANCE, Tree, TreeSum
from propopt.structures.readers.trees.cells import coded_numbers
from propopt.structures.readers.trees.pipelines.views import View
from propopt.structures.readers.trees.rounding import below_in_single
from propopt.structures.readers.trees.scores import (
    Scores,
    TreeOutput,
    TreeRule,
    sum_of_trees,
)


_LOGITS: Final = frozenset({"binary:logistic", "reg:logistic"})
"""Objectives whose score is the log-odds."""

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
"""Objectives whose scores are what is predicted."""


def _estimator(model: Any, output: TreeOutput, view: View) -> TreeSum | None:
    """Predictions end with the best round, where training stopped early."""
    missing = model.get_params(deep=False).get("missing", np.nan)
    if missing is not None and not np.isnan(missing):
        return None  # a number stands for missing ones
    booster = model.get_booster()
    best = booster.attr("best_iteration")
    rounds = 0 if best is None else int(best) + 1
    return _booster(booster, rounds, output, view)


def _native(model: XGBoostBooster, output: TreeOutput, view: View) -> TreeSum | None:
    return _booster(model.booster, 0, output, view)


def _booster(
    booster: Any, rounds: int, output: TreeOutput, view: View
) -> TreeSum | None:
    """The sum of the trees of the first rounds, or of all where that is 0."""
    learner = json.loads(booster.save_raw("json"))["learner"]
    if learner["gradient_booster"]["name"] not in ("dart", "gbtree"):
        return None
    score = _scores(learner).read(output)
    own = None if score is None else _own_trees(learner, rounds, score.place)
    if score is None or own is None:
        return None
    trees = [_tree(nodes, score.factor * weight) for nodes, weight in own]
    whole = score.factor * _score_of_missing(booster, rounds, score.place)
    base = whole - _sum_of_missing(trees)
    categories = _categories(learner)
    return sum_of_trees(
        trees, base, view, lambda table: _numbers(table, categories), SINGLE_TOLERANCE
    )


def _scores(learner: Mapping[str, Any]) -> Scores:
    objective = learner["objective"]["name"]
    parameters = learner["learner_model_param"]
    count = max(int(parameters["num_class"]), int(parameters.get("num_target", 1)), 1)
    return Scores(count, objective in _VALUES, 1.0 if objective in _LOGITS else None)


def _own_trees(
    learner: Mapping[str, Any], rounds: int, index: int
) -> list[tuple[Mapping[str, Any], float]] | None:
    """The trees of a score that are used, with their weights; None of vector leaves."""
    booster = learner["gradient_booster"]
    model = booster.get("gbtree", booster)["model"]
    trees, groups = model["trees"], model["tree_info"]
    weights = booster.get("weight_drop", [1.0] * len(trees))
    if any(int(tree["tree_param"]["size_leaf_vector"]) > 1 for tree in trees):
        return None
    count = len(trees) if rounds == 0 else model["iteration_indptr"][rounds]
    return [(trees[i], weights[i]) for i in range(count) if groups[i] == index]


def _tree(nodes: Mapping[str, Any], weight: float) -> Tree:
    left, right = np.array(nodes["left_children"]), np.array(nodes["right_children"])
    conditions = np.array(nodes["split_conditions"], dtype=np.float32)
    missing_left = np.array(nodes["default_left"]) > 0
    inner = left >= 0
    listed = _listed(nodes)
    swapped = np.isin(np.arange(len(left)), list(listed))
    return Tree.of(
        np.where(inner, nodes["split_indices"], -1),
        below_in_single(conditions),
        np.where(swapped, right, left),
        np.where(swapped, left, right),
        weight * conditions.astype(np.float64),  # of leaves, their values
        missing_left ^ swapped,
        listed,
    )


def _listed(nodes: Mapping[str, Any]) -> dict[int, Truths]:
    """Which categories go right, by node."""
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


def _score_of_missing(booster: Any, rounds: int, index: int) -> float:
    """The score of a row whose numbers are all missing."""
    row = np.full((1, booster.num_features()), np.nan, dtype=np.float32)
    score = booster.inplace_predict(
        row,
        iteration_range=(0, rounds),
        predict_type="margin",
        validate_features=False,
    )
    return float(np.ravel(score)[index])


def _sum_of_missing(trees: Sequence[Tree]) -> float:
    """What trees add for such a row."""
    total = 0.0
    for tree in trees:
        node = 0
        while tree.feature[node] >= 0:
            side = tree.left if tree.missing_left[node] else tree.right
            node = int(side[node])
        total += float(tree.value[node])
    return total


def _categories(learner: Mapping[str, Any]) -> list[list[Any] | None]:
    """The categories of each column of categories, as versions from 3.1 keep them."""
    booster = learner["gradient_booster"]
    model = booster.get("gbtree", booster)["model"]
    kept = model.get("cats", {}).get("enc", [])
    if not kept:
        return []
    kinds = enumerate(learner["feature_types"])
    return [_names(kept[k]) for k, kind in kinds if kind == "c"]


def _names(kept: Mapping[str, Any]) -> list[Any]:
    """Whole numbers, or text, of which the bytes are kept one behind the other."""
    if "offsets" not in kept:
        return list(kept["values"])
    text = np.array(kept["values"]).astype(np.uint8).tobytes()
    return [text[start:end].decode() for start, end in pairwise(kept["offsets"])]


def _numbers(table: Any, categories: Sequence[Any]) -> Array:
    """What a sparse array does not hold is missing."""
    if sp.issparse(table):
        dense = np.full(table.shape, np.nan)
        entries = table.tocoo()
        dense[entries.row, entries.col] = entries.data
        return dense
    return coded_numbers(table, categories)


XGBOOST_TREES: Final[Mapping[tuple[str, str], TreeRule]] = {
    **dict.fromkeys(
        (
            ("xgboost", "XGBClassifier"),
            ("xgboost", "XGBRFClassifier"),
            ("xgboost", "XGBRFRegressor"),
            ("xgboost", "XGBRanker"),
            ("xgboost", "XGBRegressor"),
        ),
        _estimator,
    ),
    ("propopt", "XGBoostBooster"): _native,
}
