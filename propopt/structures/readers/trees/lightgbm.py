"""LightGBM: estimators, and boosters of its native interface.

Numbers are compared in float64. Where a column had no missing value in training, one is
the number 0.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from propopt._typing import Truths
from propopt.structures.boosters import LightGBMBooster
from propopt.structures.boxes import Tree, TreeSum
from propopt.structures.readers.trees.cells import coded_numbers
from propopt.structures.readers.trees.nodes import NodeList
from propopt.structures.readers.trees.pipelines.views import View
from propopt.structures.readers.trees.scores import (
    Scores,
    TreeOutput,
    TreeRule,
    sum_of_trees,
)


_VALUES: Final = frozenset(
    {
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


def _estimator(model: Any, output: TreeOutput, view: View) -> TreeSum | None:
    return _booster(model.booster_, output, view)


def _native(model: LightGBMBooster, output: TreeOutput, view: View) -> TreeSum | None:
    return _booster(model.booster, output, view)


def _booster(booster: Any, output: TreeOutput, view: View) -> TreeSum | None:
    """The sum of trees, tree i of score i mod K.

    Of random forests scores are sums, too, but all that is made of them is of the mean.
    """
    model = booster.dump_model()
    count = model["num_tree_per_iteration"]
    score = _scores(model).read(output)
    if score is None:
        return None
    own = model["tree_info"][score.place :: count]
    averaged = model["average_output"] and output.name != "margin"
    weight = score.factor / (len(own) if averaged else 1)
    trees = [_tree(tree["tree_structure"], weight) for tree in own]
    whole = [tree for tree in trees if tree is not None]
    if len(whole) < len(trees):
        return None
    categories = booster.pandas_categorical or []
    return sum_of_trees(
        whole, 0.0, view, lambda table: coded_numbers(table, categories)
    )


def _scores(model: Mapping[str, Any]) -> Scores:
    objective, *settings = str(model.get("objective", "")).split()
    given = dict(s.split(":") for s in settings if ":" in s)
    logit = float(given.get("sigmoid", 1.0)) if objective == "binary" else None
    plain = objective in _VALUES and "sqrt" not in settings
    return Scores(model["num_tree_per_iteration"], plain, logit)


def _tree(structure: Mapping[str, Any], weight: float) -> Tree | None:
    nodes = NodeList()
    places = [(structure, nodes.root)]
    while places:
        node, place = places.pop()
        if "leaf_value" in node:
            if "leaf_const" in node:
                return None  # a linear model in each leaf
            nodes.leaf(place, weight * node["leaf_value"])
            continue
        side = _split(node)
        if side is None:
            return None
        left, right = nodes.split(place, int(node["split_feature"]), *side)
        places += [(node["left_child"], left), (node["right_child"], right)]
    return nodes.tree()


def _split(node: Mapping[str, Any]) -> tuple[float, bool, Truths | None] | None:
    """Threshold, whether missing goes left, and codes that go left."""
    if node["decision_type"] == "==":
        codes = np.array(str(node["threshold"]).split("||"), dtype=np.intp)
        listed = np.zeros(codes.max() + 1, dtype=bool)
        listed[codes] = True
        return np.inf, False, listed
    threshold = float(node["threshold"])
    match node["missing_type"]:
        case "NaN":
            return threshold, bool(node["default_left"]), None
        case "None":
            return threshold, threshold >= 0.0, None
        case _:  # 0.0 is missing, too
            return None


LIGHTGBM_TREES: Final[Mapping[tuple[str, str], TreeRule]] = {
    **dict.fromkeys(
        (
            ("lightgbm", "LGBMClassifier"),
            ("lightgbm", "LGBMRanker"),
            ("lightgbm", "LGBMRegressor"),
        ),
        _estimator,
    ),
    ("propopt", "LightGBMBooster"): _native,
}
