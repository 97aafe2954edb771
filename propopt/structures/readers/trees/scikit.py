"""Trees, forests and gradient boosting of scikit-learn.

A tree rounds what it is given to float32, and compares with thresholds in float64.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

from propopt._typing import Array
from propopt.structures.boxes import Tree, TreeSum
from propopt.structures.readers.parameters import floats
from propopt.structures.readers.trees.pipelines.views import View
from propopt.structures.readers.trees.rounding import at_most_in_single
from propopt.structures.readers.trees.scores import (
    Scores,
    TreeOutput,
    TreeRule,
    sum_of_trees,
)


def tree_of(nodes: Any, value: Array) -> Tree:
    """A fitted ``tree_``, whose leaves have ``value`` (n,)."""
    inner = nodes.children_left >= 0
    return Tree.of(
        np.where(inner, nodes.feature, -1),
        at_most_in_single(nodes.threshold),
        nodes.children_left,
        nodes.children_right,
        value,
        nodes.missing_go_to_left,
    )


def _regression_tree(model: Any, output: TreeOutput, view: View) -> TreeSum | None:
    return _mean([model], output, view) if output.name == "value" else None


def _regression_forest(model: Any, output: TreeOutput, view: View) -> TreeSum | None:
    if output.name != "value":
        return None
    return _mean(model.estimators_, output, view)


def _classification_tree(model: Any, output: TreeOutput, view: View) -> TreeSum | None:
    return _mean([model], output, view) if output.name == "probability" else None


def _classification_forest(
    model: Any, output: TreeOutput, view: View
) -> TreeSum | None:
    if output.name != "probability":
        return None
    return _mean(model.estimators_, output, view)


def _mean(members: Any, output: TreeOutput, view: View) -> TreeSum | None:
    """The mean of outputs of trees: values of regression, shares of classes."""
    trees = [
        tree_of(member.tree_, _leaf_values(member, output) / len(members))
        for member in members
    ]
    return sum_of_trees(trees, 0.0, view)


def _leaf_values(member: Any, output: TreeOutput) -> Array:
    """Of ``value`` (n, outputs, classes) those of a class, or of one of the outputs."""
    index = output.index or 0
    values = floats(member.tree_.value)
    return values[:, 0, index] if output.name == "probability" else values[:, index, 0]


def _boosting(model: Any, output: TreeOutput, view: View) -> TreeSum | None:
    """What the first model predicts, and η times the sum of trees of each score."""
    score = _boosted_scores(model).read(output)
    if score is None or not _starts_constant(model):
        return None
    stages = [tree.tree_ for tree in model.estimators_[:, score.place]]
    rate = score.factor * model.learning_rate
    trees = [tree_of(nodes, rate * floats(nodes.value)[:, 0, 0]) for nodes in stages]
    row = np.zeros((1, model.n_features_in_), dtype=np.float32)
    # the scores of the first model are kept nowhere
    start = model._raw_predict_init(row)[0, score.place]  # noqa: SLF001
    return sum_of_trees(trees, score.factor * float(start), view)


def _boosted_scores(model: Any) -> Scores:
    """Of two classes log-odds are the score, or of exponential loss twice the score."""
    logits = {"log_loss": 1.0, "exponential": 2.0}
    is_value = type(model) is GradientBoostingRegressor
    return Scores(model.estimators_.shape[1], is_value, logits.get(model.loss))


def _starts_constant(model: Any) -> bool:
    start = model.init_
    return isinstance(start, str) or type(start) in (DummyClassifier, DummyRegressor)


def _boosted_votes(model: Any, output: TreeOutput, view: View) -> TreeSum | None:
    """Weighted votes of trees: 1 for a class that a leaf is of, −1/(K − 1) for others.

    The margin of two classes is twice the vote for the second.
    """
    n_classes = len(model.classes_)
    score = Scores(1 if n_classes == 2 else n_classes, logit=1.0).read(output)
    if score is None or not all(map(_is_plain_tree, model.estimators_)):
        return None
    place, factor = (1, 2.0 * score.factor) if n_classes == 2 else score
    shares = floats(model.estimator_weights_) / np.sum(model.estimator_weights_)
    label, other = model.classes_[place], -1.0 / (n_classes - 1)
    trees = []
    for member, share in zip(model.estimators_, shares, strict=False):
        votes = np.where(_is_of(label, member), 1.0, other)
        trees.append(tree_of(member.tree_, factor * share * votes))
    return sum_of_trees(trees, 0.0, view)


def _is_plain_tree(member: Any) -> bool:
    return type(member) in (DecisionTreeClassifier, ExtraTreeClassifier)


def _is_of(label: Any, member: Any) -> NDArray[np.bool_]:
    """Which nodes predict a class."""
    winners: NDArray[Any] = member.classes_[member.tree_.value[:, 0, :].argmax(axis=1)]
    return winners == label


SCIKIT_TREES: Final[Mapping[type, TreeRule]] = {
    AdaBoostClassifier: _boosted_votes,
    **dict.fromkeys((DecisionTreeRegressor, ExtraTreeRegressor), _regression_tree),
    **dict.fromkeys(
        (DecisionTreeClassifier, ExtraTreeClassifier), _classification_tree
    ),
    **dict.fromkeys((ExtraTreesRegressor, RandomForestRegressor), _regression_forest),
    **dict.fromkeys(
        (ExtraTreesClassifier, RandomForestClassifier), _classification_forest
    ),
    **dict.fromkeys((GradientBoostingClassifier, GradientBoostingRegressor), _boosting),
}
