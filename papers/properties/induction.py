"""Inductive explanations beside the optimum of the same inputs."""

from __future__ import annotations

import numpy as np
import pandas as pd

from papers.engine.findings import Claim, Invariant
from papers.engine.panels import Solved
from propopt.base.arrays import Array
from propopt.results.explanation import Explanation


INDUCTIVE = "inductive"
OWN = " + own gradients"
PROTOCOL = "the paper's own protocol, inducing inputs apart from the points"
_PREMISES = {
    "subset": "gradients at the inducing inputs alone",
    "random": "all gradients, through random inducing inputs",
    "farthest": "all gradients, through farthest inducing inputs",
    "greedy": "all gradients, through greedy inducing inputs",
}
"""What is known of the function, by the rule."""
_NONE = 1e-9
"""Smaller excesses are rounding: the optimum is known to a certified 1e-6 or better."""
_REACHED = 0.01
"""An excess of one per cent counts as none; chosen, not measured."""


def excesses(solved: Solved) -> pd.DataFrame:
    """F/F* − 1 of each inductive explanation under its weights.

    Columns ``rule`` (with a note where own gradients are used), ``count`` (of inducing
    inputs), ``excess`` and the losses.
    """
    return pd.DataFrame(
        [_row(solved, explanation) for explanation in solved.of_method(INDUCTIVE)]
    )


def excess(solved: Solved, explanation: Explanation) -> float:
    """F/F* − 1 under the weights of an inductive explanation."""
    (optimum,) = (
        best.objective
        for best in solved.trade_offs.optimized
        if best.weights == explanation.weights
    )
    return float(explanation.objective or np.nan) / float(optimum or np.nan) - 1.0


def curve(table: pd.DataFrame, rule: str) -> tuple[Array, Array]:
    """Counts of inducing inputs, rising, and the excess at each."""
    rows = table[table["rule"] == rule].sort_values("count")
    return rows["count"].to_numpy(float), rows["excess"].to_numpy(float)


def never_below(solved: Solved) -> Invariant:
    """F >= F* for every inductive explanation, up to rounding."""
    table = pd.concat(excesses(one) for one in solved.draws)
    lowest = table.sort_values("excess").iloc[0]
    return Invariant(
        statement="no inductive explanation is better than the optimum: least F/F* − 1",
        value=float(lowest["excess"]),
        sense=">=",
        limit=-solved.problem.tolerance,
        note=f"{lowest['rule']}, {lowest['count']} inputs",
    )


def reaches_optimum(solved: Solved) -> Invariant:
    """From all points, each rule gives the optimum."""
    table = excesses(solved)
    whole = table[table["count"] == len(solved.problem.points)]
    return Invariant(
        statement="with all points as inducing inputs the inductive explanation is the "
        "optimum, for every rule: largest absolute F/F* − 1",
        value=float(whole["excess"].abs().max()) if len(whole) else np.nan,
        sense="<=",
        limit=solved.problem.tolerance,
        note=f"{len(whole)} rules",
    )


def never_rises(solved: Solved, *, rule: str) -> Invariant:
    """E is the least of F over a space that grows with nested inducing inputs."""
    _, gaps = curve(excesses(solved), rule)
    return Invariant(
        statement=f"{_PREMISES[rule]}: if these are nested, the excess never rises: "
        "largest rise",
        value=float(np.diff(gaps).max()),
        sense="<=",
        limit=solved.problem.tolerance,
        note=f"{len(gaps) - 1} steps",
    )


def own_gradients_are_faithful(solved: Solved) -> Invariant:
    """One more observation g at x moves E(x) to E + v/(1 + v)·(g − E), v a variance."""
    part = pd.concat(_own_ratios(excesses(one)) for one in solved.draws)
    return Invariant(
        statement="with the gradient at the new input, too, the faithfulness loss is "
        "lower: largest ratio to that without",
        value=float(part.max()),
        sense="<=",
        limit=1.0,
        note=f"{len(part)} counts",
    )


def falls(solved: Solved, *, rule: str = "subset", difference: str = "") -> Claim:
    """More inducing inputs, less excess."""
    ratios = [gaps[1:] / gaps[:-1] for _, gaps in _curves(solved, rule)]
    return _claim(
        statement=f"{_premise(rule, difference)}: the excess falls whenever inducing "
        "inputs are added: largest ratio of one to that before",
        values=[float(steps.max()) for steps in ratios],
        limit=1.0,
        difference=difference,
    )


def falls_exponentially(
    solved: Solved, *, rule: str = "subset", difference: str = ""
) -> Claim:
    """log(F/F* − 1) is nearer to a line in the count than in its logarithm.

    The first is an exponential, the second a power: that both are fitted alike leaves
    no limit to choose.
    """
    values = [
        _misfit(counts, gaps) / _misfit(np.log(counts), gaps)
        for counts, gaps in _curves(solved, rule)
    ]
    return _claim(
        statement=f"{_premise(rule, difference)}: the excess falls exponentially with "
        "the number of inducing inputs, rather than as a power of it: ratio of the "
        "squares that both fits leave",
        values=values,
        limit=1.0,
        difference=difference,
    )


def vanishes(solved: Solved, *, difference: str = "") -> Claim:
    """With as many observations as there are points, hardly anything is left."""
    values = [float(gaps[-1]) for _, gaps in _curves(solved, "subset")]
    return _claim(
        statement=f"{_premise('subset', difference)}: the optimum is reached: F/F* − 1 "
        "with as many inducing inputs as points",
        values=values,
        limit=_REACHED,
        difference=difference,
    )


def inductive_distances(solved: Solved) -> pd.DataFrame:
    """The baselines with their excess; of an inductive one under its own weights."""
    table = solved.trade_offs.distances()
    own = pd.Series(
        [
            excess(solved, b) if b.method == INDUCTIVE else least
            for b, least in zip(
                solved.trade_offs.baselines, table["excess"], strict=True
            )
        ],
        index=table.index,
    )
    return table.assign(excess=own)


def _row(solved: Solved, explanation: Explanation) -> dict[str, object]:
    rule = str(explanation.parameters["rule"])
    return {
        "rule": rule + OWN * bool(explanation.parameters["with_gradients"]),
        "count": explanation.parameters["n_inducing"],
        "excess": excess(solved, explanation),
        **explanation.losses,
    }


def _own_ratios(table: pd.DataFrame) -> pd.Series:
    """Faithfulness losses with own gradients over those without, by the count.

    Where all points are observed nothing is added.
    """
    losses = table.set_index(["rule", "count"])["gradient_matching"]
    ratios = losses["subset" + OWN] / losses["subset"]
    return ratios[ratios.index < ratios.index.max()]


def _curves(solved: Solved, rule: str) -> list[tuple[Array, Array]]:
    """The curve of each draw, without what is no excess but rounding."""
    curves = (curve(excesses(one), rule) for one in solved.draws)
    return [(counts[gaps > _NONE], gaps[gaps > _NONE]) for counts, gaps in curves]


def _premise(rule: str, difference: str) -> str:
    return _PREMISES[rule] if difference else PROTOCOL


def _misfit(x: Array, gaps: Array) -> float:
    """What a line in x leaves of the variance of log gaps."""
    logs = np.log(gaps)
    slope, intercept = np.polyfit(x, logs, 1)
    return float(((logs - slope * x - intercept) ** 2).sum())


def _claim(
    *, statement: str, values: list[float], limit: float, difference: str
) -> Claim:
    """Decided by the median of all draws, with their spread."""
    spread = f"{min(values):.2g} to {max(values):.2g} over {len(values)} draws"
    return Claim(
        statement=statement,
        value=float(np.median(values)),
        sense="<=",
        limit=limit,
        note=spread if len(values) > 1 else "",
        difference=difference,
    )
