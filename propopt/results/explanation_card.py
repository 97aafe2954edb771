"""What a card shows of an explanation: largest features, unit, proof, settings."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, get_args

import numpy as np

from propopt.base.cards import Card, CardRow, others_in_words
from propopt.base.text import (
    enumerated,
    in_percent,
    in_short,
    percent,
    plural,
    printable,
    rounded_percent,
)
from propopt.losses.algebra import PropertyLoss, kind_of
from propopt.proofs.optimum import Optimum, gap_in_words, is_sampled, target_in_words
from propopt.results.clear import clear_share, ends_in_words, is_exact, unit_of
from propopt.results.reasons import Reasons, Towards, ordinal


_NAMED: Final = 3
"""Features that a headline names at most."""

_ROOM: Final = 60
"""Characters that the names of several have together."""

_MOST_ROWS: Final = 1_000
"""Rows whose clear reasons are counted for a card."""

_MOST_WORK: Final = 2e7
"""N D²: pairs of columns for the places of all rows."""


def explanation_text(explanation: Optimum) -> str:
    """One line about an explanation."""
    parts = [f"{printable(explanation.method)}, {_size(explanation)}"]
    if explanation.quantity is not None:
        parts.append(printable(explanation.quantity))
    parts += [
        f"{printable(name)}={value:.6g}" for name, value in explanation.losses.items()
    ]
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


def explanation_card(explanation: Optimum, n_features: int) -> Card:
    """What is said of an explanation."""
    frame = explanation.to_frame()  # first: losses are those of attributions once read
    share, delta = clear_share(explanation)
    names = list(frame.columns)
    if explanation.shape[0] == 1 and explanation.points is not None:
        names = [f"{x} = {explanation.value_of(0, j)}" for j, x in enumerate(names)]
    rows, rest = _feature_rows(
        frame.to_numpy(), names, n_features, _of_one_row(explanation)
    )
    settings = dict(_settings(explanation))
    settings["clear signs"] = clear_in_words(explanation, share, delta)
    clear = f"{rounded_percent(share)} of signs clear"
    settings |= _clear_reasons(explanation)
    return Card(
        title=_title(explanation),
        subtitle=_subtitle(explanation),
        rows=rows,
        rest=rest,
        lines=(*beside_contributions(explanation), *_without_data(explanation)),
        proof=" · ".join([*_proof(explanation), clear]),
        settings=settings,
    )


def _size(explanation: Optimum) -> str:
    rows, features = explanation.shape
    return f"{plural(rows, 'row')} × {plural(features, 'feature')}"


def _title(explanation: Optimum) -> str:
    """Which features matter most, for what, and of whom."""
    N, quantity = explanation.shape[0], explanation.quantity
    label = "output" if quantity is None else str(quantity)
    rows, names = explanation.labels.points, largest_features(explanation)
    where = f"over {N} rows" if N > 1 else f"in row {rows[0] if rows else 0}"
    verb = "matter" if len(names) > 1 else "matters"
    most = " most" if names else ""
    own = "" if explanation.method == "optimized" else f"{explanation.method}: "
    matter = f"{enumerated(names, 'and') or 'no feature'} {verb}{most}"
    return f"{own}{matter} to the {label}, {where}"


def largest_features(explanation: Optimum) -> list[str]:
    """Up to three features of the largest mean |w|; fewer where names are long."""
    W = explanation.attributions
    sizes = np.abs(W / _unit(W)).mean(axis=0)
    features = explanation.labels.feature_names(W.shape[1])
    largest = np.argsort(-sizes, kind="stable")[:_NAMED]
    names = [features[j] for j in largest if sizes[j] > 0.0]
    while len(names) > 1 and sum(map(len, names)) > _ROOM:
        names.pop()
    return names


def _subtitle(explanation: Optimum) -> str:
    """The unit, and what numbers are of several rows."""
    words = [explanation.units_in_words]
    if explanation.shape[0] > 1:
        words.append("mean size over rows")
    base, value = explanation.base_value, explanation.prediction
    if explanation.shape[0] == 1 and base is not None and value is not None:
        ends = float(base[0]), float(value[0])
        words.append("from {:.4g} on average to {:.4g} here".format(*ends))
    return "; ".join(words)


_LARGE: Final = 0.1
"""Of the mean over rows of the largest |φ|: values above it are large."""


def beside_contributions(explanation: Optimum) -> Iterator[str]:
    """How far optimized contributions are from those that they are faithful to."""
    phi, W = explanation.contributions, explanation.attributions
    if phi is None or explanation.method != "optimized" or not phi.any():
        return
    kind = "sampled" if is_sampled(explanation) else "exact"
    first = without_ties(phi)
    same = float(first[np.arange(len(W)), np.abs(W).argmax(axis=1)].mean())
    where = f"in {percent(same)} % of rows" if len(W) > 1 else "here"
    top = f"The largest column is that of the {kind} values {where}"
    if len(W) == 1 and not same:
        top = f"The largest column is not that of the {kind} values"
    large = np.abs(phi) > _LARGE * np.abs(phi).max(axis=1).mean()
    turned = int((large & (np.sign(W) != np.sign(phi))).sum())
    signs = f"{turned:,} of {int(large.sum()):,} large signs are turned"
    moved = float(np.abs(W - phi).sum()) / float(np.abs(phi).sum())
    yield (
        f"{top}; {signs if turned else 'no large sign is turned'}. The values moved "
        f"by {percent(moved)} % on average."
    )


def _without_data(explanation: Optimum) -> Iterator[str]:
    """Which rows stand for the background where no table of them was given."""
    if _WITHOUT_DATA in explanation.parameters:
        yield str(explanation.parameters[_WITHOUT_DATA])


_WITHOUT_DATA: Final = "without data"
"""The parameter that has the sentence; the card shows it as a line of its own."""


def without_ties(phi: Any) -> Any:
    """Which columns are the largest of their row, or as large but for rounding."""
    sizes = np.abs(phi)
    return sizes >= (1.0 - 1e-9) * sizes.max(axis=1, keepdims=True)


def _feature_rows(
    W: Any, names: Sequence[object], n_features: int, before: Sequence[str]
) -> tuple[list[CardRow], str]:
    """The features of largest mean |w|, and a sentence on the others.

    Of one row each value, and beside it the contribution that it is near to.
    """
    unit = _unit(W)
    V = W / unit
    V = np.where(np.abs(V) <= _ROUNDING, 0.0, V)
    sizes = np.abs(V).mean(axis=0)
    below, above = (unit * f(V, 0.0).mean(axis=0) for f in (np.minimum, np.maximum))
    order = np.argsort(-sizes, kind="stable")
    alone = len(W) == 1
    rows = [
        CardRow(
            name=str(names[j]),
            value=float(unit * (V[0, j] if alone else sizes[j])),
            note=before[j] if alone else _direction(V[:, j]),
            parts=(float(below[j]), float(above[j])),
            sign="+" if alone else "-",
        )
        for j in order[:n_features]
    ]
    return rows, others_in_words(unit * sizes[order[n_features:]])


def _of_one_row(explanation: Optimum) -> list[str]:
    """What each contribution was before it was optimized, where there is one row."""
    known = explanation.contributions
    if known is None or len(known) > 1:
        return [""] * explanation.shape[1]
    word = "exact" if is_exact(explanation) else "estimated"
    return [f"{word}: {phi:+.3g}" for phi in known[0]]


def _unit(W: Any) -> float:
    """The largest |w|, so that no sum of what is divided by it overflows."""
    return float(np.abs(W).max(initial=0.0)) or 1.0


def _direction(w: Any) -> str:
    """In how many rows an attribution raises, or lowers, what is explained."""
    raises, lowers = float((w > 0.0).mean()), float((w < 0.0).mean())
    if not raises and not lowers:
        return "no effect"
    if raises and lowers:
        return f"raises in {percent(raises)}\N{NO-BREAK SPACE}%"
    verb, share = ("raises", raises) if raises else ("lowers", lowers)
    if share == 1.0:
        return f"{verb} in all rows"
    return f"{verb} in {percent(share)}\N{NO-BREAK SPACE}%, else 0"


def _proof(explanation: Optimum) -> Iterator[str]:
    """What is proved of the optimum, and what is known of the error of its target."""
    certificate = explanation.certificate
    if certificate is None:
        reason = explanation.parameters.get("not proved")
        yield f"not proved: {reason or 'it was not optimized'}"
        return
    gap = certificate.gap
    if certificate.violation > _TOLERATED:
        yield f"bounds are missed by {certificate.violation:.1e}: not proved optimal"
    elif gap <= _ROUNDING:
        yield "optimal (gap 0)"
    elif gap <= _TOLERATED:
        yield f"optimal (gap {gap:.0e})"
    else:
        yield f"within {percent(gap)} % of optimal (gap {gap:.1e})"
    words = target_in_words(explanation)
    yield words if is_sampled(explanation) else _FIRST_CLAUSE.match(words)[0]  # type: ignore[index]


_FIRST_CLAUSE: Final = re.compile(r"[^,;(]*(\([^)]*\))?")
"""Of how a target was made: the settings have the rest."""

_ROUNDING: Final = 1e-12
_TOLERATED: Final = 1e-5
"""Of gaps and violations: more is said in per cent."""


def clear_in_words(explanation: Optimum, share: float, delta: float) -> str:
    """How many signs are clear, and what a clear sign is."""
    unit = "slopes"
    if explanation.units == "output":
        unit = unit_of(explanation.quantity)
    ends = ends_in_words(explanation)
    also = f", and are the same in {ends}" if ends else ""
    return (
        f"{rounded_percent(share)} survive any change of their row by {delta:.2g} "
        f"{unit}{also}"
    )


def _clear_reasons(explanation: Optimum) -> Iterator[tuple[str, str]]:
    """In how many rows the first reason is clear, the second, and so on."""
    N, D = explanation.shape
    is_little = N <= _MOST_ROWS and float(N) * D**2 <= _MOST_WORK
    if explanation.units != "output" or not is_little:
        return
    for side in get_args(Towards):
        shares = Reasons.of(explanation, towards=side).shares
        told = [
            f"{ordinal(r)} in {rounded_percent(x)}" for r, x in enumerate(shares, 1)
        ]
        words = f"{', '.join(told)} of the rows that have one" if told else "none"
        yield f"clear reasons for a {side} output", words


def _settings(explanation: Optimum) -> Iterator[tuple[str, str]]:
    """How it was made, and what it costs."""
    yield "size", _size(explanation)
    if explanation.shape[0] > 1:
        yield "down, up", "means of the negative and of the positive attributions"
    for name, value in explanation.parameters.items():
        if name != _WITHOUT_DATA:
            yield name, in_short(value)
    shares, weights = explanation.loss_shares, explanation.weights
    for name, value in explanation.losses.items():
        weight = f", weight {weights[name]:.4g}" if name in weights else ""
        share = shares.get(name, math.nan)
        kind = kind_of(name)
        moved = PropertyLoss.share if kind is None else kind.share
        beside = f"; {in_percent(share)} {moved}" if share == share else ""
        yield f"loss {name}", f"{value:.6g}{weight}{beside}"
    if explanation.evaluations:
        yield "model evaluations", f"{explanation.evaluations:,}"
    if explanation.certificate is not None:
        proof = explanation.certificate.kind
        yield "certified", f"{gap_in_words(explanation)}; by {proof}"
    if explanation.solver is not None:
        yield "solver", f"{explanation.solver}, {explanation.seconds:.3g} s"
