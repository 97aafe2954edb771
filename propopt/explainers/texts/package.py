"""The package ``lime`` on one document."""

from __future__ import annotations

from typing import Final

import numpy as np

from propopt._typing import Array
from propopt.errors import InvalidInput
from propopt.explainers.request import Request
from propopt.explainers.texts.each import WordsFound
from propopt.extras import require
from propopt.functions.text import DocumentFunction, TextFunction
from propopt.tables.text import PatternWords


_KERNEL_WIDTH: Final = 25.0
"""That of the package: a hundred times the bandwidth of a :class:`TextLaw`."""


def package_on_text(
    request: Request, kernel_width: float | None, n_samples: int
) -> WordsFound:
    """A run of ``LimeTextExplainer`` that keeps all words.

    Parameters
    ----------
    request : Request
        Of a document.
    kernel_width : float or None
        Of the package, in hundredths of a bandwidth; None is its 25.
    n_samples : int
        Texts, of which the first is the document.

    Raises
    ------
    InvalidInput
        If the words are not those of the package.
    MissingExtra
        If ``lime`` is not installed.
    """
    at = request.function
    assert isinstance(at, DocumentFunction), "see Baseline"
    _check_rule(at.function)
    lime = require("lime.lime_text")
    explainer = lime.LimeTextExplainer(
        kernel_width=_KERNEL_WIDTH if kernel_width is None else kernel_width,
        feature_selection="none",  # all are kept
        random_state=int(request.rng.integers(2**32)),
    )

    def two_columns(texts: list[str]) -> Array:
        """The package asks for a column for each class, and explains the second."""
        values = at.function.texts_value(texts)
        return np.column_stack([-values, values])

    fit = explainer.explain_instance(
        at.document.text,
        two_columns,
        labels=(1,),
        num_features=at.n_words,
        num_samples=n_samples,
    )
    words = fit.domain_mapper.indexed_string.inverse_vocab
    slopes = {words[place]: slope for place, slope in fit.as_map()[1]}
    return WordsFound(
        attributions=np.array([slopes[word] for word in at.document.words], float),
        details={"intercept": float(fit.intercept[1]), "r2": float(fit.score)},
    )


def _check_rule(function: TextFunction) -> None:
    rule = function.text_schema.rule
    if rule != PatternWords():
        raise InvalidInput(
            "lime_package: it finds words by itself, as PatternWords() does, and those "
            f"of {function!r} are found by {rule!r}; wrap the model with "
            "TextSchema.of(documents, PatternWords())"
        )
