"""The interface of a library's file: the rules for each class of its models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias, final

from propopt.base.arrays import Array
from propopt.base.text import Reason
from propopt.structures.boxes.boxes import TreeSum
from propopt.structures.readers.pipelines import ColumnView, ModelOutput


Part: TypeAlias = tuple[float, Any, ModelOutput, ColumnView]
"""A weight, an inner model, one of its outputs, and its input view."""

ModelSum: TypeAlias = tuple[tuple[Part, ...], float]
"""A model as parts and a constant: the constant + Σ weight · output of each part."""

SumRule: TypeAlias = Callable[[Any, ModelOutput, ColumnView], ModelSum | Reason]
"""From a model, an output and its view to the sum of inner models, or a reason."""


class MarginRule(NamedTuple):
    """The method that returns the margin of a model, with its settings."""

    method: str  # of the model: from a table to scores (n,) or (n, K)
    settings: Mapping[str, Any]  # keywords of the method
    # the factor from the margin to the log-odds of the second of two classes
    logit: Callable[[Any], float | None]
    # the factor from these scores to the margin, such as 1/T for a mean of T trees
    weight: Callable[[Any], float] | None = None


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ModelReader:
    """The rules for a class of models, in addition to its methods.

    The file of a library has a mapping from names such as ``xgboost.XGBClassifier`` to
    readers, and ``READERS`` of ``structures/registry.py`` a line for the file. A
    missing rule is inherited from the nearest base class that has one.

    Parameters
    ----------
    trees : callable, optional
        Reads an output as a sum of trees. It applies to the class itself, never to a
        subclass, which may predict by another rule.
    sum : callable, optional
        Reads an output as a sum of outputs of other models; like ``trees``, for the
        class itself.
    inexact : str
        The reason why an output of exactly this class has no exact structure.
    margin : MarginRule, optional
        The rule of the margin. Like the next four, it applies to subclasses that
        inherit ``predict``, ``predict_proba`` and ``decision_function``.
    explains_margin : callable, optional
        Whether ``output="auto"`` is the margin; by default for classifiers with one.
    has_custom_objective : callable, optional
        Whether a user's objective was fitted, so that there is no probability.
    takes_numbers : bool
        Whether arrays give the same predictions as the frame that it was fitted on.
    direct : callable, optional
        A faster call of a table of numbers, with a keyword ``raw_score``; or None.
    columns : callable, optional
        The names of the columns that it was fitted on, or None; by default its
        ``feature_names_in_``.
    constant_if : callable, optional
        The inner models that must be piecewise constant for this one to be: an empty
        sequence if there are none; None if it is not. Like all below, it applies to
        every subclass, and so does ``columns``.
    n_labels : callable, optional
        The number of labels that a classifier predicts for each point.
    wraps : callable, optional
        Makes an estimator of a model without the methods of one, or a pipeline of one
        that selects columns.
    wrapped : callable, optional
        The model inside an estimator that ``wraps`` of another reader made.
    given_margin : callable, optional
        The library's margins (n,) or (n, K) of a table, given base margins of that
        shape, or None; only for libraries whose predictions take base margins.
    text : callable, optional
        The model as text, from which its digest is computed.
    """

    trees: Callable[[Any, ModelOutput, ColumnView], TreeSum | None] | None = None
    sum: SumRule | None = None
    inexact: str = ""
    margin: MarginRule | None = None
    explains_margin: Callable[[Any], bool] | None = None
    has_custom_objective: Callable[[Any], bool] | None = None
    takes_numbers: bool = False
    direct: Callable[[Any], Callable[..., Array] | None] | None = None
    columns: Callable[[Any], Sequence[str] | None] | None = None
    constant_if: Callable[[Any], Sequence[Any] | None] | None = None
    n_labels: Callable[[Any], int] | None = None
    wraps: Callable[[Any], Any] | None = None
    wrapped: Callable[[Any], Any] | None = None
    given_margin: Callable[[Any, Any, Array | None], Any] | None = None
    text: Callable[[Any], bytes] | None = None


OF_THE_CLASS: Final = frozenset({"trees", "sum", "inexact"})
"""The rules of exactly a class, which subclasses do not inherit."""

OF_PREDICTIONS: Final = frozenset(
    {"margin", "explains_margin", "has_custom_objective"}
    | {"takes_numbers", "direct", "given_margin"}
)
"""The rules of subclasses that inherit the methods of predictions as well."""

LINEAR_TREES: Final = "linear models in leaves, or instead of trees, are not supported"

CONSTANT: Final = ModelReader(constant_if=lambda _model: ())
"""The reader of a class that is piecewise constant whatever its settings."""
