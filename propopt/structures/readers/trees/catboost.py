"""CatBoost of numbers: trees that ask the same at each level, and others.

Numbers are compared in float32, and what is more than a border goes right.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from propopt._typing import Truths
from propopt.structures.boxes import Tree, TreeSum
from propopt.structures.readers.trees.nodes import NodeList
from propopt.structures.readers.trees.pipelines.views import View
from propopt.structures.readers.trees.rounding import at_most_in_single
from propopt.structures.readers.trees.scores import (
    Scores,
    TreeOutput,
    TreeRule,
    sum_of_trees,
)


_LOGITS: Final = frozenset({"CrossEntropy", "Logloss"})
"""Losses whose score is the log-odds."""

_VALUES: Final = frozenset(
    {"Expectile", "Huber", "LogCosh", "Lq", "MAE", "MAPE", "Quantile", "RMSE"}
)
"""Losses whose scores are what is predicted."""


def _model(model: Any, output: TreeOutput, view: View) -> TreeSum | None:
    """A bias and the sum of trees, all times a scale."""
    saved = _saved(model)
    scale, biases = saved["scale_and_bias"]
    loss = str(model.get_all_params().get("loss_function", "")).partition(":")[0]
    logit = 1.0 if loss in _LOGITS else None
    score = Scores(len(biases), loss in _VALUES, logit).read(output)
    if score is None or not _is_of_numbers(saved):
        return None
    weight = score.factor * scale
    columns = _Columns(saved["features_info"]["float_features"])
    if "oblivious_trees" in saved:
        trees = [
            _symmetric(tree, columns, weight, score.place, len(biases))
            for tree in saved["oblivious_trees"]
        ]
    else:
        trees = [_tree(tree, columns, weight, score.place) for tree in saved["trees"]]
    return sum_of_trees(trees, score.factor * float(biases[score.place]), view)


def _saved(model: Any) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        saved: dict[str, Any] = json.loads(path.read_text())
    return saved


def _is_of_numbers(saved: Mapping[str, Any]) -> bool:
    """Whether no statistics of categories, and no text, are asked for."""
    kinds = {kind for kind, features in saved["features_info"].items() if features}
    return kinds <= {"float_features"}


class _Columns:
    """The columns of numbers, by their place among themselves."""

    def __init__(self, features: Sequence[Mapping[str, Any]]) -> None:
        places = [f["flat_feature_index"] for f in features]
        self.place = np.array(places, dtype=np.intp)
        self.missing_left: Truths = np.array(
            [f["nan_value_treatment"] != "AsTrue" for f in features], dtype=bool
        )


def _symmetric(
    tree: Mapping[str, Any], columns: _Columns, weight: float, index: int, count: int
) -> Tree:
    """A tree of d levels with 2^d leaves; level b is bit b of the place of a leaf.

    The nodes are those of a heap: i has the children 2 i + 1 and 2 i + 2, and the
    highest bit is asked for first.
    """
    splits = list(reversed(tree["splits"] or []))
    depth, n_inner = len(splits), 2 ** len(splits) - 1
    level = np.repeat(np.arange(depth), 2 ** np.arange(depth))
    feature = np.array([s["float_feature_index"] for s in splits], dtype=np.intp)[level]
    border = np.array([s["border"] for s in splits], dtype=np.float64)[level]
    values = weight * np.array(tree["leaf_values"], dtype=np.float64)[index::count]
    left = 2 * np.arange(n_inner) + 1
    leaves = np.full(n_inner + 1, -1)
    return Tree.of(
        np.concatenate([columns.place[feature], leaves]),
        np.concatenate([at_most_in_single(border), leaves]),
        np.concatenate([left, leaves]),
        np.concatenate([left + 1, leaves]),
        np.concatenate([np.zeros(n_inner), values]),
        np.concatenate([columns.missing_left[feature], leaves > 0]),
    )


def _tree(
    structure: Mapping[str, Any], columns: _Columns, weight: float, index: int
) -> Tree:
    """A tree whose nodes differ from each other."""
    nodes = NodeList()
    places = [(structure, NodeList.root)]
    while places:
        node, place = places.pop()
        if "split" not in node:
            nodes.leaf(place, weight * float(np.ravel(node["value"])[index]))
            continue
        split = node["split"]
        feature = split["float_feature_index"]
        left, right = nodes.split(
            place,
            int(columns.place[feature]),
            float(at_most_in_single(split["border"])),
            bool(columns.missing_left[feature]),
        )
        places += [(node["left"], left), (node["right"], right)]
    return nodes.tree()


CATBOOST_TREES: Final[Mapping[tuple[str, str], TreeRule]] = dict.fromkeys(
    (
        ("catboost", "CatBoost"),
        ("catboost", "CatBoostClassifier"),
        ("catboost", "CatBoostRegressor"),
    ),
    _model,
)
