"""Faithfulness: targets with their errors, and losses that match them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions, Points
from propopt.base.checks import read_array, read_only, read_option, refuse_overflow
from propopt.base.errors import InvalidInput
from propopt.base.text import Quantity, shared
from propopt.losses.algebra import Faithfulness, PropertyLoss
from propopt.losses.maps import (
    Absolute,
    Identity,
    LinearMap,
    Penalty,
    PerPoint,
    Squared,
)
from propopt.tables.frames import NO_NAMES, Labels, aligned_vector, read_points
from propopt.tables.imported import read_attributions


# ---- Targets of explanations, with their errors


Units: TypeAlias = Literal["gradient", "output", "scaled"]
"""Units: slopes, parts of the output, or slopes times a scale."""

_UNITS_IN_WORDS: Final[Mapping[Units, str]] = {
    "gradient": "change of {} per {} of each feature",
    "scaled": "change of {} per {} of each feature",
    "output": "contribution of each feature to {}",
}
"""Descriptions of attributions by their units."""


def units_in_words(
    units: Units, quantity: Quantity | None, parameters: Mapping[str, Any]
) -> str:
    """Describe attributions by their units, for a card, an axis or a file."""
    label = "output" if quantity is None else quantity.in_words()
    return _UNITS_IN_WORDS[units].format(f"the {label}", step_of(units, parameters))


def step_of(units: Units, parameters: Mapping[str, Any]) -> str:
    """The step of a feature for which slopes are the change of the output."""
    if units == "gradient":
        return "unit"
    return "standard deviation" if parameters.get("scale") == "std" else "given scale"


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Estimate:
    """A target (N, D): computed exactly, or estimated from draws."""

    values: Attributions  # (N, D): the target
    source: str  # a description of its computation
    exact: bool = False  # exact to rounding
    blocks: Array | None = None  # (B, N, D): estimates from disjoint blocks of draws
    n_draws: int = 0  # draws for each point, all blocks together
    evaluations: int = 0  # rows that the model was given
    labels: Labels = Labels()  # names of points and features
    units: Units = "gradient"  # of numeric features
    # (N, D): which values are in units of the output
    effects: NDArray[np.bool_] | None = None
    quantity: Quantity | None = None  # the explained quantity, if available

    def __post_init__(self) -> None:
        read_only(self.values)
        self.labels.check(self.values.shape, "labels")
        if self.blocks is None:
            return
        if self.blocks.shape[1:] != self.values.shape or len(self.blocks) < 2:
            raise InvalidInput(
                "blocks: expected estimates of two or more batches of draws, each of "
                f"shape {self.values.shape}, got {self.blocks.shape}"
            )
        read_only(self.blocks)

    @classmethod
    def of_blocks(
        cls,
        blocks: Array,
        *,
        source: str,
        n_draws: int,
        labels: Labels = NO_NAMES,
        units: Units = "gradient",
    ) -> Estimate:
        """Make the mean of B unbiased estimates (B, N, D) from blocks of draws."""
        return cls(
            values=blocks.mean(axis=0),
            source=source,
            blocks=blocks,
            n_draws=n_draws,
            labels=labels,
            units=units,
        )

    @property
    def standard_errors(self) -> Array | None:
        """Standard errors (N, D): spread of the blocks over √B; None without blocks."""
        if self.exact:
            return np.zeros(self.values.shape)
        if self.blocks is None:
            return None
        return error_of_blocks(self.blocks)

    @property
    def deviations_of_rows(self) -> Array | None:
        """Blocks minus their mean, (N, B, D); None if the target has no error."""
        if self.exact or self.blocks is None:
            return None
        return (self.blocks - self.blocks.mean(axis=0)).transpose(1, 0, 2)

    @property
    def row_errors(self) -> Array:
        """The root mean square of the standard errors of each row; NaN if unknown."""
        errors = self.standard_errors
        if errors is None:
            return np.full(len(self.values), np.nan)
        return np.sqrt((errors**2).mean(axis=1))

    def scaled(self, sizes: Array) -> Estimate:
        """Scale slopes by one number per feature (D,); effects are unchanged."""
        if self.units != "gradient":
            raise InvalidInput(
                f"scaled: expected a target in units 'gradient', got {self.units!r}"
            )
        if self.effects is not None:
            sizes = np.where(self.effects, 1.0, sizes)
        return replace(
            self,
            values=self.values * sizes,
            blocks=None if self.blocks is None else self.blocks * sizes,
            units="scaled",
        )


def error_of_blocks(blocks: Array) -> Array:
    """The standard error of the mean of independent estimates (B, ...), (...)."""
    return blocks.std(axis=0, ddof=1) / np.sqrt(len(blocks))


def relative_error(blocks: Array) -> float:
    """‖standard errors‖ / ‖mean‖ of independent estimates (B, ...)."""
    return relative_size(error_of_blocks(blocks), blocks.mean(axis=0))


def relative_size(errors: Array, values: Array) -> float:
    """The ratio ‖errors‖ / ‖values‖; 0 without errors, infinite for zero values."""
    size = float(np.linalg.norm(values))
    error = float(np.linalg.norm(errors))
    return error / size if size > 0.0 else math.inf if error > 0.0 else 0.0


# ---- Faithfulness: the explanation agrees with the function


@final
class GradientMatching(Faithfulness):
    """Faithfulness: squared distances of attributions from gradients or other targets.

    .. math::

        Σ_n ‖w_n − ∇f(x_n)‖²

    (Tadesse et al. 2024, Eq. 2).

    Parameters
    ----------
    G : array, DataFrame, Explanation, shap.Explanation or Estimate (N, D)
        The target: gradients ∇f(x_n) in rows, or other attributions. Results have its
        names, and report the error of an :class:`Estimate`.
    norm : {"l2", "l1"}
        ``"l1"`` sums absolute differences, Σ_n ‖w_n − ∇f(x_n)‖₁.
    units : {"gradient", "output", "scaled"}, optional
        The units of a plain table: slopes, parts of the output, or slopes times a
        scale. Without them, cards assume slopes and tables of distances report "units
        unknown". Estimates, explanations and ``shap`` have units.
    name : str
        The name of the loss in weights, results and CSV columns.

    Raises
    ------
    InvalidInput
        If G is not a finite table, or has units other than ``units``.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> po.GradientMatching(np.ones((4, 2))).value(np.zeros((4, 2)))
    8.0
    """

    map = Identity()
    penalty: Penalty = Squared()  # or absolute values, by the norm
    target: Array
    n_points: int
    n_features: int
    labels: Labels
    quantity: Quantity | None
    estimate: Estimate | None

    def __init__(
        self,
        G: object,
        norm: Literal["l2", "l1"] = "l2",
        *,
        units: Units | None = None,
        name: str = "gradient_matching",
    ) -> None:
        if norm not in ("l2", "l1"):
            raise InvalidInput(f"norm: expected 'l2' or 'l1', got {norm!r}")
        self.estimate = G if isinstance(G, Estimate) else None
        attributions = G if isinstance(G, Estimate) else read_attributions(G, "G")
        self.G = attributions.values
        self.labels = attributions.labels
        self.quantity = attributions.quantity
        refuse_overflow(self.G, "G")
        self.units = _read_units(units, attributions.units)
        self.norm = norm
        if norm == "l1":
            self.penalty = Absolute()
        self.name = name
        self.target = self.G
        self.n_points, self.n_features = self.G.shape


@final
class FunctionMatching(Faithfulness):
    """Faithfulness: squared errors of predicting changes of f from attributions.

    After Tadesse et al. 2024, Eq. 12: through the origin, or locally over given
    perturbations,

    .. math::

        Σ_n (f(x_n) − w_nᵀ x_n)²

        Σ_n Σ_s (f(x_n + ε_ns) − f(x_n) − w_nᵀ ε_ns)²

    The first alone does not determine W: N equations for N·D unknowns. From a reference
    r it is the loss of x_n − r and f(x_n) − f(r).

    Parameters
    ----------
    X : array or DataFrame (N, D)
        The points x_n.
    values : array or Series (N,), or array (N, S)
        f(x_n); with ``perturbations`` the changes f(x_n + ε_ns) − f(x_n).
    perturbations : array (N, S, D), optional
        The perturbations ε_ns.
    quantity : Quantity, optional
        A description of the values, such as ``function.quantity``.
    name : str
        The name of the loss in weights, results and CSV columns.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> X = np.array([[1.0, 2.0], [3.0, 1.0]])
    >>> po.losses.FunctionMatching(X, X.sum(axis=1)).value(np.ones((2, 2)))
    0.0
    """

    penalty: Penalty = Squared()
    target: Array
    n_points: int
    n_features: int
    labels: Labels

    def __init__(
        self,
        X: object,
        values: object,
        perturbations: object = None,
        *,
        quantity: Quantity | None = None,
        name: str = "function_matching",
    ) -> None:
        points, self.labels = read_points(X, "X")
        if np.isnan(points).any():
            raise InvalidInput(
                "X: numbers are missing, so the prediction wᵀx is undefined; use "
                "GradientMatching, as gradients include effects of missing numbers"
            )
        if perturbations is None:
            vector = aligned_vector(values, self.labels.points, "values", "X")
            target = _sized(vector, points.shape[:1], "values")
            designs = points[:, None, :]
        else:
            designs, target = _local_designs(points, values, perturbations)
        refuse_overflow(designs, "X")
        refuse_overflow(target, "values")
        self.designs = designs
        self.target = target.ravel()
        self.n_points, _, self.n_features = designs.shape
        self.quantity = quantity
        self.name = name

    @cached_property
    def map(self) -> LinearMap:
        return PerPoint(self.designs)


def units_of_target(losses: Iterable[PropertyLoss]) -> Units | None:
    """The units of the gradient-matching losses; None if absent or mixed."""
    units = {loss.units for loss in losses if isinstance(loss, GradientMatching)}
    return units.pop() if len(units) == 1 else None


def quantity_of_target(losses: Iterable[PropertyLoss]) -> Quantity | None:
    """The quantity of the faithfulness losses; None if absent or mixed."""
    return shared(loss.quantity for loss in losses if isinstance(loss, Faithfulness))


def _read_units(user_units: Units | None, target_units: Units | None) -> Units | None:
    """The units of a target, from the user or from the target."""
    if user_units is None:
        return target_units
    read_option(user_units, Units, "units")
    if target_units not in (None, user_units):
        raise InvalidInput(
            f"units: G is in units {target_units!r}, and not {user_units!r}; leave "
            "units out"
        )
    return user_units


def _local_designs(
    points: Points, changes: object, perturbations: object
) -> tuple[Array, Array]:
    """Designs of S equations per point: f(x + ε_s) − f(x) = wᵀ ε_s."""
    designs = read_array(perturbations, "perturbations", ndim=3)
    n_points, n_features = points.shape
    shape = (n_points, designs.shape[1], n_features)
    _sized(designs, shape, "perturbations")
    target = _sized(read_array(changes, "values", ndim=2), shape[:2], "values")
    return designs, target


def _sized(array: Array, shape: tuple[int, ...], label: str) -> Array:
    if array.shape != shape:
        raise InvalidInput(f"{label}: expected shape {shape}, got {array.shape}")
    return array
