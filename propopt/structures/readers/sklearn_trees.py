"""scikit-learn: trees, forests, boosting, and which models are piecewise constant.

A tree rounds its input to float32, and compares with thresholds in float64. Nodes of
histogram trees have no public name: these attributes are the ones that ``predict``
uses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from propopt.base.arrays import Array, Mask
from propopt.structures.boxes.boxes import TreeSum
from propopt.structures.boxes.sets import Tree, node_shares
from propopt.structures.kinds import class_name_of, fitted_value, has_fitted, inherits
from propopt.structures.readers.model_reader import CONSTANT, MarginRule, ModelReader
from propopt.structures.readers.pipelines import (
    ColumnView,
    ModelOutput,
    floats,
    view_after,
)
from propopt.structures.readers.sklearn_sums import SKLEARN_SUMS
from propopt.structures.readers.tree_nodes import (
    at_most_in_single,
    sum_of_trees,
    tree_score,
)


# ---- Trees, forests and gradient boosting


def trees_of(fitted: Sequence[Any], values: Sequence[Array]) -> list[Tree]:
    """The trees of fitted ``tree_`` objects, with given leaf values (n,) each."""
    thresholds = [nodes.threshold for nodes in fitted]
    ends = np.cumsum(list(map(len, thresholds)))
    cuts = np.split(at_most_in_single(np.concatenate(thresholds)), ends[:-1])
    return [
        Tree(
            np.where(nodes.children_left >= 0, nodes.feature, -1),
            tree_cuts,
            nodes.missing_go_to_left.astype(bool),
            nodes.children_left,
            nodes.children_right,
            value,
            node_shares(
                nodes.weighted_n_node_samples, nodes.children_left, nodes.children_right
            ),
        )
        for nodes, tree_cuts, value in zip(fitted, cuts, values, strict=True)
    ]


def _mean_of_label(model: Any, output: ModelOutput, view: ColumnView) -> TreeSum | None:
    """The probability of one label of a forest as a sum of trees."""
    reader = SKLEARN.get(class_name_of(model.estimator))
    if reader is None or reader.trees is not _mean:
        return None
    return _mean(model.estimator, output, view, model.position)


def _mean(
    model: Any, output: ModelOutput, view: ColumnView, label: int = 0
) -> TreeSum | None:
    """A tree, or the mean of a forest: regression values, or shares of classes."""
    if output.name != ("probability" if is_classifier(model) else "value"):
        return None
    members = fitted_value(model, "estimators_", [model])
    # leaves have (outputs, classes)
    at = (label, output.column) if is_classifier(model) else (output.column, 0)
    fitted = [member.tree_ for member in members]
    values = [tree.value[:, *at] / len(members) for tree in fitted]
    return sum_of_trees(trees_of(fitted, values), 0.0, view)


def _boosting(model: Any, output: ModelOutput, view: ColumnView) -> TreeSum | None:
    """Initial prediction plus the learning rate times the sum of trees of a score."""
    # for two classes log-odds are the score, or twice the score for exponential loss
    logit = {"log_loss": 1.0, "exponential": 2.0}.get(model.loss)
    is_value = class_name_of(model) == "sklearn.GradientBoostingRegressor"
    n_scores = model.estimators_.shape[1]
    score = tree_score(output, n_scores, is_value=is_value, logit=logit)
    if score is None or not _starts_constant(model):
        return None
    index, factor = score
    stages = [tree.tree_ for tree in model.estimators_[:, index]]
    rate = factor * model.learning_rate
    trees = trees_of(stages, [rate * nodes.value[:, 0, 0] for nodes in stages])
    row = np.zeros((1, model.n_features_in_), dtype=np.float32)
    # the scores of the initial model are stored nowhere
    start = model._raw_predict_init(row)[0, index]  # noqa: SLF001
    return sum_of_trees(trees, factor * float(start), view)


def _starts_constant(model: Any) -> bool:
    """Whether boosting starts at a constant, and not at another model."""
    dummies = ("sklearn.DummyClassifier", "sklearn.DummyRegressor")
    return isinstance(model.init_, str) or class_name_of(model.init_) in dummies


def _boosted_votes(model: Any, output: ModelOutput, view: ColumnView) -> TreeSum | None:
    """Weighted votes: 1 for the class of a leaf, −1/(K − 1) for the other classes."""
    n_classes = len(model.classes_)
    n_scores = 1 if n_classes == 2 else n_classes
    score = tree_score(output, n_scores, logit=1.0)
    plain = {"sklearn.DecisionTreeClassifier", "sklearn.ExtraTreeClassifier"}
    if score is None or not set(map(class_name_of, model.estimators_)) <= plain:
        return None
    # for two classes the margin is twice the vote for the second
    index, factor = score
    if n_classes == 2:
        index = 1
        factor *= 2.0
    shares = floats(model.estimator_weights_) / np.sum(model.estimator_weights_)
    label = model.classes_[index]
    other = -1.0 / (n_classes - 1)
    fitted = [member.tree_ for member in model.estimators_]
    values = [
        factor
        * share
        * np.where(member.classes_[tree.value[:, 0].argmax(1)] == label, 1.0, other)
        for member, tree, share in zip(model.estimators_, fitted, shares, strict=False)
    ]
    return sum_of_trees(trees_of(fitted, values), 0.0, view)


# ---- Isolation forests


class PathLengths:
    """The mean length of the paths of an isolation forest, as a model of its own.

    Its trees are exact, where scores are powers of two of it: −2^(−length/c(ψ)).
    """

    def __init__(self, forest: Any) -> None:
        self.forest = forest
        self.n_features_in_: Any = forest.n_features_in_
        self.feature_names_in_: Any = fitted_value(forest, "feature_names_in_")

    def predict(self, X: Any) -> Array:
        """The lengths at rows of a table, (n,)."""
        scores = self.forest.score_samples(X)
        return -_search_length(self.forest.max_samples_) * np.log2(-scores)


def _search_length(count: Any) -> Array:
    """c(n): the mean length of searches without success in a tree of n rows."""
    n = np.maximum(count, 1.0)
    longer = 2.0 * (np.log(np.maximum(n - 1.0, 1.0)) + np.euler_gamma - (n - 1.0) / n)
    return np.where(n > 2.0, longer, n - 1.0)


def _path_lengths(model: Any, _output: ModelOutput, view: ColumnView) -> TreeSum | None:
    """The mean of trees: depths of leaves, and searches among the rows in each."""
    forest = model.forest
    fitted = [member.tree_ for member in forest.estimators_]
    lengths = [
        nodes.compute_node_depths() - 1.0 + _search_length(nodes.n_node_samples)
        for nodes in fitted
    ]
    trees = trees_of(fitted, [each / len(fitted) for each in lengths])
    renumbered = [
        replace(tree, feature=np.where(tree.feature < 0, -1, chosen[tree.feature]))
        for tree, chosen in zip(trees, forest.estimators_features_, strict=True)
    ]
    return sum_of_trees(renumbered, 0.0, view)


# ---- Gradient boosting on histograms


def _histogram_boosting(
    model: Any, output: ModelOutput, view: ColumnView
) -> TreeSum | None:
    """A baseline and the sum of trees of each score."""
    rounds = model._predictors  # noqa: SLF001
    if class_name_of(model) == "sklearn.HistGradientBoostingClassifier":
        score = tree_score(output, model.n_trees_per_iteration_, logit=1.0)
    else:  # counts and positive values have a logarithm as their link
        score = tree_score(output, 1, is_value=model.loss not in ("gamma", "poisson"))
    encoder = model._preprocessor  # noqa: SLF001  # codes of categories, then numbers
    model_view = view if encoder is None else view_after(encoder, view)
    if score is None or model_view is None:
        return None
    index, factor = score
    trees = [_histograms_tree(stage[index], factor) for stage in rounds]
    base = float(np.ravel(model._baseline_prediction)[index])  # noqa: SLF001
    return sum_of_trees(trees, factor * base, model_view)


def _histograms_tree(predictor: Any, factor: float) -> Tree:
    nodes = predictor.nodes
    inner = nodes["is_leaf"] == 0
    left = np.where(inner, nodes["left"].astype(np.intp), -1)
    right = np.where(inner, nodes["right"].astype(np.intp), -1)
    return Tree.of(
        np.where(inner, nodes["feature_idx"].astype(np.intp), -1),
        nodes["num_threshold"],
        left,
        right,
        factor * nodes["value"],
        nodes["missing_go_to_left"].astype(bool),
        {
            node: _bits(predictor.raw_left_cat_bitsets[nodes["bitset_idx"][node]])
            for node in np.flatnonzero(inner & (nodes["is_categorical"] > 0)).tolist()
        },
        node_shares(nodes["count"].astype(np.float64), left, right),
    )


def _bits(words: NDArray[np.uint32]) -> Mask:
    """The bits of words, the lowest bit of the first word first."""
    little = np.ascontiguousarray(words, dtype="<u4").view(np.uint8)
    return np.unpackbits(little, bitorder="little").astype(bool)


# ---- The classes of the library


def _if_members_are(model: Any) -> Sequence[Any] | None:
    """The members, or None if features enter the combination (``passthrough``)."""
    return None if fitted_value(model, "passthrough") else list(model.estimators_)


_NEIGHBORS: Final = ModelReader(
    constant_if=lambda model: () if model.weights == "uniform" else None,
    inexact="the nearest neighbours depend on all columns jointly",
)
_ENSEMBLE: Final = ModelReader(constant_if=_if_members_are)
_BOOSTING: Final = ModelReader(
    trees=_boosting,
    constant_if=lambda model: () if _starts_constant(model) else [model.init_],
)
_HISTOGRAMS: Final = ModelReader(trees=_histogram_boosting)


def _selection_and_estimator(model: Any) -> Any:
    """A recursive elimination of columns as a pipeline, if it is fitted."""
    if not (inherits(model, "sklearn.RFE") and has_fitted(model, "estimator_")):
        return model
    return Pipeline([("columns", model), ("estimator", model.estimator_)])


SKLEARN: Final[Mapping[str, ModelReader]] = {
    **{name: ModelReader(sum=rule) for name, rule in SKLEARN_SUMS.items()},
    # of imblearn: it predicts like its base class
    "imblearn.BalancedRandomForestClassifier": ModelReader(trees=_mean),
    "imblearn.RUSBoostClassifier": ModelReader(trees=_boosted_votes),
    "propopt.OneBoostedLabel": ModelReader(
        sum=SKLEARN_SUMS["propopt.OneBoostedLabel"],
        margin=MarginRule("scores", {}, lambda _: 1.0),
    ),
    "propopt.OneLabel": ModelReader(
        trees=_mean_of_label, constant_if=lambda model: [model.estimator]
    ),
    "sklearn.AdaBoostClassifier": ModelReader(
        trees=_boosted_votes, explains_margin=lambda _: True
    ),
    "sklearn.AdaBoostRegressor": ModelReader(
        inexact="a weighted median of trees is no sum of them"
    ),
    "sklearn.BaseBagging": _ENSEMBLE,
    "sklearn.BaseDecisionTree": CONSTANT,
    "sklearn.BaseForest": CONSTANT,
    "sklearn.BaseHistGradientBoosting": CONSTANT,
    "sklearn.BaseWeightBoosting": _ENSEMBLE,
    "sklearn.CalibratedClassifierCV": ModelReader(
        constant_if=lambda model: [m.estimator for m in model.calibrated_classifiers_],
        inexact="a calibrated probability bends the score; the score, "
        "wrap(model.calibrated_classifiers_[0].estimator, output='margin'), is exact "
        "where that is a sum of products, and the only one if ensemble=False",
    ),
    "sklearn.GaussianProcessClassifier": ModelReader(
        inexact="its probability is a mean over a latent function"
    ),
    "sklearn.GradientBoostingClassifier": replace(
        _BOOSTING,
        margin=MarginRule(
            "decision_function",
            {},
            lambda model: {"log_loss": 1.0, "exponential": 2.0}.get(model.loss),
        ),
    ),
    "sklearn.GradientBoostingRegressor": _BOOSTING,
    "sklearn.HistGradientBoostingClassifier": replace(
        _HISTOGRAMS, margin=MarginRule("decision_function", {}, lambda _: 1.0)
    ),
    "sklearn.HistGradientBoostingRegressor": replace(
        _HISTOGRAMS, margin=MarginRule("_raw_predict", {}, lambda _: None)
    ),
    "sklearn.KernelRidge": ModelReader(
        inexact="its kernel has no exact form; the gaussian (RBF) kernel has one"
    ),
    "sklearn.RFE": ModelReader(wraps=_selection_and_estimator),
    "sklearn.TransformedTargetRegressor": ModelReader(
        sum=SKLEARN_SUMS["sklearn.TransformedTargetRegressor"],
        constant_if=lambda model: [model.regressor_],
    ),
    **dict.fromkeys(
        (
            "sklearn.DecisionTreeClassifier",
            "sklearn.DecisionTreeRegressor",
            "sklearn.ExtraTreeClassifier",
            "sklearn.ExtraTreeRegressor",
            "sklearn.ExtraTreesClassifier",
            "sklearn.ExtraTreesRegressor",
            "sklearn.RandomForestClassifier",
            "sklearn.RandomForestRegressor",
            "skopt.ExtraTreesRegressor",
            "skopt.RandomForestRegressor",
        ),
        ModelReader(trees=_mean),
    ),
    **dict.fromkeys(
        (
            "sklearn.DummyClassifier",
            "sklearn.DummyRegressor",
            "sklearn.IsolationForest",
        ),
        CONSTANT,
    ),
    **dict.fromkeys(
        (
            "sklearn.KNeighborsClassifier",
            "sklearn.KNeighborsRegressor",
            "sklearn.RadiusNeighborsClassifier",
            "sklearn.RadiusNeighborsRegressor",
        ),
        _NEIGHBORS,
    ),
    "propopt.PathLengths": ModelReader(
        trees=_path_lengths, wrapped=lambda model: model.forest
    ),
    "sklearn._BaseHeterogeneousEnsemble": _ENSEMBLE,
    "sklearn._GeneralizedLinearRegressor": ModelReader(
        margin=MarginRule("_linear_predictor", {}, lambda _: None)
    ),
}
