"""LIME's whole family: exact limits at many kernel widths, all at once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from propopt._typing import Values
from propopt.checks import read_rng
from propopt.errors import Refused
from propopt.explainers.base import Findings, PackageUnits
from propopt.explainers.exact_lime.units import details_of, in_units
from propopt.explainers.request import Request
from propopt.functions import Function
from propopt.functions.base import read_function
from propopt.lime.expectations import Limits
from propopt.lime.explanation.subject import LimeSubject
from propopt.lime.fidelity.effective import effective_share
from propopt.lime.paths import read_widths
from propopt.results.explanation import Explanation


if TYPE_CHECKING:
    from propopt.explainers.exact_lime.explainer import ExactLime


def family_of_widths(
    lime: ExactLime,
    function: Function,
    X: object,
    widths: ArrayLike | None = None,
    *,
    rng: int | np.random.Generator | None = None,
) -> tuple[Explanation, ...]:
    """What :meth:`explain` gives with each of many kernel widths, all at once.

    They are LIME's whole family: baselines of a sweep, of which
    :meth:`propopt.TradeOffs.nearest` tells the one nearest to the front. The
    function is read once, and so are the means of its factors in each bin.

    Parameters
    ----------
    function : Function
        f.
    X : array or DataFrame (N, D)
        The points.
    widths : array (M,), optional
        ν > 0; by default 50, evenly spaced in their logarithm, from a tenth of
        ``kernel_width`` to ten times it.
    rng : int, numpy.random.Generator or None
        As for :meth:`explain`, where coefficients are estimated.

    Returns
    -------
    tuple of Explanation (M,)
        In the order of increasing widths, each with its ``kernel_width``; seconds
        are those of all in equal parts.

    Raises
    ------
    InvalidInput
        As :meth:`explain` does, or if a width is not a positive number.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X = np.arange(8.0)[:, None] * [1.0, 0.0]
    >>> tree = DecisionTreeRegressor(max_depth=1).fit(X, X[:, 0] > 3)
    >>> lime = po.explainers.ExactLime()
    >>> family = lime.at_widths(po.wrap(tree), X, [0.5, 1.0, 2.0])
    >>> [one.parameters["kernel_width"] for one in family]
    [0.5, 1.0, 2.0]
    """
    start = time.perf_counter()
    function = read_function(function)
    points, labels = function.read(X)
    before = function.calls.rows
    request = Request(
        function=function, points=points, labels=labels, rng=read_rng(rng)
    )
    subject = lime.subject_of(request)
    grid = read_widths(widths, subject.law.kernel_width)
    try:
        findings = list(_at_widths(subject, request, grid, lime.units))
    except Refused:  # no exact limits at some of them
        each = (replace(lime, kernel_width=float(width)) for width in grid)
        return tuple(one.explain(function, X, rng=rng) for one in each)
    rows = -(-(function.calls.rows - before) // len(grid))
    seconds = (time.perf_counter() - start) / len(grid)
    return tuple(
        lime.explanation_at(width, request, found, rows, seconds)
        for found, width in zip(findings, grid.tolist(), strict=True)
    )


def _at_widths(
    subject: LimeSubject, request: Request, grid: Values, units: PackageUnits
) -> Iterator[Findings]:
    """What is found at each width, of the limits at all of them."""
    if subject.exact is None:
        raise Refused(subject.reason)
    n, law = len(subject.points), subject.law
    points = np.tile(subject.points, (len(grid), 1))
    widths = np.repeat(grid, n)
    limits = subject.exact.of(points, widths)
    values = subject.function.value_at(subject.points, subject.labels)
    shares = effective_share(law, points, widths)
    for m, width in enumerate(grid.tolist()):
        some = slice(m * n, (m + 1) * n)
        own = Limits(
            limits.coefficients[some],
            limits.mean[some],
            limits.alpha[some],
            limits.log_weight[some],
        )
        details = details_of(own, values, shares[some])
        yield in_units(own, details, law.with_width(width), request, units)
