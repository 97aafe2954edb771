"""The document of an explanation: its largest features, facts and settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, Final

import numpy as np
import pandas as pd

from propopt.base.arrays import Array, Indices, Values, largest_first
from propopt.base.checks import largest_entry
from propopt.base.document import (
    Chapter,
    Document,
    Fact,
    Facts,
    Span,
    Table,
    minus,
    number_text,
    shape_text,
    share_cell,
    share_text,
    subtitle_of,
    title_of,
)
from propopt.base.resources import BATCH_BUDGET
from propopt.base.text import gap_cell, in_short, plural, printable
from propopt.base.vocabulary import Basis
from propopt.losses.algebra import PropertyLoss, kind_of
from propopt.proofs.optimum import Optimum, gap_fact, is_sampled, sampling_fact
from propopt.results.clear import clear_rows, half_widths, unit_text
from propopt.results.stable import N_REASONS
from propopt.tables.frames import name_of_group, sums_of_groups


def explanation_text(explanation: Optimum) -> str:
    """The representation of an explanation in one line."""
    parts = [explanation.method, _size(explanation)]
    if explanation.quantity is not None:
        parts.append(str(explanation.quantity))
    if explanation.gap is not None:
        parts.append(f"gap={gap_cell(explanation.gap)}")
    return f"Explanation({', '.join(map(printable, parts))})"


def explanation_document(
    explanation: Optimum, chapters: Callable[[], Sequence[Chapter]]
) -> Document:
    """The largest features and the facts of an explanation."""
    _ = explanation.attributions  # first, as losses then follow from them
    method = explanation.method
    kind = "Explanation" if method == "optimized" else f"Explanation by {method}"
    clear, share, delta = clear_rows(explanation)
    of_rows = _one_row if explanation.shape[0] == 1 else _many_rows
    table = of_rows(explanation, clear)
    note = f"small change {number_text(delta)}"
    unit = unit_text(explanation.units, explanation.quantity, explanation.parameters)
    basis: Basis = "estimated" if is_sampled(explanation) else "computed"
    facts = [
        *_proof(explanation),
        *_change_from_shap(explanation),
        *mixtures_facts(explanation.parameters),
        Fact("clear signs", share, "%", basis, note),
    ]
    return Document(
        title=title_of(kind, explanation.quantity),
        subtitle=subtitle_of(explanation.quantity, _size(explanation), unit),
        dangers=_dangers(explanation, table),
        blocks=[table, Facts(facts)],
        settings=dict(made_by(explanation)),
        chapters=chapters,
    )


_WITHOUT_DATA: Final = (
    "The rows of X are also the background, because data= was not given.",
    "With data=X_train, a row does not depend on the others.",
)

_OFTEN: Final = 0.05
"""Share of mixtures never seen from which groups are suggested."""


def _dangers(best: Optimum, table: Table) -> Sequence[str]:
    """What to do without data, or if a group has two of the largest features."""
    if "without data" in best.parameters:
        return _WITHOUT_DATA
    share = best.parameters.get("mixtures never seen")
    largest = {*table.frame.index[:N_REASONS]}
    for group in best.together if isinstance(share, float) and share >= _OFTEN else ():
        if len(largest & {*group}) > 1:
            return (
                f"Data hardly ever has {name_of_group(group)} apart: "
                'groups="auto" explains them together.',
            )
    return ()


def _size(best: Optimum) -> str:
    """The numbers of rows and features; a single row with its name."""
    N, D = best.shape
    if N > 1 or best.labels.points is None:
        return shape_text(N, D)
    return f"row {best.labels.row(0)} · {plural(D, 'feature')}"


# ---- The table of the largest features


_ON_PAGE: Final = 100
"""Most features in the table."""


def positions_by_size(sizes: Values) -> Indices:
    """The positions of the largest sizes (D,), the largest first."""
    return largest_first(sizes)[:_ON_PAGE]


def feature_table(
    names: Sequence[str],
    order: Indices,
    columns: Mapping[str, Any],
    bars: Mapping[str, Sequence[Span]],
) -> Table:
    """Some of the features, with their columns in this order."""
    index = pd.Index([names[j] for j in order], name="feature")
    cut = f"The {len(order)} largest of {len(names):,} features."
    return Table(
        pd.DataFrame(columns, index),
        cut if len(order) < len(names) else "",
        total=len(names),
        bars=bars,
    )


def size_columns(sizes: Values, order: Indices) -> dict[str, Any]:
    """Mean sizes of the largest features, and their shares of all (D,)."""
    relative = sizes / (sizes.max() or 1.0)  # against overflow of the sum
    shares = relative / (relative.sum() or 1.0)
    return {"mean size": sizes[order], "share": [*map(share_cell, shares[order])]}


def _one_row(best: Optimum, clear: Values) -> Table:
    """The value and the contribution of each feature, and its SHAP value if known."""
    w = best.attributions[0]
    phi = _shap_values(best)
    order = positions_by_size(np.abs(w))
    label = "contribution" if best.units == "output" else "slope"
    columns: dict[str, Any] = {label: w[order]}
    if best.points is not None:
        values = [minus(best.value_of(0, int(j))) for j in order]
        columns = {"value": values, **columns}
    if phi is not None:
        columns["SHAP value"] = phi[0][order]
    if best.together:
        sums = sums_of_groups(w[None], best.features, best.together)
        columns["together"] = sums[0][order]
    columns["clear"] = clear[order] > 0.0
    bars = {label: [*map(Span.of, w[order].tolist())]}
    return feature_table(best.features, order, columns, bars)


def _many_rows(best: Optimum, clear: Values) -> Table:
    """The mean size of each feature, and the rows where it is highest or clear."""
    W = best.attributions
    unit = largest_entry(W) or 1.0  # against overflow of sums

    def sizes_and_sides(w: Array) -> list[Array]:
        v = w / unit
        v = np.where(np.abs(v) <= _ROUNDING, 0.0, v)
        sides = np.minimum(v, 0.0), np.maximum(v, 0.0), v > 0.0, v < 0.0
        return [x.sum(axis=0) for x in (np.abs(v), *sides)]

    sums = _sums(sizes_and_sides, W)
    sizes, below, above, raises, lowers = (x / len(W) for x in sums)
    order = positions_by_size(sizes)
    names = best.features
    columns = size_columns(unit * sizes, order)
    points = best.points
    if best.units == "output" and points is not None:
        columns["highest for"] = [
            highest_for(points[:, j], W[:, j] / unit, best.categories.get(names[j]))
            for j in order
        ]
    else:
        columns["sign"] = [*map(sign_text, raises[order], lowers[order])]
    columns["clear rows"] = [*map(share_cell, clear[order])]
    ends = (unit * np.stack([below, above], axis=1)[order]).tolist()
    bars = {"mean size": [Span(low, high) for low, high in ends]}
    return feature_table(names, order, columns, bars)


_ROUNDING: Final = 1e-12
"""Numbers below this share of the largest are rounding."""


_MIXED: Final = 0.5
"""Rank correlations below this are mixed."""

_RARE: Final = 0.05
"""Categories with at most this share of the values are not named."""


def highest_for(
    values: Values, contributions: Values, categories: Sequence[str] | None = None
) -> str:
    """The values of a feature (N,) with the highest contributions (N,).

    ``"missing"`` or ``"present"`` if the mean contribution of missing values is outside
    the middle 80 % of the others. Else the category with the highest mean, of those
    with more than 5 % of the values, or the sign of Spearman's ρ: ``"high"`` or
    ``"low"`` if |ρ| ≥ 0.5, else ``"mixed"``. Empty if no category has as many, or if
    values or contributions do not vary: contributions are relative to the largest one
    of the table, and differences below 1e-12 are rounding.
    """
    is_missing = np.isnan(values)
    contributions = np.round(contributions, 12)
    x = values[~is_missing]
    w = contributions[~is_missing]
    if not len(x):
        return ""
    if len(x) < len(values):
        low, high = np.quantile(w, (0.1, 0.9))
        mean = contributions[is_missing].mean()
        if mean > high + _ROUNDING:
            return "missing"
        if mean < low - _ROUNDING:
            return "present"
    if np.ptp(x) == 0.0 or np.ptp(w) <= _ROUNDING:
        return ""
    if categories is not None:
        codes, index, counts = np.unique(x, return_inverse=True, return_counts=True)
        if not (common := counts > _RARE * len(x)).any():
            return ""
        means = np.where(common, np.bincount(index, w) / counts, -np.inf)
        return categories[int(codes[means.argmax()])]
    rho = np.corrcoef(pd.Series(x).rank(), pd.Series(w).rank())[0, 1]
    if abs(rho) < _MIXED:
        return "mixed"
    return "high" if rho > 0.0 else "low"


def sign_text(raises: float, lowers: float) -> str:
    """The sign of values that are not zero, or the share of + among them."""
    if raises and lowers:
        return f"+ in {share_cell(raises / (raises + lowers))}"
    return "+" if raises else "−" if lowers else ""


def _sums(parts_of: Callable[..., list[Any]], *arrays: Array) -> list[Any]:
    """Sums of what follows from each block of rows; small tables are one block."""
    W = arrays[0]
    blocks = BATCH_BUDGET.blocks(len(W), 8 * W.shape[1])
    parts = (parts_of(*(x[rows] for x in arrays)) for rows in blocks)
    return [reduce(np.add, one) for one in zip(*parts, strict=True)]


# ---- Facts: the proof, the distance from SHAP values


_FAITHFUL: Final = ("gradient_matching", "function_matching")
"""Losses of faithfulness, with a retained share."""


def _proof(best: Optimum) -> Iterator[Fact]:
    """Base, prediction, gap, sampling error, additivity error and faithfulness."""
    prediction = best.prediction
    if best.base_value is not None:
        is_alone = best.shape[0] == 1
        yield from base_facts(best.base_value.mean(), best.parameters, shown=is_alone)
        if is_alone and prediction is not None:
            yield Fact("prediction", float(prediction[0]))
    if best.method == "optimized" or best.certificate is not None:
        yield gap_fact(best)
    if best.certificate is not None or best.target is not None:
        yield sampling_fact(best.target)
    if is_sampled(best) and best.standard_errors is not None:
        half = float(np.median(half_widths(best)))
        yield Fact("95% intervals", half, basis="estimated", note="median half-width")
    if is_sampled(best) and best.evaluations:
        seconds = best.model_seconds
        note = f"{number_text(seconds)} s" if seconds else ""
        yield Fact("model evaluations", best.evaluations, note=note)
    if search := best.parameters.get("similar rows"):
        yield Fact("similar rows", str(search), basis="estimated")
    missed = best.additivity_error
    if missed is not None:
        most = largest_entry(missed)
        is_rounding = most < 1e-9 * largest_entry(best.attributions)
        yield Fact("additivity error", 0.0 if is_rounding else most)
    shares = best.loss_shares
    for share in filter(math.isfinite, (shares.get(x, math.nan) for x in _FAITHFUL)):
        yield Fact("faithfulness kept", share, "%")


def base_facts(
    base: float | None, parameters: Mapping[str, Any], *, shown: bool = False
) -> Iterator[Fact]:
    """The base, if shown, or with its standard error if the background is sampled."""
    error = parameters.get("base error", 0.0)
    note = f"±{number_text(error)}" if error else ""
    if base is not None and (error or shown):
        yield Fact("base", float(base), "", "estimated" if error else None, note)


def mixtures_facts(parameters: Mapping[str, Any]) -> Iterator[Fact]:
    """The share of mixtures that data never has, and the columns of most of them."""
    share = parameters.get("mixtures never seen")
    if isinstance(share, float):
        worst = str(parameters.get("never together", ""))
        yield Fact("mixtures never seen in data", share, "% at least", note=worst)


_LARGE: Final = 0.1
"""Values above this share of the mean over rows of the largest |φ| are large."""


def _change_from_shap(best: Optimum) -> Iterator[Fact]:
    """The change from Shapley values to optimized contributions."""
    phi = _shap_values(best)
    W = best.attributions
    if phi is None or best.method != "optimized" or not phi.any():
        return
    if 0.0 in best.weights.values():  # they are the Shapley values
        return
    large = _LARGE * np.maximum(phi.max(axis=1), -phi.min(axis=1)).mean()

    def compared(w: Array, exact: Array) -> list[Any]:
        sizes = np.abs(exact)
        # columns that are the largest of their row, up to rounding
        firsts = sizes >= (1.0 - 1e-9) * sizes.max(axis=1, keepdims=True)
        first = firsts[np.arange(len(w)), np.abs(w).argmax(axis=1)]
        is_large = sizes > large
        turned = is_large & (np.sign(w) != np.sign(exact))
        counts = [np.count_nonzero(x) for x in (first, turned, is_large)]
        return [*counts, np.abs(w - exact).sum(), sizes.sum()]

    same, turned, count, moved, size = _sums(compared, W, phi)
    basis: Basis = "estimated" if is_sampled(best) else "computed"
    yield Fact("differs from SHAP", float(moved / size), "%", basis)
    if not is_sampled(best):  # else their order and signs are sampled, too
        alone = len(W) == 1
        unit = "" if alone else "% of rows"
        yield Fact("top feature as SHAP", bool(same) if alone else same / len(W), unit)
        yield Fact("signs against SHAP", int(turned), f"of {count:,} large")


_ADDS: Final = 1e-4
"""The largest error of a row sum of Shapley values, relative to the largest value."""


def _shap_values(best: Optimum) -> Array | None:
    """The contributions before optimization, if they add up as Shapley values do."""
    phi = best.contributions
    base = best.base_value
    prediction = best.prediction
    if phi is None or base is None or prediction is None:
        return None
    missed = np.abs(phi.sum(axis=1) - (prediction - base))
    return phi if missed.max() <= _ADDS * largest_entry(phi) else None


# ---- Settings


def made_by(explanation: Optimum) -> Iterator[tuple[str, str]]:
    """Settings of an explanation: parameters, losses, cost and proof."""
    quantity = explanation.quantity
    if quantity is not None and quantity.alternative is not None:
        yield "output", quantity.choice
    for name, value in explanation.parameters.items():
        if name != "without data":
            yield name, in_short(value)
    shares = explanation.loss_shares
    weights = explanation.weights
    for name, value in explanation.losses.items():
        weight = f", weight {weights[name]:.4g}" if name in weights else ""
        share = shares.get(name, math.nan)
        moved = (kind_of(name) or PropertyLoss).share_label
        share_words = f"; {share_text(share)} {moved}" if share == share else ""
        yield f"loss {name}", f"{value:.6g}{weight}{share_words}"
    if explanation.evaluations:
        yield "model evaluations", f"{explanation.evaluations:,}"
    if explanation.certificate is not None:
        yield "certificate", explanation.certificate.kind
    if explanation.solver is not None:
        yield "solver", explanation.solver
