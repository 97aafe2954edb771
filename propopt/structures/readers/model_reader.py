"""What a library's file tells of each of its classes of models: one interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias, final

from propopt.base.arrays import Array
from propopt.structures.boxes.boxes import TreeSum
from propopt.structures.readers.pipelines import ColumnView, ModelOutput


TreeRule: TypeAlias = Callable[[Any, ModelOutput, ColumnView], TreeSum | None]
"""What reads an output of a fitted model in a view; None where it is not exact."""


class MarginRule(NamedTuple):
    """How a model is asked for its margin."""

    method: str  # of the model, from a table to scores (n,) or (n, K)
    settings: Mapping[str, Any]  # keywords of the method
    # how many times the margin the log-odds of the second of two classes are
    logit: Callable[[Any], float | None]


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ModelReader:
    """What a class of models is, beyond the methods of an estimator.

    The file of a library has a mapping from names such as ``xgboost.XGBClassifier`` to
    readers, and ``readers/libraries.py`` a line for the file. What is not given of a
    class is taken of the nearest class above that has it.

    Parameters
    ----------
    trees : callable, optional
        Reads an output as a sum of trees. It holds for the class itself, never for a
        subclass, which may predict by another rule.
    margin : MarginRule, optional
        How the margin is had. Like the next four, it holds for subclasses that keep
        ``predict``, ``predict_proba`` and ``decision_function``.
    explains_margin : callable, optional
        Whether ``output="auto"`` is the margin; by default where there is a ``margin``.
    has_custom_objective : callable, optional
        Whether a user's objective was fitted, so that there is no probability.
    takes_numbers : bool
        Whether arrays give the same answers as the frame that it was fitted on.
    direct : callable, optional
        A faster call of a table of numbers, with a keyword ``raw_score``; or None.
    constant_if : callable, optional
        The models that have to be piecewise constant so that this one is: none if it is
        so by itself; None if it is not. Like all below, it holds for every subclass.
    n_labels : callable, optional
        How many labels a classifier gives to each point.
    predicts_scores : callable, optional
        Whether ``predict`` gives the margin.
    wraps : callable, optional
        Makes an estimator of a model that has no methods of one.
    path_values : callable, optional
        Path-dependent SHAP values of a model and a table, with the base value last:
        (n, D + 1) for each score.
    text : callable, optional
        The model as text, which its digest is of.
    """

    trees: TreeRule | None = None
    margin: MarginRule | None = None
    explains_margin: Callable[[Any], bool] | None = None
    has_custom_objective: Callable[[Any], bool] | None = None
    takes_numbers: bool = False
    direct: Callable[[Any], Callable[..., Array] | None] | None = None
    constant_if: Callable[[Any], Sequence[Any] | None] | None = None
    n_labels: Callable[[Any], int] | None = None
    predicts_scores: Callable[[Any], bool] | None = None
    wraps: Callable[[Any], Any] | None = None
    path_values: Callable[[Any, Any], Any] | None = None
    text: Callable[[Any], bytes] | None = None


CONSTANT: Final = ModelReader(constant_if=lambda _model: ())
"""Of a class that is piecewise constant whatever its settings."""
