"""Which cause is named: hypotheses in their order, to the last that always holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, final

import numpy as np

from propopt.base.text import percent
from propopt.explaining.changed_values import (
    AbsoluteValues,
    MovedColumns,
    MovedRows,
    SingleSlips,
    SummedColumns,
    TurnedSigns,
    of_mixtures,
    of_sorted_columns,
)
from propopt.explaining.evidence import AuditEvidence
from propopt.explaining.hypotheses import (
    CLEARLY,
    FEWEST_ROWS,
    ConstantFactor,
    Diagnosis,
    ExactValues,
    Hypothesis,
    LocalWeights,
    OtherBackground,
    OtherClass,
    RoundedValues,
    slope_of,
    unexplained,
)


@final
class Optimized(Hypothesis):
    """An explanation of ours, which moved exact values on purpose."""

    words = "optimized contributions"

    def test(self, e: AuditEvidence) -> Diagnosis | None:
        if e.came.exact is None:
            return None
        own = replace(e, came=replace(e.came, values=e.came.exact, exact=None))
        inner = diagnosed(own)
        if inner.verdict == "wrong":
            return replace(inner, headline=f"Before optimizing: {inner.headline}")
        moved = float(np.linalg.norm(e.W - e.came.exact))
        share = percent(moved / max(float(np.linalg.norm(e.came.exact)), 1e-300))
        return Diagnosis(
            cause=self.words,
            headline="They are optimized contributions of propopt",
            evidence=f"Exact values were moved by {share} % of their size, on purpose. "
            f"Of the exact ones: {inner.headline[0].lower()}{inner.headline[1:]}.",
            next_step="Report them as optimized; .contributions has the exact ones.",
            verdict="depends on settings"
            if inner.values is not None
            else "undetermined",
            values=e.W,
            whose="optimized contributions",
            base=inner.base,
        )


# ---- What has no exact source: draws, another model, nothing that is known


@final
class SampledValues(Hypothesis):
    """Rows add up, and errors are spread as those of sampled values are."""

    words = "draws"
    next_step = "Draw more samples, or take the exact values: audit.exact."

    def test(self, e: AuditEvidence) -> Diagnosis | None:
        if e.adds_up.mean() <= CLEARLY or len(e.V) < FEWEST_ROWS:
            return None
        for one in e.knowns:
            R, S = e.V - one.values, one.values
            size = max(float(np.linalg.norm(S)), 1e-300)
            share = float(np.linalg.norm(R)) / size
            if share > _LARGEST or abs(slope_of(e.V, S) - 1.0) > 0.1:
                continue
            drift = np.abs(R.mean(axis=0)) * np.sqrt(len(R))
            if (drift > _DRIFT * np.maximum(R.std(axis=0), e.tolerance)).any():
                continue
            like = e.like_draws(R)
            if like is None:
                continue
            told = f"They scatter around {one.words} by {percent(share)} % of their "
            told += f"size, without drift, like means of {like:,.0f} orders."
            head = "They are sampled values, such as those of KernelSHAP"
            return self.diagnosed(one, head, told, "depends on settings")
        return None


_LARGEST: Final = 0.6
"""Of the size of values: sampled values with a larger error tell nothing."""

_DRIFT: Final = 5.0
"""Standard errors by which the mean error of a column may differ from 0."""


@final
class OtherModel(Hypothesis):
    """Rows do not add up, and values are near the exact ones."""

    words = "another version of the model"
    next_step = "Compute them again with this model; compare versions and files."

    def test(self, e: AuditEvidence) -> Diagnosis | None:
        if len(e.V) < FEWEST_ROWS or e.adds_up.mean() > CLEARLY:
            return None
        for one in e.knowns:
            a, b = e.V.ravel(), one.values.ravel()
            if not a.any() or not b.any():
                continue
            r = float(a @ b / np.sqrt((a @ a) * (b @ b)))
            if r < CLEARLY or not 0.5 < slope_of(e.V, one.values) < 2.0:
                continue
            missing = int((~e.adds_up).sum())
            return Diagnosis(
                cause=self.words,
                headline="They are values of another version of the model, or noisy",
                evidence=f"{missing:,} of {len(e.V):,} rows miss the prediction of "
                f"this one; the correlation with {one.words} is {min(r, 0.9999):.4g}.",
                next_step=self.next_step,
                verdict="wrong",
                values=e.E,
            )
        return None


@final
class Undetermined(Hypothesis):
    """Nothing that is known."""

    words = "undetermined"

    def test(self, e: AuditEvidence) -> Diagnosis | None:
        share = unexplained(e.V, e.E)
        if e.adds_up.mean() > CLEARLY:
            likely = "a background far from the rows given, few samples, or smoothing"
            step = "Give the background that they were made with: data=."
        else:
            likely = "another model, another output or another order"
            step = "Compare model, class, output and order of rows with their source."
        return Diagnosis(
            cause=self.words,
            headline="Their origin could not be determined",
            evidence=f"Likely: {likely}. They differ from exact values by "
            f"{percent(share)} % of their size.",
            next_step=step,
            verdict="undetermined",
        )


HYPOTHESES: Final[tuple[Hypothesis, ...]] = (
    *(Optimized(), LocalWeights(), ExactValues(), RoundedValues()),
    *(OtherClass(), ConstantFactor(), AbsoluteValues(), MovedColumns(), MovedRows()),
    *(TurnedSigns(), SummedColumns(), SingleSlips()),
    OtherBackground(),
    *(MovedRows(of_mixtures), TurnedSigns(of_mixtures), SingleSlips(of_mixtures)),
    MovedColumns(of_sorted_columns),
    *(SampledValues(), OtherModel(), Undetermined()),
)
"""In the order in which they are asked; the first that holds is the diagnosis."""


def diagnosed(e: AuditEvidence) -> Diagnosis:
    """The first hypothesis that holds."""
    found = (one.test(e) for one in HYPOTHESES)
    return next(one for one in found if one is not None)
