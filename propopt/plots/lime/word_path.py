"""Coefficients of the words of one document over bandwidths."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from propopt.checks import did_you_mean, read_count
from propopt.errors import InvalidInput
from propopt.lime.text.explanation.result import TextLimeExplanation
from propopt.plots.axes import given_or_new
from propopt.plots.lime.curves import draw_curves, frame_curves, largest_curves
from propopt.plots.lime.text_words import document_title


def lime_word_path(
    explanation: TextLimeExplanation,
    row: Hashable | None = None,
    *,
    bandwidths: ArrayLike | None = None,
    words: Sequence[str] | None = None,
    n_words: int = 6,
    ax: Axes | None = None,
) -> Axes:
    """Draw the coefficients of words over the bandwidth ν.

    A dotted line marks the bandwidth of the law, and a circle each bandwidth at which a
    coefficient that is drawn changes its sign. Bands reach two standard errors, where
    coefficients are estimated.

    Parameters
    ----------
    explanation : TextLimeExplanation
        Of :func:`propopt.lime.text_limits`.
    row : label or int, optional
        Name or position of the document; by default the first.
    bandwidths : array (M,), optional
        ν; by default 50 around that of the law. The package's kernel width is 100 ν.
    words : sequence of str, optional
        The words to draw; by default the ``n_words`` that are largest somewhere.
    n_words : int
        See there.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Raises
    ------
    InvalidInput
        If there is no such document or word.
    Refused
        If the explanation was loaded, or LIME says nothing of the document.

    Examples
    --------
    >>> import propopt as po
    >>> lime = po.lime.text_limits(
    ...     lambda texts: [1.0 * ("a good" in text) for text in texts], ["a good day"]
    ... )
    >>> axes = po.plots.lime_word_path(lime, n_words=2)
    >>> axes.get_xscale(), axes.texts[0].get_text()
    ('log', 'a')
    """
    path, own_words = explanation.path(row, bandwidths), explanation.row(row).words
    count = read_count(n_words, "n_words")
    shown = (
        largest_curves(path.coefficients, count)
        if words is None
        else [_place(own_words, word) for word in words]
    )
    axes = given_or_new(ax, 6.8, 3.9)
    draw_curves(
        axes,
        {j: own_words[j] for j in shown},
        path.bandwidths,
        path.coefficients,
        path.sign_changes,
        path.standard_errors,
    )
    what = explanation.explained_in_words
    frame_curves(axes, explanation.law.bandwidth, "bandwidth of the law", what)
    axes.set(xlabel="bandwidth ν; the package's kernel width is 100 ν")
    title = document_title(explanation, explanation.position(row))
    axes.set_title(title, fontsize="medium", pad=16)
    return axes


def _place(words: tuple[str, ...], word: str) -> int:
    if word not in words:
        raise InvalidInput(
            f"words: there is no word {word!r} in the document"
            f"{did_you_mean(word, words)}"
        )
    return words.index(word)
