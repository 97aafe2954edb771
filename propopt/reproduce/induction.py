"""Inductive explanations beside the optimum of the same inputs."""

from __future__ import annotations

import numpy as np
import pandas as pd

from propopt._typing import Array
from propopt.explanation import Explanation
from propopt.reproduce.findings import Finding
from propopt.reproduce.panels import Solved


INDUCTIVE = "inductive"
OWN = " + own gradients"
ROUNDING = 1e-12
"""Smaller excesses are none."""


def excesses(solved: Solved) -> pd.DataFrame:
    """F/F* − 1 of each inductive explanation under its weights.

    Columns ``rule`` (with a note where own gradients are used), ``count`` (of inducing
    inputs), ``excess`` and the losses.
    """
    return pd.DataFrame([_row(solved, found) for found in inductive(solved)])


def inductive(solved: Solved) -> list[Explanation]:
    """The inductive explanations of a problem file."""
    return [b for b in solved.trade_offs.baselines if b.method == INDUCTIVE]


def excess(solved: Solved, found: Explanation) -> float:
    """F/F* − 1 under the weights of an inductive explanation."""
    (optimum,) = (
        best.objective
        for best in solved.trade_offs.optimized
        if best.weights == found.weights
    )
    return float(found.objective or np.nan) / float(optimum or np.nan) - 1.0


def curve(table: pd.DataFrame, rule: str) -> tuple[Array, Array]:
    """Counts of inducing inputs, rising, and the excess at each."""
    rows = table[table["rule"] == rule].sort_values("count")
    return rows["count"].to_numpy(float), rows["excess"].to_numpy(float)


def never_below(solved: Solved) -> Finding:
    """F >= F* for every inductive explanation, up to rounding."""
    table = excesses(solved)
    lowest = table.sort_values("excess").iloc[0]
    return Finding(
        statement="no inductive explanation is better than the optimum: least F/F* − 1",
        value=float(lowest["excess"]),
        sense=">=",
        limit=-solved.problem.schema.tolerance,
        note=f"{lowest['rule']}, {lowest['count']} inputs",
    )


def reaches_optimum(solved: Solved) -> Finding:
    """From all points, each rule gives the optimum."""
    table = excesses(solved)
    whole = table[table["count"] == len(solved.problem.points)]
    return Finding(
        statement="with all points as inducing inputs the inductive explanation is the "
        "optimum, for every rule: largest absolute F/F* − 1",
        value=float(whole["excess"].abs().max()) if len(whole) else np.nan,
        sense="<=",
        limit=solved.problem.schema.tolerance,
        note=f"{len(whole)} rules",
    )


def falls_at_each_step(solved: Solved, *, rule: str) -> Finding:
    """More inducing inputs, less excess."""
    _, gaps = _below_all(solved, rule)
    return Finding(
        statement=f"{rule}: the excess falls whenever inducing inputs are added: "
        "largest ratio of one to that before",
        value=float((gaps[1:] / gaps[:-1]).max()),
        sense="<=",
        limit=1.0,
        note=f"{len(gaps) - 1} steps",
    )


def falls_exponentially(solved: Solved, *, rule: str) -> Finding:
    """The logarithm of F/F* − 1 is nearly linear in the number of inducing inputs."""
    counts, gaps = _below_all(solved, rule)
    slope, _ = np.polyfit(counts, np.log10(gaps), 1)
    return Finding(
        statement=f"{rule}: the excess falls about exponentially: correlation of its "
        "logarithm with the number of inducing inputs",
        value=float(np.corrcoef(counts, np.log10(gaps))[0, 1]),
        sense="<=",
        limit=-0.95,
        note=f"a decade per {-1 / slope:.0f} inputs",
    )


def falls_by(solved: Solved, *, rule: str, decades: float) -> Finding:
    """From the fewest inducing inputs to the most, all points left out."""
    counts, gaps = _below_all(solved, rule)
    return Finding(
        statement=f"{rule}: decades that the excess falls before all points are "
        f"inducing (at least {decades:g})",
        value=float(np.log10(gaps[0] / gaps[-1])),
        sense=">=",
        limit=decades,
        note=f"{gaps[0]:.2g} at {counts[0]:g}, {gaps[-1]:.2g} at {counts[-1]:g}",
    )


def chosen_beat_random(solved: Solved, *, rule: str) -> Finding:
    """At the largest count that is not everything."""
    (counts, chosen), (_, random) = (
        _below_all(solved, rule),
        _below_all(solved, "random"),
    )
    return Finding(
        statement=f"{rule}: inducing inputs that are chosen do better than random ones:"
        " ratio of the excesses at the most inputs that are not all",
        value=float(chosen[-1] / random[-1]),
        sense="<=",
        limit=0.5,
        note=f"{counts[-1]:g} inputs",
    )


def stays_above(solved: Solved) -> Finding:
    """Observations elsewhere do not lead to the optimum."""
    counts, gaps = curve(excesses(solved), "subset")
    return Finding(
        statement="from observations elsewhere the optimum is not reached: F/F* − 1 "
        "with as many observations as points",
        value=float(gaps[-1]),
        sense=">=",
        limit=0.1,
        note=f"{counts[-1]:g} observations",
    )


def own_gradients_are_faithful(solved: Solved) -> Finding:
    """A gradient at the new input lowers the faithfulness loss."""
    table = excesses(solved).set_index(["rule", "count"])["gradient_matching"]
    ratios = table["subset" + OWN] / table["subset"]
    part = ratios[ratios.index < ratios.index.max()]
    return Finding(
        statement="subset: with the gradient at the new input the faithfulness loss is "
        "lower: largest ratio to that without",
        value=float(part.max()),
        sense="<=",
        limit=1.0,
        note=f"{len(part)} counts",
    )


def distances(solved: Solved) -> pd.DataFrame:
    """The baselines with their excess; of an inductive one under its own weights."""
    table = solved.trade_offs.distances()
    own = pd.Series(
        [
            excess(solved, b) if b.method == INDUCTIVE else known
            for b, known in zip(
                solved.trade_offs.baselines, table["excess"], strict=True
            )
        ],
        index=table.index,
    )
    return table.assign(excess=own)


def _row(solved: Solved, found: Explanation) -> dict[str, object]:
    rule = str(found.parameters["rule"])
    return {
        "rule": rule + OWN * bool(found.parameters["own_gradients"]),
        "count": found.parameters["n_inducing"],
        "excess": excess(solved, found),
        **found.losses,
    }


def _below_all(solved: Solved, rule: str) -> tuple[Array, Array]:
    counts, gaps = curve(excesses(solved), rule)
    part = counts < len(solved.problem.points)
    return counts[part], np.maximum(gaps[part], ROUNDING)
