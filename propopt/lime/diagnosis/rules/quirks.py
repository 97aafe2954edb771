"""Package quirks: what ``lime`` does beside the analysis of it."""

from __future__ import annotations

from typing import Final

import numpy as np

from propopt._typing import Array
from propopt.lime.diagnosis.case import Case
from propopt.lime.diagnosis.rule import Checked, Rule
from propopt.lime.laws.binned import BinnedColumn
from propopt.lime.views.columns import (
    data_ends,
    inner_edges,
    own_width,
    without_glime,
)
from propopt.results.conclusions.words import plural
from propopt.tables.names import listed


_ONE: Final = np.ones((1, 1))
_NOTHING: Final = "nothing; compare with formulas and other tools with care"


def _numbers(case: Case) -> list[tuple[int, BinnedColumn]]:
    """Columns of numbers in bins that are drawn one by one."""
    own = list(enumerate(map(without_glime, case.law.columns)))
    return [(j, c) for j, c in own if isinstance(c, BinnedColumn) and not c.coded]


def _check_shares(case: Case) -> Checked | str:
    columns = _numbers(case)
    if len(columns) == 0:
        return "no column of numbers is drawn by bins"
    apart = [np.abs(c.shares * len(c.shares) - 1.0).max() for _, c in columns]
    worst = int(np.argmax(apart))
    counts = np.array([len(c.edges) + 1 for _, c in columns])
    merged = [case.names[columns[k][0]] for k in np.flatnonzero(counts < counts.max())]

    def sentence(n: int, j: int) -> str:
        del n, j
        shares = columns[worst][1].shares
        of_equal = (
            f"; {plural(len(merged), 'column')} with fewer than {counts.max()} bins, "
            f"as quantiles are equal: {listed(merged)}"
        )
        return (
            f"the bins of {case.names[columns[worst][0]]} have shares from "
            f"{shares.min():.3g} to {shares.max():.3g}: formulas with 1/p do not hold, "
            f"those used here do{of_equal if merged else ''}"
        )

    return Checked(
        numbers=np.array([[apart[worst]]]),
        stakes=_ONE,
        sentence=sentence,
        remedy=_NOTHING,
        also=np.array([[len(merged) > 0]]),
    )


SHARES: Final = Rule(
    name="package: unequal bins",
    threshold=0.1,
    weight=0.15,
    per_row=False,
    per_column=False,
    check=_check_shares,
)


def _check_point_mass(case: Case) -> Checked | str:
    columns = _numbers(case)
    single = np.zeros((1, case.beta.shape[1]))
    for j, column in columns:
        some = column.pieces.single & (column.shares > 0.0)
        some &= ~np.isnan(column.pieces.mean)
        single[0, j] = float(column.shares[some].sum())

    def sentence(n: int, j: int) -> str:
        del n
        return (
            f"{single[0, j]:.0%} of the samples have one value of a bin whose ends are "
            "equal; the package draws its z-score, about 0, in place of it"
        ).replace("%", " %")

    remedy = "declare the column categorical, or take what is computed here"
    return Checked(numbers=single, stakes=_ONE, sentence=sentence, remedy=remedy)


POINT_MASS: Final = Rule(
    name="package: point-mass bin",
    threshold=0.0,
    weight=0.35,
    per_row=False,
    check=_check_point_mass,
)


def _check_range(case: Case) -> Checked:
    beyond = np.full(case.beta.shape, np.nan)
    for j, column in enumerate(case.law.columns):
        low, high = data_ends(column)
        if not np.isfinite(low) or len(inner_edges(column)) == 0:
            continue
        for n, x in enumerate(case.points[:, j].tolist()):
            if not np.isnan(x):
                over = max(low - x, x - high, 0.0)
                # a bin of one value has no width: then that of all bins
                width = own_width(column, x) or high - low
                beyond[n, j] = over / width if over > 0.0 else 0.0

    def sentence(n: int, j: int) -> str:
        low, high = data_ends(case.law.columns[j])
        return (
            f"the value {case.points[n, j]:.6g} is outside the data, from {low:.6g} to "
            f"{high:.6g}: no sample is beside the row"
        )

    remedy = "give a table as data that has such values"
    return Checked(numbers=beyond, stakes=case.sizes, sentence=sentence, remedy=remedy)


OUT_OF_RANGE: Final = Rule(
    name="out of range", threshold=0.0, weight=0.4, check=_check_range
)


def _check_intercept(case: Case) -> Checked | str:
    own = case.explanation
    if own.ridge == 0.0:
        return "runs have no ridge"
    moved = np.stack([_penalised(case, n) for n in range(len(case.beta))])
    change = np.abs(moved - case.finite.coefficients) / case.largest

    def sentence(n: int, j: int) -> str:
        del j
        k = int(change[n].argmax())
        return (
            "the package leaves the intercept free; with a penalty on it too, as the "
            f"paper writes it, the coefficient of {case.names[k]} would be "
            f"{moved[n, k]:.4g} and not {case.finite.coefficients[n, k]:.4g} at "
            f"{case.n_samples:,} samples"
        )

    return Checked(
        numbers=change.max(axis=1, keepdims=True),
        stakes=_ONE,
        sentence=sentence,
        remedy=_NOTHING,
    )


def _penalised(case: Case, n: int) -> Array:
    """Mean coefficients with ridge on the intercept too."""
    own, alpha = case.explanation, case.explanation.alpha[n]
    bits, spread = np.append(1.0, alpha), np.append(0.0, alpha * (1.0 - alpha))
    weight = case.finite.total[n]
    first = float(own.first_row)
    system = weight * (np.outer(bits, bits) + np.diag(spread)) + first
    system += own.ridge * np.eye(len(bits))
    right = weight * (bits * own.mean[n] + spread * np.append(0.0, own.coefficients[n]))
    return np.asarray(np.linalg.solve(system, right + first * own.values[n])[1:])


INTERCEPT: Final = Rule(
    name="package: free intercept",
    threshold=0.05,
    weight=0.2,
    per_column=False,
    check=_check_intercept,
)
