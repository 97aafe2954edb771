"""From a model or a callable to the function under explanation; texts too."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, TypeAlias, final

import numpy as np
import pandas as pd
from scipy.special import expit

from propopt.base.arrays import Array, Points
from propopt.base.checks import read_count
from propopt.base.errors import InexactBoxesWarning, InvalidInput
from propopt.base.resources import FewThreads
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import Outcome, Quantity
from propopt.functions.differences import read_step
from propopt.functions.function import Function, WrappedModel
from propopt.functions.images import ImageShape, call_with_inputs, read_sizes
from propopt.functions.jumps import allowed_difference
from propopt.functions.models import (
    ExactModel,
    GivenGradient,
    NumericalModel,
    structure_of,
)
from propopt.functions.outputs import (
    MARGIN_ROWS,
    FittedColumns,
    Output,
    Readout,
    Target,
    as_given,
    call_of,
    check_model,
    check_target,
    direct_call,
    exact_scores,
    one_label,
    quantity_of,
    read_index,
    read_output,
    scale_of,
)
from propopt.structures.fitted_model import FittedModel, ModelStructure
from propopt.structures.kinds import TORCH_MODULE, is_a, name_of
from propopt.structures.products.sums import PRODUCTS_TOLERANCE
from propopt.tables.columns import ObservedValues

# names of `po.functions`, which its stub takes from this room
from propopt.tables.documents import TextSchema as TextSchema
from propopt.tables.frames import Labels, is_documents, is_frame, read_points
from propopt.tables.schema import TableSchema as TableSchema
from propopt.tables.schema import read_with_schema


def opened(model: Any) -> Any:
    """A model with its steps; a torch module or a Function as it is."""
    if isinstance(model, Function | FittedModel) or is_a(model, TORCH_MODULE):
        return model
    return FittedModel.of(model)


DataLike: TypeAlias = (
    TableSchema | TextSchema | pd.DataFrame | Array | Sequence[str] | None
)
"""A schema, or a table or documents to make one of."""


def is_for_texts(model: Any, data: object) -> bool:
    """Whether ``data`` are documents, a text schema, or input for a model of texts."""
    if isinstance(data, TextSchema | str | bytes) or is_documents(data):
        return True
    is_table = data is not None and not isinstance(data, TableSchema)
    return is_table and isinstance(model, FittedModel) and bool(model.text_vectorisers)


@suggests_arguments
def wrap(
    model: Any,
    target: Target = None,
    output: Output = "auto",
    step: float | None = None,
    *,
    gradient: Callable[[Any], object] | None = None,
    input_shape: Sequence[int] | ImageShape | None = None,
    data: DataLike = None,
    batch_rows: int | None = None,
    outcome: Outcome | None = None,
) -> Function:
    """Make a function of one output of a model, with its gradient.

    Gradients are exact for models of scikit-learn with smooth outputs, behind scalers,
    PCA and polynomial features: linear models, logistic regression, multi-layer
    perceptrons, support vector machines, kernel ridge and Gaussian process regression
    with RBF, Matérn or polynomial kernels, generalized linear models, discriminant
    analysis and Gaussian naive Bayes. They are exact, by automatic differentiation, for
    torch modules, and for every :class:`Function`. Other models are differentiated by
    central differences; ``gradient_method`` of the result names the method. Unknown
    models are first tested for jumps by some thousand evaluations between the rows,
    unless ``step`` or ``gradient`` is given; a warning reports jumps, and ``jumps`` has
    them.

    Parameters
    ----------
    model : estimator, callable or Function
        A fitted model with the methods of scikit-learn, or a vectorised callable from a
        table (n, D) to n numbers. A model that was fitted on a DataFrame gets one with
        the same columns. A callable gets the type of X, array or DataFrame, and for
        documents as ``data`` a list of n strings. A Function is returned unchanged.
    target : class label or int, optional
        The class of a classifier, by default the second of two; or the position of one
        of several outputs.
    output : {"auto", "value", "probability", "log_odds", "margin"}
        The explained output: ``predict``, ``predict_proba``, log p/(1 − p), or
        ``decision_function`` (its negative for the first of two classes), which for
        LightGBM, XGBoost and CatBoost is the sum of the trees. For regressors behind a
        link the margin is the log, or the log-odds, of the prediction. ``"auto"``
        depends on
        the final estimator: the margin of boosted classifiers (for two classes the
        log-odds); the log-odds of two classes where they are a sum of products of
        columns, as for logistic regression, discriminant analysis and naive Bayes; the
        probability of other classifiers, or the margin if they have no probabilities;
        the value of other models and of callables.
    step : float, optional
        Differentiate numerically, with this step relative to max(1, |x|), even if the
        exact gradient is available. The default suits the precision of the model,
        double or single.
    gradient : callable, optional
        A given gradient: from the table that the model takes, with n rows, to numbers
        (n, D). It is not checked.
    input_shape : sequence of int or ImageShape, optional
        The shape of one input of a torch module or a callable, such as (C, H, W), or
        (time steps, sensors) for windows, if it is not (D,). X is then (N, D), such as
        ``windows.reshape(len(windows), -1)``.
        The function is one column of the output; ``output`` applies softmax to columns
        of class scores, or a sigmoid to a single column for two classes.
    data : DataFrame, TableSchema, array, documents or TextSchema, optional
        The training table of the model, or X. The function then takes DataFrames with
        these columns, and the model gets the original labels, texts, categories and
        dtypes. Gradients of numeric columns are exact without categories, else central
        differences. The gradient of a category is its effect, f(x) − Σ_c p_c f(x with
        c), with its frequency p_c in ``data``. Categories are texts, booleans and
        categories of pandas; ``po.functions.TableSchema.of(X, categorical=[...],
        groups={...})`` declares others, and one-hot columns that are one feature. The
        gradient of a missing value is f(x) minus the mean of f over the observed values
        of the column. Documents, a list or Series of texts, give a ``TextFunction``
        with words as columns; the gradient of a word is f(x) minus f of the text
        without it. ``po.functions.TextSchema.of(texts, rule)`` defines words.
    batch_rows : int, optional
        The most rows in one call of the model, for models behind a network or with
        much memory per row. The default is 16,384 rows and 32 MiB, and 4 MiB for torch
        modules.
    outcome : str or mapping of a class to its name, optional
        The name of the predicted column, for titles and axes: "log-odds of churn"
        instead of "log-odds of class 1", if classes are 0 and 1, and for others
        "log-odds of grade = 2". Or a name for each class, ``{0: "benign", 1:
        "malignant"}``: "log-odds of malignant".

    Returns
    -------
    Function
        The function, with ``value(X)`` (n,) and ``gradient(X)`` (n, D).

    Raises
    ------
    InvalidInput
        If the model is not fitted, cannot be called, or lacks the output or target, or
        if it needs a target and none is given.

    See Also
    --------
    explain : Explains a model without this step.

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
    model = opened(model)
    reference = ReferenceTable(data, model=model)
    return wrap_model(
        model,
        target,
        output,
        step,
        gradient,
        input_shape,
        reference,
        batch_rows,
        outcome,
    )


@final
@dataclass(frozen=True, eq=False)
class ReferenceTable:
    """The table given with a model, and its name in error messages."""

    data: Any
    label: str = "data"
    model: Any = None  # the opened model; by default it may read all columns

    @property
    def schema(self) -> TableSchema | None:
        """The columns of the table; None for an array."""
        if isinstance(self.data, TableSchema):
            return self.data
        return None if self._encoded is None else self._encoded[0]

    def read(self, function: Function, X: Any, what: str) -> tuple[Points, Labels]:
        """Convert X as its function does; the table itself is converted only once."""
        if X is self.data and self._encoded is not None:
            schema, points, labels = self._encoded
            if function.schema is schema:
                return points, labels
        return function.read(X, what)

    @cached_property
    def _encoded(self) -> tuple[TableSchema, Points, Labels] | None:
        """The columns of a table with names and its rows, converted once."""
        if self.data is None or isinstance(self.data, TableSchema):
            return None
        if _is_plain(self.data):
            return None
        is_fitted = isinstance(self.model, FittedModel)
        read = self.model.columns_read if is_fitted else None
        return read_with_schema(self.data, what=self.label, read=read)

    @property
    def observed(self) -> tuple[ObservedValues | None, ...] | None:
        """The observed values of each column of an array, which has no schema."""
        if not _is_plain(self.data):
            return None
        return tuple(map(ObservedValues.of, self._points.T))

    @property
    def compared(self) -> Points:
        """Up to 20 rows without missing values, to compare exact structures."""
        return self._whole[:: -(-len(self._whole) // MARGIN_ROWS) or 1]

    def of_each_category(self, schema: TableSchema) -> Points:
        """Rows without missing values in which the categories of the table occur."""
        if len(self._whole) == 0:
            return self._whole
        rows = np.zeros(0, np.intp)
        for j in np.flatnonzero(schema.categorical):
            column = self._whole[:, j]
            rows = np.union1d(rows, np.unique(column, return_index=True)[1])
        return self._whole[rows[:_MOST_TRIED]]

    @cached_property
    def _whole(self) -> Points:
        """The rows without missing values."""
        return self._points[~np.isnan(self._points).any(axis=1)]

    @cached_property
    def _points(self) -> Points:
        """The rows, of which a schema has none."""
        if _is_plain(self.data):
            return read_points(self.data, self.label)[0]
        return np.zeros((0, 0)) if self._encoded is None else self._encoded[1]


def wrap_model(
    model: Any,
    target: Target,
    output: Output,
    step: float | None,
    gradient: Callable[[Any], object] | None,
    input_shape: Sequence[int] | ImageShape | None,
    reference: ReferenceTable,
    batch_rows: int | None,
    outcome: Outcome | None = None,
) -> Function:
    """The function of an opened model, with the table's name for errors."""
    check_target(target)
    data = reference.data
    is_fitted = isinstance(model, FittedModel)
    label_index = None
    if is_fitted:
        check_model(model)  # before the table, which may be the model
        model, target, label_index = one_label(model, target)
    if not isinstance(model, Function) and is_for_texts(model, data):
        if (step, gradient, input_shape) != (None, None, None):
            raise InvalidInput(
                "data: effects of the words of documents are differences of values; "
                "leave step, gradient and input_shape out"
            )
        from propopt.functions.wrapping_texts import wrap_texts

        texts = wrap_texts(model, target, output, data, reference.label)
        classes = model.classes if is_fitted else None
        return _with_settings(texts, batch_rows, outcome, label_index, classes)
    observed = reference.observed
    schema = reference.schema
    if isinstance(model, Function):
        already = f"{model!r} is a Function already"
        _refuse("data", schema, f"{already}; leave the argument out")
        _refuse("gradient", gradient, f"{model!r} {_HAS_GRADIENT}")
        made = {
            "batch_rows": batch_rows,
            "outcome": outcome,
            "input_shape": input_shape,
        }
        for argument, value in made.items():
            _refuse(argument, value, f"{already}; give it to the wrap that made it")
        if (target, output, step) != (None, "auto", None):
            raise InvalidInput(
                f"wrap: {already}; leave out target, output and step, which are fixed"
            )
        return model
    if not is_fitted:
        from propopt.functions.torch_modules import torch_model

        _refuse("gradient", gradient, f"{name_of(model)} {_HAS_GRADIENT}")
        module = torch_model(model, target, output, input_shape)
        return _with_settings(_torch(module, step, schema), batch_rows, outcome)
    if input_shape is not None:
        if model.methods:
            raise InvalidInput(
                f"input_shape: {model.name} takes tables; expected a torch module, or "
                "a callable for arrays of this shape, such as model.predict"
            )
        inputs = partial(call_with_inputs, model.estimator, read_sizes(input_shape))
        vars(inputs)["__name__"] = model.name  # for messages
        model = FittedModel(inputs)
    wrapped = _wrapped(model, target, output, step, gradient, reference)
    if observed is not None and isinstance(wrapped, NumericalModel):
        wrapped = replace(wrapped, observed_values=observed)
    return _with_settings(wrapped, batch_rows, outcome, label_index, model.classes)


_MOST_TRIED: Final = 1000
"""Rows with categories at which a model is called before it is explained."""

_HAS_GRADIENT: Final = "has a gradient already; leave the argument out"


def _with_settings(
    function: WrappedModel,
    batch_rows: int | None,
    outcome: Outcome | None,
    label_index: int | None = None,
    classes: Any = None,
) -> Function:
    """The function of one label (or None) with its outcome and its batch size."""
    if label_index is not None:
        quantity = replace(function.quantity, position=label_index)
        function = replace(function, quantity=quantity)
    if outcome is not None:
        labels = None if classes is None else np.asarray(classes).tolist()
        quantity = function.quantity.of_outcome(outcome, labels)
        function = replace(function, quantity=quantity)
    if batch_rows is None:
        return function
    return replace(function, batch_rows=read_count(batch_rows, "batch_rows"))


def _wrapped(
    model: FittedModel,
    target: Target,
    output: Output,
    step: Any,
    gradient: Callable[[Any], object] | None,
    reference: ReferenceTable,
) -> WrappedModel:
    """The function of a fitted model or a callable."""
    schema = reference.schema
    if vectorisers := model.text_vectorisers:
        raise InvalidInput(
            f"model: {model.name} begins with {name_of(vectorisers[0])}, which takes "
            "texts; give wrap a list or Series of them, wrap(model, data=texts)"
        )
    quantity = read_output(model, output)
    table = schema  # as the model takes it
    if schema is not None:
        if gradient is not None:
            raise InvalidInput(
                "gradient: leave it out with data=, as gradients are then computed for "
                "the columns of the table"
            )
        # in the order of the model's columns
        header = model.in_order(schema.header)
        if model.checks_columns:
            FittedColumns.of(model).check(len(header), header, reference.label)
        if not header.equals(schema.header):
            table = replace(schema, header=header)
    few = None  # rows of the input table, or one that the model should accept
    if quantity == "margin":
        view = model.structure("margin", schema=table).view
        points = reference.compared
        if view is not None:
            few = view.transform(points if len(points) else view.start[None])
    scale = scale_of(model, quantity, few)
    index = read_index(model, quantity, target, scale)
    name = quantity_of(model, quantity, index, scale)
    structure = model.structure(quantity, index, table)
    if gradient is not None:
        if not callable(gradient):
            raise InvalidInput(f"gradient: expected a callable, got {gradient!r}")
        if step is not None:
            raise InvalidInput("give a step or a gradient, not both")
        readout = _readout(model, quantity, index)
        return GivenGradient(name, readout, gradient, structure=structure)
    if table is None:
        readout = _readout(model, quantity, index)
    else:
        method, output_name = call_of(model, quantity)
        direct = direct_call(model, quantity) if table.is_numeric else None
        readout = Readout(method, table.decode, output_name, index, direct=direct)
    if step is None and (schema is None or not schema.categorical.any()):
        exact = _exact(structure, name, schema)
        if exact is not None and _agrees_with_model(exact, readout, reference.compared):
            return exact
    function = NumericalModel(
        name,
        readout,
        None if step is None else read_step(step),
        model.is_piecewise_constant,
        structure=structure,
        schema=schema,
    )
    if schema is not None and isinstance(readout.method, FewThreads):
        function.try_at(reference.of_each_category(schema))
    return function


def _is_plain(data: Any) -> bool:
    """Whether the data is a numeric array; text requires a DataFrame."""
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
        return replace(model, schema=schema)
    why = "numerical gradients of a torch module take no schema; leave the argument out"
    _refuse("data", schema, why)
    readout = Readout(model.value, as_given, "value", None)
    return NumericalModel(model.quantity, readout, read_step(step))


def _exact(
    structure: ModelStructure, name: Quantity, schema: TableSchema | None
) -> ExactModel | None:
    """The exact form of an output as a function of the table's columns, or None."""
    model = structure.model
    table = structure.schema
    exact = exact_scores(model, structure.output, structure.index)
    if exact is None:
        return None
    network, link = exact
    columns = FittedColumns.of(model)
    if schema is not None and table is not None and table is not schema:
        from propopt.structures.networks import Affine, Chain  # if used

        order = schema.header.get_indexer(table.header)
        moves = np.eye(len(order))[order]
        network = Chain(Affine(moves, np.zeros(len(order))), network)
        columns = replace(columns, names=tuple(map(str, schema.header)))
    return ExactModel(name, columns, network, link, schema=schema, structure=structure)


def _agrees_with_model(exact: ExactModel, readout: Readout, points: Points) -> bool:
    """Whether the exact form agrees with the model at points (n, D); else warn."""
    if len(points) == 0:
        return True
    exact_values = exact.value_at(points, Labels())
    if readout.output == "log_odds":
        exact_values = expit(exact_values)
        readout = replace(readout, output="probability")
    values, epsilon = readout.values_with_precision(points, Labels())
    errors = np.abs(exact_values - values)
    if (errors <= allowed_difference(values, PRODUCTS_TOLERANCE, epsilon)).all():
        return True
    warnings.warn(
        f"{exact.quantity.model}: values from its parameters differ from its "
        f"predictions by up to {errors.max():.2g}; the model is called instead, and "
        "its gradients are differences",
        InexactBoxesWarning,
        stacklevel=2,
    )
    return False


def _readout(model: FittedModel, output: str, index: int | None) -> Readout:
    method, output_name = call_of(model, output)
    if method is model.estimator:
        return Readout(method, as_given, output, index)
    columns = FittedColumns.of(model)
    direct = direct_call(model, output)
    return Readout(method, columns.table, output_name, index, columns, direct)


# ---- The function of a model with a table, for explanations in one call


def wrap_with_table(
    model: Any,
    X: Any,
    target: Target,
    output: Output,
    data: DataLike,
    batch_rows: int | None = None,
    outcome: Outcome | None = None,
) -> tuple[Function, ReferenceTable]:
    """Function of a model, and its table: ``data``, or X if it has names or gaps."""
    if isinstance(model, Function):
        if isinstance(data, TableSchema | TextSchema):
            raise InvalidInput(
                f"data: expected a table of reference rows, got a schema; {model!r} is "
                "wrapped already, so its schema cannot be changed"
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
    model = opened(model)
    reference = ReferenceTable(data, model=model)
    gaps = _is_plain(X) and np.isnan(X).any()  # effects need observed values
    if data is None and (is_documents(X) or is_frame(X, "X") or gaps):
        reference = ReferenceTable(X, "X", model)
    return wrap_model(
        model, target, output, None, None, None, reference, batch_rows, outcome
    ), reference


def other_classes(
    model: Any, function: Function, output: Output, data: Any
) -> Iterator[Function]:
    """The functions of the other classes of a model of three or more classes."""
    if isinstance(model, Function):
        return
    structure = structure_of(function)
    # one object for all classes, which remembers what readers reported
    fitted = FittedModel.of(model) if structure is None else structure.model
    for label in several_classes(fitted):
        if label != function.quantity.label:
            yield wrap_with_table(fitted, None, label, output, data)[0]


def several_classes(model: Any) -> list[Any]:
    """The labels of an opened model of three or more classes; of others none."""
    if not isinstance(model, FittedModel) or model.labels is not None:
        return []
    labels = model.classes
    return [] if labels is None or len(labels) < 3 else np.asarray(labels).tolist()
