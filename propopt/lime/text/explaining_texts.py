"""From a model and documents to what LIME tends to there."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Literal

import numpy as np

from propopt.base.checks import read_count, read_seed
from propopt.base.errors import InvalidInput
from propopt.base.terminal import progress_bar
from propopt.functions import Function
from propopt.functions.cost import cost_of
from propopt.functions.outputs import Output, Target
from propopt.functions.texts import TextFunction
from propopt.functions.wrapping import NoWords, word_rule_of, wrapped
from propopt.lime.text.text_explanation import (
    DocumentTask,
    TextLimeExplanation,
    TextSubject,
)
from propopt.lime.text.text_reading import TextLaw, announce_norms
from propopt.structures.subsets.conjunctions import MOST_ENUMERATED
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
    of d words takes time as d times the leaves that it can reach of trees, as Q d² with
    Q of about 60 for the L1 or L2 norm (10 ms for 100 words, 1 s for 1,000), and as
    n_samples · d where it is estimated. Other bandwidths of trees and of estimates cost
    next to nothing; of a norm each counts like a document, up to some dozens of them.

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
    f = _read_function(function, documents, rule, target, output, outcome)
    subject = TextSubject(
        function=f,
        law=_read_law(law),
        documents=tuple(Document.of(text, rule) for text in texts),
        n_samples=read_count(n_samples, "n_samples"),
        seed=read_seed(rng),
        max_enumerated=_read_most(max_enumerated),
    )
    return explanation_of_texts(subject, names, progress=progress)


def explanation_of_texts(
    subject: TextSubject, names: Any = None, *, progress: bool | None = None
) -> TextLimeExplanation:
    """The limits at the documents of a subject, as a result."""
    before = subject.function.calls.rows
    with progress_bar("lime: reading", len(subject.documents), progress) as bar:
        tasks = DocumentTask.all_of(subject, partial(bar.advance, bar.task_ids[0]))
    expected = sum(task.evaluations for task in tasks)
    announced: AbstractContextManager[None] = nullcontext()
    if expected >= _WORTH_TIMING and progress is not False:
        announced = _announced(tasks, expected, progress)
    announce_norms("lime", [task.read for task in tasks], wanted=progress)
    # texts that are asked for, or documents where none is
    with progress_bar("lime", expected or len(tasks), progress) as bar, announced:
        advance = partial(bar.advance, bar.task_ids[0])
        done = [task.done(advance, 0 if expected else 1) for task in tasks]
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
    return TextLimeExplanation(
        rows=rows,
        law=subject.law,
        n_samples=subject.n_samples,
        names=names,
        evaluations=subject.function.calls.rows - before,
        notes=tuple(f"LIME says nothing of {reason}" for reason in refused),
        subject=TextSubject(**{**vars(subject), "means": means}),
    )


def _announced(
    tasks: list[DocumentTask], expected: int, progress: bool | None
) -> AbstractContextManager[None]:
    """What asking for so many texts costs, by timing the longest document."""
    asked = [task for task in tasks if task.evaluations]
    longest = max(asked, key=lambda task: len(task.document.text))
    at = longest.subject.function.of_document(longest.document)
    whole = np.ones((1, longest.document.n_words))
    cost = cost_of(at, whole, Labels(), expected, len(asked))
    return cost.announced("lime", at.calls, progress)


def _read_function(
    function: Any,
    documents: Any,
    rule: WordRule,
    target: Target,
    output: Output,
    outcome: str | None,
) -> TextFunction:
    if not isinstance(function, Function):
        schema = TextSchema.of(documents, rule)
        function = wrapped(function, documents, target, output, schema, outcome=outcome)
    if not isinstance(function, TextFunction):
        raise InvalidInput(
            "function: expected a model of texts, or propopt.wrap(model, "
            f"data=documents), got {function!r}; limits explains rows of tables"
        )
    return function


def _read_rule(words: Any, function: Any) -> WordRule:
    if words is None and isinstance(function, TextFunction):
        return function.text_schema.rule
    if words is None or (isinstance(words, str) and words == "lime"):
        return PatternWords()
    if isinstance(words, str) and words == "model":
        return _rule_of_model(function)
    is_rule = callable(getattr(words, "find", None)) and not isinstance(words, type)
    if isinstance(words, str) or not is_rule:
        raise InvalidInput(
            f"words: expected 'lime', 'model' or a rule such as PatternWords, got "
            f"{words!r}"
        )
    rule: WordRule = words
    return rule


def _rule_of_model(function: Any) -> WordRule:
    if isinstance(function, TextFunction):
        return function.text_schema.rule
    rule = word_rule_of(function)
    if isinstance(rule, NoWords):
        raise InvalidInput(f"words: those of the model are not known: {rule.reason}")
    return rule


def _read_law(law: object) -> TextLaw:
    if law is None:
        return TextLaw()
    if not isinstance(law, TextLaw):
        raise InvalidInput(
            f"law: expected a TextLaw of propopt.lime, got {type(law).__name__}"
        )
    return law


def _read_most(value: object) -> int:
    most = 0 if value == 0 else read_count(value, "max_enumerated")
    if most > MOST_ENUMERATED:
        raise InvalidInput(
            f"max_enumerated: expected {MOST_ENUMERATED} words at most, got {most}"
        )
    return most
