"""Inductive explanations beside the optimum of the same inputs."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import scipy.optimize as opt

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
_APPROACHED = 0.5
"""At most this share of the first excess is left at last; chosen, not measured."""
_FLAT = 0.1
"""The share of its squares that a fit may leave of an excess that falls."""


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


def falls(solved: Solved, *, difference: str = "", choice: str = "") -> Claim:
    """More inducing inputs, less excess."""
    ratios = [gaps[1:] / gaps[:-1] for _, gaps in _curves(solved)]
    return _claim(
        statement=f"{_premise(difference)}: the excess falls whenever inducing "
        "inputs are added: largest ratio of one to that before",
        values=[float(steps.max()) for steps in ratios],
        limit=1.0,
        difference=difference,
        choice=choice,
    )


def falls_exponentially(
    solved: Solved, *, difference: str = "", choice: str = ""
) -> Claim:
    """F/F* − 1 = c + a exp(−bn) fits better than c + a n^−b, and than a constant.

    Both have a floor c of their own and are fitted to logarithms. An excess that does
    not fall is fitted best by a constant, and by each of them as well.
    """
    fits = [_fits(tuple(counts), tuple(gaps)) for counts, gaps in _curves(solved)]
    floors = [floor for _, floor in fits]
    return _claim(
        statement=f"{_premise(difference)}: the excess falls exponentially to a floor: "
        "squares that this leaves, over those that a power with a floor leaves or a "
        "tenth of those that a constant leaves",
        values=[ratio for ratio, _ in fits],
        limit=1.0,
        difference=difference,
        choice=choice,
        note=f"floor {_spread(floors)}",
    )


def approaches(solved: Solved, *, choice: str = "") -> Claim:
    """As many observations as points leave less than the fewest, in the first draw."""
    _, gaps = curve(excesses(solved), "subset")
    return _claim(
        statement=f"{PROTOCOL}: the optimum is approached: F/F* − 1 with as many "
        "inducing inputs as points, over that with the fewest",
        values=[float(gaps[-1] / gaps[0])],
        limit=_APPROACHED,
        choice=choice,
        note=f"{gaps[0]:.2g} to {gaps[-1]:.2g}; of the gradient {_end(solved):.2g}",
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


def _curves(solved: Solved) -> list[tuple[Array, Array]]:
    """The curve of each draw, without what is no excess but rounding."""
    curves = (curve(excesses(one), "subset") for one in solved.draws)
    return [(counts[gaps > _NONE], gaps[gaps > _NONE]) for counts, gaps in curves]


def _end(solved: Solved) -> float:
    """F/F* − 1 of the gradient, to which E tends with more observations."""
    (gradient,), (best,) = solved.of_method("gradient"), solved.trade_offs.optimized
    value = sum(c * gradient.losses[name] for name, c in best.weights.items())
    return value / float(best.objective or np.nan) - 1.0


def _premise(difference: str) -> str:
    return _PREMISES["subset"] if difference else PROTOCOL


@cache
def _fits(counts: tuple[float, ...], gaps: tuple[float, ...]) -> tuple[float, float]:
    """Squares of the exponential over those of the better other, and its floor."""
    logs = np.log(gaps)
    exponential, floor = _fit(np.array(counts) / max(counts), logs)
    power, _ = _fit(np.log(counts), logs)
    constant = float(((logs - logs.mean()) ** 2).sum())
    return exponential / max(min(power, _FLAT * constant), _NONE**2), floor


def _fit(x: Array, logs: Array) -> tuple[float, float]:
    """The least Σ(log(c + a exp(−bx)) − logs)² over a, b, c > 0, and its c.

    From several starts: the sum has local minima.
    """

    def residuals(p: Array) -> Array:
        return np.asarray(np.logaddexp(p[0], p[1] - np.exp(p[2]) * x) - logs)

    slope = max(-float(np.polyfit(x, logs, 1)[0]), 0.05)
    fits = []
    for below, steeper in product((8.0, 1.5, 0.5, 0.05), (1.0, 3.0, 8.0)):
        b = steeper * slope
        start = [logs.min() - below, logs[0] + b * x[0], np.log(b)]
        fits.append(opt.least_squares(residuals, start, max_nfev=300))
    best = min(fits, key=lambda fit: float(fit.cost))
    floor = float(np.exp(best.x[0]))
    return 2.0 * float(best.cost), floor if floor > _NONE else 0.0


def _spread(values: list[float]) -> str:
    low, high = f"{min(values):.2g}", f"{max(values):.2g}"
    return low if low == high else f"{low} to {high}"


def _claim(
    *,
    statement: str,
    values: list[float],
    limit: float,
    difference: str = "",
    choice: str = "",
    note: str = "",
) -> Claim:
    """Decided by the median of all draws, with their spread."""
    spread = f"{_spread(values)} over {len(values)} draws" * (len(values) > 1)
    return Claim(
        statement=statement,
        value=float(np.median(values)),
        sense="<=",
        limit=limit,
        note="; ".join(filter(None, (spread, note))),
        difference=difference,
        choice=choice,
    )
