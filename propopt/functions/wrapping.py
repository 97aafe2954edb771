"""From whatever computes numbers to a function under explanation; texts too."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import pandas as pd
from scipy.special import expit

from propopt.base.arrays import Array, Points
from propopt.base.checks import read_count
from propopt.base.errors import InexactBoxesWarning, InvalidInput
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import Quantity
from propopt.functions.differences import observed_in, read_step
from propopt.functions.function import Function, WrappedModel
from propopt.functions.images import ImageShape
from propopt.functions.jumps import allowed_difference
from propopt.functions.models import (
    ExactModel,
    GivenGradient,
    NumericalModel,
)
from propopt.functions.outputs import (
    FittedColumns,
    Output,
    Readout,
    Target,
    as_given,
    call_of,
    check_data,
    check_model,
    check_target,
    direct_call,
    exact_scores,
    one_label,
    quantity_of,
    read_index,
    read_output,
)
from propopt.structures.fitted_model import FittedModel
from propopt.structures.kinds import TORCH_MODULE, is_a, name_of
from propopt.structures.model_structure import ModelStructure
from propopt.structures.products.sums import PRODUCTS_TOLERANCE
from propopt.tables.columns import ObservedValues

# names of `po.functions`, whose stub takes them from this room
from propopt.tables.documents import TextSchema as TextSchema
from propopt.tables.documents import is_documents
from propopt.tables.frames import Labels, is_frame, read_points
from propopt.tables.schema import TableSchema as TableSchema
from propopt.tables.schema import read_with_schema


def is_for_texts(model: Any, data: object) -> bool:
    """Whether ``data`` are documents or their words, or were to be for this model."""
    if isinstance(data, TextSchema | str | bytes) or is_documents(data):
        return True
    known = data is None or isinstance(data, TableSchema)
    fitted = None if is_a(model, TORCH_MODULE) else FittedModel.of(model)
    return not (known or fitted is None) and bool(fitted.text_vectorisers)


def refuse_text_model(model: FittedModel) -> None:
    """Refuse to give tables to a model that begins with a vectoriser of texts."""
    found = model.text_vectorisers
    if found:
        raise InvalidInput(
            f"model: {model.name} begins with {name_of(found[0])}, which takes "
            "texts; tell wrap of them: wrap(model, data=texts), with a list or Series"
        )


@suggests_arguments
def wrap(
    model: Any,
    target: Target = None,
    output: Output = "auto",
    step: float | None = None,
    *,
    gradient: Callable[[Any], object] | None = None,
    input_shape: Sequence[int] | ImageShape | None = None,
    data: TableSchema | TextSchema | pd.DataFrame | Array | Sequence[str] | None = None,
    batch_rows: int | None = None,
    outcome: str | None = None,
) -> Function:
    """Make a function of a model: one output, with its gradient.

    Gradients are exact for linear models, logistic regression, multi-layer perceptrons
    support vector machines, kernel ridge and Gaussian process regression with smooth
    kernels, generalized linear models, discriminant analysis and Gaussian naive Bayes,
    and pipelines of scalers, PCA, polynomial and random features before one of these,
    all of scikit-learn, for torch modules (in their own precision, by autograd; see
    the page on images), and for whatever is a :class:`Function` already. All else is
    differentiated numerically, by central differences; ``gradient_method`` of
    the result tells which. A model that nothing is known of is tested once before that,
    by some thousand evaluations between the rows: of one that jumps a warning says so,
    and ``jumps`` of the result. Whoever gives ``step`` or ``gradient`` has said what is
    wanted.

    Parameters
    ----------
    model : estimator, callable or Function
        A fitted model with scikit-learn's methods, or a vectorised callable from a
        table (n, D) to n numbers. A model that was fitted on a DataFrame is always
        given one with the same columns; a callable is given what X was, array or
        DataFrame, and a model of texts, with documents for ``data``, a list of n
        strings. A Function is returned as it is.
    target : class label or int, optional
        For a classifier the label of the class; by default the second of two. For
        several outputs, or several labels, the position of one.
    output : {"auto", "value", "probability", "log_odds", "margin"}
        What to explain: ``predict``, ``predict_proba``, log p/(1 − p), or
        ``decision_function`` (its negative for the first of two classes), which for
        LightGBM, XGBoost and CatBoost is the sum of their trees. ``"auto"`` depends on
        the final estimator alone, behind pipelines, searches and thresholds: it is the
        margin of a boosted classifier, which for two classes is the log-odds; the
        probability of other classifiers, or their margin if they have no
        probabilities; the value of other models and of callables.
    step : float, optional
        Differentiate numerically, with this step relative to max(1, |x|), even where
        the exact gradient is known. The default suits the precision in which the model
        computes, double or single, which a few rows tell.
    gradient : callable, optional
        The gradient, where you know it: from the table that the model takes, with n
        rows, to numbers (n, D). It is believed; central differences of ``value``
        can check it.
    input_shape : sequence of int or ImageShape, optional
        The shape of one point as a torch module takes it, such as (C, H, W), where that
        is not (D,). Its value is one column of what the module returns; where columns
        are scores of classes, ``output`` says what to make of them: their softmax, or
        their sigmoid where one column stands for two classes.
    data : DataFrame, TableSchema, array, documents or TextSchema, optional
        The table that the model was fitted on, or X: the function then takes DataFrames
        with these columns, and the model is given nothing else, with its own labels,
        text, categories and dtypes. Gradients of numeric columns are exact if there are
        no categories, else central differences; that of a category is its effect,
        f(x) − Σ_c p_c f(x with c), with p_c its frequency in ``data``. Categories are
        text, booleans and categories of pandas; ``po.functions.TableSchema.of(X,
        categorical=[...], groups={...})`` declares others, and columns that one-hot
        encode one feature, which is then explained as one. Models that take missing
        values are given them as they are in ``data``; the gradient of a missing number
        is the effect of that, f(x) less its mean over all values of the column that
        are observed in ``data``, which may be an array for that. Documents, a list or
        Series of texts, make a ``TextFunction`` of the model: its columns are their
        words, those that the model sees where that is known, and the gradient of a word
        is f(x) less f of the text without it. ``po.functions.TextSchema.of(texts,
        rule)`` says what a word is.
    batch_rows : int, optional
        The most rows that the model is given in one call, whoever asks: for models
        behind a network, or with much memory per row. By default 16,384 rows and 32
        MiB, and 4 MiB for torch modules.
    outcome : str, optional
        The name of the column that the model predicts, which models do not know: then
        cards, axes and files say "log-odds of churn = 1", else "log-odds of class 1".

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
    told = ReferenceTable(data)
    return wrap_model(
        model, target, output, step, gradient, input_shape, told, batch_rows, outcome
    )


@final
@dataclass(frozen=True, eq=False)
class ReferenceTable:
    """What a function is told of its table, and what errors call that."""

    data: Any
    label: str = "data"

    @property
    def schema(self) -> TableSchema | None:
        """The columns; None of an array."""
        if isinstance(self.data, TableSchema):
            return self.data
        return None if self._encoded is None else self._encoded[0]

    def read(self, function: Function, X: Any, what: str) -> tuple[Points, Labels]:
        """X as its function takes it; the table itself is not read again."""
        if X is self.data and self._encoded is not None:
            schema, points, labels = self._encoded
            if function.schema is schema:
                return points, labels
        return function.read(X, what)

    @cached_property
    def _encoded(self) -> tuple[TableSchema, Points, Labels] | None:
        """The columns of a table and its rows, read once."""
        if self.data is None or _is_plain(self.data):
            return None
        return read_with_schema(self.data, what=self.label)

    @property
    def observed(self) -> tuple[ObservedValues | None, ...] | None:
        """The values of each column of an array, which has no schema."""
        return observed_in(self._numbers) if _is_plain(self.data) else None

    @property
    def compared(self) -> Points:
        """Up to 20 rows without gaps, at which a model is asked what it answers."""
        if _is_plain(self.data):
            points = self._numbers
        elif self.data is None or isinstance(self.data, TableSchema):
            return np.zeros((0, 0))  # there are no rows
        else:
            assert self._encoded is not None, "it is a table with names"
            points = self._encoded[1]
        whole = points[~np.isnan(points).any(axis=1)]
        return whole[:: -(-len(whole) // _COMPARED) or 1]

    @cached_property
    def _numbers(self) -> Points:
        return read_points(self.data, self.label)[0]


def wrap_model(
    model: Any,
    target: Target,
    output: Output,
    step: float | None,
    gradient: Callable[[Any], object] | None,
    input_shape: Sequence[int] | ImageShape | None,
    told: ReferenceTable,
    batch_rows: int | None,
    outcome: str | None = None,
) -> Function:
    """:func:`wrap`, whose errors call the table as its user does."""
    check_target(target)
    data, is_torch, place = told.data, is_a(model, TORCH_MODULE), None
    if not (isinstance(model, Function) or is_torch):
        model = FittedModel.of(model)
        check_model(model)  # before the table, which may be the model
        model, target, place = one_label(model, target)
    if not isinstance(model, Function) and is_for_texts(model, data):
        if (step, gradient, input_shape) != (None, None, None):
            raise InvalidInput(
                "data: effects of the words of documents are differences of values; "
                "leave step, gradient and input_shape out"
            )
        from propopt.functions.wrapping_texts import wrap_texts

        texts = wrap_texts(model, target, output, data, told.label)
        return _told(texts, batch_rows, outcome, place)
    observed, schema = told.observed, told.schema
    if is_torch:
        from propopt.functions.torch_modules import torch_model

        _refuse("gradient", gradient, f"{name_of(model)} {_OWN}")
        module = torch_model(model, target, output, input_shape)
        return _told(_torch(module, step, schema), batch_rows, outcome)
    if input_shape is not None:
        raise InvalidInput(f"input_shape: {model.name} is not a torch module")
    if isinstance(model, Function):
        already = f"{model!r} is a Function already"
        _refuse("data", schema, f"{already}; leave the argument out")
        _refuse("gradient", gradient, f"{model!r} {_OWN}")
        for argument, value in (("batch_rows", batch_rows), ("outcome", outcome)):
            _refuse(argument, value, f"{already}; give it to the wrap that made it")
        if (target, output, step) != (None, "auto", None):
            raise InvalidInput(
                f"wrap: {already}; its target, output and step cannot be changed"
            )
        return model
    wrapped = _wrapped(model, target, output, step, gradient, told)
    if observed is not None and isinstance(wrapped, NumericalModel):
        wrapped = replace(wrapped, observed_values=observed)
    return _told(wrapped, batch_rows, outcome, place)


_COMPARED: Final = 20

_OWN: Final = "has its own; leave the argument out"


def _told(
    function: WrappedModel,
    batch_rows: int | None,
    outcome: str | None,
    place: int | None = None,
) -> Function:
    """The function, with a bound on the rows of a call, and what it is of in words.

    ``place`` says which of several labels it is of.
    """
    if place is not None:
        quantity = replace(function.quantity, position=place)
        function = replace(function, quantity=quantity)
    if outcome is not None:
        function = replace(function, quantity=function.quantity.of_outcome(outcome))
    if batch_rows is None:
        return function
    return replace(function, batch_rows=read_count(batch_rows, "batch_rows"))


def _wrapped(
    model: FittedModel,
    target: Target,
    output: Output,
    step: Any,
    gradient: Callable[[Any], object] | None,
    told: ReferenceTable,
) -> WrappedModel:
    """The function of a model with methods, or of a callable."""
    schema = told.schema
    refuse_text_model(model)
    quantity = read_output(model, output)
    index = read_index(model, quantity, target)
    name = quantity_of(model, quantity, index)
    if schema is not None:
        if gradient is not None:
            raise InvalidInput(
                "data: a table of a schema has gradients of its own; leave gradient out"
            )
        check_data(model, list(schema.header), told.label)
    if gradient is not None:
        if not callable(gradient):
            raise InvalidInput(f"gradient: expected a callable, got {gradient!r}")
        if step is not None:
            raise InvalidInput("give a step or a gradient, not both")
        return GivenGradient(name, _readout(model, quantity, index), gradient)
    if step is None and (schema is None or not schema.categorical.any()):
        exact = _exact(model, quantity, index, name)
        if exact is not None and _answers_alike(
            exact, _readout(model, quantity, index), told.compared
        ):
            return replace(exact, table=schema)
    if schema is None:
        readout = _readout(model, quantity, index)
    else:
        method, said = call_of(model, quantity)
        direct = direct_call(model, quantity) if schema.is_numeric else None
        readout = Readout(method, schema.decode, said, index, direct=direct)
    return NumericalModel(
        name,
        readout,
        None if step is None else read_step(step),
        model.is_piecewise_constant,
        structure=ModelStructure(model, quantity, index, schema),
        table=schema,
    )


def _is_plain(data: Any) -> bool:
    """Whether it is an array of numbers; text needs a DataFrame."""
    return isinstance(data, np.ndarray) and data.dtype.kind in "biuf"


def _refuse(argument: str, value: object, why: str) -> None:
    if value is not None:
        raise InvalidInput(f"{argument}: {why}")


def _torch(model: WrappedModel, step: Any, schema: TableSchema | None) -> WrappedModel:
    if schema is not None and schema.categorical.any():
        raise InvalidInput(
            "data: a torch module takes numbers, and there are categorical columns; "
            "give a callable that encodes the DataFrame for it"
        )
    if step is None:
        return replace(model, table=schema)
    why = "numerical gradients of a torch module take no schema; leave the argument out"
    _refuse("data", schema, why)
    readout = Readout(model.value, as_given, "value", None)
    return NumericalModel(model.quantity, readout, read_step(step))


def _exact(
    model: FittedModel, output: str, index: int | None, name: Quantity
) -> ExactModel | None:
    known = exact_scores(model.estimator, output, index)
    return None if known is None else ExactModel(name, FittedColumns.of(model), *known)


def _answers_alike(exact: ExactModel, readout: Readout, points: Points) -> bool:
    """Whether its parameters say what the model answers at points (n, D).

    Where they do not, a warning tells. Log-odds are compared as probabilities, which
    are what the model answers.
    """
    if len(points) == 0:
        return True
    read = exact.value_at(points, Labels())
    if readout.output == "log_odds":
        read, readout = expit(read), replace(readout, output="probability")
    answers, epsilon = readout.values_with_precision(points, Labels())
    errors = np.abs(read - answers)
    if (errors <= allowed_difference(answers, PRODUCTS_TOLERANCE, epsilon)).all():
        return True
    warnings.warn(
        f"{exact.quantity.model}: what its parameters give differs from its answers by "
        f"up to {errors.max():.2g}; it is called instead, and its gradients are "
        "differences",
        InexactBoxesWarning,
        stacklevel=2,
    )
    return False


def _readout(model: FittedModel, output: str, index: int | None) -> Readout:
    method, said = call_of(model, output)
    if method is model.estimator:
        return Readout(method, as_given, output, index)
    columns = FittedColumns.of(model)
    direct = direct_call(model, output)
    return Readout(method, columns.table, said, index, columns, direct)


# ---- The function of a model with a table, as one line from a model to a result has it


def wrap_with_table(
    model: Any,
    X: Any,
    target: Target,
    output: Output,
    data: TableSchema | TextSchema | pd.DataFrame | Array | Sequence[str] | None,
    batch_rows: int | None = None,
    outcome: str | None = None,
) -> tuple[Function, ReferenceTable]:
    """The function of a model, and its table: ``data``, or X with names or gaps."""
    if isinstance(model, Function):
        if isinstance(data, TableSchema | TextSchema):
            raise InvalidInput(
                f"data: a schema belongs to wrap(model, data=...), and {model!r} is "
                "wrapped already; give a table of reference rows"
            )
        function = wrap(model, target, output, batch_rows=batch_rows, outcome=outcome)
        return function, ReferenceTable(None)
    for label, table in (("X", X), ("data", data)):
        if isinstance(table, str | bytes | Path):
            raise InvalidInput(
                f"{label}: expected a table, or a list of texts, got "
                f"{str(table)!r:.80}; pandas.read_csv(path) reads the table of a "
                "file, and [text] is one text"
            )
    known = ReferenceTable(data)
    gaps = _is_plain(X) and bool(np.isnan(X).any())  # effects need what is not missing
    if data is None and (is_documents(X) or is_frame(X, "X") or gaps):
        known = ReferenceTable(X, "X")
    rest = None, None, None, known, batch_rows, outcome
    return wrap_model(model, target, output, *rest), known


def other_classes(
    model: Any, function: Function, output: Output, data: Any
) -> Iterator[Function]:
    """The other outputs of a model of three classes or more, as one of them."""
    if isinstance(model, Function):
        return
    fitted = FittedModel.of(model)
    labels = fitted.classes
    if fitted.labels is not None or labels is None or len(labels) < 3:
        return
    for label in np.asarray(labels).tolist():
        if label != function.quantity.label:
            yield wrap_with_table(fitted, None, label, output, data)[0]
