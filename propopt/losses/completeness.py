"""Completeness: attributions whose rows have given sums, and losses among them.

The constraint W v = t is linear: with u = v/‖v‖ and z = t/‖v‖ it leaves

    W = V + z uᵀ,   V u = 0.

V needs no constraint: squared losses of W are losses of V with a minimiser at V u = 0:
‖W − G‖² = ‖V − G(I − uuᵀ)‖² + ‖z − G u‖² and ‖B W‖² = ‖B V‖² + ‖B z‖². Over features ‖W
Cᵀ‖ = ‖V Cᵀ‖ if C u = 0, as for a graph and v = 1; otherwise C is replaced by C(I −
uuᵀ), with the target −z(C u)ᵀ. The constants are irreducible.


If rows have different weights v_n, such as ones at the words of a document, they have
different u_n: losses of W itself split as before, others do not.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias, final

import numpy as np
import pandas as pd
import scipy.sparse as sp

from propopt.base.arrays import Array, Attributions, Sparse
from propopt.base.checks import read_array, read_only, refuse_overflow
from propopt.base.errors import Infeasible, InvalidInput, Refused
from propopt.base.suggestions import suggests_arguments
from propopt.losses.algebra import Bound, Objective, Program, PropertyLoss, _RecastLoss
from propopt.losses.custom import ConstraintFunction, Custom, constraints_of
from propopt.losses.linear_algebra import Rounding
from propopt.losses.maps import (
    Identity,
    ImplicitOverPoints,
    LinearMap,
    OverFeatures,
    OverPoints,
    RowSums,
    Squared,
)
from propopt.tables.frames import Labels, differ, read_table
from propopt.tables.imported import aligned


@final
@suggests_arguments
class Completeness:
    """Constraint that the attributions of each point sum to a given total t_n.

    Attributions in units of the output are complete if Σ_d w_nd = f(x_n) − f₀ (the
    axiom of Sundararajan et al. 2017); with weights v, W v = t. It is used in
    ``subject_to``, with or without bounds, and holds to rounding.

    Without weights, a column with a zero target in all rows (while others are not zero)
    is taken as not used by the model: it is left out of the sum (v_d = 0) and stays
    exactly zero, with losses for which zero is then optimal. With smoothness, which
    couples columns, all columns remain in the sum. Weights are used as they are.

    Parameters
    ----------
    total : array or Series (N,)
        t_n, such as f(x_n) minus the mean output. Names are used for alignment.
    weights : array or Series (D,), or array or DataFrame (N, D), optional
        v, one number per feature, not all zero; by default all are one. For
        attributions in units of s_d, v = s. If rows have different features, such as
        the words of documents, each row has weights, zero at features it does not
        have: Σ_d v_nd w_nd = t_n.
    name : str
        The name of the constraint in results.

    Raises
    ------
    InvalidInput
        If totals or weights are not finite numbers, or a row without weights has a
        nonzero total.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> phi = np.array([[1.0, 0.0], [0.0, 3.0], [2.0, 2.0]])
    >>> objective = po.GradientMatching(phi) + po.PairwiseRobustness(
    ...     po.graphs.chain_graph(3)
    ... )
    >>> best = po.solve(objective, subject_to=[po.losses.Completeness(phi.sum(axis=1))])
    >>> best.attributions.sum(axis=1)
    array([1., 3., 4.])
    """

    def __init__(
        self, total: object, weights: object = None, *, name: str = "completeness"
    ) -> None:
        self.total: Array
        self.weights: Array | None
        self.labels: Labels
        self.total, points = _read(total, "total")
        self.weights = None
        names = Labels()
        if weights is not None:
            self.weights, names = _read_weights(weights)
            self._check_weights(self.weights, differ(points, names.points))
        self.labels = Labels(points or names.points, names.features)
        self.name = name

    def gaps(self, W: object) -> Array:
        """Compute the errors of row sums, W v − t, shape (N,).

        Parameters
        ----------
        W : array, DataFrame, Explanation or shap.Explanation (N, D)
            Attributions; named rows and columns are put in the order of the totals.

        Examples
        --------
        >>> import propopt as po
        >>> po.losses.Completeness([3.0, 0.0]).gaps([[1.0, 2.0], [1.0, 1.0]])
        array([0., 2.])
        """
        array = aligned(W, self.labels, f"{self.name}: W", "the totals")
        loss = self.bound(array.shape[1]).loss
        loss.check_shape(array.shape)
        return loss.residual(array)[:, 0]

    def bound(self, n_features: int, used: Array | None = None) -> Bound:
        """Make the constraint ‖W v − t‖² ≤ 0 for D features: exact row sums.

        Parameters
        ----------
        n_features : int
            The number of features D.
        used : array of bool (D,), optional
            Columns in the sum without weights; all by default.

        Returns
        -------
        Bound
            Its loss ‖W v − t‖² is in squared units of the totals, and its limit is 0.
        """
        v = np.ones(n_features) if self.weights is None else self.weights
        if self.weights is None and used is not None and used.any():
            v = np.where(used, v, 0.0)  # without used columns, all count
        return Bound(_RowTotals(self.total, v, labels=self.labels, name=self.name), 0.0)

    def _check_weights(self, weights: Array, in_other_order: bool) -> None:
        if not weights.any():
            raise InvalidInput(
                "weights: expected one above zero at least, got only zeros"
            )
        if weights.ndim == 1:
            return
        if len(weights) != len(self.total) or in_other_order:
            raise InvalidInput(
                f"weights: expected a row for each of the {len(self.total)} totals, "
                f"in the same order, got {len(weights)} rows"
            )
        empty = ~weights.any(axis=1) & (self.total != 0.0)
        if empty.any():
            n = int(empty.argmax())
            raise InvalidInput(
                f"total: row {n} has only zero weights, so its sum is zero, and not "
                f"{self.total[n]}"
            )

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self.total)} points>"


@final
class _RowTotals(PropertyLoss):
    """The loss ‖W v − t‖², with a limit of zero for given row sums."""

    map: RowSums
    penalty = Squared()
    target: Array

    def __init__(
        self, total: Array, weights: Array, *, labels: Labels, name: str
    ) -> None:
        self.target = read_only(total[:, None])
        self.map = RowSums(weights)
        self.n_points = len(total)
        self.n_features = weights.shape[-1]
        self.labels = labels
        self.name = name


# ---- The elements of ``subject_to``


Constraint: TypeAlias = Bound | Completeness
"""An element of ``subject_to``."""


def split_constraints(
    subject_to: Any, losses: Sequence[PropertyLoss]
) -> tuple[tuple[ConstraintFunction, ...], tuple[Bound, ...]]:
    """Split ``subject_to`` into functions of cvxpy and bounds."""
    if _is_function(subject_to):
        subject_to = [subject_to]
    if not isinstance(subject_to, Iterable):
        return (), bounds_of(subject_to, losses)
    given = list(subject_to)
    custom = (
        partial(constraints_of, x, n) for n, x in enumerate(given) if _is_function(x)
    )
    others = [x for x in given if not _is_function(x)]
    return tuple(custom), bounds_of(others, losses)


def has_custom(losses: Iterable[PropertyLoss], bounds: Iterable[Bound]) -> bool:
    """Whether a loss of an objective or of a bound is a :class:`Custom`."""
    every = (*losses, *(bound.loss for bound in bounds))
    return any(isinstance(loss, Custom) for loss in every)


def _is_function(constraint: object) -> bool:
    if isinstance(constraint, PropertyLoss | Objective):
        return False
    return callable(constraint)


def bounds_of(
    constraints: Iterable[Constraint], losses: Sequence[PropertyLoss]
) -> tuple[Bound, ...]:
    """Convert constraints to bounds, with the number of features of the losses."""
    if isinstance(constraints, Bound | Completeness):
        raise InvalidInput(
            f"subject_to: expected a list of bounds, got one; [{constraints!r}] is one"
        )
    user_constraints = list(constraints)
    all_losses = [*losses, *(x.loss for x in user_constraints if isinstance(x, Bound))]
    sizes = [loss.n_features for loss in all_losses]
    n_features = next((size for size in sizes if size is not None), None)
    return tuple(
        _bound(constraint, n_features, all_losses) for constraint in user_constraints
    )


def _bound(
    constraint: Constraint, n_features: int | None, losses: Sequence[PropertyLoss]
) -> Bound:
    if isinstance(constraint, Bound):
        return constraint
    if _is_function(constraint):
        raise Refused(
            "subject_to: constraints of cvxpy, as in lambda W: [W[:, 0] >= 0], are "
            "taken only by po.solve and po.proofs.certify"
        )
    if not isinstance(constraint, Completeness):
        raise InvalidInput(
            "subject_to: expected bounds (loss <= limit), a Completeness, or "
            f"constraints of cvxpy as lambda W: [W[:, 0] >= 0], got {constraint!r}"
        )
    used = None if n_features is None else _used(losses, n_features)
    if constraint.weights is not None:
        n_features = constraint.weights.shape[-1]
    if n_features is None:
        raise InvalidInput(
            f"{constraint.name}: no loss determines the number of features; give "
            "weights"
        )
    return constraint.bound(n_features, used)


def _used(losses: Iterable[PropertyLoss], n_features: int) -> Array | None:
    """Columns with a nonzero target in some row; None if all columns count.

    Zero is optimal in the other columns if each loss is one of W itself or of
    differences between rows: without the column it is never larger.
    """
    used = np.zeros(n_features, dtype=bool)
    for loss in losses:
        if isinstance(loss, Custom):
            return None
        if not isinstance(loss.map, Identity | OverPoints | ImplicitOverPoints):
            return None
        target = np.asarray(loss.target)
        if target.ndim == 2 and target.shape[1] == n_features:
            used |= target.any(axis=0)
        elif target.ndim == 2 or target.any():
            return None
    return used


def _read_weights(weights: Any) -> tuple[Array, Labels]:
    """Weights v, (D,) or (N, D), and their names."""
    if np.ndim(weights) == 2:
        table, names = read_table(weights, "weights")
        return read_only(np.array(table)), Labels(names.points, names.features)
    numbers, features = _read(weights, "weights")
    columns = None if features is None else tuple(map(str, features))
    return numbers, Labels(features=columns)


def _read(values: object, label: str) -> tuple[Array, tuple[Hashable, ...] | None]:
    """Numbers (n,), and the index of a Series."""
    numbers = read_only(np.array(read_array(values, label, ndim=1)))
    refuse_overflow(numbers, label)
    return numbers, tuple(values.index) if isinstance(values, pd.Series) else None


# ---- Attributions with given row sums, and losses in the remaining coordinates


_ROUNDING = 1e-12  # relative to a limit: smaller remainders are rounding


def is_completeness(bound: Bound) -> bool:
    """Whether a bound fixes row sums (completeness), the only limit of zero."""
    return bound.limit == 0.0


def reduced_bound(bound: Bound, loss: _RecastLoss, linear: Sequence[Bound]) -> Bound:
    """The bound on a loss minus its irreducible part under linear constraints."""
    remainder = bound.limit - loss.constant
    if remainder <= _ROUNDING * bound.limit:
        raise Infeasible(
            f"{bound} cannot hold: under {', '.join(map(repr, linear))} the smallest "
            f"attainable value of {bound.loss.name} is {loss.constant:.6g}"
        )
    return Bound(loss, remainder)


@final
@dataclass(frozen=True, eq=False)
class Totals:
    """The attributions W = V + z uᵀ with given row sums, V u = 0."""

    axis: Array  # (D,) or (N, D): u, of length one; or u_n of each row
    heights: Array  # (N,): z
    norm: float | Array  # (N,): ‖v‖, or ‖v_n‖

    @classmethod
    def of(cls, program: Program) -> Totals | None:
        """The row sums of a :class:`Completeness` among the bounds, or None."""
        losses = [bound.loss for bound in program.row_sums]
        if len(losses) > 1:
            raise InvalidInput(
                f"subject_to: {losses[0].name} and {losses[1].name} both prescribe row "
                "sums; give one of them"
            )
        return cls.by(losses[0]) if losses else None

    @classmethod
    def by(cls, loss: PropertyLoss) -> Totals:
        """The attributions with zero loss, for a loss over row sums."""
        assert isinstance(loss.map, RowSums), "see is_completeness"
        v = loss.map.weights
        t = np.asarray(loss.target)[:, 0]
        if v.ndim == 1:
            norm = float(np.linalg.norm(v))
            return cls(v / norm, t / norm, norm)
        norms = np.linalg.norm(v, axis=1)
        norms[norms == 0.0] = 1.0
        return cls(v / norms[:, None], t / norms, norms)

    @property
    def is_shared(self) -> bool:
        """Whether all rows have the same weights v."""
        return self.axis.ndim == 1

    def scaled(self, factor: float) -> Totals:
        """The totals of the attributions times a factor."""
        return Totals(self.axis, factor * self.heights, self.norm)

    def coordinates(self, W: Attributions) -> Array:
        """The coordinates V = W − (W u)uᵀ of W."""
        return W - spread(along(W, self.axis), self.axis)

    def expanded(self, V: Array) -> Attributions:
        """The nearest complete W to V, with row sums exact to rounding."""
        W = V + spread(self.heights - along(V, self.axis), self.axis)
        # once more, for the rounding of the sums
        return W + spread(self.heights - along(W, self.axis), self.axis)

    def on_support(self, W: Attributions) -> Attributions:
        """A complete W with the zeros of W, in rows that are not zero."""
        v = np.where(W == 0.0, 0.0, self.axis)
        v[~v.any(axis=1)] = self.axis
        missed = self.heights - W @ self.axis
        return W + (missed / (v**2).sum(axis=1))[:, None] * v

    @cached_property
    def fixed(self) -> Attributions:
        """The attributions z uᵀ (V = 0), shape (N, D)."""
        return spread(self.heights, self.axis)

    def program(self, program: Program) -> Program:
        """The program of V without the constraint."""
        return Program(
            tuple(map(self.loss, program.losses)),
            tuple(
                reduced_bound(bound, self.loss(bound.loss), program.row_sums)
                for bound in program.limits
            ),
            program.shape,
        )

    def loss(self, loss: PropertyLoss) -> _RecastLoss:
        """The loss of W = V + z uᵀ as a function of V."""
        if loss.is_squared:
            match loss.map:
                case Identity() | OverPoints() | ImplicitOverPoints() as coupled if (
                    self.is_shared or loss.is_direct
                ):
                    return self._over_points(loss, coupled)
                case OverFeatures() as coupled if (
                    self.is_shared and not loss.has_target
                ):
                    return self._over_features(loss, coupled)
        over = OffAxis(loss.map, self.axis)
        return _RecastLoss(loss, over, loss.target - loss.map(self.fixed))

    def least(self, loss: PropertyLoss) -> float | None:
        """The minimum of a loss among complete attributions; None if unavailable."""
        is_open = not self.is_shared and not loss.is_direct
        if is_open or not loss.is_squared:
            return None
        match loss.map:
            case Identity() | OverPoints() | ImplicitOverPoints() if (
                loss.is_direct or not loss.has_target
            ):
                return self.loss(loss).constant
            case OverFeatures() as coupled if not loss.has_target:
                if self._costs_nothing(coupled):
                    return 0.0
                # ‖z‖² min ‖C(u + x)‖² over x with uᵀx = 0
                projected, image = self._projected(coupled)
                residual = image - projected @ np.linalg.lstsq(projected, image)[0]
                return float(self.heights @ self.heights) * float(residual @ residual)
            case _:
                return None

    def dual(self, loss: PropertyLoss, Y: Array) -> Array:
        """The dual of a loss of W as a dual of its loss of V."""
        coupled = isinstance(loss.map, OverPoints | ImplicitOverPoints)
        is_projected = self.is_shared and coupled and not loss.has_target
        if is_projected and loss.is_squared:
            return self.coordinates(Y)
        return Y

    def multiplier(
        self,
        terms: Sequence[tuple[float, PropertyLoss]],
        W: Attributions,
        duals: Mapping[str, Array],
    ) -> Array:
        """Multipliers y (N,) of the totals, −∇F(W) v/‖v‖².

        For a nonsmooth loss its dual replaces the gradient.
        """
        slope = np.zeros_like(W)
        for c, loss in terms:
            if loss.is_squared:
                slope += c * loss.gradient_at(W)
            elif loss.name in duals:
                slope += loss.map.adjoint(duals[loss.name])
        return along(slope, self.axis) / -self.norm

    def _over_points(
        self, loss: PropertyLoss, coupled: Identity | OverPoints | ImplicitOverPoints
    ) -> _RecastLoss:
        """The loss over V: ‖B W − T‖² = ‖B V − T(I − uuᵀ)‖² + ‖B z − T u‖²."""
        if not loss.has_target:
            constant = coupled.energy(self.heights[:, None])
            return _RecastLoss(loss, coupled, constant=constant)
        T = np.asarray(loss.target)
        missed = coupled(self.heights[:, None])[:, 0] - along(T, self.axis)
        return _RecastLoss(loss, coupled, self.coordinates(T), float(missed @ missed))

    def _over_features(self, loss: PropertyLoss, coupled: OverFeatures) -> _RecastLoss:
        if self._costs_nothing(coupled):
            return _RecastLoss(loss, coupled)
        projected, image = self._projected(coupled)
        return _RecastLoss(
            loss, OverFeatures(projected), -np.outer(self.heights, image)
        )

    def _projected(self, coupled: OverFeatures) -> tuple[Array, Array]:
        """The matrices C(I − uuᵀ) and C u."""
        C = coupled.matrix @ np.eye(len(self.axis))
        image = C @ self.axis
        return C - np.outer(image, self.axis), image

    def _costs_nothing(self, coupled: OverFeatures) -> bool:
        """Whether C u = 0: u is constant on each part of the features."""
        parts = coupled.components
        if parts is None:
            return not (coupled.matrix @ self.axis).any()
        return bool((parts.constants(self.axis) == self.axis).all())


@final
@dataclass(frozen=True, eq=False)
class OffAxis(LinearMap):
    """The map V ↦ A(V − (V u)uᵀ)."""

    outer: LinearMap  # A
    # (D,) or (N, D): u, of length one; or u_n of each row, of length one or zero
    axis: Array

    def __call__(self, W: Any) -> Any:
        if isinstance(W, np.ndarray):
            return self.outer(self._off(W))
        if self.axis.ndim == 1:
            return self.outer(W @ self._projection)
        flat = self._flat_projection(W.shape) @ W.flatten(order="C")
        return self.outer(flat.reshape(W.shape, order="C"))

    def adjoint(self, R: Array) -> Attributions:
        return self._off(self.outer.adjoint(R))

    def energy(self, W: Attributions) -> float:
        return self.outer.energy(self._off(W))

    def normal(self, W: Attributions) -> Attributions:
        return self._off(self.outer.normal(self._off(W)))

    def gradient(self, W: Attributions) -> Attributions:
        return self._off(self.outer.gradient(self._off(W)))

    def rounding(self, W: Attributions) -> Rounding:
        return self.outer.rounding(self._off(W))

    def _off(self, W: Attributions) -> Attributions:
        """The projection W − (W u)uᵀ, which is self-adjoint."""
        return W - spread(along(W, self.axis), self.axis)

    def flat(self, shape: tuple[int, int]) -> Sparse:
        return sp.csr_array(self.outer.flat(shape) @ self._flat_projection(shape))

    def flat_rows(self, shape: tuple[int, int]) -> int:
        return self.outer.flat_rows(shape)

    def _flat_projection(self, shape: tuple[int, int]) -> Sparse:
        """The projection of row-major V, a sparse matrix."""
        if self.axis.ndim == 1:
            return sp.kron(sp.eye_array(shape[0]), self._projection, format="csr")
        U = RowSums(self.axis).flat(shape)
        return sp.csr_array(sp.eye_array(U.shape[1]) - U.T @ U)

    @cached_property
    def _projection(self) -> Array:
        """The projection I − uuᵀ, (D, D)."""
        return np.eye(len(self.axis)) - np.outer(self.axis, self.axis)


def along(W: Array, axis: Array) -> Array:
    """Products W_n u, or W_n u_n of each row, (N,)."""
    if axis.ndim == 1:
        return W @ axis
    return (W * axis).sum(axis=-1)


def spread(heights: Array, axis: Array) -> Array:
    """The outer product z uᵀ, or z_n u_n of each row, (N, D)."""
    return heights[:, None] * axis
