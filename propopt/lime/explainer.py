"""From a model and rows to what LIME tends to there."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from propopt._typing import Values
from propopt.checks import read_count, read_seed
from propopt.errors import InvalidInput
from propopt.functions import Function
from propopt.functions.models.outputs import Output, Target
from propopt.functions.of_models import wrapped
from propopt.functions.text import TextFunction
from propopt.lime.explanation.cells import bins_of, cells_of
from propopt.lime.explanation.reading import checked_products
from propopt.lime.explanation.result import EXACT_LIMITS, LimeExplanation
from propopt.lime.explanation.subject import LimeSubject, limits_or_estimates
from propopt.lime.fidelity.effective import effective_share
from propopt.lime.laws import LimeLaw, TabularLaw
from propopt.lime.surrogates import EstimatedLimits
from propopt.sampling.laws import Reference
from propopt.tables.text import is_documents


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
    rng: int | np.random.Generator | None = 0,
    progress: bool | None = None,
) -> LimeExplanation:
    """Compute what the coefficients of LIME tend to, with infinitely many samples.

    β_j = E_Q[f | z_j = 1] − E_Q[f | z_j = 0],  β_0 = E_Q f − Σ_j α_j β_j,

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
        what has to be estimated.
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
    if is_documents(X) or isinstance(function, TextFunction):
        raise InvalidInput(
            "X: words of documents are deleted, not put into bins; "
            "po.lime.text_limits(model, documents) is for them"
        )
    model_data = None if isinstance(function, Function) else data
    f = wrapped(function, X, target, output, model_data, outcome=outcome)
    points, labels = f.read(X)
    reference = _reference(f, X, data, law)
    table = X if data is None else data
    own_law = law is None
    law = TabularLaw.from_data(table, f.schema) if law is None else _read_law(law)
    law = law.aligned(labels, points.shape[1])
    subject = LimeSubject(
        function=f,
        law=law,
        products=checked_products(f, reference.points, points, labels),
        points=points,
        labels=labels,
        reference=reference.points,
        has_table=data is not None or own_law,
        n_draws=read_count(n_samples, "n_samples"),
        seed=read_seed(rng),
    )
    return explanation_of_subject(subject, progress=progress)


def explanation_of_subject(
    subject: LimeSubject, *, progress: bool | None = None
) -> LimeExplanation:
    """The limits at the rows of a subject, as a result."""
    before = subject.function.calls.rows
    subject, found = limits_or_estimates(subject, progress)
    values = subject.function.value_at(subject.points, subject.labels)
    _check_size(values)
    errors = found.standard_errors if isinstance(found, EstimatedLimits) else None
    law = subject.law
    as_package = isinstance(law, TabularLaw)
    return LimeExplanation(
        coefficients=found.coefficients,
        intercept=found.intercept,
        standard_errors=errors,
        source=EXACT_LIMITS if errors is None else _source(subject),
        reason=subject.reason,
        alpha=found.alpha,
        log_weight=found.log_weight,
        effective_share=effective_share(law, subject.points),
        values=values,
        points=subject.points,
        cells=cells_of(subject.points, subject.function.schema),
        bins=bins_of(law, subject.points),
        law_in_words=repr(law),
        n_samples=subject.n_draws,
        ridge=1.0 if as_package else 0.0,
        first_row=as_package,
        labels=subject.labels.or_else(law.labels),
        evaluations=subject.function.calls.rows - before,
        notes=law.notes(subject.points),
        subject=subject,
    )


def _check_size(values: Values) -> None:
    largest = float(np.abs(values).max())
    if largest > _LARGEST:
        raise InvalidInput(
            f"function: a value of {largest:.3g} has no square; divide the output by a "
            "constant"
        )


_LARGEST: Final = 1e140
"""Variances of such values are still floats."""


def _read_law(law: object) -> LimeLaw:
    """``law`` if it is one; the error names what would do."""
    if not isinstance(law, LimeLaw):
        raise InvalidInput(
            "law: expected a law of propopt.lime, such as TabularLaw.from_data(data), "
            f"got {type(law).__name__}"
        )
    return law


def _reference(f: Function, X: Any, data: Any, law: LimeLaw | None) -> Reference:
    what = "X" if data is None else "data"
    points, labels = f.read(X if data is None else data, what)
    if law is None and len(points) < 2:
        raise InvalidInput(
            f"{what}: quartiles need more than one row; give the table that the model "
            "was fitted on as data, or a law"
        )
    return Reference.of_points(points, labels, f.schema)


def _source(subject: LimeSubject) -> str:
    return f"estimate ({subject.n_draws:,} samples of the weighted law)"
