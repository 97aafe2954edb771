"""Explanations in units of the output: rows add up to the prediction less the base."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np

from propopt._typing import Array
from propopt.checks import sealed
from propopt.errors import InvalidInput
from propopt.explaining.contributions import Contributions, FeatureMetric
from propopt.explaining.defaults import optimum
from propopt.graphs.base import Graph
from propopt.losses import Completeness, GradientMatching, PairwiseRobustness
from propopt.results.explanation import Explanation


ROUNDING_OF_TOTALS = 1e-9
"""Of predictions and base, for functions that no feature changes."""

_FLOOR = 1e-6
"""Of the largest mean square of a column: less counts as this much in the metric."""


def complete_explanation(
    contributions: Contributions,
    graph: Graph,
    *,
    robustness: float | None = None,
    metric: FeatureMetric = "uniform",
    progress: bool | None = None,
) -> Explanation:
    """The attributions nearest to Φ that are robust, and add up for every row.

    minimise    Σ_n Σ_d (w_nd − Φ_nd)²/ω_d + c Σ_{n,n'} S_nn' Σ_d (w_nd − w_n'd)²/ω_d
    subject to  Σ_d w_nd = f(x_n) − base   for every n

    A column in which Φ is zero in all rows stays exactly zero, and does not count.
    Where c is large, features share what rows differ by evenly (ω = 1), or in
    proportion to ω.

    Parameters
    ----------
    contributions : Contributions
        Φ, with base and predictions.
    graph : Graph
        S.
    robustness : float, optional
        c, if not at the knee of the curve.
    metric : {"uniform", "effects"}
        ω_d: one, or the mean of Φ_nd² over the rows (at least 1e-6 of the largest), so
        that what the features have to share is shared by those that matter.
    progress : bool, optional
        Show a bar.

    Returns
    -------
    Explanation
        In units ``"output"``. Its details are ``contributions`` (Φ), ``base_value``,
        ``prediction``, ``completeness_gap`` (N,), the multipliers of the constraint,
        and for each loss what no complete explanation can remove of it
        (``irreducible.pairwise_robustness``). With ``metric="effects"`` losses are
        those of w_d/√ω_d.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from propopt.explaining.contributions import Contributions
    >>> from propopt.estimates import Estimate
    >>> phi = Estimate(values=np.array([[1.0, 0.0], [3.0, 0.0]]), source="given")
    >>> known = Contributions(
    ...     estimate=phi, base=np.zeros(2), prediction=np.array([1.0, 3.0])
    ... )
    >>> best = complete_explanation(known, po.chain_graph(2))
    >>> best.attributions  # one column is used, which has to be the total
    array([[1., 0.],
           [3., 0.]])
    """
    roots = metric_roots(contributions.estimate.values, metric)
    best = _best(contributions, graph, roots, robustness, progress)
    if metric == "effects":
        best = _turned(best, roots)
    gap = best.attributions.sum(axis=1) - contributions.total
    return replace(
        best,
        labels=contributions.estimate.labels,
        units="output",
        evaluations=contributions.estimate.evaluations,
        details={
            **best.details,
            "contributions": contributions.estimate.values,
            "base_value": contributions.base,
            "prediction": contributions.prediction,
            "completeness_gap": gap,
        },
    )


def metric_roots(phi: Array, metric: FeatureMetric) -> Array:
    """√ω (D,): ones, or root mean squares of Φ (N, D), at least 1e-3 of the largest.

    Raises
    ------
    InvalidInput
        If the metric is no such word.
    """
    if metric not in get_args(FeatureMetric):
        raise InvalidInput(f"metric: expected 'uniform' or 'effects', got {metric!r}")
    if metric == "uniform":
        return np.ones(phi.shape[1])
    squares = (phi**2).mean(axis=0)
    return np.asarray(np.sqrt(np.maximum(squares, _FLOOR * (squares.max() or 1.0))))


def _best(
    contributions: Contributions,
    graph: Graph,
    roots: Array,
    robustness: float | None,
    progress: bool | None,
) -> Explanation:
    """The optimum for W diag(1/√ω), whose rows times √ω add up over what is used."""
    estimate = contributions.estimate
    aim = replace(
        estimate,
        values=estimate.values / roots,
        blocks=None if estimate.blocks is None else estimate.blocks / roots,
    )
    robust = PairwiseRobustness(graph)
    if not estimate.values.any():
        size = np.abs([contributions.prediction, contributions.base]).max()
        if np.abs(contributions.total).max() > ROUNDING_OF_TOTALS * size:
            raise InvalidInput(
                "contributions: all are zero, and predictions differ from the base by "
                f"up to {np.abs(contributions.total).max():.3g}: nothing can add up"
            )
        return optimum(1.0 * GradientMatching(aim), robust, robustness, progress)
    adding_up = Completeness(contributions.total, roots)  # over columns that are used
    return optimum(
        1.0 * GradientMatching(aim), robust, robustness, progress, [adding_up]
    )


def _turned(best: Explanation, roots: Array) -> Explanation:
    """W of W diag(1/√ω); the program is that of the latter, and stays behind."""
    errors = best.standard_errors
    return replace(
        best,
        attributions=sealed(best.attributions * roots),
        standard_errors=None if errors is None else errors * roots,
        program=None,
    )
