"""The document of an explanation: largest features, trust and settings."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, Final

import numpy as np

from propopt.base.document import (
    Bar,
    Bars,
    Chapter,
    Document,
    Finding,
    minus,
)
from propopt.base.resources import BATCH_BUDGET
from propopt.base.text import (
    enumerated,
    in_percent,
    in_short,
    percent,
    plural,
    printable,
    rounded_percent,
)
from propopt.base.vocabulary import Basis
from propopt.losses.algebra import PropertyLoss, kind_of
from propopt.proofs.optimum import (
    Optimum,
    base_in_words,
    gap_in_words,
    is_sampled,
    target_basis,
    target_error_cell,
    target_in_words,
)
from propopt.results.clear import clear_share, ends_in_words, is_exact, unit_of


_NAMED: Final = 3
"""Most features in a title."""

_ROOM: Final = 60
"""Most characters for the names of several features in a title."""


def explanation_text(explanation: Optimum) -> str:
    """The representation of an explanation in one line."""
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


def explanation_document(
    explanation: Optimum, chapters: Callable[[], Sequence[Chapter]]
) -> Document:
    """The findings of an explanation, with the chapters of its page."""
    W = explanation.attributions  # first, as losses then follow from them
    share, delta = clear_share(explanation)
    features = list(explanation.labels.feature_names(W.shape[1]))
    names = features
    if explanation.shape[0] == 1 and explanation.points is not None:
        names = [
            f"{x} = {minus(explanation.value_of(0, j))}" for j, x in enumerate(features)
        ]
    subtitle = _subtitle(explanation)
    bars = _bars(W, names, _of_one_row(explanation), subtitle)
    settings = dict(made_by(explanation))
    settings["clear signs"] = clear_in_words(explanation, share, delta)
    findings = (*change_from_contributions(explanation), *_without_data(explanation))
    return Document(
        title=_title(explanation),
        subtitle=subtitle,
        blocks=[bars, *findings],
        trust=[*_trust(explanation), _clear(explanation, share, delta)],
        settings=settings,
        chapters=chapters,
        names=features,
    )


def _size(explanation: Optimum) -> str:
    rows, features = explanation.shape
    return f"{plural(rows, 'row')} × {plural(features, 'feature')}"


def _title(explanation: Optimum) -> str:
    """The largest features, the output and the rows, as a title."""
    N = explanation.shape[0]
    quantity = explanation.quantity
    label = "output" if quantity is None else str(quantity)
    rows = explanation.labels.points
    names = largest_features(explanation)
    where = f"over {N:,} rows" if N > 1 else f"in row {rows[0] if rows else 0}"
    verb = "matter" if len(names) > 1 else "matters"
    most = " most" if names else ""
    method = "" if explanation.method == "optimized" else f"{explanation.method}: "
    matter = f"{enumerated(names, 'and') or 'no feature'} {verb}{most}"
    return f"{method}{matter} to the {label}, {where}"


def largest_features(explanation: Optimum) -> list[str]:
    """Up to three features with the largest mean |w|; fewer if names are long."""
    W = explanation.attributions
    unit = _unit(W)
    (sizes,) = _means(W, lambda w: [np.abs(w / unit)])
    features = explanation.labels.feature_names(W.shape[1])
    largest = np.argsort(-sizes, kind="stable")[:_NAMED]
    names = [features[j] for j in largest if sizes[j] > 0.0]
    while len(names) > 1 and sum(map(len, names)) > _ROOM:
        names.pop()
    return names


def _subtitle(explanation: Optimum) -> str:
    """The unit of the numbers, and how several rows are combined."""
    words = [explanation.units_in_words]
    if explanation.shape[0] > 1:
        words.append("mean size over rows")
    base = explanation.base_value
    value = explanation.prediction
    if explanation.shape[0] == 1 and base is not None and value is not None:
        start = base_in_words(base, explanation.parameters)
        words.append(f"from {start} on average to {value[0]:.4g} here")
    return "; ".join(words)


_LARGE: Final = 0.1
"""Values above this share of the mean over rows of the largest |φ| are large."""


def change_from_contributions(explanation: Optimum) -> Iterator[Finding]:
    """The change from Shapley values to optimized contributions, in a sentence."""
    phi = explanation.contributions
    W = explanation.attributions
    if phi is None or explanation.method != "optimized" or not phi.any():
        return
    if 0.0 in explanation.weights.values():  # they are the Shapley values
        return
    same = 0
    turned = 0
    count = 0
    moved = 0.0
    size = 0.0
    blocks = list(_blocks(W))
    large = _LARGE * np.concatenate([np.abs(phi[x]).max(axis=1) for x in blocks]).mean()
    for rows in blocks:
        w = W[rows]
        exact = phi[rows]
        sizes = np.abs(exact)
        # columns that are the largest of their row, up to rounding
        firsts = sizes >= (1.0 - 1e-9) * sizes.max(axis=1, keepdims=True)
        first = firsts[np.arange(len(w)), np.abs(w).argmax(axis=1)]
        is_large = sizes > large
        same += int(first.sum())
        turned += int((is_large & (np.sign(w) != np.sign(exact))).sum())
        count += int(is_large.sum())
        moved += float(np.abs(w - exact).sum())
        size += float(np.abs(exact).sum())
    differ = f"by {percent(moved / size)} % on average"
    if is_sampled(explanation):  # their order and signs are sampled, too
        yield Finding(
            f"Values differ from the sampled ones {differ}, and these from the exact "
            "ones by the sampling error."
        )
        return
    same_largest = same / len(W)
    where = f"in {percent(same_largest)} % of rows" if len(W) > 1 else "here"
    top = f"The largest feature is that of the exact contributions {where}"
    if len(W) == 1 and not same_largest:
        top = "The largest feature is not that of the exact contributions"
    signs = f"{turned:,} of {count:,} large values have another sign"
    yield Finding(
        f"{top}; {signs if turned else 'no large value has another sign'}. Values "
        f"differ from the exact ones {differ}."
    )


def _without_data(explanation: Optimum) -> Iterator[Finding]:
    """The warning that X is the background, if no data was given."""
    if _WITHOUT_DATA in explanation.parameters:
        yield Finding(str(explanation.parameters[_WITHOUT_DATA]), "assumed")


_WITHOUT_DATA: Final = "without data"
"""The parameter with that warning, which the card shows as a separate line."""


_ON_PAGE: Final = 15
"""Most features with a bar."""


def _bars(W: Any, names: Sequence[object], before: Sequence[str], caption: str) -> Bars:
    """Bars of the features with the largest mean |w|, and the sizes of the others.

    For one row, bars of the values with notes on their targets.
    """
    unit = _unit(W)

    def sizes_and_sides(w: Any) -> list[Any]:
        v = w / unit
        v = np.where(np.abs(v) <= _ROUNDING, 0.0, v)
        return [v, np.abs(v), np.minimum(v, 0.0), np.maximum(v, 0.0), v > 0.0, v < 0.0]

    means, sizes, below, above, raises, lowers = _means(W, sizes_and_sides)
    order = np.argsort(-sizes, kind="stable")
    alone = len(W) == 1
    rows = [
        Bar(
            name=str(names[j]),
            value=float(unit * (means[j] if alone else sizes[j])),
            note=before[j] if alone else _direction(float(raises[j]), float(lowers[j])),
            parts=(float(unit * below[j]), float(unit * above[j])),
            sign="+" if alone else "-",
        )
        for j in order[:_ON_PAGE]
    ]
    return Bars(rows, caption, unit * sizes[order[_ON_PAGE:]])


def _of_one_row(explanation: Optimum) -> list[str]:
    """Notes with the contributions before optimization, if there is one row."""
    contributions = explanation.contributions
    if contributions is None or len(contributions) > 1:
        return [""] * explanation.shape[1]
    word = "exact" if is_exact(explanation) else "estimated"
    return [f"{word}: {phi:+.3g}" for phi in contributions[0]]


def _unit(W: Any) -> float:
    """The largest |w|, as a divisor against overflow of sums."""
    return float(np.abs(W).max(initial=0.0)) or 1.0


def _means(W: Any, parts_of: Callable[[Any], list[Any]]) -> list[Any]:
    """Means over all rows of arrays that are computed of W, by sums over blocks."""
    sums = ([x.sum(axis=0) for x in parts_of(W[rows])] for rows in _blocks(W))
    return [reduce(np.add, parts) / len(W) for parts in zip(*sums, strict=True)]


def _blocks(W: Any) -> list[slice]:
    """Blocks of rows of bounded size; one block of a small table."""
    return BATCH_BUDGET.blocks(len(W), 8 * W.shape[1])


def _direction(raises: float, lowers: float) -> str:
    """The shares of rows in which an attribution raises or lowers the output."""
    if not raises and not lowers:
        return "no effect"
    if raises and lowers:
        return f"raises in {percent(raises)}\N{NO-BREAK SPACE}%"
    verb, share = ("raises", raises) if raises else ("lowers", lowers)
    if share == 1.0:
        return f"{verb} in all rows"
    return f"{verb} in {percent(share)}\N{NO-BREAK SPACE}%, else 0"


def _trust(explanation: Optimum) -> Iterator[Finding]:
    """The proof, the target, retained faithfulness and completeness, as findings."""
    certificate = explanation.certificate
    question = "Is it the best possible?"
    if certificate is None:
        reason = explanation.parameters.get("not proved")
        words = f"not proved: {reason or 'it was not optimized'}"
        yield Finding(words, "assumed", question, "unknown")
    elif certificate.violation > _TOLERATED:
        words = f"not proved: bounds are violated by {certificate.violation:.1e}"
        yield Finding(words, "assumed", question, "unknown")
    elif certificate.gap <= _TOLERATED:
        gap = f"{certificate.gap:.0e}" if certificate.gap > _ROUNDING else "0"
        yield Finding(f"optimal (gap {gap})", "proved", question, "yes")
    else:
        within = f"within {percent(certificate.gap)} %"
        words = f"{within} of optimal (gap {certificate.gap:.1e})"
        yield Finding(words, "proved", question, within)
    if certificate is not None or is_sampled(explanation):
        yield target_finding(explanation)
    yield from base_findings(explanation.base_value, explanation.parameters)
    search = explanation.parameters.get("similar rows")
    if search:
        question = "Are similar rows the nearest?"
        yield Finding(f"similar rows are {search}", "estimated", question, str(search))
    shares = explanation.loss_shares
    for retained in filter(math.isfinite, (shares.get(x, math.nan) for x in _FAITHFUL)):
        words = f"{100.0 * retained:.0f} %"
        sentence = f"{words} of faithfulness retained"
        yield Finding(sentence, "computed", "How faithful is it?", words)
    quantity = explanation.quantity
    if quantity is not None and quantity.alternative is not None:
        yield Finding(quantity.choice, "assumed", "In which unit?", quantity.noun)
    missed = explanation.additivity_error
    if missed is not None:
        most = float(np.abs(missed).max())
        adds = most < 1e-6 * float(np.abs(explanation.attributions).max())
        words = f"rows {'add up' if adds else f'miss their sums by up to {most:.0e}'}"
        yield Finding(words, "computed", "Do rows add up?", "yes" if adds else "no")


def target_finding(best: Any) -> Finding:
    """The error of the target of rows in memory or in a folder, as a finding."""
    words = target_in_words(best)
    if not is_sampled(best):
        words = _FIRST_CLAUSE.match(words)[0]  # type: ignore[index]
    question = "How exact is the target?"
    return Finding(words, target_basis(best), question, target_error_cell(best))


def base_findings(base: Any, parameters: Mapping[str, Any]) -> Iterator[Finding]:
    """The standard error of the base, if the background is a sample."""
    if base is not None and "base error" in parameters:
        cell = base_in_words(base, parameters)
        words = f"base {cell}, the standard error of a mean over drawn rows"
        yield Finding(words, "estimated", "How exact is the base?", cell)


_FAITHFUL: Final = ("gradient_matching", "function_matching")
"""Losses of faithfulness, with a retained share."""


def _clear(explanation: Optimum, share: float, delta: float) -> Finding:
    """The share of clear signs, as a finding."""
    number = rounded_percent(share)
    survive = _survive(explanation, delta)
    basis: Basis = "estimated" if is_sampled(explanation) else "computed"
    sentence = f"{number} of signs {survive}; the others may change"
    if share == 1.0:
        sentence = f"all signs {survive}"
    return Finding(sentence, basis, "Which signs are clear?", number)


_FIRST_CLAUSE: Final = re.compile(r"[^,;(]*(\([^)]*\))?")
"""The first clause about a target; the settings show the rest."""

_ROUNDING: Final = 1e-12
_TOLERATED: Final = 1e-5
"""Gaps and violations up to this count as zero."""


def clear_in_words(explanation: Optimum, share: float, delta: float) -> str:
    """The share of clear signs, and the definition of a clear sign."""
    ends = ends_in_words(explanation)
    also = f", and are the same in {ends}" if ends else ""
    return f"{rounded_percent(share)} {_survive(explanation, delta)}{also}"


def _survive(explanation: Optimum, delta: float) -> str:
    """The property of clear signs, as a verb phrase."""
    unit = "slopes"
    if explanation.units == "output":
        unit = unit_of(explanation.quantity)
    distance = f"a distance of up to {delta:.2g} ({unit})"
    return f"stay if the attributions of their row move by {distance}"


def made_by(explanation: Optimum) -> Iterator[tuple[str, str]]:
    """Settings of an explanation: parameters, losses, cost and proof."""
    yield "size", _size(explanation)
    if explanation.shape[0] > 1:
        yield "down, up", "means of the negative and of the positive attributions"
    for name, value in explanation.parameters.items():
        if name != _WITHOUT_DATA:
            yield name, in_short(value)
    shares = explanation.loss_shares
    weights = explanation.weights
    for name, value in explanation.losses.items():
        weight = f", weight {weights[name]:.4g}" if name in weights else ""
        share = shares.get(name, math.nan)
        kind = kind_of(name)
        moved = (kind or PropertyLoss).share_label
        share_words = f"; {in_percent(share)} {moved}" if share == share else ""
        yield f"loss {name}", f"{value:.6g}{weight}{share_words}"
    if explanation.evaluations:
        yield "model evaluations", f"{explanation.evaluations:,}"
    if explanation.certificate is not None:
        proof = explanation.certificate.kind
        yield "certified", f"{gap_in_words(explanation)}; by {proof}"
    if explanation.solver is not None:
        yield "solver", explanation.solver
