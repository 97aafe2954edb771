"""The package ``lime`` on texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from propopt.base.arrays import Array, Values
from propopt.base.checks import read_count
from propopt.base.errors import InvalidInput, Refused
from propopt.base.resources import require
from propopt.base.terminal import progress_bar
from propopt.base.text import Reason
from propopt.functions.texts import TextFunction
from propopt.lime.package_runs import Coefficients, PackageComparison
from propopt.lime.text.text_reading import (
    TextLaw,
    WordRegression,
    checked_subsets,
    enumerated_words,
)
from propopt.lime.text.text_runs import expected_run, kept_words
from propopt.structures.subsets.sets import (
    SetFunction,
    SizeMeans,
)
from propopt.tables.documents import Document, PatternWords


# ---- The package ``lime`` itself on one text


TEXT_WIDTH: Final = 25.0
"""The kernel width of the package by default."""


class PackageFit(NamedTuple):
    """What one run of ``LimeTextExplainer`` gives for the d words of a text."""

    coefficients: Values
    """(d,), in the order in which words first come; 0 for words that it leaves out."""

    intercept: float
    """b_0."""

    score: float
    """R² of its own fit."""


def package_run(
    values_of: Callable[[list[str]], Values],
    text: str,
    words: Sequence[str],  # shape (d,)
    n_samples: int,
    kernel_width: float,
    seed: int,
    n_kept: int | None = None,
) -> PackageFit:
    """One run of the package."""
    explainer = require("lime.lime_text").LimeTextExplainer(
        kernel_width=kernel_width,
        feature_selection="none" if n_kept is None else "auto",
        random_state=seed,
    )

    def two_columns(texts: list[str]) -> Array:
        """The package asks for a column for each class, and explains the second."""
        values = values_of(texts)
        return np.stack([1.0 - values, values], axis=1)

    fit = explainer.explain_instance(
        text,
        two_columns,
        labels=(1,),
        num_features=len(words) if n_kept is None else n_kept,
        num_samples=n_samples,
    )
    names = fit.domain_mapper.indexed_string.inverse_vocab
    slopes = {str(names[place]): slope for place, slope in fit.as_map()[1]}
    coefficients = np.array([slopes.get(word, 0.0) for word in words])
    return PackageFit(coefficients, float(fit.intercept[1]), float(fit.score))


# ---- Runs of the ``lime`` package on a text, and the theory of them


_MOST_ASKED: Final = 12
"""Words up to which all texts are asked for, where a model was not read."""


def compare_text_with_package(
    function: TextFunction,
    document: str | Document,
    n_runs: int = 20,
    n_samples: int = 5000,
    bandwidth: float = 0.25,
    *,
    num_features: int | None = None,
    words: SizeMeans | None = None,
    rng: int = 0,
    progress: bool | None = None,
) -> PackageComparison:
    """Run the ``lime`` package on a text many times, and hold it against its theory.

    Never against the bare limit: with many runs ridge, the document among the samples
    and leverage show, and with few samples they are most of what is seen.

    Parameters
    ----------
    function : TextFunction
        f, which the package has as the probability of the label 1.
    document : str or Document
        The text, of which the package's words are taken.
    n_runs : int
        R, at least 2; each has a seed of its own.
    n_samples : int
        Samples of each run, the document itself included.
    bandwidth : float
        ν; the package's ``kernel_width`` is 100 ν.
    num_features : int, optional
        How many words are kept, chosen as the package does by default; by default all
        words, without a choice.
    words : SizeMeans, optional
        F as a function of which of these words are kept. By default what the model was
        read as, once it was found to be that, or its answers for all texts where there
        are at most 12 words.
    rng : int
        The seed of the runs.
    progress : bool, optional
        Show a bar on standard error; by default only on a terminal.

    Returns
    -------
    PackageComparison
        Runs, what is expected of them, and what is so without each of its parts.

    Raises
    ------
    InvalidInput
        If a setting is out of its range.
    Refused
        If the model was not read and there are more words.

    Examples
    --------
    >>> import propopt as po
    >>> notes = ["good food, good price", "no good food"]
    >>> f = po.wrap(lambda texts: [("food" in t) + 1.0 for t in texts], data=notes)
    >>> found = compare_text_with_package(f, notes[1], n_runs=10, n_samples=200)
    >>> found.labels, bool(abs(found.z).max() < 6)
    (('no', 'good', 'food'), True)
    """
    text = document.text if isinstance(document, Document) else document
    own = Document.of(text, PatternWords())
    law = TextLaw(bandwidth)
    if read_count(n_runs, "n_runs") < 2:
        raise InvalidInput("n_runs: expected at least 2, to tell their scatter")
    if read_count(n_samples, "n_samples") < 2:
        raise InvalidInput("n_samples: expected at least 2, the document and one more")
    known = _function_of_words(function, own) if words is None else words
    WordRegression(known)  # one word is refused before runs are made
    n_kept = None if num_features is None else read_count(num_features, "num_features")
    runs, ask, width = [], function.texts_value, 100.0 * bandwidth
    with progress_bar("lime package", n_runs, progress) as bar:
        for seed in range(rng * n_runs, (rng + 1) * n_runs):
            fit = package_run(ask, own.text, own.words, n_samples, width, seed, n_kept)
            runs.append([fit.intercept, *fit.coefficients])
            bar.advance(bar.task_ids[0])
    kept = None
    if n_kept is not None:
        kept = kept_words(known, law, None, n_kept, n_samples=n_samples)

    def theory(
        ridge: float = 1.0, first_row: bool = True, leverage: bool = True
    ) -> Coefficients:
        """What runs give in their mean."""
        fit = expected_run(
            known, law, None, n_samples, ridge, first_row, kept, leverage=leverage
        )
        return np.concatenate([fit.intercept, fit.coefficients[0]])

    without = {
        "leverage": theory(leverage=False),
        "row": theory(first_row=False, leverage=False),
        "ridge": theory(ridge=0.0, first_row=False, leverage=False),
    }
    return PackageComparison(np.array(runs), theory(), without, own.words)


def _function_of_words(function: TextFunction, document: Document) -> SetFunction:
    read = checked_subsets(function, document)
    if not isinstance(read, Reason):
        return read
    if document.n_words > _MOST_ASKED:
        raise Refused(
            f"the model was not read: {read.reason}; and a text of {document.n_words} "
            f"words has too many parts to ask for all: give `words`"
        )
    return enumerated_words(function, document)
