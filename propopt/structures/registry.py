"""Readers of fitted models, by class: the estimator that predicts, sums, trees.

Readers of trees are never used for subclasses, which may predict by another rule. Other
packages add readers by entry points of the group ``propopt.readers``.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from sklearn.pipeline import Pipeline

from propopt.base.errors import InvalidInput
from propopt.base.extras import distribution_of, load_plugin, plugins
from propopt.base.text import Reason
from propopt.structures.boxes.boxes import Boxes, TreeSum
from propopt.structures.kinds import (
    class_name_of,
    fitted_value,
    is_a,
    lineage,
    predicting,
    unwrapped,
)
from propopt.structures.products.sums import SumOfProducts
from propopt.structures.readers.catboost import CATBOOST
from propopt.structures.readers.lightgbm import LIGHTGBM
from propopt.structures.readers.model_reader import (
    OF_PREDICTIONS,
    OF_THE_CLASS,
    ModelReader,
    ModelSum,
)
from propopt.structures.readers.pipelines import ColumnView, ModelOutput
from propopt.structures.readers.sklearn_trees import SKLEARN
from propopt.structures.readers.xgboost import XGBOOST


# ---- Libraries: a file in readers/, and a line here


READERS: Final[dict[str, ModelReader]] = {
    **CATBOOST,
    **LIGHTGBM,
    **SKLEARN,
    **XGBOOST,
}
"""The reader of each class of models, by the package and the name of the class."""


def reader_of(model: Any) -> ModelReader:
    """The rules of a model's class, each its own or that of the nearest base class."""
    rules: dict[str, Any] = {}
    barred: frozenset[str] = frozenset()  # the rules that do not pass to the class
    bases = type(model).__mro__
    for name in lineage(bases):
        for rule, given in vars(READERS.get(name, _NO_RULES)).items():
            if given and rule not in barred:
                rules.setdefault(rule, given)
        is_overridden = name == predicting(bases)[-1]
        barred |= OF_THE_CLASS | OF_PREDICTIONS if is_overridden else OF_THE_CLASS
    return ModelReader(**rules)


_NO_RULES: Final = ModelReader()


# ---- The estimator that makes the predictions


def as_estimator(model: Any) -> Any:
    """The estimator that predicts, inside searches, thresholds and frozen wrappers.

    A pipeline of imblearn becomes one of scikit-learn without samplers. Native boosters
    get the methods of an estimator. Any other model is returned unchanged.
    """
    model = unwrapped(model, as_estimator)
    wraps = reader_of(model).wraps
    return model if wraps is None else unwrapped(wraps(model), as_estimator)


def final_of(estimator: Any) -> Any:
    """The final estimator of (nested) pipelines, or the estimator itself."""
    while isinstance(estimator, Pipeline):
        estimator = as_estimator(estimator.steps[-1][1])
    return estimator


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
    rule = reader_of(model).columns
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


# ---- Boxes of sums of trees


def read_trees(model: Any, output: ModelOutput, view: ColumnView) -> TreeSum | None:
    """An output of an estimator as a sum of trees by the table's columns, or None."""
    reader = reader_of(model)
    if reader.sum is not None:
        return _added(reader.sum(model, output, view), view)
    if reader.trees is not None:
        return reader.trees(model, output, view)
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
    members, base = total
    parts = [TreeSum((), base, view.n_codes)]
    for weight, model, output, part_view in members:
        part = read_trees(as_estimator(model), output, part_view)
        if part is None:
            return None
        parts.append(part.scaled(weight))
    return TreeSum.sum_of(parts)
