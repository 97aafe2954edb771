"""From a model and rows or documents to the limits of LIME."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, Final, Literal, final

import numpy as np

from propopt.base.arrays import Mask, Points, Values
from propopt.base.checks import largest_entry, read_seed
from propopt.base.errors import InvalidInput
from propopt.base.resources import Budget, DrawPlan
from propopt.base.suggestions import suggests_arguments
from propopt.base.terminal import progress_bar
from propopt.base.text import Outcome, Reason
from propopt.functions import Function
from propopt.functions.cost import cost_of
from propopt.functions.function import EXACT
from propopt.functions.jumps import allowed_difference
from propopt.functions.outputs import Output, Target, one_label, precision_of
from propopt.functions.texts import TextFunction
from propopt.functions.wrapping import opened, wrap_with_table
from propopt.functions.wrapping_texts import word_rule_of
from propopt.laws.background import Reference
from propopt.lime.documents import LimeDocuments
from propopt.lime.exact_limits import effective_share
from propopt.lime.laws.binned_columns import columns_of
from propopt.lime.laws.lime_law import LimeLaw
from propopt.lime.laws.tabular_law import TabularLaw
from propopt.lime.records import NO_COEFFICIENTS, LimeRecord
from propopt.lime.rows import LimeRows
from propopt.lime.sampled_limits import (
    LimeSubject,
    checked_products,
    limits_or_estimates,
)
from propopt.lime.text.sampled_words import (
    SizePlan,
    TextSubject,
    WordMeans,
    coefficients_of,
    estimate_words,
)
from propopt.lime.text.word_limits import (
    CheckedDocument,
    TextLaw,
    check_documents,
)
from propopt.losses.faithfulness import relative_size
from propopt.structures.fitted_model import FittedModel
from propopt.structures.kinds import has_method
from propopt.structures.products.sums import SumOfProducts
from propopt.structures.subsets.conjunctions import MOST_ENUMERATED, Enumerated
from propopt.tables.columns import CategoricalColumn
from propopt.tables.documents import (
    PatternWords,
    TextSchema,
    WordRule,
    read_texts,
)
from propopt.tables.frames import Labels, is_documents
from propopt.tables.schema import TableSchema


# ---- Rows of a table


@suggests_arguments
def limits(
    function: Any,
    X: Any,
    law: LimeLaw | None = None,
    *,
    data: Any = None,
    target: Target = None,
    output: Output = "auto",
    outcome: Outcome | None = None,
    n_samples: int = 5000,
    precision: float | None = None,
    max_evaluations: int | None = None,
    rng: int | np.random.Generator | None = 0,
    progress: bool | None = None,
) -> LimeRows:
    """Compute the coefficients that LIME has for infinitely many samples.

    .. math::

        β_j = E_Q[f | z_j = 1] − E_Q[f | z_j = 0], β_0 = E_Q f − Σ_j α_j β_j,

    where Q is the distribution of the samples times their weights, and α_j = Q(z_j = 1)
    (after Garreau and von Luxburg 2020). They are exact if f is a sum of products of
    functions of one column, such as a sum of trees, a linear function or a kernel
    machine with a Gaussian kernel. For other functions they are estimated, with
    standard errors.

    Parameters
    ----------
    function : Function, or model
        The function f. A model is wrapped by :func:`propopt.wrap`, and by default it is
        the margin of boosted classifiers and the probability of others, as the package
        ``lime`` explains it.
    X : DataFrame or array (N, D)
        The rows to explain.
    law : LimeLaw, optional
        How samples are drawn, coded and weighted. The default is that of the package
        ``lime``, with quartiles of ``data``, or of X.
    data : DataFrame or array (R, D), optional
        The table for the law, preferably the training data of the model.
    target, output, outcome
        As in :func:`propopt.wrap`, for models.
    n_samples : int
        The number of samples of one run of LIME, for its noise and its mean; also the
        first number of samples of estimates.
    precision : float, optional
        For estimates: draw samples until the standard errors of all coefficients,
        √Σ e², are this share of √Σ β², such as 0.02.
    max_evaluations : int, optional
        The most rows evaluated by the model for estimates; a warning reports the
        precision if it is not reached.
    rng : int, numpy.random.Generator or None
        The seed of estimates; exact coefficients do not depend on it.
    progress : bool, optional
        Whether to show a progress bar for estimates; by default only on a terminal.

    Returns
    -------
    LimeRows
        The coefficients (N, D), their errors, and the noise of one run.

    Raises
    ------
    InvalidInput
        If the model or a table cannot be used, or the law has other columns.

    See Also
    --------
    LimeExplainer : The same, with the law fitted once.
    text_limits : The same for documents.

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
    draws = DrawPlan(n_samples, read_seed(rng), precision, max_evaluations)
    subject = _subject_of(function, X, law, data, target, output, outcome, draws)
    return explain_rows(subject, progress=progress)


@final
@suggests_arguments
class LimeExplainer:
    """Compute LIME's coefficients for infinitely many samples, row after row.

    Computations that depend only on the model and the law are done once: the sum of
    products of the model, tables of its means, draws that rows share. So a row costs a
    fraction of :func:`limits`, with the same numbers. Each call also evaluates the
    model at up to 20 rows of ``data``, to detect a model that was fitted again.

    Parameters
    ----------
    model : Function, or model
        f, wrapped as by :func:`propopt.explain`.
    data : DataFrame or array (R, D)
        The table of the law, best the training data of the model.
    law : LimeLaw, optional
        How samples are drawn, coded and weighted; see :func:`limits`.
    target, output, outcome
        Settings of :func:`propopt.wrap`, for models.
    n_samples : int
        The samples of one run of LIME; and of each row if coefficients are estimated.
    precision, max_evaluations
        As for :func:`limits`, for the rows of one call.
    rng : int, numpy.random.Generator or None
        The seed of estimates.

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
    propopt.base.errors.InvalidInput: model: its values changed at 20 of 20 rows of
    data; make a new po.lime.LimeExplainer(model, data)
    """

    def __init__(
        self,
        model: Any,
        data: Any,
        law: LimeLaw | None = None,
        *,
        target: Target = None,
        output: Output = "auto",
        outcome: Outcome | None = None,
        n_samples: int = 5000,
        precision: float | None = None,
        max_evaluations: int | None = None,
        rng: int | np.random.Generator | None = 0,
    ) -> None:
        draws = DrawPlan(n_samples, read_seed(rng), precision, max_evaluations)
        subject = _subject_of(model, data, law, data, target, output, outcome, draws)
        self._subject = subject
        self._checked_rows = subject.reference[
            :: -(-len(subject.reference) // _N_CHECKED)
        ]
        self._values = subject.function.value_at(
            self._checked_rows, subject.labels.of_columns()
        )

    def __repr__(self) -> str:
        subject = self._subject
        how = "sampled" if subject.exact is None else "exact"
        return f"LimeExplainer({subject.function!r}, {subject.law!r}, {how})"

    def __str__(self) -> str:
        return f"{self!r}; next: print(explainer.limits(X))"

    def limits(self, X: Any, *, progress: bool | None = None) -> LimeRows:
        """The coefficients of LIME for infinitely many samples, at each row of X.

        Parameters
        ----------
        X : DataFrame or array (N, D)
            The rows.
        progress : bool, optional
            Show a bar while rows are estimated; by default only on a terminal.

        Returns
        -------
        LimeRows
            The same numbers as those of :func:`limits`.

        Raises
        ------
        InvalidInput
            If rows cannot be used, or the model was fitted again.
        """
        subject = self._subject
        f = subject.function
        points, labels = f.read(X)
        rows = np.concatenate([points, self._checked_rows])
        result = f.value_at(rows, labels.of_columns())
        values = result[: len(points)]
        answers = result[len(points) :]
        before = self._values
        allowed = _SAME * max(float(np.ptp(before)), largest_entry(before))
        changed = int((np.abs(answers - before) > allowed).sum())
        if changed > 0:
            raise InvalidInput(
                f"model: its values changed at {changed} of {len(before)} rows of "
                "data; make a new po.lime.LimeExplainer(model, data)"
            )
        subject = subject.at(points, labels)
        products = subject.products
        if isinstance(products, SumOfProducts):
            errors = np.abs(products.value(points) - values)
            allow = allowed_difference(result, products.tolerance, precision_of(result))
            if (errors > allow[: len(points)]).any():
                products = checked_products(f, points[:0], points, labels)
                subject = replace(subject, products=products)
        return explain_rows(subject, values, progress=progress)


_N_CHECKED: Final = 20
"""The rows of data at which a model is compared with its earlier values."""

_SAME: Final = 1e-6
"""The relative difference that the order of sums in a batch may cause."""


def _subject_of(
    function: Any,
    X: Any,
    law: LimeLaw | None,
    data: Any,
    target: Target,
    output: Output,
    outcome: Outcome | None,
    draws: DrawPlan,
) -> LimeSubject:
    """The function with its structure, the law and the rows; refuses documents."""
    if is_documents(X) or isinstance(function, TextFunction):
        raise InvalidInput(
            "X: expected rows of a table, got documents; "
            "po.lime.text_limits(model, documents) explains them"
        )
    model_data = None if isinstance(function, Function) else data
    model = opened(function)
    output = output_of_lime(model, target, output)
    f, reference_table = wrap_with_table(
        model, X, target, output, model_data, outcome=outcome
    )
    points, labels = reference_table.read(f, X, "X")
    table, label = (X, "X") if data is None else (data, "data")
    rows, names = reference_table.read(f, table, label)
    if law is None:  # quartiles of the table
        if len(rows) < 2:
            raise InvalidInput(
                f"{label}: expected more than one row for quartiles, got {len(rows)}; "
                "give the training data of the model as data, or a law"
            )
        columns = columns_of(rows, names.feature_names(rows.shape[1]), f.schema)
        law = TabularLaw.of(columns, labels=names.of_columns())
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
        draws=draws,
    )


def output_of_lime(model: Any, target: Target, output: Output) -> Output:
    """The output of an opened model: as in ``lime``, by default a probability.

    Boosted classifiers, and stacks that end in a logistic regression, have the margin.
    """
    if output != "auto" or not isinstance(model, FittedModel):
        return output
    one, _, _ = one_label(model, target)
    is_linked = one.has_exact_log_odds and not one.is_explained_by_margin
    return "probability" if is_linked else output


def explain_rows(
    subject: LimeSubject, values: Values | None = None, *, progress: bool | None
) -> LimeRows:
    """The explanation of the rows of a subject, with the values of f if given."""
    before = subject.function.calls.rows
    subject, result = limits_or_estimates(subject, progress)
    if values is None:
        values = subject.function.value_at(subject.points, subject.labels)
    largest = largest_entry(values)
    if largest > _LARGEST:
        raise InvalidInput(
            f"function: expected values below {_LARGEST:g}, got {largest:.3g}; divide "
            "the output by a constant"
        )
    law = subject.law
    errors = result.standard_errors
    source = EXACT
    if errors is not None:
        source = f"estimate ({result.n_draws:,} samples of the weighted law)"
    as_package = isinstance(law, TabularLaw)
    N = len(values)
    bins = [
        np.array(column.bins)[column.bin_index(x)].tolist()
        for column, x in zip(law.columns, subject.points.T, strict=True)
    ]
    return LimeRows(
        flat_coefficients=result.coefficients.ravel(),
        flat_errors=None if errors is None else errors.ravel(),
        flat_alpha=result.alpha.ravel(),
        intercept=result.intercept,
        values=values,
        log_weight=result.log_weight,
        effective_share=effective_share(law, subject.points, result.log_weight),
        sources=(source,) * N,
        reasons=(subject.reason,) * N,
        law_in_words=repr(law),
        n_samples=subject.draws.n_samples,
        ridge=1.0 if as_package else 0.0,
        first_row=as_package,
        cells=_cells(subject.points, subject.function.schema),
        bins=tuple(zip(*bins, strict=True)),
        labels=subject.labels.or_else(law.labels),
        evaluations=subject.function.calls.rows - before,
        quantity=subject.function.quantity,
        subject=subject,
    )


def _cells(points: Points, schema: TableSchema | None) -> tuple[tuple[Any, ...], ...]:
    """Numbers, names of categories, and None for missing values, (N, D)."""
    shown = points.astype(object)
    shown[np.isnan(points)] = None
    for j, column in enumerate(() if schema is None else schema.columns):
        if isinstance(column, CategoricalColumn):
            names = [  # as they are stored
                x if isinstance(x, bool | int | float) else str(x)
                for x in column.categories
            ]
            shown[:, j] = np.array(names, object)[points[:, j].astype(np.intp)]
    return tuple(map(tuple, shown))


_LARGEST: Final = 1e140
"""The largest value with a finite variance."""


# ---- Documents


_WORTH_TIMING = 64
"""The number of texts from which a few are timed, to announce the cost."""


@suggests_arguments
def text_limits(
    function: Any,
    documents: Any,
    law: TextLaw | None = None,
    *,
    target: Target = None,
    output: Output = "auto",
    outcome: Outcome | None = None,
    words: Literal["lime", "model"] | WordRule | None = None,
    n_samples: int = 5000,
    precision: float | None = None,
    max_evaluations: int | None = None,
    rng: int | np.random.Generator | None = 0,
    progress: bool | None = None,
) -> LimeDocuments:
    """Compute the coefficients of LIME on texts with infinitely many samples.

    β = Σ⁻¹ Γ of Mardaoui and Garreau (2021, Eq. 12). They are exact for models with a
    known structure, which is compared with the model's answers first, and for texts
    with so few words that all sets are evaluated. For other models they are estimated,
    with standard errors; the cost is announced if it is more than a few seconds.

    Each document is explained separately, but the model is called for many together: 34
    texts for each document if its structure is known, else ``n_samples``. In addition a
    document of d words takes time in proportion to d times the leaves of trees that it
    can reach. With the L1 or L2 norm it is Q U √d for about 60 nodes Q and U different
    TF-IDF: 10 ms for 100 words, .1 s for 1,000. Estimates take time as n_samples · d.
    Other bandwidths cost almost nothing for trees and estimates, and little for norms.

    LIME has no coefficients for a text with one word or none, or without a finite value
    of the model. Then its record has the ``reason``, and the others are explained.

    Parameters
    ----------
    function : TextFunction, or model
        f. A model takes a list of texts: a pipeline of a vectoriser and an estimator,
        or a callable.
    documents : sequence of str, Series or array (N,)
        The texts.
    law : TextLaw, optional
        How words are deleted, and the weights; by default that of the package ``lime``
        with its kernel width of 25.
    target, output, outcome
        Settings of :func:`propopt.wrap`, for models.
    words : {"lime", "model"} or WordRule, optional
        The rule that finds words: that of the package ``lime``, that of the vectoriser
        of the model, or another one. By default that of the function, and ``"lime"``
        for models.
    n_samples : int
        The samples of one run of LIME, for its noise and its mean; and the texts that
        the model evaluates for each estimated document, which then costs about as much
        as one run of LIME, with less noise. If a text has no more sets of words than
        that (12 words by default, and never more than 16), all of them are evaluated,
        and there is no error.
    precision : float, optional
        Estimate each document until the standard errors of its coefficients, √Σ e²,
        are this part of √Σ β², such as 0.02.
    max_evaluations : int, optional
        The most texts that the model evaluates for estimates, in equal parts for the
        documents; if they are too few for the precision, a warning reports the
        precision.
    rng : int, numpy.random.Generator or None
        The seed of estimates; exact coefficients do not depend on it.
    progress : bool, optional
        Show a bar during evaluations; by default only on a terminal.

    Returns
    -------
    LimeDocuments
        Coefficients (d,) for the words of each document, in units of the output.

    Raises
    ------
    InvalidInput
        If the model or the documents cannot be used, or LIME has no coefficients for
        any of them.

    Examples
    --------
    >>> from propopt.lime import text_limits
    >>> def f(texts):
    ...     return [1.0 * ("good" in t) * ("not" not in t) for t in texts]
    >>> lime = text_limits(f, ["a good day", "not a good day"])
    >>> [(word, round(weight, 3)) for word, weight in lime.as_list(0)]
    [('good', 1.0), ('a', 0.0), ('day', 0.0)]
    >>> [(word, round(weight, 3)) for word, weight in lime.as_list(1)[:2]]
    [('not', -0.64), ('good', 0.36)]
    """
    _, names = read_texts(documents, "documents")
    schema = TextSchema.of(documents, _read_rule(words, function))
    if not isinstance(function, Function):
        model = opened(function)
        output = output_of_lime(model, target, output)
        function, _ = wrap_with_table(
            model, documents, target, output, schema, outcome=outcome
        )
    if not isinstance(function, TextFunction):
        raise InvalidInput(
            "function: expected a model of texts, or propopt.wrap(model, "
            f"data=documents), got {function!r}; limits explains rows of tables"
        )
    if not isinstance(law, TextLaw | None):
        raise InvalidInput(
            f"law: expected a TextLaw of propopt.lime, got {type(law).__name__}"
        )
    subject = TextSubject(
        function=function,
        law=TextLaw() if law is None else law,
        documents=schema.documents,
        draws=DrawPlan(n_samples, read_seed(rng), precision, max_evaluations),
    )
    return explain_documents(subject, names, progress=progress)


def explain_documents(
    subject: TextSubject, names: Any = None, *, progress: bool | None = None
) -> LimeDocuments:
    """The explanation of the documents of a subject."""
    before = subject.function.calls.rows
    documents = subject.documents
    with progress_bar("lime: reading", len(documents), progress) as advance:
        checked = check_documents(subject.function, documents, advance)
    checked = [
        replace(x, refusal=x.refusal or _TOO_SHORT.get(x.document.n_words, ""))
        for x in checked
    ]
    plans = [_plan(subject, document) for document in checked]
    most = subject.draws.max_evaluations
    sampled = sum(isinstance(plan, SizePlan) for plan in plans)
    if most is not None and sampled > 0:
        most //= sampled
        subject = replace(subject, draws=replace(subject.draws, max_evaluations=most))
        plans = [
            plan if isinstance(plan, int) else plan.within(most, subject.law)
            for plan in plans
        ]
    counts = [plan if isinstance(plan, int) else plan.evaluations for plan in plans]
    expected = sum(counts)
    announced: AbstractContextManager[None] = nullcontext()
    if expected >= _WORTH_TIMING and progress is not False:
        # the cost of all texts, from the time that the longest document takes
        evaluated = [d for d, n in zip(documents, counts, strict=True) if n]
        longest = max(evaluated, key=lambda document: len(document.text))
        at = subject.function.of_document(longest)
        cost = cost_of(at, np.ones((1, at.n_words)), Labels(), expected, len(evaluated))
        announced = cost.announced(subject.draws.label("lime"), at.calls, progress)
    labels = range(len(documents)) if names is None else names
    # the bar counts texts, or documents if no text has to be evaluated
    with (
        progress_bar("lime", expected or len(documents), progress) as advance,
        announced,
    ):
        results = []
        for label, document, plan in zip(labels, checked, plans, strict=True):
            results.append(_explained(subject, label, document, plan, advance))
            advance(0 if expected else 1)
    records, means = zip(*results, strict=True)
    refused = [
        f"document {record.label!r}: {record.reason}"
        for record in records
        if not record.has_coefficients
    ]
    if len(refused) == len(records):
        raise InvalidInput(
            "documents: LIME has no coefficients for any of them; "
            f"{'; '.join(refused[:3])}"
        )
    errors = {
        record.label: relative_size(record.errors, record.coefficients)
        for record in records
        if record.is_estimated
    }
    if errors:
        worst = max(errors, key=lambda label: errors[label])
        subject.draws.warn_if_larger(errors[worst], f" of document {worst!r}")
    return LimeDocuments.of_records(
        records,
        documents=documents,
        law_in_words=repr(subject.law),
        n_samples=subject.draws.n_samples,
        labels=Labels(points=names),
        evaluations=subject.function.calls.rows - before,
        quantity=subject.function.quantity,
        subject=replace(subject, means=means),
    )


def _read_rule(words: Any, function: Any) -> WordRule:
    """The rule that finds words in a text."""
    if isinstance(function, TextFunction) and words in (None, "model"):
        return function.text_schema.rule
    if words in (None, "lime"):
        return PatternWords()
    if words == "model":
        rule_of_model = word_rule_of(function)
        if isinstance(rule_of_model, Reason):
            raise InvalidInput(
                "words: how the model splits texts into words is unknown: "
                f"{rule_of_model.reason}"
            )
        return rule_of_model
    if isinstance(words, str | type) or not has_method(words, "find"):
        raise InvalidInput(
            f"words: expected 'lime', 'model' or a rule such as PatternWords, got "
            f"{words!r}"
        )
    return words


_CALLS: Final = Budget(2**24, 2**11)
"""The bits of one call, after which the bar moves on."""


def _plan(subject: TextSubject, checked: CheckedDocument) -> SizePlan | int:
    """Which sets are sampled; or how many texts are evaluated, none or all."""
    d = checked.document.n_words
    n = subject.draws.n_samples
    if checked.refusal or not isinstance(checked.words, Reason):
        return 0
    if d <= min(MOST_ENUMERATED, n.bit_length() - 1):
        return int(2**d)
    return SizePlan.of(d, subject.law, n)


def _explained(
    subject: TextSubject,
    label: Hashable,
    checked: CheckedDocument,
    plan: SizePlan | int,
    advance: Callable[[int], None],  # takes the number of texts after each call
) -> tuple[LimeRecord, WordMeans | None]:
    """The limits at a document, and the means from which they follow."""
    document = checked.document
    law = subject.law
    refusal = checked.refusal

    def evaluate(bits: Mask) -> Values:
        parts = []
        for block in _CALLS.blocks(len(bits), bits.shape[1]):
            parts.append(subject.function.texts_value(document.each(bits[block])))
            advance(len(parts[-1]))
        return np.concatenate(parts)

    d = document.n_words
    source = EXACT
    means: WordMeans | None
    try:
        if refusal:
            means = None
        elif not isinstance(checked.words, Reason):
            means = checked.words
        elif isinstance(plan, int):
            means = Enumerated.of(evaluate, d)
            source = f"{EXACT} (all {plan:,} sets of words)"
        else:
            # each document has the same random numbers, independent of the others
            drawn = estimate_words(evaluate, plan, subject.draws.seed, law.bandwidth)
            means = drawn = drawn.enough(subject.draws)
            source = f"estimate ({drawn.plan.evaluations:,} sets of words)"
    except InvalidInput as error:
        means = None
        refusal = str(error)
    unknown = np.full(d, np.nan)
    record = LimeRecord(
        label=label,
        names=document.words,
        coefficients=unknown,
        errors=unknown,
        intercept=np.nan,
        value=checked.value,
        alpha=unknown,
        log_weight=np.nan,
        effective_share=np.nan,
        source=NO_COEFFICIENTS,
        reason=refusal,
    )
    if means is None:
        return record, None
    words = checked.words
    result = coefficients_of(means, np.array([law.bandwidth]))
    bits = law.bits(d)
    errors = result.standard_errors
    record = replace(
        record,
        coefficients=result.coefficients[0],
        errors=np.zeros(d) if errors is None else errors[0],
        intercept=float(result.intercept[0]),
        alpha=bits.alpha[0],
        log_weight=float(bits.log_weight[0]),
        effective_share=law.effective_share(d),
        source=source,
        reason=words.reason if isinstance(words, Reason) else "",
    )
    return record, means


_TOO_SHORT: Final = {
    0: "there is no word in it",
    1: "one word does not determine both its coefficient and the intercept, as LIME "
    "always deletes it; its effect is f minus f of the text without it",
}
"""The reasons for texts without words, and with one word."""
