"""The package ``lime`` itself on one text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from propopt._typing import Array, Values
from propopt.extras import require


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
    words: Sequence[str],
    n_samples: int,
    kernel_width: float,
    seed: int,
    n_kept: int | None = None,
) -> PackageFit:
    """One run of the package.

    Parameters
    ----------
    values_of : callable
        f of a list of texts, (n,).
    text : str
        The document.
    words : sequence of str (d,)
        Its words as the package finds them, by
        :class:`~propopt.tables.text.PatternWords`.
    n_samples : int
        Texts, of which the first is the document.
    kernel_width : float
        100 ν, for the bandwidth ν.
    seed : int
        Of the run.
    n_kept : int, optional
        How many words are kept, chosen as the package does by default; by default all
        words, without a choice.

    Raises
    ------
    MissingExtra
        If ``lime`` is not installed.
    """
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
