"""LightGBM, XGBoost, CatBoost and histogram boosting as trees.

LightGBM compares numbers in float64; where a column had no missing value in training,
one is the number 0.0. CatBoost compares them in float32, and what is more than a border
goes right; its trees may ask the same at each level. Nodes of histograms of
scikit-learn are kept by no public name: they are what ``predict`` itself reads. XGBoost
compares in float32, what is less than a threshold goes left, and listed categories go
right.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt.base.arrays import Array, Positions, Truths
from propopt.structures.boosters import (
    known_as,
    lightgbm_objective,
    lightgbm_predicts_scores,
)
from propopt.structures.boxes.boxes import SINGLE_TOLERANCE, TreeSum
from propopt.structures.boxes.sets import Tree
from propopt.structures.readers.catboost_categories import trees_of_categories
from propopt.structures.readers.pipelines import (
    ModelOutput,
    View,
    behind,
    floats,
    table_numbers,
)
from propopt.structures.readers.tree_nodes import (
    Split,
    TreeRule,
    TreeScore,
    at_most_in_single,
    below_in_single,
    sum_of_trees,
    written,
)
from propopt.tables.frames import as_frame


# ---- CatBoost


_CATBOOST_LOGITS: Final = frozenset({"CrossEntropy", "Logloss"})
"""Losses whose score is the log-odds."""

_CATBOOST_VALUES: Final = frozenset(
    {
        "Expectile",
        "Huber",
        "LogCosh",
        "Lq",
        "MAE",
        "MAPE",
        "MultiRMSE",
        "Quantile",
        "RMSE",
    }
)
"""Losses whose scores are what is predicted."""

_CATBOOST_SCORES: Final = "catboost.CatBoost", "catboost.CatBoostRanker"
"""Classes that predict scores, whatever their loss."""


def _model(model: Any, output: ModelOutput, view: View) -> TreeSum | None:
    """A bias and the sum of trees, all times a scale."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        saved: dict[str, Any] = json.loads(path.read_text())
    scale, biases = saved["scale_and_bias"]
    loss = str(model.get_all_params().get("loss_function", "")).partition(":")[0]
    logit = 1.0 if loss in _CATBOOST_LOGITS else None
    is_value = loss in _CATBOOST_VALUES or known_as(model) in _CATBOOST_SCORES
    score = TreeScore.of(output, len(biases), is_value=is_value, logit=logit)
    kinds = {kind for kind, features in saved["features_info"].items() if features}
    asks_categories = kinds - {"float_features"}
    if score is None or not asks_categories <= {"categorical_features", "ctrs"}:
        return None  # text, or embeddings, are asked for
    weight = score.factor * scale
    base = score.factor * float(biases[score.place])
    if asks_categories:
        if "oblivious_trees" not in saved:
            return None  # leaves say what is answered by symmetric trees alone
        values = [
            weight * floats(tree["leaf_values"])[score.place :: len(biases)]
            for tree in saved["oblivious_trees"]
        ]
        return trees_of_categories(model, saved, view, values, base)
    features = saved["features_info"]["float_features"]
    columns = (
        np.array([f["flat_feature_index"] for f in features], np.intp),
        np.array([f["nan_value_treatment"] != "AsTrue" for f in features], bool),
    )
    if "oblivious_trees" in saved:
        trees: list[Tree | None] = [
            _symmetric(tree, columns, weight, score.place, len(biases))
            for tree in saved["oblivious_trees"]
        ]
    else:
        trees = [
            written(tree, partial(_catboost_split, columns, weight, score.place))
            for tree in saved["trees"]
        ]
    return sum_of_trees(trees, base, view)


_Columns: TypeAlias = tuple[Positions, Truths]
"""The places of columns of numbers, and whether what is missing there goes left."""


def _symmetric(
    tree: Mapping[str, Any], columns: _Columns, weight: float, index: int, count: int
) -> Tree:
    """A tree of d levels, a heap; bit b of a leaf's place is level b from below."""
    splits = list(reversed(tree["splits"] or []))
    depth, n_inner = len(splits), 2 ** len(splits) - 1
    level = np.repeat(np.arange(depth), 2 ** np.arange(depth))
    feature = np.array([s["float_feature_index"] for s in splits], dtype=np.intp)[level]
    border = np.array([s["border"] for s in splits], dtype=np.float64)[level]
    values = weight * np.array(tree["leaf_values"], dtype=np.float64)[index::count]
    left = 2 * np.arange(n_inner) + 1
    place, missing_left = columns
    leaves = np.full(n_inner + 1, -1)
    return Tree.of(
        np.concatenate([place[feature], leaves]),
        np.concatenate([at_most_in_single(border), leaves]),
        np.concatenate([left, leaves]),
        np.concatenate([left + 1, leaves]),
        np.concatenate([np.zeros(n_inner), values]),
        np.concatenate([missing_left[feature], leaves > 0]),
    )


def _catboost_split(
    columns: _Columns, weight: float, index: int, node: Mapping[str, Any]
) -> Split | float:
    """A node of a tree whose nodes differ from each other."""
    if "split" not in node:
        return weight * float(np.ravel(node["value"])[index])
    (column, missing_left), split = columns, node["split"]
    feature, cut = split["float_feature_index"], at_most_in_single(split["border"])
    missing = bool(missing_left[feature])
    return Split(int(column[feature]), float(cut), missing, node["left"], node["right"])


CATBOOST_TREES: Final[Mapping[str, TreeRule]] = dict.fromkeys(
    (
        "catboost.CatBoost",
        "catboost.CatBoostClassifier",
        "catboost.CatBoostRanker",
        "catboost.CatBoostRegressor",
    ),
    _model,
)


# ---- Gradient boosting on histograms of scikit-learn


def _boosting(model: Any, output: ModelOutput, view: View) -> TreeSum | None:
    """A baseline and the sum of trees of each score."""
    rounds = model._predictors  # noqa: SLF001
    if known_as(model) == "sklearn.HistGradientBoostingClassifier":
        score = TreeScore.of(output, model.n_trees_per_iteration_, logit=1.0)
    else:  # counts and positive values have a logarithm as their link
        plain = model.loss not in ("gamma", "poisson")
        score = TreeScore.of(output, 1, is_value=plain)
    encoder = model._preprocessor  # noqa: SLF001  # codes of categories, then numbers
    seen = view if encoder is None else behind(encoder, view)
    if score is None or seen is None:
        return None
    trees = [_histograms_tree(stage[score.place], score.factor) for stage in rounds]
    base = float(np.ravel(model._baseline_prediction)[score.place])  # noqa: SLF001
    return sum_of_trees(trees, score.factor * base, seen)


def _histograms_tree(predictor: Any, factor: float) -> Tree:
    nodes = predictor.nodes
    inner = nodes["is_leaf"] == 0
    return Tree.of(
        np.where(inner, nodes["feature_idx"].astype(np.intp), -1),
        nodes["num_threshold"],
        nodes["left"].astype(np.intp),
        nodes["right"].astype(np.intp),
        factor * nodes["value"],
        nodes["missing_go_to_left"].astype(bool),
        {
            node: _bits(predictor.raw_left_cat_bitsets[nodes["bitset_idx"][node]])
            for node in np.flatnonzero(inner & (nodes["is_categorical"] > 0)).tolist()
        },
    )


def _bits(words: NDArray[np.uint32]) -> Truths:
    """Which bits are set, the lowest of the first word first."""
    little = np.ascontiguousarray(words, dtype="<u4").view(np.uint8)
    return np.unpackbits(little, bitorder="little").astype(bool)


HISTOGRAM_TREES: Final[Mapping[str, TreeRule]] = dict.fromkeys(
    ("sklearn.HistGradientBoostingClassifier", "sklearn.HistGradientBoostingRegressor"),
    _boosting,
)


# ---- LightGBM: estimators, and boosters of its native interface


def coded_numbers(table: Any, categories: Sequence[Sequence[Any] | None]) -> Array:
    """Numbers (n, M), and codes of categories; NaN for missing and unknown ones."""
    frame = as_frame(table, "X")
    if frame is None:
        return table_numbers(table)
    known = iter(categories)
    columns = [
        _codes(column, next(known, None))
        if isinstance(column.dtype, pd.CategoricalDtype)
        else column.to_numpy(dtype=np.float64, na_value=np.nan)
        for _, column in frame.table.items()
    ]
    return np.stack(columns, axis=1)


def _codes(column: pd.Series[Any], categories: Sequence[Any] | None) -> Array:
    if categories is not None:
        column = column.cat.set_categories(categories)
    codes = column.cat.codes.to_numpy(dtype=np.float64)
    return np.where(codes < 0, np.nan, codes)


def _booster(booster: Any, output: ModelOutput, view: View) -> TreeSum | None:
    """The sum of trees, tree i of score i mod K; of forests the margin alone is one."""
    told = booster.dump_model(num_iteration=1)  # all of its trees are many words
    count = told["num_tree_per_iteration"]
    logit, plain = lightgbm_objective(told)[2], lightgbm_predicts_scores(told)
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


LIGHTGBM_TREES: Final[Mapping[str, TreeRule]] = {
    **dict.fromkeys(
        (
            "lightgbm.LGBMClassifier",
            "lightgbm.LGBMRanker",
            "lightgbm.LGBMRegressor",
        ),
        lambda model, output, view: _booster(model.booster_, output, view),
    ),
    "propopt.LightGBMBooster": lambda model, output, view: _booster(
        model.booster, output, view
    ),
}


# ---- XGBoost with trees (``gbtree``, ``dart``): estimators, and native boosters


_LOGITS: Final = frozenset({"binary:logistic", "reg:logistic"})
"""Objectives whose score is the log-odds."""

_XGBOOST_VALUES: Final = frozenset(
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


def _xgboost_estimator(model: Any, output: ModelOutput, view: View) -> TreeSum | None:
    """Predictions end with the best round, where training stopped early."""
    missing = model.get_params(deep=False).get("missing", np.nan)
    absent = None if missing is None or np.isnan(missing) else float(missing)
    booster = model.get_booster()
    best = booster.attr("best_iteration")
    rounds = 0 if best is None else int(best) + 1
    return _xgboost_booster(booster, rounds, output, view, absent)


def _xgboost_booster(
    booster: Any,
    rounds: int,
    output: ModelOutput,
    view: View,
    absent: float | None = None,
) -> TreeSum | None:
    """The sum of the trees of the first rounds, or of all where that is 0.

    Besides NaN a number may be ``absent``: it goes where missing ones go.
    """
    learner = json.loads(booster.save_raw("json"))["learner"]
    if learner["gradient_booster"]["name"] not in ("dart", "gbtree"):
        return None
    score = _xgboost_score(learner, output)
    own = None if score is None else _own_trees(learner, rounds, score.place)
    if score is None or own is None:
        return None
    trees = [
        _xgboost_tree(nodes, score.place, score.factor * weight)
        for nodes, weight in own
    ]
    row = np.full((1, booster.num_features()), np.nan, dtype=np.float32)
    of_missing = booster.inplace_predict(
        row,
        iteration_range=(0, rounds),
        predict_type="margin",
        validate_features=False,
    )
    whole = score.factor * float(np.ravel(of_missing)[score.place])
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


def _xgboost_score(learner: Mapping[str, Any], output: ModelOutput) -> TreeScore | None:
    objective = learner["objective"]["name"]
    parameters = learner["learner_model_param"]
    count = max(int(parameters["num_class"]), int(parameters.get("num_target", 1)), 1)
    logit = 1.0 if objective in _LOGITS else None
    is_value = objective in _XGBOOST_VALUES
    return TreeScore.of(output, count, is_value=is_value, logit=logit)


def _own_trees(
    learner: Mapping[str, Any], rounds: int, index: int
) -> list[tuple[Mapping[str, Any], float]] | None:
    """The trees of a score that are used, with their weights.

    A tree with vectors in its leaves is one of every score. None where an early version
    of the library kept these elsewhere.
    """
    booster = learner["gradient_booster"]
    model = booster.get("gbtree", booster)["model"]
    trees, groups = model["trees"], model["tree_info"]
    weights = booster.get("weight_drop", [1.0] * len(trees))
    count = len(trees) if rounds == 0 else model["iteration_indptr"][rounds]
    vectors = [_leaf_size(tree) > 1 for tree in trees[:count]]
    if any(v and "leaf_weights" not in trees[i] for i, v in enumerate(vectors)):
        return None
    own = [i for i in range(count) if vectors[i] or groups[i] == index]
    return [(trees[i], weights[i]) for i in own]


def _leaf_size(tree: Mapping[str, Any]) -> int:
    return int(tree["tree_param"]["size_leaf_vector"])


def _xgboost_tree(nodes: Mapping[str, Any], place: int, weight: float) -> Tree:
    left, right = np.array(nodes["left_children"]), np.array(nodes["right_children"])
    conditions = np.array(nodes["split_conditions"], dtype=np.float32)
    values = conditions  # of leaves, their values
    if (size := _leaf_size(nodes)) > 1:  # (leaves, K); the second child is the leaf
        weights = np.array(nodes["leaf_weights"], np.float32).reshape(-1, size)
        values = np.zeros(len(left), np.float32)
        values[left < 0] = weights[right[left < 0], place]
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


def _sum_of_missing(trees: Sequence[Tree]) -> float:
    """What trees add for a row whose numbers are all missing."""
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


XGBOOST_TREES: Final[Mapping[str, TreeRule]] = {
    **dict.fromkeys(
        (
            "xgboost.XGBClassifier",
            "xgboost.XGBRFClassifier",
            "xgboost.XGBRFRegressor",
            "xgboost.XGBRanker",
            "xgboost.XGBRegressor",
        ),
        _xgboost_estimator,
    ),
    "propopt.XGBoostBooster": lambda model, output, view: _xgboost_booster(
        model.booster, 0, output, view
    ),
}
