"""What is delicate about rows, whatever the function is: each with its number."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias, final

import numpy as np

from propopt._typing import Array, Points, Truths
from propopt.checks import read_count
from propopt.lime.fidelity import effective_share
from propopt.lime.gaussian.bandwidths import critical_at
from propopt.lime.gaussian.gains import gains_at
from propopt.lime.gaussian.geometry import Geometry, rows_of_law
from propopt.lime.laws.base import LimeLaw
from propopt.lime.laws.gaussian import FEW_BEYOND
from propopt.lime.laws.glime import GlimeLaw
from propopt.tables.names import Labels


FindingKind: TypeAlias = Literal[
    "far", "edge", "critical width", "opposite sign", "never outside", "few samples"
]

NEAR_EDGE: Final = 0.01
"""In standard deviations of the samples."""

NEAR_CRITICAL: Final = 0.1
"""Of the critical width."""

LEAST_OUTSIDE: Final = 30.0
"""Samples outside a bin, by weight, that a coefficient needs."""

RAREST: Final = 1e-6
"""The least probability of being outside a bin, whatever the number of samples."""

LEAST_PER_COLUMN: Final = 10.0
"""Effective samples for each column."""


@final
@dataclass(frozen=True)
class GaussianFinding:
    """One thing that makes an explanation with normal samples delicate.

    Parameters
    ----------
    kind : str
        ``"far"``, ``"edge"``, ``"critical width"``, ``"opposite sign"``, ``"never
        outside"`` or ``"few samples"``.
    row : hashable
        The name of the row, or its position.
    feature : str or None
        The column; None for what concerns all.
    value : float
        The number that the rule is about.
    limit : float
        What it is compared with.
    sentence : str
        What it means.
    """

    kind: FindingKind
    row: Hashable
    feature: str | None
    value: float
    limit: float
    sentence: str


def gaussian_findings(
    law: LimeLaw, X: Any, n_samples: int = 5000
) -> tuple[GaussianFinding, ...]:
    """What is delicate about rows under a law of normal samples.

    ================== ===============================================================
    kind               the number, and when it is found
    ================== ===============================================================
    ``far``            |ξ − μ|/σ > 3: hardly any sample is near the row
    ``edge``           the distance to an end of the bin < 0.01 σ: a small change of
                       the row gives another coefficient
    ``critical width`` |ν/ν_crit − 1| < 0.1: linear functions lose the column
    ``opposite sign``  the gain g < 0: an increasing function has a negative coefficient
    ``never outside``  1 − α < 1e-6, or n C (1 − α) < 30: nothing to compare with
    ``few samples``    n C(ν)²/C(ν/√2) < 10 D: the weights of few samples decide
    ================== ===============================================================

    Parameters
    ----------
    law : GaussianLaw or GlimeLaw
        With GLIME's law weights are one, and C = 1.
    X : DataFrame or array (n, D)
        The rows; categories as codes.
    n_samples : int
        Of one run of LIME.

    Raises
    ------
    InvalidInput
        If the law has no normal samples, or X is no table of its columns.

    Examples
    --------
    >>> import propopt as po
    >>> law = po.lime.GaussianLaw.of([0.0, 0.0], scale=1.0, kernel_width=1.0)
    >>> for found in po.lime.gaussian_findings(law, [[3.5, 0.0]]):
    ...     print(f"{found.kind}, {found.feature}: {found.value:.3g}")
    far, x0: 3.5
    edge, x1: 0
    never outside, x0: 7.5
    """
    n = read_count(n_samples, "n_samples")
    points, labels = rows_of_law(law, X)
    rows = labels.points or range(len(points))
    found = [*_of_columns(law, points, labels, n), *_few_samples(law, points, n)]
    names = labels.feature_names(points.shape[1])
    return tuple(
        GaussianFinding(
            one.kind,
            rows[one.row],
            None if one.column is None else names[one.column],
            one.value,
            one.limit,
            one.sentence,
        )
        for one in sorted(found, key=lambda one: one.row)
    )


class _Rule(NamedTuple):
    """What is found where a number breaks a rule, (n, D)."""

    kind: FindingKind
    values: Array
    broken: Truths
    limit: float
    sentence: str


class _Found(NamedTuple):
    kind: FindingKind
    row: int
    column: int | None
    value: float
    limit: float
    sentence: str


def _of_columns(
    law: LimeLaw, points: Points, labels: Labels, n: int
) -> Iterator[_Found]:
    for kind, values, broken, limit, sentence in _rules(law, points, labels, n):
        for row, column in np.argwhere(broken).tolist():
            value = float(values[row, column])
            words = sentence.format(value=value)
            yield _Found(kind, row, column, value, limit, words)


def _rules(law: LimeLaw, points: Points, labels: Labels, n: int) -> Iterator[_Rule]:
    geometry = Geometry.of(law)
    found = gains_at(geometry, points, labels)
    yield _far(geometry, points)
    yield _edge(geometry, points)
    yield _critical(critical_at(geometry, points, found).distance)
    yield _opposite(found.gain)
    share = 1.0 if isinstance(law, GlimeLaw) else np.exp(found.log_weight)[:, None]
    yield _never(n, n * share * found.complement, found.complement, geometry.normal)


def _far(geometry: Geometry, points: Points) -> _Rule:
    distance = np.abs(points - geometry.mean) / geometry.scale
    sentence = (
        "the value is {value:.3g} standard deviations from the mean of the samples"
    )
    return _Rule("far", distance, distance > FEW_BEYOND, FEW_BEYOND, sentence)


def _edge(geometry: Geometry, points: Points) -> _Rule:
    nearest = np.minimum(*np.abs(np.array(geometry.ends(points)) - points))
    distance = nearest / geometry.scale
    sentence = (
        "the value is {value:.3g} standard deviations from an end of its bin; beyond "
        "it the coefficient is another one"
    )
    return _Rule("edge", distance, distance < NEAR_EDGE, NEAR_EDGE, sentence)


def _critical(distance: Array) -> _Rule:
    sentence = (
        "the kernel width is within {value:.1%} of the one at which coefficients of "
        "linear functions are zero, and change their sign"
    )
    near = distance < NEAR_CRITICAL
    return _Rule("critical width", distance, near, NEAR_CRITICAL, sentence)


def _opposite(gain: Array) -> _Rule:
    sentence = (
        "an increasing function has a negative coefficient: the mean of weighted "
        "samples in the bin less that outside is {value:.3g}"
    )
    return _Rule("opposite sign", gain, gain < 0.0, 0.0, sentence)


def _never(n: int, outside: Array, complement: Array, normal: Truths) -> _Rule:
    never = ((outside < LEAST_OUTSIDE) | (complement < RAREST)) & normal
    sentence = (
        f"of {n:,} samples {{value:.3g}}, by weight, are outside the bin of the value"
    )
    return _Rule("never outside", outside, never, LEAST_OUTSIDE, sentence)


def _few_samples(law: LimeLaw, points: Points, n: int) -> Iterator[_Found]:
    least = LEAST_PER_COLUMN * points.shape[1]
    effective = n * effective_share(law, points)
    for row in np.flatnonzero(effective < least).tolist():
        value = float(effective[row])
        sentence = (
            f"{n:,} weighted samples count as {value:.3g}; GlimeLaw draws samples that "
            "all count, and has the same limits"
        )
        yield _Found("few samples", row, None, value, least, sentence)
