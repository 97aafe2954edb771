"""Readers of fitted models, by class: the estimator that predicts, sums, trees.

Readers of trees are never used for subclasses, which may predict by another rule. Other
packages add readers by entry points of the group ``propopt.readers``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, replace
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, final

import numpy as np
from sklearn.pipeline import Pipeline

from propopt.base.errors import InvalidInput
from propopt.base.extras import distribution_of, load_plugin, plugins
from propopt.base.text import Reason
from propopt.structures.boxes.boxes import Boxes, TreeSum
from propopt.structures.kinds import (
    class_name_of,
    fitted_value,
    forwarded,
    has_fitted,
    inherits,
    is_a,
    is_passthrough,
    lineage,
    plain_pipeline,
)
from propopt.structures.products.sums import SumOfProducts
from propopt.structures.readers.catboost import CATBOOST
from propopt.structures.readers.lightgbm import LIGHTGBM
from propopt.structures.readers.model_reader import ModelReader
from propopt.structures.readers.pipelines import (
    ColumnView,
    ModelOutput,
    floats,
    plain_array,
    view_after,
)
from propopt.structures.readers.sklearn_trees import SKLEARN
from propopt.structures.readers.tree_nodes import TreeScore
from propopt.structures.readers.xgboost import XGBOOST


# ---- Libraries: a file in readers/, and a line here


READERS: Final[dict[str, ModelReader]] = {
    **CATBOOST,
    **LIGHTGBM,
    **SKLEARN,
    **XGBOOST,
}
"""The reader of each class of models, by the package and the name of the class."""

_Part = TypeVar("_Part")


def of_class(
    model: Any, part: Callable[[ModelReader], _Part | None], *, predicting: bool = False
) -> _Part | None:
    """The part that the reader of a model's class, or of a base class, provides.

    With ``predicting`` a class that overrides a prediction method ends the search.
    """
    for name, predicts in lineage(model):
        reader = READERS.get(name)
        value = None if reader is None else part(reader)
        if value is not None or (predicting and predicts):
            return value
    return None


def reader_of(model: Any) -> ModelReader:
    """The reader of exactly the class of a model; one without rules if it has none."""
    return READERS.get(class_name_of(model), _NO_RULES)


_NO_RULES: Final = ModelReader()


# ---- The estimator that makes the predictions


LOGISTIC: Final = "sklearn.LogisticRegression", "sklearn.LogisticRegressionCV"
_SELECTS: Final = "sklearn.RFE", "sklearn.RFECV"
"""Models that select columns before their ``estimator_`` predicts."""


def as_estimator(model: Any) -> Any:
    """The estimator that predicts, inside searches, thresholds and frozen wrappers.

    A pipeline of imblearn becomes one of scikit-learn without samplers. Native boosters
    get the methods of an estimator. Any other model is returned unchanged.
    """
    model = plain_pipeline(forwarded(model), as_estimator)
    if inherits(model, *_SELECTS) and has_fitted(model, "estimator_"):
        steps = [("columns", model), ("estimator", as_estimator(model.estimator_))]
        return Pipeline(steps)
    wraps = of_class(model, lambda reader: reader.wraps)
    return model if wraps is None else wraps(model)


def final_of(model: Any) -> Any:
    """The final estimator of (nested) pipelines, or the model itself."""
    model = as_estimator(model)
    while isinstance(model, Pipeline):
        model = as_estimator(model.steps[-1][1])
    return model


def working_steps(model: Any) -> list[Any]:
    """The steps of a pipeline and of nested ones, without those that do nothing."""
    if type(model) is not Pipeline:
        return [] if is_passthrough(model) else [model]
    return [step for _, part in model.steps for step in working_steps(part)]


def members_in(model: Any) -> list[Any]:
    """The fitted models inside a wrapper or an ensemble."""
    if is_a(model, "sklearn.TransformedTargetRegressor"):
        return [model.regressor_]
    if is_a(model, "sklearn.CalibratedClassifierCV"):
        return [part.estimator for part in model.calibrated_classifiers_]
    members = fitted_value(model, "estimators_")
    return members if isinstance(members, list) else []


def fitted_names(model: Any) -> tuple[str, ...] | None:
    """The names of the columns that a model or a step was fitted on, if it has them."""
    rule = of_class(model, lambda reader: reader.columns)
    names = fitted_value(model, "feature_names_in_") if rule is None else rule(model)
    if names is None:  # a wrapper may not have the names of its members
        members = members_in(model)
        return fitted_names(as_estimator(members[0])) if members else None
    return tuple(map(str, names))


def unreadable(model: Any, error: Exception) -> Reason:
    """The reason for a model that its library stores differently than expected."""
    name = type(final_of(model)).__name__
    return Reason(
        f"the structure of {name} cannot be computed: {type(error).__name__}: {error}"
    )


# ---- Models of scikit-learn that add up predictions of other models


class Part(NamedTuple):
    """An output of an inner model, with its weight and its input view."""

    weight: float
    model: Any
    output: ModelOutput
    view: ColumnView


@final
@dataclass(frozen=True, eq=False)
class ModelSum:
    """A model as base + Σ weight · output of inner models."""

    parts: tuple[Part, ...]  # the terms
    base: float = 0.0  # the constant


SumRule: TypeAlias = Callable[[Any, ModelOutput, ColumnView], ModelSum | Reason]
"""From a model, an output and its view to the sum of inner models, or a reason."""

_OF_MEMBERS: Final = {
    "decision_function": "margin",
    "predict": "value",
    "predict_proba": "probability",
}
"""The output that each method of a member of a stack returns."""


def _pipeline(model: Any, output: ModelOutput, view: ColumnView) -> ModelSum | Reason:
    rest, rest_view = rest_of_pipeline(model, view)
    if rest is not model.steps[-1][1]:
        return Reason(
            f"{type(rest.steps[0][1]).__name__} may combine several columns of the "
            "table in one of its columns"
        )
    return ModelSum((Part(1.0, rest, output, rest_view),))


def rest_of_pipeline(model: Pipeline, view: ColumnView) -> tuple[Any, ColumnView]:
    """Rest of a pipeline after steps that keep columns apart, and its input view."""
    for index, (_, step) in enumerate(model.steps[:-1]):
        step_view = view_after(step, view)
        if step_view is None:
            return Pipeline(model.steps[index:]), view
        view = step_view
    return model.steps[-1][1], view


def _voting(model: Any, output: ModelOutput, view: ColumnView) -> ModelSum | Reason:
    """The weighted mean of predictions, or of probabilities."""
    classifies = class_name_of(model) == "sklearn.VotingClassifier"
    if output.name != ("probability" if classifies else "value"):
        return _none_of(model, output)
    if classifies and model.voting != "soft":
        return Reason("hard votes are counted; voting='soft' averages probabilities")
    every = [1.0] * len(model.estimators) if model.weights is None else model.weights
    named = zip(every, model.estimators, strict=True)
    weights = floats([w for w, (_, member) in named if not isinstance(member, str)])
    members = zip(weights / weights.sum(), model.estimators_, strict=True)
    return ModelSum(tuple(Part(w, member, output, view) for w, member in members))


def _none_of(model: Any, output: ModelOutput) -> Reason:
    return Reason(
        f"{output.name!r} of a {type(model).__name__} is no sum of its members"
    )


def _bagging(model: Any, output: ModelOutput, view: ColumnView) -> ModelSum | Reason:
    """The mean over members, each applied to some of the columns."""
    classifies = class_name_of(model) != "sklearn.BaggingRegressor"
    if output.name not in (("margin", "probability") if classifies else ("value",)):
        return _none_of(model, output)
    array = replace(view, transform=lambda points: plain_array(view.transform(points)))
    share = 1.0 / len(model.estimators_)
    members = zip(model.estimators_, model.estimators_features_, strict=True)
    parts = []
    for member, columns in members:
        member_output = output
        if output.name == "probability":  # a member may lack some of the classes
            index = np.flatnonzero(np.asarray(member.classes_) == output.index)
            if len(index) == 0:
                continue
            member_output = ModelOutput(output.name, int(index[0]))
        member_view = array.chosen(np.asarray(columns))
        parts.append(Part(share, member, member_output, member_view))
    return ModelSum(tuple(parts))


def _stacking(model: Any, output: ModelOutput, view: ColumnView) -> ModelSum | Reason:
    """A linear combination of the predictions of the members."""
    from propopt.structures.readers.fitted_networks import LINEAR_REGRESSORS

    final = as_estimator(model.final_estimator_)
    if class_name_of(final) in LOGISTIC:
        score = TreeScore.of(output, len(final.coef_), logit=1.0)
    else:
        is_value = class_name_of(final) in LINEAR_REGRESSORS
        score = TreeScore.of(output, 1, is_value=is_value)
    outputs = _outputs_of_members(model)
    if score is None or not has_fitted(final, "coef_"):
        return Reason(
            f"{output.name!r} of a stack that ends in {type(final).__name__} is no "
            "linear function of its members"
        )
    row = score.factor * np.atleast_2d(floats(final.coef_))[score.column]
    base = score.factor * np.atleast_1d(floats(final.intercept_))[score.column]
    if len(outputs) != len(row):  # with passthrough=True the table's columns follow
        return Reason("a stack with passthrough=True has no exact form")
    parts = zip(row.tolist(), outputs, strict=True)
    return ModelSum(
        tuple(Part(weight, *part, view) for weight, part in parts), float(base)
    )


def _outputs_of_members(model: Any) -> list[tuple[Any, ModelOutput]]:
    """The inputs of the final model: for two classes the probability of the second."""
    outputs = []
    for member, method in zip(model.estimators_, model.stack_method_, strict=True):
        n_classes = len(getattr(member, "classes_", []))
        shared = n_classes == 2 or method == "predict"
        indices = [1 if n_classes == 2 else None] if shared else range(n_classes)
        outputs += [
            (member, ModelOutput(_OF_MEMBERS[method], index)) for index in indices
        ]
    return outputs


def _transformed(
    model: Any, output: ModelOutput, view: ColumnView
) -> ModelSum | Reason:
    """A regressor of a scaled target, in units of the target."""
    units = scale_of_target(model.transformer_)
    if units is None or output.name != "value":
        return Reason("its target is transformed by a function other than a scaler")
    slope, intercept = units
    return ModelSum((Part(slope, model.regressor_, output, view),), intercept)


def scale_of_target(scaler: Any) -> tuple[float, float] | None:
    """Slope and intercept of the inverse of a target scaler, or None."""
    from propopt.structures.readers.fitted_networks import SCALERS, scaling_of

    if is_a(scaler, "sklearn.FunctionTransformer"):
        return (1.0, 0.0) if scaler.func is scaler.inverse_func is None else None
    if not is_a(scaler, *SCALERS):
        return None
    center, factor, offset = (float(part[0]) for part in astuple(scaling_of(scaler)))
    return 1.0 / factor, center - offset / factor


def _one_of_several(
    model: Any, output: ModelOutput, view: ColumnView
) -> ModelSum | Reason:
    """A separate model for each output."""
    if output.name != "value" or output.index is None:
        return _none_of(model, output)
    member = model.estimators_[output.index]
    return ModelSum((Part(1.0, member, ModelOutput("value", None), view),))


def _one_against_rest(
    model: Any, output: ModelOutput, view: ColumnView
) -> ModelSum | Reason:
    """A separate model for each class; a single one for two classes."""
    if len(model.estimators_) == 1:
        return ModelSum((Part(1.0, model.estimators_[0], output, view),))
    if output.name != "margin" or output.index is None:
        return Reason(
            f"{output.name!r} of one class against the rest is normalised over "
            "classes; output='margin' is exact"
        )
    estimator = model.estimators_[output.index]
    return ModelSum((Part(1.0, estimator, ModelOutput("margin", 1), view),))


def _boosted_label(
    model: Any, output: ModelOutput, view: ColumnView
) -> ModelSum | Reason:
    """The score of one label, which is its log-odds."""
    if output.name not in ("log_odds", "margin"):
        return _none_of(model, output)
    score = ModelOutput("margin", model.position)
    sign = -1.0 if output.index == 0 else 1.0
    return ModelSum((Part(sign, model.estimator, score, view),))


SUMS: Final[Mapping[str, SumRule]] = {
    "propopt.OneBoostedLabel": _boosted_label,
    "sklearn.Pipeline": _pipeline,
    "sklearn.MultiOutputRegressor": _one_of_several,
    "sklearn.OneVsRestClassifier": _one_against_rest,
    "sklearn.RANSACRegressor": lambda model, output, view: ModelSum(
        (Part(1.0, model.estimator_, output, view),)
    ),
    "sklearn.TransformedTargetRegressor": _transformed,
    **dict.fromkeys(
        (
            "imblearn.BalancedBaggingClassifier",
            "imblearn.EasyEnsembleClassifier",
            "sklearn.BaggingClassifier",
            "sklearn.BaggingRegressor",
        ),
        _bagging,
    ),
    **dict.fromkeys(
        ("sklearn.StackingClassifier", "sklearn.StackingRegressor"), _stacking
    ),
    **dict.fromkeys(("sklearn.VotingClassifier", "sklearn.VotingRegressor"), _voting),
}
"""The rule of each class of such models; never used for subclasses."""


# ---- Boxes of sums of trees


def read_trees(model: Any, output: ModelOutput, view: ColumnView) -> TreeSum | None:
    """An output of a model as a sum of trees by the table's columns, or None."""
    model = as_estimator(model)
    sums = SUMS.get(class_name_of(model))
    if sums is not None:
        return _added(sums(model, output, view), view)
    rule = reader_of(model).trees
    if rule is not None:
        return rule(model, output, view)
    structure = read_by_others(model, output, view)
    return structure if isinstance(structure, TreeSum) else None


def exact_boxes(model: Any, output: ModelOutput, view: ColumnView) -> Boxes | None:
    """An output of a fitted model as a sum of boxes; None if it is no sum of trees.

    The reason is not computed, which would take reading the trees once more.
    """
    trees = read_trees(model, output, view)
    return None if trees is None else trees.boxes()


Read: TypeAlias = SumOfProducts | TreeSum | Reason
"""The result of a reader of another package: products of functions of the input
columns, or trees by the columns of the table, or the reason why it is neither."""


def read_by_others(model: Any, output: ModelOutput, view: ColumnView) -> Read | None:
    """The result of another package's reader for this class of models, or None."""
    entry = plugins("propopt.readers").get(class_name_of(model))
    if entry is None:
        return None
    structure = load_plugin(entry)(model, output, view)
    if not isinstance(structure, SumOfProducts | TreeSum | Reason):
        raise InvalidInput(
            f"{class_name_of(model)}: the reader of {distribution_of(entry)} returned "
            f"a {type(structure).__name__}; expected a SumOfProducts, a TreeSum or a "
            "Reason"
        )
    return structure


def _added(total: ModelSum | Reason, view: ColumnView) -> TreeSum | None:
    """The trees of a sum of models; None if one of them has none."""
    if isinstance(total, Reason):
        return None
    parts = [TreeSum((), total.base, view.n_codes)]
    for weight, model, output, part_view in total.parts:
        part = read_trees(model, output, part_view)
        if part is None:
            return None
        parts.append(part.scaled(weight))
    return TreeSum.sum_of(parts)
