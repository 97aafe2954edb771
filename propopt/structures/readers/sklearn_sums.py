"""scikit-learn: models with outputs that are weighted sums of those of other models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, replace
from typing import Any, Final

import numpy as np
from sklearn.pipeline import Pipeline

from propopt.base.text import Reason
from propopt.structures.kinds import (
    as_step,
    class_name_of,
    fitted_value,
    has_fitted,
    is_a,
)
from propopt.structures.readers.model_reader import ModelSum, Part, SumRule
from propopt.structures.readers.pipelines import (
    ColumnView,
    ModelOutput,
    floats,
    plain_array,
    view_after,
)
from propopt.structures.readers.tree_nodes import tree_score


LOGISTIC: Final = "sklearn.LogisticRegression", "sklearn.LogisticRegressionCV"

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
    return ((1.0, rest, output, rest_view),), 0.0


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
    return tuple((w, member, output, view) for w, member in members), 0.0


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
    parts = list[Part]()
    for member, columns in members:
        member_output = output
        if output.name == "probability":  # a member may lack some of the classes
            index = np.flatnonzero(np.asarray(member.classes_) == output.index)
            if len(index) == 0:
                continue
            member_output = ModelOutput(output.name, int(index[0]))
        member_view = array.chosen(np.asarray(columns))
        parts.append((share, member, member_output, member_view))
    return tuple(parts), 0.0


def _stacking(model: Any, output: ModelOutput, view: ColumnView) -> ModelSum | Reason:
    """A linear combination of the predictions of the members."""
    from propopt.structures.readers.fitted_networks import LINEAR_REGRESSORS

    final = as_step(model.final_estimator_)
    if class_name_of(final) in LOGISTIC:
        score = tree_score(output, len(final.coef_), logit=1.0)
    else:
        is_value = class_name_of(final) in LINEAR_REGRESSORS
        score = tree_score(output, 1, is_value=is_value)
    outputs = _outputs_of_members(model)
    if score is None or not has_fitted(final, "coef_"):
        return Reason(
            f"{output.name!r} of a stack that ends in {type(final).__name__} is no "
            "linear function of its members"
        )
    index, factor = score
    row = factor * np.atleast_2d(floats(final.coef_))[index]
    base = factor * np.atleast_1d(floats(final.intercept_))[index]
    if len(outputs) != len(row):  # with passthrough=True the table's columns follow
        return Reason("a stack with passthrough=True has no exact form")
    parts = zip(row.tolist(), outputs, strict=True)
    return tuple((weight, *part, view) for weight, part in parts), float(base)


def _outputs_of_members(model: Any) -> list[tuple[Any, ModelOutput]]:
    """The inputs of the final model: for two classes the probability of the second."""
    outputs = []
    for member, method in zip(model.estimators_, model.stack_method_, strict=True):
        n_classes = len(fitted_value(member, "classes_", []))
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
    return ((slope, model.regressor_, output, view),), intercept


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
    return ((1.0, member, ModelOutput("value", None), view),), 0.0


def _one_against_rest(
    model: Any, output: ModelOutput, view: ColumnView
) -> ModelSum | Reason:
    """A separate model for each class; a single one for two classes."""
    if len(model.estimators_) == 1:
        return ((1.0, model.estimators_[0], output, view),), 0.0
    if output.name != "margin" or output.index is None:
        return Reason(
            f"{output.name!r} of one class against the rest is normalised over "
            "classes; output='margin' is exact"
        )
    estimator = model.estimators_[output.index]
    return ((1.0, estimator, ModelOutput("margin", 1), view),), 0.0


def _boosted_label(
    model: Any, output: ModelOutput, view: ColumnView
) -> ModelSum | Reason:
    """The score of one label, which is its log-odds."""
    if output.name not in ("log_odds", "margin"):
        return _none_of(model, output)
    score = ModelOutput("margin", model.position)
    sign = -1.0 if output.index == 0 else 1.0
    return ((sign, model.estimator, score, view),), 0.0


SKLEARN_SUMS: Final[Mapping[str, SumRule]] = {
    "propopt.OneBoostedLabel": _boosted_label,
    "sklearn.Pipeline": _pipeline,
    "sklearn.MultiOutputRegressor": _one_of_several,
    "sklearn.OneVsRestClassifier": _one_against_rest,
    "sklearn.RANSACRegressor": lambda model, output, view: (
        ((1.0, model.estimator_, output, view),),
        0.0,
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
"""The rule of each class of such models."""
