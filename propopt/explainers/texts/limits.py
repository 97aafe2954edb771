"""What LIME on texts tends to, for one document of a baseline."""

from __future__ import annotations

import warnings

import numpy as np

from propopt.errors import EstimatedWarning
from propopt.explainers.request import Request
from propopt.explainers.texts.each import WordsFound, effect_of_the_word
from propopt.functions.text import DocumentFunction
from propopt.lime.text.explainer import explanation_of_texts
from propopt.lime.text.explanation.subject import TextSubject
from propopt.lime.text.law import TextLaw


def limits_of_words(request: Request, law: TextLaw, n_samples: int) -> WordsFound:
    """The coefficients of infinitely many samples; estimated where f is not read.

    Of one word they are its effect: there the document itself is a sample too.

    Parameters
    ----------
    request : Request
        Of a document.
    law : TextLaw
        How words are deleted, and the weights.
    n_samples : int
        Texts that are asked for where they have to be estimated.

    Warns
    -----
    EstimatedWarning
        If they are estimated, with the reason.
    """
    at = request.function
    assert isinstance(at, DocumentFunction), "see Baseline"
    short = effect_of_the_word(request)
    if short is not None:
        return short
    subject = TextSubject(
        function=at.function,
        law=law,
        documents=(at.document,),
        n_samples=n_samples,
        seed=int(request.rng.integers(2**32)),
    )
    row = explanation_of_texts(subject, progress=False).rows[0]
    if not row.is_exact:
        warnings.warn(
            f"exact_lime: coefficients are estimated: {row.reason}",
            EstimatedWarning,
            stacklevel=2,
        )
    return WordsFound(
        attributions=np.asarray(row.coefficients),
        standard_errors=np.asarray(row.errors),
        details={"intercept": row.intercept, "local_gap": row.value - row.at_row},
    )
