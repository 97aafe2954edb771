"""Gradient boosting on histograms of scikit-learn.

Its nodes are kept by no public name: they are what ``predict`` itself reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

from propopt._typing import Truths
from propopt.structures.boxes import Tree, TreeSum
from propopt.structures.readers.trees.pipelines.steps import behind
from propopt.structures.readers.trees.pipelines.views import View
from propopt.structures.readers.trees.scores import (
    Scores,
    TreeOutput,
    TreeRule,
    sum_of_trees,
)


def _boosting(model: Any, output: TreeOutput, view: View) -> TreeSum | None:
    """A baseline and the sum of trees of each score."""
    rounds = model._predictors  # noqa: SLF001
    score = _scores(model).read(output)
    seen = _behind_encoder(model, view)
    if score is None or seen is None:
        return None
    trees = [_tree(stage[score.place], score.factor) for stage in rounds]
    base = float(np.ravel(model._baseline_prediction)[score.place])  # noqa: SLF001
    return sum_of_trees(trees, score.factor * base, seen)


def _scores(model: Any) -> Scores:
    """Classes have logits; counts and positive values the logarithm as their link."""
    if type(model) is HistGradientBoostingClassifier:
        return Scores(model.n_trees_per_iteration_, logit=1.0)
    return Scores(1, is_value=model.loss not in ("gamma", "poisson"))


def _behind_encoder(model: Any, view: View) -> View | None:
    """Codes of categories come first, then numbers."""
    encoder = model._preprocessor  # noqa: SLF001
    return view if encoder is None else behind(encoder, view)


def _tree(predictor: Any, factor: float) -> Tree:
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


HISTOGRAM_TREES: Final[Mapping[type, TreeRule]] = dict.fromkeys(
    (HistGradientBoostingClassifier, HistGradientBoostingRegressor), _boosting
)
