"""What is shown of an explanation: one line, or plain HTML for notebooks.

HTML is escaped and without scripts. The layer of explanations is above this one: they
are taken by their attributes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from propopt.output.gaps import gap_in_words, target_in_words
from propopt.output.text import in_html, in_percent, printable


N_FEATURES = 10
TEXT_CELL = 'style="text-align:left;padding:1px 10px"'
NUMBER_CELL = 'style="text-align:right;padding:1px 10px"'
_BAR = "display:inline-block;height:0.8em;background:#1f4e79"


def explanation_text(explanation: Any) -> str:
    """One line about an explanation."""
    parts = [f"{printable(explanation.method)}, {_size(explanation)}"]
    parts += [f"{name}={value:.6g}" for name, value in explanation.losses.items()]
    if explanation.objective is not None:
        parts.append(f"objective={explanation.objective:.6g}")
    if explanation.gap is not None:
        parts.append(f"gap={explanation.gap:.1e}")
        parts.append(printable(target_in_words(explanation)))
    if explanation.solver is not None:
        parts.append(f"solver={explanation.solver}")
    if explanation.evaluations > 0:
        parts.append(f"evaluations={explanation.evaluations}")
    return f"Explanation({', '.join(parts)})"


def explanation_html(explanation: Any) -> str:
    """A title, facts, the losses with their weights, and the largest features."""
    frame = explanation.to_frame()  # first: losses are those of attributions once read
    facts = [
        f"{in_html(name)}: {in_html(text)}"
        for name, text in _facts(explanation).items()
    ]
    parts = [
        f"<b>{in_html(f'{explanation.method}: {_size(explanation)}')}</b>",
        "<br>".join(facts),
    ]
    if explanation.losses:
        head = ("loss", "weight", "value", "kept or removed")
        parts.append(html_table(head, _loss_rows(explanation)))
    rows = _feature_rows(frame)
    parts.append(html_table(("feature", "mean |w|", "mean w", ""), rows))
    return html_card(parts)


def html_card(parts: Iterable[str]) -> str:
    """Parts, one below the other; they are HTML already."""
    return "".join(f'<div style="margin:4px 0">{part}</div>' for part in parts if part)


def _size(explanation: Any) -> str:
    return "{} points × {} features".format(*explanation.shape)


def _facts(explanation: Any) -> dict[str, str]:
    facts = {name: str(value) for name, value in explanation.parameters.items()}
    if explanation.units != "gradient":
        facts["attributions"] = explanation.units_in_words
    if explanation.evaluations:
        facts["model evaluations"] = f"{explanation.evaluations:,}"
    if explanation.certificate is not None:
        facts["certified"] = gap_in_words(explanation)
    if explanation.solver is not None:
        facts["solver"] = f"{explanation.solver}, {explanation.seconds:.3g} s"
    return facts


def _loss_rows(explanation: Any) -> Iterable[list[str]]:
    weights, shares = explanation.weights, explanation.loss_shares
    for name, value in explanation.losses.items():
        weight = f"{weights[name]:.4g}" if name in weights else ""
        share = in_percent(shares.get(name, math.nan))
        yield [in_html(name), weight, f"{value:.6g}", share]


def _feature_rows(attributions: pd.DataFrame) -> Iterable[list[str]]:
    """The features of largest mean |w|, each with a bar, and a count of the others."""
    W = attributions.to_numpy()
    unit = float(np.abs(W).max()) or 1.0  # so that no sum overflows
    sizes, means = unit * np.abs(W / unit).mean(axis=0), unit * (W / unit).mean(axis=0)
    largest = float(sizes.max()) or 1.0
    order = np.argsort(-sizes, kind="stable")
    for j in order[:N_FEATURES]:
        width = f"width:{8.0 * (sizes[j] / largest):.2f}em"
        name = in_html(attributions.columns[j])
        bar = f'<span style="{_BAR};{width}"></span>'
        yield [name, f"{sizes[j]:.4g}", f"{means[j]:.4g}", bar]
    if len(order) > N_FEATURES:
        rest = sizes[order[N_FEATURES:]]
        yield [f"{len(rest)} others", f"at most {rest.max():.4g}", "", ""]


def html_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A first column of text, then numbers, then bars under no name; cells are HTML."""
    styles = [
        NUMBER_CELL if place and name else TEXT_CELL
        for place, name in enumerate(header)
    ]
    head = "".join(
        f"<th {style}>{in_html(cell)}</th>"
        for style, cell in zip(styles, header, strict=False)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f"<td {style}>{cell}</td>" for style, cell in zip(styles, row, strict=False)
        )
        + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"
