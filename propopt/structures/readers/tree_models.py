"""Whatever is a sum of trees, as boxes; and what other packages read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, replace
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np
from sklearn.pipeline import Pipeline

from propopt.base.errors import InvalidInput
from propopt.base.extras import distribution_of, load_plugin, plugins
from propopt.base.text import Reason
from propopt.structures.boxes.boxes import Boxes, TreeSum
from propopt.structures.fitted_model import (
    LOGISTIC,
    OneBoostedLabel,
    as_estimator,
    tree_rule,
)
from propopt.structures.kinds import class_name_of, has_fitted, is_a
from propopt.structures.products.sums import SumOfProducts
from propopt.structures.readers.pipelines import (
    ColumnView,
    ModelOutput,
    behind,
    floats,
    plain_array,
)
from propopt.structures.readers.tree_nodes import TreeScore


# ---- Models of scikit-learn that add up what other models predict


class Part(NamedTuple):
    """An output of a model that is added to others, and its weight."""

    weight: float
    model: Any
    output: ModelOutput
    view: ColumnView


@final
@dataclass(frozen=True, eq=False)
class ModelSum:
    """Base + Σ weight · output, of parts of a model."""

    parts: tuple[Part, ...]  # what is added
    base: float = 0.0  # the constant


SumRule: TypeAlias = Callable[[Any, ModelOutput, ColumnView], ModelSum | Reason]
"""From a model, an output of it and what it is given to what it adds up."""

_OF_MEMBERS: Final = {
    "decision_function": "margin",
    "predict": "value",
    "predict_proba": "probability",
}
"""Outputs of what members of stacks are asked for."""


def _pipeline(model: Any, output: ModelOutput, view: ColumnView) -> ModelSum | Reason:
    rest, seen = behind_columns(model, view)
    if rest is not model.steps[-1][1]:
        return Reason(
            f"{type(rest.steps[0][1]).__name__} is not known to make each of its "
            "columns of one column of the table"
        )
    return ModelSum((Part(1.0, rest, output, seen),))


def behind_columns(model: Pipeline, view: ColumnView) -> tuple[Any, ColumnView]:
    """The rest of a pipeline behind steps that make columns of one each; its view."""
    for place, (_, step) in enumerate(model.steps[:-1]):
        seen = behind(step, view)
        if seen is None:
            return Pipeline(model.steps[place:]), view
        view = seen
    return model.steps[-1][1], view


def _voting(model: Any, output: ModelOutput, view: ColumnView) -> ModelSum | Reason:
    """The weighted mean of predictions, or of probabilities."""
    classifies = class_name_of(model) == "sklearn.VotingClassifier"
    if output.name != ("probability" if classifies else "value"):
        return _none_of(model, output)
    if classifies and model.voting != "soft":
        return Reason("votes are counted; voting='soft' averages probabilities")
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
    """The mean over members, each of which is given an array of its own columns."""
    classifies = class_name_of(model) != "sklearn.BaggingRegressor"
    if output.name not in (("margin", "probability") if classifies else ("value",)):
        return _none_of(model, output)
    array = replace(view, sees=lambda points: plain_array(view.sees(points)))
    share = 1.0 / len(model.estimators_)
    members = zip(model.estimators_, model.estimators_features_, strict=True)
    parts = []
    for member, columns in members:
        own = output
        if (
            output.name == "probability"
        ):  # the class as a member counts it, which may not have seen all
            known = np.flatnonzero(np.asarray(member.classes_) == output.index)
            if len(known) == 0:
                continue
            own = ModelOutput(output.name, int(known[0]))
        seen = array.chosen(np.asarray(columns))
        parts.append(Part(share, member, own, seen))
    return ModelSum(tuple(parts))


def _stacking(model: Any, output: ModelOutput, view: ColumnView) -> ModelSum | Reason:
    """A linear model of what the members predict."""
    from propopt.structures.readers.fitted_networks import LINEAR_REGRESSORS

    final = as_estimator(model.final_estimator_)
    if class_name_of(final) in LOGISTIC:
        score = TreeScore.of(output, len(final.coef_), logit=1.0)
    else:
        score = TreeScore.of(
            output, 1, is_value=class_name_of(final) in LINEAR_REGRESSORS
        )
    outputs = _outputs_of_members(model)
    if score is None or not has_fitted(final, "coef_"):
        return Reason(
            f"{output.name!r} of a stack that ends in {type(final).__name__} is no "
            "linear function of its members"
        )
    row = score.factor * np.atleast_2d(floats(final.coef_))[score.place]
    base = score.factor * np.atleast_1d(floats(final.intercept_))[score.place]
    if len(outputs) != len(row):  # columns of the table are passed on, too
        return Reason("a stack with passthrough=True is not read")
    parts = zip(row.tolist(), outputs, strict=True)
    return ModelSum(
        tuple(Part(weight, *part, view) for weight, part in parts), float(base)
    )


def _outputs_of_members(model: Any) -> list[tuple[Any, ModelOutput]]:
    """What the final model is given: of two classes the probability of the second."""
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
    """What is learned of y in other units, in those of y: for a scaler affine."""
    units = scale_of_target(model.transformer_)
    if units is None or output.name != "value":
        return Reason("what it predicts is transformed by a function that is no scaler")
    slope, intercept = units
    return ModelSum((Part(slope, model.regressor_, output, view),), intercept)


def scale_of_target(scaler: Any) -> tuple[float, float] | None:
    """Slope and intercept of its inverse, of one column."""
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
    """A model for each output."""
    if output.name != "value" or output.index is None:
        return _none_of(model, output)
    member = model.estimators_[output.index]
    return ModelSum((Part(1.0, member, ModelOutput("value", None), view),))


def _boosted_label(
    model: OneBoostedLabel, output: ModelOutput, view: ColumnView
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
"""Classes of such models, with what reads each; never their subclasses."""


# ---- Boxes of whatever is a sum of trees


def read_trees(model: Any, output: ModelOutput, view: ColumnView) -> TreeSum | None:
    """The sum of trees that an output of a fitted model is, by the table."""
    model = as_estimator(model)
    sums = SUMS.get(class_name_of(model))
    if sums is not None:
        return _added(sums(model, output, view), view)
    rule = tree_rule(model)
    if rule is not None:
        return rule(model, output, view)
    read = read_by_others(model, output, view)
    return read if isinstance(read, TreeSum) else None


def exact_boxes(model: Any, output: ModelOutput, view: ColumnView) -> Boxes | None:
    """An output of a fitted model as a sum over boxes; None where it is none of trees.

    Why it is none is not sought, which would take reading the trees once more.
    """
    trees = read_trees(model, output, view)
    return None if trees is None else trees.boxes()


Read: TypeAlias = SumOfProducts | TreeSum | Reason
"""What readers of other packages give: products of functions of the columns that the
model is given, or trees by the columns of the table; or why it is neither."""


def read_by_others(model: Any, output: ModelOutput, view: ColumnView) -> Read | None:
    """By an entry point of its package and class, such as ``theirs.Steps``; or None."""
    entry = plugins("propopt.readers").get(class_name_of(model))
    if entry is None:
        return None
    read = load_plugin(entry)(model, output, view)
    if not isinstance(read, SumOfProducts | TreeSum | Reason):
        raise InvalidInput(
            f"its reader, of {distribution_of(entry)}, gives a {type(read).__name__}; "
            "expected a SumOfProducts, a TreeSum or a Reason"
        )
    return read


def _added(total: ModelSum | Reason, view: ColumnView) -> TreeSum | None:
    """The trees of a sum of models; None if one of them has none."""
    if isinstance(total, Reason):
        return None
    parts = [TreeSum((), total.base, view.n_codes)]
    for weight, model, output, seen in total.parts:
        part = read_trees(model, output, seen)
        if part is None:
            return None
        parts.append(part.scaled(weight))
    return TreeSum.sum_of(parts)
