"""From a model and rows to what LIME tends to there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, final

import numpy as np

from propopt.base.arrays import Points, Values
from propopt.base.checks import read_seed
from propopt.base.errors import InvalidInput
from propopt.base.resources import DrawPlan
from propopt.base.words_of_others import knows_other_words
from propopt.functions import Function
from propopt.functions.function import EXACT
from propopt.functions.jumps import allowed_difference, precision_of
from propopt.functions.outputs import Output, Target
from propopt.functions.texts import TextFunction
from propopt.functions.wrapping import wrapped_and_told
from propopt.laws.data_law import Reference
from propopt.lime.explanation import LimeExplanation, bins_of, cells_of
from propopt.lime.fidelity import effective_share
from propopt.lime.laws.binned_columns import columns_of
from propopt.lime.laws.lime_law import LimeLaw
from propopt.lime.laws.tabular_law import TabularLaw
from propopt.lime.sampled_limits import (
    LimeSubject,
    checked_products,
    limits_or_estimates,
)
from propopt.structures.products.sums import SumOfProducts
from propopt.tables.documents import is_documents
from propopt.tables.frames import Labels


@knows_other_words
def limits(
    function: Any,
    X: Any,
    law: LimeLaw | None = None,
    *,
    data: Any = None,
    target: Target = None,
    output: Output = "auto",
    outcome: str | None = None,
    n_samples: int = 5000,
    precision: float | None = None,
    max_evaluations: int | None = None,
    rng: int | np.random.Generator | None = 0,
    progress: bool | None = None,
) -> LimeExplanation:
    """Compute what the coefficients of LIME tend to, with infinitely many samples.

    .. math::

        β_j = E_Q[f | z_j = 1] − E_Q[f | z_j = 0], β_0 = E_Q f − Σ_j α_j β_j,

    where Q is the law of the samples times their weights, and α_j = Q(z_j = 1) (after
    Garreau and von Luxburg 2020). Where f is a sum of products of functions of one
    column, such as a sum of trees, a linear function or a kernel machine with gaussian
    kernel, they are exact; of other functions they are estimated, with standard errors.

    Parameters
    ----------
    function : Function, or model
        f. A model is wrapped as :func:`propopt.explain` does it: of boosted classifiers
        the margin is explained, of others the probability.
    X : DataFrame or array (N, D)
        The rows.
    law : LimeLaw, optional
        How samples are drawn, coded and weighted. By default that of the package
        ``lime`` with quartiles of ``data``, or of X.
    data : DataFrame or array (R, D), optional
        The table that the law is made of, best the one that the model was fitted on.
    target, output, outcome
        Of :func:`propopt.wrap`, for models.
    n_samples : int
        Samples of one run of LIME, for its noise and its mean; and of each row for
        what has to be estimated, to begin with.
    precision : float, optional
        Of what has to be estimated: draw on until the standard errors of all
        coefficients together, √Σ e², are this part of √Σ β², such as 0.02.
    max_evaluations : int, optional
        The most rows that the model is given for it; if they are too few for the
        precision, a warning says what was reached.
    rng : int, numpy.random.Generator or None
        For what is estimated; exact coefficients do not depend on it.
    progress : bool, optional
        Show a bar while rows are estimated; by default only on a terminal.

    Raises
    ------
    InvalidInput
        If the model or a table cannot be used, or the law has other columns.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from propopt.lime import limits
    >>> X = np.array([[1.0, 2.0], [2.0, 0.0], [3.0, 5.0], [4.0, 1.0], [5.0, 4.0]])
    >>> f = po.wrap(lambda X: X[:, 0] + 2.0 * X[:, 1])
    >>> lime = limits(f, X[:1], data=X, n_samples=1000)
    >>> lime.source
    'estimate (1,000 samples of the weighted law)'
    """
    choice = target, output, outcome
    draws = DrawPlan(n_samples, read_seed(rng), precision, max_evaluations)
    subject = _subject_of(function, X, law, data, choice, draws)
    return explanation_of_subject(subject, progress=progress)


@final
@knows_other_words
class LimeExplainer:
    """A model and a law that are read once, to explain rows whenever they come.

    What depends on the model and the law alone is kept: the sum of products that the
    model is, tables of its means, draws that rows share. So a row costs a fraction of
    what it costs by :func:`limits`, which reads the model each time; the numbers are
    the same. Each time the model is asked at up to 20 rows of ``data`` too, so that one
    that was fitted anew is noticed.

    Parameters
    ----------
    model : Function, or model
        f, wrapped as :func:`propopt.explain` does it.
    data : DataFrame or array (R, D)
        The table that the law is made of, best the one that the model was fitted on.
    law : LimeLaw, optional
        How samples are drawn, coded and weighted; see :func:`limits`.
    target, output, outcome
        Of :func:`propopt.wrap`, for models.
    n_samples : int
        Samples of one run of LIME; and of each row for what has to be estimated.
    precision, max_evaluations
        Of :func:`limits`, for rows that are asked for together.
    rng : int, numpy.random.Generator or None
        For what is estimated.

    Raises
    ------
    InvalidInput
        If the model or the table cannot be used, or the law has other columns.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, X[:, 0])
    >>> lime = po.lime.LimeExplainer(tree, X)
    >>> lime.limits(X[:1]).source
    'exact'
    >>> tree = tree.fit(X, X[:, 1])
    >>> lime.limits(X[:1])
    Traceback (most recent call last):
    propopt.base.errors.InvalidInput: model: it answers otherwise than when it was read,
    at \
20 of 20 rows of data that were asked; make po.lime.LimeExplainer(model, data) anew
    """

    def __init__(
        self,
        model: Any,
        data: Any,
        law: LimeLaw | None = None,
        *,
        target: Target = None,
        output: Output = "auto",
        outcome: str | None = None,
        n_samples: int = 5000,
        precision: float | None = None,
        max_evaluations: int | None = None,
        rng: int | np.random.Generator | None = 0,
    ) -> None:
        choice = target, output, outcome
        draws = DrawPlan(n_samples, read_seed(rng), precision, max_evaluations)
        own = _subject_of(model, data, law, data, choice, draws)
        self._subject = own
        self._rows = own.reference[:: -(-len(own.reference) // _ASKED)]
        self._answers = own.function.value_at(self._rows, own.labels.of_columns())

    def __repr__(self) -> str:
        subject = self._subject
        how = "sampled" if subject.exact is None else "exact"
        return f"LimeExplainer({subject.function!r}, {subject.law!r}, {how})"

    def limits(self, X: Any, *, progress: bool | None = None) -> LimeExplanation:
        """What the coefficients of LIME tend to at rows, as :func:`limits` has it.

        Parameters
        ----------
        X : DataFrame or array (N, D)
            The rows.
        progress : bool, optional
            Show a bar while rows are estimated; by default only on a terminal.

        Raises
        ------
        InvalidInput
            If rows cannot be used, or the model was fitted anew.
        """
        subject, f = self._subject, self._subject.function
        points, labels = f.read(X)
        rows = np.concatenate([points, self._rows])
        result = f.value_at(rows, labels.of_columns())
        values, answers = result[: len(points)], result[len(points) :]
        known = self._answers
        allowed = _SAME * max(float(np.ptp(known)), float(np.abs(known).max()))
        changed = int((np.abs(answers - known) > allowed).sum())
        if changed > 0:
            raise InvalidInput(
                "model: it answers otherwise than when it was read, at "
                f"{changed} of {len(known)} rows of data that were asked; make "
                "po.lime.LimeExplainer(model, data) anew"
            )
        subject = subject.at(points, labels)
        read = subject.products
        if isinstance(read, SumOfProducts):
            errors = np.abs(read.value(points) - values)
            allow = allowed_difference(result, read.tolerance, precision_of(result))
            if (errors > allow[: len(points)]).any():
                read = checked_products(f, points[:0], points, labels)
                subject = replace(subject, products=read)
        return explanation_of_subject(subject, values, progress=progress)


_ASKED: Final = 20
"""Rows of data at which a model is asked whether it is still the same."""

_SAME: Final = 1e-6
"""Of its answers: some models sum in another order for other batches."""


def _subject_of(
    function: Any,
    X: Any,
    law: LimeLaw | None,
    data: Any,
    choice: tuple[Target, Output, str | None],
    draws: DrawPlan,
) -> LimeSubject:
    """A function that is read, a law, and rows of a table; documents are refused."""
    if is_documents(X) or isinstance(function, TextFunction):
        raise InvalidInput(
            "X: words of documents are deleted, not put into bins; "
            "po.lime.text_limits(model, documents) is for them"
        )
    model_data = None if isinstance(function, Function) else data
    target, output, outcome = choice
    f, told = wrapped_and_told(function, X, target, output, model_data, outcome=outcome)
    points, labels = told.read(f, X, "X")
    table, label = (X, "X") if data is None else (data, "data")
    rows, names = told.read(f, table, label)
    own_law = law is None
    if law is None:
        law = _law_of(f, label, rows, names)
    if not isinstance(law, LimeLaw):
        raise InvalidInput(
            "law: expected a law of propopt.lime, such as TabularLaw.from_data(data), "
            f"got {type(law).__name__}"
        )
    law = law.aligned(labels, points.shape[1])
    reference = Reference.of_points(rows, names, f.schema)
    return LimeSubject(
        function=f,
        law=law,
        products=checked_products(f, reference.points, points, labels),
        points=points,
        labels=labels,
        reference=reference.points,
        has_table=data is not None or own_law,
        draws=draws,
    )


def explanation_of_subject(
    subject: LimeSubject, values: Values | None = None, *, progress: bool | None = None
) -> LimeExplanation:
    """The limits at the rows of a subject, where f has values, as a result."""
    before = subject.function.calls.rows
    subject, result = limits_or_estimates(subject, progress)
    if values is None:
        values = subject.function.value_at(subject.points, subject.labels)
    largest = float(np.abs(values).max())
    if largest > _LARGEST:
        raise InvalidInput(
            f"function: a value of {largest:.3g} has no square; divide the output by a "
            "constant"
        )
    law, errors, source = subject.law, result.standard_errors, EXACT
    if errors is not None:
        source = f"estimate ({result.n_draws:,} samples of the weighted law)"
    as_package = isinstance(law, TabularLaw)
    return LimeExplanation(
        coefficients=result.coefficients,
        intercept=result.intercept,
        standard_errors=errors,
        source=source,
        reason=subject.reason,
        alpha=result.alpha,
        log_weight=result.log_weight,
        effective_share=effective_share(law, subject.points),
        values=values,
        points=subject.points,
        cells=cells_of(subject.points, subject.function.schema),
        bins=bins_of(law, subject.points),
        law_in_words=repr(law),
        n_samples=subject.draws.n_samples,
        ridge=1.0 if as_package else 0.0,
        first_row=as_package,
        labels=subject.labels.or_else(law.labels),
        evaluations=subject.function.calls.rows - before,
        notes=law.notes(subject.points),
        quantity=subject.function.quantity,
        subject=subject,
    )


_LARGEST: Final = 1e140
"""Variances of such values are still floats."""


def _law_of(f: Function, label: str, points: Points, labels: Labels) -> TabularLaw:
    """The law of quartiles of a table, which f encodes as points."""
    if len(points) < 2:
        raise InvalidInput(
            f"{label}: quartiles need more than one row; give the table that the model "
            "was fitted on as data, or a law"
        )
    columns = columns_of(points, labels.feature_names(points.shape[1]), f.schema)
    return TabularLaw.of(columns, labels=labels.of_columns())
