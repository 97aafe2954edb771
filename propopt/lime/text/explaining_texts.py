"""From a model and documents to what LIME tends to there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from propopt.base.arrays import Truths, Values
from propopt.base.checks import read_count, read_seed
from propopt.base.errors import InvalidInput
from propopt.base.resources import Budget, DrawPlan
from propopt.base.terminal import progress_bar
from propopt.base.text import Reason
from propopt.base.words_of_others import knows_other_words
from propopt.functions import Function
from propopt.functions.cost import cost_of
from propopt.functions.function import EXACT
from propopt.functions.outputs import Output, Target
from propopt.functions.texts import TextFunction
from propopt.functions.wrapping import wrapped_and_told
from propopt.functions.wrapping_texts import word_rule_of
from propopt.lime.text.text_explanation import TextLimeExplanation, TextSubject
from propopt.lime.text.text_reading import (
    DocumentReading,
    ExplainedDocument,
    TextLaw,
    read_documents,
)
from propopt.lime.text.text_samples import (
    SampledWords,
    SizePlan,
    WordMeans,
    estimate_words,
    limits_of,
)
from propopt.losses.faithfulness import relative_size
from propopt.structures.kinds import has_method
from propopt.structures.subsets.conjunctions import MOST_ENUMERATED, Enumerated
from propopt.tables.documents import (
    Document,
    PatternWords,
    TextSchema,
    WordRule,
    read_texts,
)
from propopt.tables.frames import Labels


_WORTH_TIMING = 64
"""Texts from which a few are timed, to say what all of them cost."""


@knows_other_words
def text_limits(
    function: Any,
    documents: Any,
    law: TextLaw | None = None,
    *,
    target: Target = None,
    output: Output = "auto",
    outcome: str | None = None,
    words: Literal["lime", "model"] | WordRule | None = None,
    n_samples: int = 5000,
    precision: float | None = None,
    max_evaluations: int | None = None,
    max_enumerated: int = 0,
    rng: int | np.random.Generator | None = 0,
    progress: bool | None = None,
) -> TextLimeExplanation:
    """Compute what the coefficients of LIME on texts tend to, with infinite samples.

    β = Σ⁻¹ Γ of Mardaoui and Garreau (2021, Eq. 12): exact where the model is read,
    which it is believed to be once it was compared with its own answers, and for texts
    with few words, of which all sets are asked for. Of other models they are estimated,
    with standard errors; what that costs is said before the work begins, where it takes
    more than a few seconds.

    Documents count each by itself, but for the model, which is called for many at once:
    34 texts for each where it is read, ``n_samples`` where not. Beside that a document
    of d words takes time as d times the leaves that it can reach of trees. With the L1
    or L2 norm it is Q U √d for about 60 nodes Q and U different TF-IDF: 10 ms for 100
    words, .1 s for 1,000. Estimates take time as n_samples · d. Other bandwidths of
    trees and of estimates cost next to nothing; of a norm they cost little more.

    A text of one word or none has no such coefficients, nor has one for which the model
    has no finite value. Then the explanation says so of that document, in ``notes`` and
    in its ``reason``, and explains the others.

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
        Of :func:`propopt.wrap`, for models.
    words : {"lime", "model"} or WordRule, optional
        What a word is: as in the package ``lime``, as the vectoriser of the model has
        it, or by another rule. By default that of the function, and ``"lime"`` for
        models.
    n_samples : int
        Samples of one run of LIME, for its noise and its mean; and the texts that the
        model is given for each document that has to be estimated, which so costs about
        as much as one run of LIME and scatters less. Texts with no more sets of words
        than that, 12 words by default, have all of them asked for instead, and so have
        no error.
    precision : float, optional
        Of each document that has to be estimated: draw on until the standard errors of
        its coefficients together, √Σ e², are this part of √Σ β², such as 0.02.
    max_evaluations : int, optional
        The most texts that the model is given for it, in equal parts for the documents
        that are estimated; if they are too few for the precision, a warning says what
        was reached.
    max_enumerated : int
        So many words, up to 16, have all their 2^d sets asked for in any case, where
        the model is not read: 16 words take 65,536 texts.
    rng : int, numpy.random.Generator or None
        For what is estimated; exact coefficients do not depend on it.
    progress : bool, optional
        Show a bar while the model is asked; by default only on a terminal.

    Raises
    ------
    InvalidInput
        If the model or the documents cannot be used, or LIME says nothing of any of
        them.

    Examples
    --------
    >>> from propopt.lime import text_limits
    >>> def f(texts):
    ...     return [1.0 * ("good" in t) * ("not" not in t) for t in texts]
    >>> lime = text_limits(f, ["a good day", "not a good day"])
    >>> lime.as_list(0)
    [('good', 1.0), ('a', 0.0), ('day', 0.0)]
    >>> [(word, round(weight, 3)) for word, weight in lime.as_list(1)[:2]]
    [('not', -0.64), ('good', 0.36)]
    """
    texts, names = read_texts(documents, "documents")
    rule = _read_rule(words, function)
    if not isinstance(function, Function):
        schema = TextSchema.of(documents, rule)
        function, _ = wrapped_and_told(
            function, documents, target, output, schema, outcome=outcome
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
    most = 0 if max_enumerated == 0 else read_count(max_enumerated, "max_enumerated")
    if most > MOST_ENUMERATED:
        raise InvalidInput(
            f"max_enumerated: expected {MOST_ENUMERATED} words at most, got {most}"
        )
    subject = TextSubject(
        function=function,
        law=TextLaw() if law is None else law,
        documents=tuple(Document.of(text, rule) for text in texts),
        draws=DrawPlan(n_samples, read_seed(rng), precision, max_evaluations),
        max_enumerated=most,
    )
    return explanation_of_texts(subject, names, progress=progress)


def explanation_of_texts(
    subject: TextSubject, names: Any = None, *, progress: bool | None = None
) -> TextLimeExplanation:
    """The limits at the documents of a subject, as a result."""
    before = subject.function.calls.rows
    documents = subject.documents
    with progress_bar("lime: reading", len(documents), progress) as bar:
        told = partial(bar.advance, bar.task_ids[0])
        read = read_documents(subject.function, documents, told)
    subject, plans = _plans(subject, read)
    asked = [n for _, n in plans]
    expected = sum(asked)
    announced: AbstractContextManager[None] = nullcontext()
    if expected >= _WORTH_TIMING and progress is not False:
        # what asking for so many texts costs, by timing the longest document
        some = [d for d, n in zip(documents, asked, strict=True) if n]
        at = subject.function.of_document(max(some, key=lambda d: len(d.text)))
        cost = cost_of(at, np.ones((1, at.n_words)), Labels(), expected, len(some))
        announced = cost.announced(subject.draws.label("lime"), at.calls, progress)
    # texts that are asked for, or documents where none is
    with progress_bar("lime", expected or len(read), progress) as bar, announced:
        advance = partial(bar.advance, bar.task_ids[0])
        done = []
        for own, (plan, _) in zip(read, plans, strict=True):
            done.append(_explained(subject, own, plan, advance))
            advance(0 if expected else 1)
    rows, means = zip(*done, strict=True)
    labels = range(len(rows)) if names is None else names
    refused = [
        f"document {label!r}: {row.reason}"
        for label, row in zip(labels, rows, strict=True)
        if not row.is_known
    ]
    if len(refused) == len(rows):
        raise InvalidInput(
            f"documents: LIME says nothing of any; of {'; of '.join(refused[:3])}"
        )
    errors = {
        label: relative_size(row.errors, row.coefficients)
        for label, row in zip(labels, rows, strict=True)
        if row.is_known and not row.is_exact
    }
    if errors:
        worst = max(errors, key=lambda label: errors[label])
        subject.draws.warn_if_larger(errors[worst], f" of document {worst!r}")
    return TextLimeExplanation(
        rows=rows,
        law=subject.law,
        n_samples=subject.draws.n_samples,
        names=names,
        evaluations=subject.function.calls.rows - before,
        quantity=subject.function.quantity,
        notes=tuple(f"LIME says nothing of {reason}" for reason in refused),
        subject=replace(subject, means=means),
    )


def _read_rule(words: Any, function: Any) -> WordRule:
    name = words if isinstance(words, str) else None
    if isinstance(function, TextFunction) and (words is None or name == "model"):
        return function.text_schema.rule
    if words is None or name == "lime":
        return PatternWords()
    if name == "model":
        known = word_rule_of(function)
        if isinstance(known, Reason):
            raise InvalidInput(
                f"words: those of the model are not known: {known.reason}"
            )
        return known
    is_rule = has_method(words, "find") and not isinstance(words, type)
    if name is not None or not is_rule:
        raise InvalidInput(
            f"words: expected 'lime', 'model' or a rule such as PatternWords, got "
            f"{words!r}"
        )
    rule: WordRule = words
    return rule


Told: TypeAlias = Callable[[int], None]
"""Told how many texts were asked for, or documents read, each time."""

_CALLS: Final = Budget(2**24, 2**11)
"""Bits of one call, after which a bar moves on."""


_Plans: TypeAlias = list[tuple[SizePlan | None, int]]


def _plans(
    subject: TextSubject, read: Sequence[DocumentReading]
) -> tuple[TextSubject, _Plans]:
    """What is asked for of each document, and the subject with the part of each."""
    plans = [_plan(subject, own) for own in read]
    sampled = sum(plan is not None for plan, _ in plans)
    most = subject.draws.max_evaluations
    if most is None or sampled == 0:
        return subject, plans
    part = most // sampled
    fitting = [(plan and plan.within(part, subject.law), n) for plan, n in plans]
    draws = replace(subject.draws, max_evaluations=part)
    return replace(subject, draws=draws), [
        (plan, n if plan is None else plan.evaluations) for plan, n in fitting
    ]


def _plan(subject: TextSubject, read: DocumentReading) -> tuple[SizePlan | None, int]:
    """Which sets are sampled, None where nothing is; and how many texts are asked."""
    d, n = read.document.n_words, subject.draws.n_samples
    if _refusal(read) or not isinstance(read.words, Reason):
        return None, 0
    if d <= max(subject.max_enumerated, min(MOST_ENUMERATED, n.bit_length() - 1)):
        return None, 2**d
    plan = SizePlan.of(d, subject.law, n)
    return plan, plan.evaluations


def _refusal(read: DocumentReading) -> str:
    """Why LIME says nothing of a document; empty if it does."""
    return read.refusal or _TOO_SHORT.get(read.document.n_words, "")


def _explained(
    subject: TextSubject, read: DocumentReading, plan: SizePlan | None, told: Told
) -> tuple[ExplainedDocument, WordMeans | None]:
    """The limits at a document, and what they are made of."""
    document, refusal = read.document, _refusal(read)
    try:
        means = None if refusal else _means(subject, read, plan, told)
    except InvalidInput as error:
        means, refusal = None, str(error)
    if means is None:
        return ExplainedDocument.without(document, read.value, refusal), None
    result = limits_of(means, np.array([subject.law.bandwidth]))
    errors, intercept_error = result.standard_errors, result.intercept_error
    source, reason = EXACT, ""
    if isinstance(read.words, Reason):
        source = f"{EXACT} (all {2**document.n_words:,} sets of words)"
        reason = read.words.reason
    if isinstance(means, SampledWords):
        source = f"estimate ({means.plan.evaluations:,} sets of words)"
    limits = ExplainedDocument(
        document=document,
        coefficients=result.coefficients[0].copy(),
        intercept=float(result.intercept[0]),
        value=read.value,
        standard_errors=None if errors is None else errors[0].copy(),
        intercept_error=0.0 if intercept_error is None else intercept_error[0],
        source=source,
        reason=reason,
    )
    return limits, means


def _means(
    subject: TextSubject, read: DocumentReading, plan: SizePlan | None, told: Told
) -> WordMeans:
    if not isinstance(read.words, Reason):
        return read.words
    document = read.document

    def evaluate(bits: Truths) -> Values:
        parts = []
        for some in _CALLS.blocks(len(bits), bits.shape[1]):
            parts.append(subject.function.texts_value(document.each(bits[some])))
            told(len(parts[-1]))
        return np.concatenate(parts)

    if plan is None:
        return Enumerated.of(evaluate, document.n_words)
    # the same numbers for all documents: answers do not depend on the others
    drawn = estimate_words(evaluate, plan, subject.draws.seed, subject.law.bandwidth)
    return drawn.enough(subject.draws)


_TOO_SHORT: Final = {
    0: "there is no word in it",
    1: "of one word the coefficient and the intercept cannot be told apart, as LIME "
    "always deletes it; f less f of the text without it is its effect",
}
"""Texts of no word, and of one."""
