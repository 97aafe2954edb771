"""Inputs, their distances and kernels, and rules for inducing inputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern

from propopt.base.arrays import Array, Points
from propopt.base.checks import read_array, read_count, read_nonnegative, read_positive
from propopt.base.errors import InvalidInput
from propopt.base.resources import BATCH_BUDGET, require_memory
from propopt.base.suggestions import suggests_arguments
from propopt.functions import Function
from propopt.losses.graphs.distances import median_distance, typical
from propopt.tables.frames import Labels, differ, read_points
from propopt.tables.schema import ColumnScale, TableSchema, array_scales, per_scale


# ---- Inputs and their coordinates


@final
@dataclass(frozen=True, eq=False)
class Inputs:
    """Columns and scales of the table of a fit."""

    n_features: int  # D, the number of attributions of an input
    names: tuple[str, ...] | None
    # (D,): divisors of columns; 0 removes a column from distances
    sizes: Array | None
    # of DataFrames with categories, which are one-hot over √2, and their scales
    schema: TableSchema | None = None
    scale: ColumnScale = None

    def read(self, X: Any, what: str) -> tuple[Points, Labels]:
        """Coordinates of the rows, and names of rows and features."""
        if self.schema is not None:
            points, labels = self.schema.encode(X, what)
            _refuse_missing(points, what)
            return self.schema.coordinates(X, self.scale), labels
        points, labels = read_points(X, what)
        if points.shape[1] != self.n_features:
            raise InvalidInput(
                f"{what}: expected {self.n_features} features as in fit, got "
                f"{points.shape[1]}"
            )
        if differ(labels.features, self.names):
            raise InvalidInput(f"{what}: expected the columns of fit, in that order")
        _refuse_missing(points, what)
        return self.coordinates(points), Labels(
            labels.points, labels.features or self.names
        )

    def coordinates(self, points: Points) -> Points:
        """Points in the scaled coordinates of the kernel."""
        return points if self.sizes is None else per_scale(points, self.sizes)


def _refuse_missing(points: Points, label: str) -> None:
    """Refuse missing numbers, for which no kernel is positive definite."""
    absent = np.isnan(points)
    if absent.any():
        raise InvalidInput(
            f"{label}: numbers are missing (NaN) in {int(absent.any(axis=1).sum())} of "
            f"{len(points)} rows, for which no kernel is positive definite; "
            "fit the model to imputed columns of "
            "sklearn.impute.SimpleImputer(add_indicator=True), or use po.Explainer, "
            "which takes missing numbers"
        )


def read_inputs(
    X: Any, function: object, scale: ColumnScale
) -> tuple[Inputs, Points, Labels]:
    """Columns of X, by the schema of a function with one; coordinates and names."""
    if isinstance(function, Function) and function.schema is not None:
        schema = function.schema
        inputs = Inputs(len(schema.names), None, None, schema, scale)
        return inputs, *inputs.read(X, "X")
    points, labels = read_points(X, "X")
    _refuse_missing(points, "X")
    sizes = None if scale is None else array_scales(points, scale)
    inputs = Inputs(points.shape[1], labels.features, sizes)
    return inputs, inputs.coordinates(points), labels


# ---- Distances, exact for close points and fast for many features


_MANY_FEATURES = 64
"""From this number on, matrix products are faster than differences of pairs."""

_CANCELS = 1e-3
"""Squared distances below this share of ‖x‖² + ‖z‖² use differences."""


def cross_distances(X: Points, Z: Points) -> Array:
    """Distances ‖x − z‖ (n, m), exact to 12 digits or more; zeros are exact."""
    if X.shape[1] < _MANY_FEATURES:
        return cdist(X, Z)
    lengths, products = _lengths_and_products(X, Z)
    squares = lengths - 2.0 * products
    close = squares <= _CANCELS * lengths
    rows, columns = np.nonzero(np.triu(close, k=1) if X is Z else close)
    for block in BATCH_BUDGET.blocks(len(rows), 8 * X.shape[1]):
        r = rows[block]
        c = columns[block]
        squares[r, c] = _squares(X[r] - Z[c])
    if X is Z:
        squares[columns, rows] = squares[rows, columns]
        np.fill_diagonal(squares, 0.0)
    return np.sqrt(squares, out=squares)


def _lengths_and_products(X: Points, Z: Points) -> tuple[Array, Array]:
    """‖a‖² + ‖b‖² and aᵀb of centred rows a and b, by blocks of features."""
    lengths, products = np.zeros((2, len(X), len(Z)))
    for features in BATCH_BUDGET.blocks(X.shape[1], 32 * len(Z)):
        centre = Z[:, features].mean(axis=0)
        B = Z[:, features] - centre
        A = B if X is Z else X[:, features] - centre  # A Aᵀ costs half of A Bᵀ
        products += A @ B.T
        lengths += np.add.outer(_squares(A), _squares(B))
    return lengths, products


def typical_distance(points: Points) -> float:
    """The median distance, as in :func:`propopt.graphs.gaussian_graph`."""
    if len(points) == 1:
        raise InvalidInput(
            "lengthscale: 1 sample has no distance to others; give a number"
        )
    if points.shape[1] < _MANY_FEATURES:
        return median_distance(points)
    thinned = points[:: -(-len(points) // 2000)]
    apart = cross_distances(thinned, thinned)
    return typical(apart[np.triu_indices(len(thinned), k=1)])


def _squares(rows: Array) -> Array:
    return np.einsum("nd,nd->n", rows, rows)


# ---- Covariances of points by scikit-learn kernels


_SEARCH = 100.0
"""Search range of a lengthscale, as a factor of its start."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class PointKernel:
    """A kernel of points, with jitter for identical points.

    k(x, x') + jitter · [x and x' are the same row, not only equal]
    """

    # k; terms that k(X) has only on its diagonal (a WhiteKernel) act like jitter
    function: Any
    jitter: float  # at least zero
    # whether k depends only on distances, which are then computed here
    radial: bool

    def matrix(self, X: Points) -> Array:
        """The kernel matrix K (n, n) of points X, with jitter."""
        matrix = self.cross(X, X) if self.radial else _finite(self.function(X))
        matrix[np.diag_indices_from(matrix)] += self.jitter
        return matrix

    def cross(self, X: Points, Z: Points) -> Array:
        """Covariances k(x, z) of different points, (n, m), without jitter."""
        if not self.radial:
            return _finite(self.function(X, Z))
        # a point at 0 and points at r on a line have the covariances k(r)
        apart = cross_distances(X, Z)
        on_a_line = self.function(np.zeros((1, 1)), apart.reshape(-1, 1))
        return _finite(on_a_line).reshape(apart.shape)

    def diagonal(self, X: Points) -> Array:
        """Variances k(x, x) + jitter, shape (n,)."""
        return _finite(self.function.diag(X)) + self.jitter

    @property
    def theta(self) -> Array:
        """Logarithms of the free hyper-parameters."""
        return np.asarray(self.function.theta, dtype=np.float64)

    @property
    def bounds(self) -> Array:
        """Logarithms of the bounds of hyper-parameters, shape (len(theta), 2)."""
        return np.asarray(self.function.bounds, dtype=np.float64).reshape(-1, 2)

    def at(self, theta: Array) -> PointKernel:
        """This kernel with other values of hyper-parameters."""
        return replace(self, function=self.function.clone_with_theta(theta))


def read_kernel(
    kernel: object, lengthscale: object, points: Points, jitter: object
) -> PointKernel:
    """The kernel ``"gaussian"`` or ``"matern"`` (ν = 5/2), or one of scikit-learn."""
    extra = read_nonnegative(jitter, "jitter")
    if isinstance(kernel, Kernel):
        copy = _validated_kernel(kernel, lengthscale, points)
        return PointKernel(function=copy, jitter=extra, radial=False)
    if kernel not in ("gaussian", "matern"):
        raise InvalidInput(
            "kernel: expected 'gaussian', 'matern' or a scikit-learn kernel, got "
            f"{kernel!r}"
        )
    if lengthscale is None:
        lengthscale = typical_distance(points)
    length = read_positive(lengthscale, "lengthscale")
    limits = (length / _SEARCH, length * _SEARCH)
    gaussian = kernel == "gaussian"
    function = RBF(length, limits) if gaussian else Matern(length, limits, nu=2.5)
    return PointKernel(function=function, jitter=extra, radial=True)


def _validated_kernel(kernel: Any, lengthscale: object, points: Points) -> Any:
    """A copy of a kernel object, after checks of lengthscale and dimensions."""
    if lengthscale is not None:
        raise InvalidInput(
            "lengthscale: a kernel object already has one; give lengthscale=None"
        )
    try:
        kernel(points[:1])
    except ValueError as error:
        raise InvalidInput(
            f"kernel: {error}; distances are measured in {points.shape[1]} columns"
        ) from None
    return clone(kernel)


def _finite(values: Any) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise InvalidInput(
            "kernel: some covariances are not finite; scale X or raise the lengthscale"
        )
    return array


# ---- Rules for inducing inputs


@final
@suggests_arguments
@dataclass(frozen=True, kw_only=True, eq=False)
class Candidates:
    """The observations and the kernel from which a rule chooses inducing inputs.

    Parameters
    ----------
    X : array (N, D)
        The observed inputs.
    kernel : PointKernel
        k.
    noise : float
        Variance of the least noisy observation in units of the kernel, λ/max_j p_j.
    rng : numpy.random.Generator
        Source of random draws.
    """

    X: Points
    kernel: PointKernel
    noise: float
    rng: np.random.Generator


class InducingRule(ABC):
    """A rule that chooses inducing inputs, at most as many as distinct points."""

    @abstractmethod
    def select(self, candidates: Candidates, /) -> Points:
        """Choose inducing inputs Z, shape (M, D)."""


@final
@suggests_arguments
@dataclass(frozen=True, eq=False)
class GivenInputs(InducingRule):
    """Inducing inputs that the user gives.

    Parameters
    ----------
    inputs : array (M, D)
        Z; they need not be observed inputs.
    """

    inputs: object

    def select(self, candidates: Candidates, /) -> Points:
        inputs = read_array(self.inputs, "inducing", ndim=2)
        n_features = candidates.X.shape[1]
        if inputs.shape[1] != n_features:
            raise InvalidInput(
                f"inducing: expected {n_features} features as in X, got shape "
                f"{inputs.shape}"
            )
        return inputs


@final
@suggests_arguments
@dataclass(frozen=True)
class RandomInputs(InducingRule):
    """Inducing inputs drawn uniformly from the observed inputs.

    Parameters
    ----------
    count : int
        M.
    """

    count: int

    def select(self, candidates: Candidates, /) -> Points:
        different = np.unique(candidates.X, axis=0)
        count = min(read_count(self.count, "count"), len(different))
        return different[
            np.sort(candidates.rng.choice(len(different), count, replace=False))
        ]


@final
@suggests_arguments
@dataclass(frozen=True)
class FarthestInputs(InducingRule):
    """Observed inputs, each the farthest from those before it (Gonzalez 1985).

    The first is the nearest to the mean. The largest distance to the nearest inducing
    input is then at most twice the smallest possible for their number.

    Parameters
    ----------
    count : int
        M.
    """

    count: int

    def select(self, candidates: Candidates, /) -> Points:
        X = candidates.X
        chosen = [int(np.argmin(_squares(X - X.mean(axis=0))))]
        nearest = _squares(X - X[chosen[0]])
        for _ in range(1, min(read_count(self.count, "count"), len(X))):
            farthest = int(np.argmax(nearest))
            if nearest[farthest] == 0:
                break
            chosen.append(farthest)
            nearest = np.minimum(nearest, _squares(X - X[farthest]))
        return X[chosen]


@final
@suggests_arguments
@dataclass(frozen=True)
class GreedyVariance(InducingRule):
    """Observed inputs, each with the largest prior variance given those before it.

    This is the pivoted Cholesky factorisation of K. It stops when the unexplained trace
    tr(K − Q) is at most ``tolerance`` times the noise λ/max_j p_j. With t = tr(K −
    Q)/λ, the term t·p_j/2 of the information lost in feature j (Titsias 2009, Eq. 9) is
    then at most tolerance/2 nats. The variance of a ``WhiteKernel`` cannot be
    explained, so that the rule continues to ``max_count``; use ``jitter`` instead.

    Parameters
    ----------
    max_count : int
        M at most; reaching it is no error.
    tolerance : float
        See above.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.inductive import GaussianProcessExplainer, GreedyVariance
    >>> X = np.linspace(0, 1, 500)[:, None]
    >>> explainer = GaussianProcessExplainer(inducing=GreedyVariance(50))
    >>> len(explainer.fit(X, X).inducing_inputs_) < 20
    True
    """

    max_count: int
    tolerance: float = 0.01

    def select(self, candidates: Candidates, /) -> Points:
        X = candidates.X
        kernel = candidates.kernel
        limit = read_positive(self.tolerance, "tolerance") * candidates.noise
        count = min(read_count(self.max_count, "max_count"), len(X))
        require_memory(8.0 * count * len(X), "a pivoted factor", "lower max_count")
        # what jitter adds can be explained by no other point
        left = kernel.diagonal(X) - kernel.jitter
        rounding = len(X) * np.finfo(float).eps * left.max()
        factor = np.empty((count, len(X)))
        chosen = list[int]()
        while len(chosen) < count and left.max() > rounding:
            if chosen and left.sum() <= limit:
                break
            pivot = int(np.argmax(left))
            m = len(chosen)
            # the next row of the factor: (k(x_p, X) − Σ rows r_p r)/√left
            row = kernel.cross(X[pivot : pivot + 1], X)[0]
            factor[m] = (row - factor[:m, pivot] @ factor[:m]) / np.sqrt(left[pivot])
            left = np.maximum(left - factor[m] ** 2, 0.0)
            left[pivot] = 0.0
            chosen.append(pivot)
        return X[chosen or [0]]


def read_inducing(inducing: object) -> InducingRule | None:
    """A rule, inputs (M, D) that are given, or None: all observations."""
    if inducing is None or isinstance(inducing, InducingRule):
        return inducing
    if isinstance(inducing, int | np.integer):
        raise InvalidInput(
            f"inducing: expected a rule, inputs or None, got {inducing!r}; "
            f"GreedyVariance({inducing!r}) is a rule"
        )
    return GivenInputs(inducing)
