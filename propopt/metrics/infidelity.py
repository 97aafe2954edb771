"""Infidelity: whether Iᵀw foretells what the function does when x moves by I."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, final, get_args

import numpy as np

from propopt._typing import Array, Attributions
from propopt.errors import InvalidInput
from propopt.explainers.request import Request
from propopt.functions import Function
from propopt.metrics.base import Better, FaithfulnessMetric, RandomSeed, TableLike
from propopt.metrics.reading import attributions_of, read_task
from propopt.metrics.sampling import Noisy
from propopt.results.foreign import AttributionsLike


Rescaling: TypeAlias = Literal["none", "best"]


@dataclass(frozen=True, kw_only=True, eq=False)
class InfidelityParts:
    """Infidelity with and without the scale of the attributions.

    Parameters
    ----------
    raw : array (N,)
        Of the attributions as they are.
    scale_free : array (N,)
        Of β·w; at most ``raw``.
    factor : array (N,)
        β, one per point.
    """

    raw: Array
    scale_free: Array
    factor: Array


@final
@dataclass(frozen=True, kw_only=True)
class Infidelity(Noisy, FaithfulnessMetric):
    """Expected error of a linear forecast (Yeh et al. 2019, infidelity).

    (1/S) Σ_s (I_sᵀw − (f(x) − f(x − I_s)))² with I_s ~ N(0, δ² I): zero for the
    gradient of a linear function, and in the units of f². It asks for attributions in
    the units of gradients; others, off by a factor, are judged by
    ``rescaling="best"``: the infidelity of β·w with the β that suits it best,

    β = Σ_s (I_sᵀw) Δ_s / Σ_s (I_sᵀw)²,  Δ_s = f(x) − f(x − I_s),

    which does not depend on the scale of w. Where Iᵀw = 0 throughout, every β is as
    good as another, and β = 0 is reported. Always defined.

    Parameters
    ----------
    scale : float
        δ > 0, the standard deviation of I, in the units of the features.
    n_samples : int
        S, the number of perturbations per point.
    distribution : {"gaussian", "uniform", "ball"}
        N(0, δ² I), uniform in the cube [−δ, δ]^D, or uniform in the ball of radius δ.
    rescaling : {"none", "best"}
        Whether to judge w or β·w. :meth:`parts` gives both.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> line = po.wrap(lambda X: X @ [1.0, 2.0])
    >>> parts = Infidelity().parts([[2.0, 4.0]], line, [[0.0, 0.0]])
    >>> parts.factor.round(6), parts.scale_free.round(6)
    (array([0.5]), array([0.]))
    """

    better: ClassVar[Better] = "lower"

    rescaling: Rescaling = "none"

    def __post_init__(self) -> None:
        self._perturbations()
        if self.rescaling not in get_args(Rescaling):
            raise InvalidInput(
                f"rescaling: expected 'none' or 'best', got {self.rescaling!r}"
            )

    def parts(
        self,
        explanation: AttributionsLike,
        function: Function,
        X: TableLike,
        *,
        rng: RandomSeed = None,
    ) -> InfidelityParts:
        """Both infidelities, and the factor β between them; arguments as for a call."""
        task = read_task(function, X, rng)
        attributions = attributions_of(explanation, task.points, task.labels)
        return self._parts(task, attributions)

    def _rows(self, task: Request, attributions: Attributions) -> Array:
        parts = self._parts(task, attributions)
        return parts.raw if self.rescaling == "none" else parts.scale_free

    def _parts(self, task: Request, attributions: Attributions) -> InfidelityParts:
        errors = [_errors(pairs) for pairs in self._forecasts(task, attributions)]
        raw, scale_free, factor = np.concatenate(errors, axis=1)
        return InfidelityParts(raw=raw, scale_free=scale_free, factor=factor)

    def _forecasts(self, task: Request, attributions: Attributions) -> Iterator[Array]:
        """Pairs (I_sᵀw, Δ_s), (n, S, 2), for consecutive rows."""
        points, values = task.points, task.value(task.points)

        def pairs(rows: slice, noise: Array) -> Array:
            forecast = (noise @ attributions[rows, :, None])[..., 0]
            change = values[rows, None] - task.value(points[rows, None] - noise)
            return np.stack([forecast, change], axis=-1)

        sampling = self._sampling(task.fixed, task.rng)
        for _, forecasts in sampling.rows(pairs):
            yield forecasts


def _errors(pairs: Array) -> Array:
    """Raw error, scale-free error and β of each row, (3, n)."""
    forecast, change = pairs[..., 0], pairs[..., 1]
    size = np.abs(forecast).max(axis=1, keepdims=True)
    size[size == 0] = 1
    unit = forecast / size  # so that no square over- or underflows
    squares = (unit**2).sum(axis=1)
    squares[squares == 0] = 1
    factor = (unit * change).sum(axis=1) / squares
    raw = ((forecast - change) ** 2).mean(axis=1)
    scale_free = ((factor[:, None] * unit - change) ** 2).mean(axis=1)
    return np.stack([raw, scale_free, factor / size[:, 0]])
