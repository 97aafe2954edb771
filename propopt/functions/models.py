"""Fitted models and plain callables as functions under explanation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from propopt._typing import Attributions, Points, Values
from propopt.errors import InvalidInput
from propopt.functions.base import EXACT, Function
from propopt.functions.columns import FittedColumns, as_given
from propopt.functions.differences import (
    central_differences,
    describe_step,
    read_step,
)
from propopt.functions.exact import exact_link, exact_network
from propopt.functions.links import Link
from propopt.functions.networks import Network
from propopt.functions.outputs import (
    METHODS,
    Output,
    Target,
    check_model,
    has_method,
    name_of,
    read_index,
    read_output,
)
from propopt.functions.readout import Readout, read_column
from propopt.labels import Labels


@dataclass(frozen=True, eq=False, repr=False)
class ExactModel(Function):
    """A fitted model whose scores and link are known, so its gradient is exact.

    It keeps the parameters that the model had when it was wrapped.
    """

    name: str
    columns: FittedColumns
    network: Network
    link: Link

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    @property
    def gradient_method(self) -> str:
        """Always ``"exact"``."""
        return EXACT

    def _value(self, points: Points, labels: Labels, /) -> Values:
        self.columns.check(points, labels)
        return self.link.value(self.network.scores(points))

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        self.columns.check(points, labels)
        scores, pullback = self.network.linearized(points)
        return pullback(self.link.cotangents(scores))


@dataclass(frozen=True, eq=False, repr=False)
class NumericalModel(Function):
    """A model that can only be called, so its gradient is by central differences."""

    name: str
    readout: Callable[[Points, Labels], Values]
    step: float

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    @property
    def gradient_method(self) -> str:
        """The rule of the differences and its step."""
        return describe_step(self.step)

    def _value(self, points: Points, labels: Labels, /) -> Values:
        return self.readout(points, labels)

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        return central_differences(
            lambda shifted: self.readout(shifted, labels), points, self.step
        )


def wrap(
    model: Any,
    target: Target = None,
    output: Output = "auto",
    step: float | None = None,
) -> Function:
    """The function that a model computes: one output, with its gradient.

    Gradients are exact for linear models, logistic regression, multi-layer perceptrons
    and pipelines of scalers before one of these, all of scikit-learn, and for whatever
    is a :class:`Function` already. All else is differentiated numerically, by
    :func:`central_differences`; ``gradient_method`` of the result tells which.

    Parameters
    ----------
    model : estimator, callable or Function
        A fitted model with scikit-learn's methods, or a vectorised callable from a
        table (n, D) to n numbers. A model that was fitted on a DataFrame is always
        given one with the same columns; a callable is given what X was, array or
        DataFrame. A Function is returned as it is.
    target : class label or int, optional
        For a classifier the label of the class; by default the second of two. For
        several outputs the position of one.
    output : {"auto", "value", "probability", "log_odds", "margin"}
        What to explain: ``predict``, ``predict_proba``, log p/(1 − p), or
        ``decision_function`` (its negative for the first of two classes). ``"auto"``
        is the probability of a classifier, or its margin if it has no probabilities;
        for other models and for callables it is their value.
    step : float, optional
        Differentiate numerically, with this step relative to max(1, |x|), even where
        the exact gradient is known.

    Returns
    -------
    Function
        With ``value(X)`` and ``gradient(X)``.

    Raises
    ------
    InvalidInput
        If the model is not fitted, cannot be called, has no such output or no such
        target, or needs a target and none was given.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from propopt.functions import wrap
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]])
    >>> model = LogisticRegression().fit(X, [0, 0, 1, 1])
    >>> logit = wrap(model, output="log_odds")
    >>> bool(np.allclose(logit.gradient(X), model.coef_))
    True
    >>> wrap(lambda X: X[:, 0] * X[:, 1]).gradient(X[:1]).round(6)
    array([[1., 0.]])
    """
    if isinstance(model, Function):
        return _unchanged(model, target, output, step)
    check_model(model)
    chosen = read_output(model, output)
    index = read_index(model, chosen, target)
    name = f"{name_of(model)}, output={chosen!r}, target={target!r}"
    if step is None:
        exact = _exact(model, chosen, index, name)
        if exact is not None:
            return exact
    return NumericalModel(name, _readout(model, chosen, index), read_step(step))


def _unchanged(model: Function, target: Target, output: str, step: Any) -> Function:
    if (target, output, step) != (None, "auto", None):
        raise InvalidInput(
            f"wrap: {model!r} is a Function already; its target, output and step "
            "cannot be changed"
        )
    return model


def _exact(model: Any, output: str, index: int | None, name: str) -> ExactModel | None:
    network = exact_network(model)
    if network is None:
        return None
    n_scores = network.n_scores
    if index is None or output == "value":
        index = read_column(index, n_scores)
    link = exact_link(model, output, index, n_scores)
    if link is None:
        return None
    return ExactModel(name, FittedColumns.of(model), network, link)


def _readout(model: Any, output: str, index: int | None) -> Readout:
    method = METHODS[output]
    if has_method(model, method):
        columns = FittedColumns.of(model)
        return Readout(getattr(model, method), columns.table, output, index)
    return Readout(model, as_given, output, index)
