"""What a notebook shows of trade-offs: what there is, and a few rows of the table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from propopt.output.gaps import target_error_cell, targets_in_words
from propopt.output.html import html_card, html_table
from propopt.output.text import in_html, in_percent


if TYPE_CHECKING:
    from propopt.results.explanation import Explanation
    from propopt.tradeoffs.table import TradeOffs


_N_ROWS = 10
_ERRORS = ("gap", "target error")


def trade_offs_html(trade_offs: TradeOffs) -> str:
    """A title, facts, and losses beside weights: of some optima and of all baselines.

    The optima are spread over the sweep, its ends included. No attributions are
    computed for it.
    """
    title = f"{len(trade_offs.optimized)} optimized, {len(trade_offs.baselines)} others"
    if trade_offs.quantity is not None:
        title = f"Explanations of the {in_html(trade_offs.quantity)}: {title}"
    facts = [in_html(f"{name}: {text}") for name, text in _facts(trade_offs).items()]
    names = trade_offs.losses
    head = [
        "method",
        *(f"weight of {name}" for name in names),
        *names,
        *trade_offs.share_columns.values(),
        *_ERRORS,
    ]
    rows = [_row(trade_offs, explanation) for explanation in _shown(trade_offs)]
    table = html_table(head, rows)
    return html_card(filter(None, [f"<b>{title}</b>", "<br>".join(facts), table]))


def _facts(trade_offs: TradeOffs) -> Mapping[str, str]:
    gaps = [best.gap for best in trade_offs.optimized if best.gap is not None]
    facts = {}
    if trade_offs.optimized:
        facts["at the knee"] = trade_offs.in_words()
    if gaps:
        targets = "; ".join(targets_in_words(trade_offs.optimized))
        facts["gap"] = f"at most {max(gaps):.1e} (optimization) · {targets}"
    if trade_offs.failures:
        facts["not solved"] = str(len(trade_offs.failures))
    if trade_offs.interrupted:
        facts["interrupted"] = "yes"
    return facts


def _shown(trade_offs: TradeOffs) -> Iterator[Explanation]:
    optimized = trade_offs.optimized
    count = min(_N_ROWS, len(optimized))
    for place in np.linspace(0, len(optimized) - 1, count).round().astype(int):
        yield optimized[place]
    yield from trade_offs.baselines


def _row(trade_offs: TradeOffs, explanation: Explanation) -> list[str]:
    rates, losses = explanation.rates, explanation.losses
    weights = [f"{rates[k]:.4g}" if k in rates else "" for k in trade_offs.losses]
    values = [f"{losses[name]:.6g}" for name in trade_offs.losses]
    shares = [in_percent(share) for share in trade_offs.shares(explanation).values()]
    method = in_html(explanation.method)
    return [method, *weights, *values, *shares, *_errors(explanation)]


def _errors(explanation: Explanation) -> tuple[str, str]:
    """The gap and, beside it, the error of the target."""
    if explanation.gap is None:
        return "", ""
    return f"{explanation.gap:.1e}", target_error_cell(explanation)
