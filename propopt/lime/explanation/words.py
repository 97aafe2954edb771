"""What is shown of limits of LIME: what is exact, what is estimated, and the units."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from propopt._typing import Array
from propopt.lime.explanation.table import known_noise, named_coefficients
from propopt.output.html import html_card, html_table
from propopt.output.text import in_html, printable
from propopt.results.conclusions.words import plural


if TYPE_CHECKING:
    from propopt.lime.explanation.result import LimeExplanation


ROWS_SHOWN, COLUMNS_SHOWN = 3, 10

ROWS_SAMPLED = 100
"""Of more rows a card does not estimate the noise, which takes a while."""


def lime_text(explanation: LimeExplanation) -> str:
    """One line."""
    facts = "; ".join(map(printable, claims(explanation)))
    return f"LimeExplanation({size(explanation)}; {facts})"


def lime_html(explanation: LimeExplanation) -> str:
    """A title, facts, and the largest coefficients of the first rows."""
    N, _ = explanation.shape
    noise = _noise_for_card(explanation)
    facts = [*claims(explanation), *explanation.notes]
    if np.isnan(noise).all() and explanation.subject is not None:
        facts.append("sd of one run: estimated from samples when noise() is asked")
    parts = [
        f"<b>{in_html(f'LIME, its limits: {size(explanation)}')}</b>",
        "<br>".join(map(in_html, facts)),
    ]
    shown = range(min(N, ROWS_SHOWN))
    parts += [html_table(_HEAD, _largest(explanation, noise, n)) for n in shown]
    if N > ROWS_SHOWN:
        parts.append(in_html(f"{plural(N - ROWS_SHOWN, 'more row')}"))
    return html_card(parts)


_HEAD = ("feature and bin", "coefficient", "sd of one run", "mean of runs")


def size(explanation: LimeExplanation) -> str:
    """Rows and columns."""
    N, D = explanation.shape
    return f"{plural(N, 'row')}, {plural(D, 'feature')}"


def claims(explanation: LimeExplanation) -> Iterator[str]:
    """What is proved, what is estimated, and the units."""
    errors = explanation.standard_errors
    if errors is None:
        yield "coefficients exact, without samples or a seed"
    else:
        called = explanation.evaluations
        evaluations = f", {called:,} evaluations" if called else ""
        yield (
            f"coefficients: {explanation.source}, standard errors up to "
            f"{np.nanmax(errors):.2g}{evaluations}; not exact because "
            f"{explanation.reason}"
        )
    yield f"in {explanation.units}"
    yield explanation.law_in_words
    scatter = explanation.__dict__.get("runs", explanation.scatter)
    if scatter is not None:
        yield (
            f"one run of {explanation.n_samples:,} samples has sd up to "
            f"{explanation.noise().max():.2g} (estimated from {scatter.n_draws:,} "
            "samples a row)"
        )


def _noise_for_card(explanation: LimeExplanation) -> Array:
    """The scatter of single runs; NaN where looking at a card would take long."""
    known = "runs" in vars(explanation) or explanation.scatter is not None
    if known or explanation.shape[0] <= ROWS_SAMPLED:
        return known_noise(explanation)
    return np.full(explanation.shape, np.nan)


def _largest(
    explanation: LimeExplanation, scatter: Array, n: int
) -> Iterable[list[str]]:
    own = explanation.coefficients[n]
    noise, mean = scatter[n], explanation.expected()[n]
    names = named_coefficients(explanation, n)
    order = np.argsort(-np.abs(own), kind="stable")
    for j in order[:COLUMNS_SHOWN]:
        numbers = (own[j], noise[j], mean[j])
        yield [in_html(names[j]), *(_number(x) for x in numbers)]
    if len(order) > COLUMNS_SHOWN:
        rest = np.abs(own[order[COLUMNS_SHOWN:]]).max()
        yield [f"{len(order) - COLUMNS_SHOWN} others", f"at most {rest:.4g}", "", ""]


def _number(x: float) -> str:
    return "" if np.isnan(x) else f"{x:.4g}"


def in_words_of(subject: Any) -> str:
    """What a model was asked for; "output" where a loaded result has no model."""
    return "output" if subject is None else str(subject.function.quantity.in_words())
