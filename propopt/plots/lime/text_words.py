"""Coefficients of the words of one document, as bars."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from matplotlib.axes import Axes

from propopt.checks import read_count
from propopt.errors import Refused
from propopt.lime.text.explanation.result import TextLimeExplanation
from propopt.lime.text.explanation.row import DocumentLimits
from propopt.output.text import drawn
from propopt.plots.axes import LOWERS, RAISES, framed, given_or_new
from propopt.plots.lime.runs import draw_runs, draw_whiskers, name_coefficients
from propopt.plots.lime.words import lime_title, shortened
from propopt.plots.naming import largest


def lime_words(
    explanation: TextLimeExplanation,
    row: Hashable | None = None,
    *,
    n_words: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Draw the coefficients of the words of one document, the largest, as bars.

    Bars of negative coefficients are hatched. Where coefficients are estimated,
    whiskers reach two standard errors. A grey band reaches two standard deviations of
    one run of ``explanation.n_samples`` to each side of the mean of such runs, a tick,
    where these are known.

    Parameters
    ----------
    explanation : TextLimeExplanation
        Of :func:`propopt.lime.text_limits`.
    row : label or int, optional
        Name or position of the document; by default the first.
    n_words : int
        How many to draw.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Raises
    ------
    InvalidInput
        If there is no such document.
    Refused
        If LIME says nothing of it.

    Examples
    --------
    >>> import propopt as po
    >>> lime = po.lime.text_limits(
    ...     lambda texts: [1.0 * ("good" in text) for text in texts], ["a good day"]
    ... )
    >>> axes = po.plots.lime_words(lime, n_words=2)
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['good', 'a']
    """
    found = known_row(explanation, row, "lime_words")
    shown = largest(found.coefficients, read_count(n_words, "n_words"))
    own, places = found.coefficients[shown], np.arange(len(shown))
    axes = given_or_new(ax, 6.8, 1.9 + 0.3 * len(shown))
    is_exact = found.standard_errors is None
    for sign, colour, hatch in ((1.0, RAISES, ""), (-1.0, LOWERS, "////")):
        some = own < 0.0 if sign < 0.0 else own >= 0.0
        if some.any():
            axes.barh(
                places[some],
                own[some],
                height=0.36,
                color=colour,
                edgecolor="white",
                hatch=hatch,
                zorder=2.5,
                label=_label(sign, is_exact),
            )
    n = explanation.position(row)
    means, noise = (
        part[n][shown] for part in (explanation.runs.means, explanation.runs.deviations)
    )
    draw_runs(axes, places, means, noise, explanation.n_samples)
    if not is_exact:
        draw_whiskers(axes, places, own, found.errors[shown])
    words = [drawn(shortened(found.words[j])) for j in shown]
    name_coefficients(axes, words, explanation.explained_in_words)
    title = document_title(explanation, n)
    axes.set_title(title, loc="right", fontsize="medium")
    return framed(axes)


def known_row(
    explanation: TextLimeExplanation, row: Hashable | None, what: str
) -> DocumentLimits:
    """What is known of a document, refused where LIME says nothing of it."""
    found = explanation.row(row)
    if not found.is_known:
        raise Refused(f"{what}: LIME says nothing of this document: {found.reason}")
    return found


def document_title(explanation: TextLimeExplanation, n: int) -> str:
    """What is explained, of which document, and what it is there."""
    return lime_title(explanation, f"document {explanation.document_names[n]}", n)


def _label(sign: float, is_exact: bool) -> str:
    name = "positive" if sign > 0.0 else "negative"
    return f"{name}, exact limit" if is_exact else f"{name}, estimated, 2 errors"
