"""What a notebook shows of an explanation: plain HTML, escaped, without scripts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

import numpy as np
import pandas as pd


N_FEATURES = 10
_CELL = 'style="text-align:left;padding:1px 10px"'
_NUMBER = 'style="text-align:right;padding:1px 10px"'
_BAR = "display:inline-block;height:0.8em;background:#1f4e79"


def explanation_html(
    title: str,
    facts: Mapping[str, str],
    losses: Mapping[str, float],
    weights: Mapping[str, float],
    attributions: pd.DataFrame,
) -> str:
    """A title, facts, the losses with their weights, and the largest features."""
    parts = [
        f"<b>{escape(title)}</b>",
        "<br>".join(f"{escape(name)}: {escape(text)}" for name, text in facts.items()),
    ]
    if losses:
        parts.append(_table(("loss", "weight", "value"), _loss_rows(losses, weights)))
    parts.append(
        _table(("feature", "mean |w|", "mean w", ""), _feature_rows(attributions))
    )
    return "".join(f'<div style="margin:4px 0">{part}</div>' for part in parts if part)


def _loss_rows(
    losses: Mapping[str, float], weights: Mapping[str, float]
) -> Iterable[list[str]]:
    for name, value in losses.items():
        weight = f"{weights[name]:.4g}" if name in weights else ""
        yield [escape(name), weight, f"{value:.6g}"]


def _feature_rows(attributions: pd.DataFrame) -> Iterable[list[str]]:
    """The features of largest mean |w|, each with a bar, and a count of the others."""
    W = attributions.to_numpy()
    sizes = np.abs(W).mean(axis=0)
    largest = float(sizes.max()) or 1.0
    order = np.argsort(-sizes, kind="stable")
    for j in order[:N_FEATURES]:
        width = f"width:{8.0 * sizes[j] / largest:.2f}em"
        name = escape(str(attributions.columns[j]))
        bar = f'<span style="{_BAR};{width}"></span>'
        yield [name, f"{sizes[j]:.4g}", f"{W[:, j].mean():.4g}", bar]
    if len(order) > N_FEATURES:
        rest = sizes[order[N_FEATURES:]]
        yield [f"{len(rest)} others", f"at most {rest.max():.4g}", "", ""]


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose middle columns are numbers; cells are HTML already."""
    styles = [_CELL, *[_NUMBER] * 2, _CELL]
    head = "".join(
        f"<th {style}>{escape(cell)}</th>"
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
