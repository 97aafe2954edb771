"""Losses of the optimum for all weights: eigenvalues, Krylov spaces, one bound.

Gradient matching, one robustness and one smoothness loss: with a‖W − G‖² + b‖B W‖² +
c‖W Cᵀ‖², eigenvectors u of BᵀB (eigenvalue θ) and v of CᵀC (ν), G = Σ ĝ u vᵀ and
τ = ĝ², the optimum has the share h = a/(a + bθ + cν) of each part (Tadesse et al.
2024, Eq. 10), so that

    ‖W − G‖² = Σ τ (1 − h)²,   ‖B W‖² = Σ τ θ h²,   ‖W Cᵀ‖² = Σ τ ν h²,

and the optimum is Σ τ a (1 − h). An error ΔP of BᵀB changes the optimum by at most
b ⟨W, ΔP W⟩, its derivative. Preparing costs O(N³ + D³), the losses for one
weight vector O(N·D), its attributions O(N·D·(N + D)).

The optimum for the target E costs F* = a‖E‖² − a² ⟨E, H⁻¹E⟩: the curve of the
program with target E gives ⟨E, H⁻¹E⟩ for all weights.

For graphs too large for an eigenbasis, rotating the columns of G by the eigenvectors of
CᵀC decouples the features: column j of W solves the shifted system
(s_j + b P) w = a g with P = BᵀB and s_j = a + c ν_j.

**Curves.** Krylov spaces do not depend on the shift. One Lanczos run with P from g_j
gives a tridiagonal T with eigenvalues θ_k and weights τ_k (squared first components of
its eigenvectors, times ‖g‖²) such that, for all a, b and c, the sums above
are exactly the losses of the conjugate-gradient iterate of that many steps.

With one node moved to zero (Gauss–Radau), the same sum of a − a h bounds the optimum
from below: P is positive semidefinite and 1/(s + b p) completely monotone in p. Their
difference, and what rounding may do to nodes, is the certified gap; Lanczos continues
until it is small enough or only rounding (Golub and Meurant,
"Matrices, Moments and Quadrature with Applications", 2010).

In floating point, Lanczos behaves like exact Lanczos with a matrix whose eigenvalues
differ from those of P by a small multiple of the rounding unit at ‖P‖ (Greenbaum,
"Behavior of slightly perturbed Lanczos and conjugate-gradient recurrences", 1989). Each
node has this error. If the similarities of some components are a million times those of
others, each batch is therefore treated separately, and means over connected components
are subtracted from G first: nodes at θ = 0, exactly.

**Attributions.** Preconditioned conjugate gradients, for requested weights only.

A bound on a squared loss is a scalar root search on the exact curve. On the curve of
min F(W) + μ·loss(W) the loss falls with μ, from its value at the free optimum (μ = 0)
to zero, so the minimum of F with loss ≤ limit is at the μ with loss(μ) = limit, or at
zero if the bound is not active. Each step of the root search costs one point of the
curve, and no W. Its equation is

    log loss/(free − loss) = log limit/(free − limit),

nearly linear in log μ at both ends: free − loss goes to zero with μ, loss with 1/μ².

If the bound is on faithfulness, the free optimum is that of F alone: the W nearest to
the gradients among those at no cost, means over the components.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any, TypeAlias, final

import numpy as np
import scipy.linalg as la
import scipy.optimize as opt
import scipy.sparse as sp
from numpy.polynomial.chebyshev import chebpts1, chebvander
from numpy.typing import NDArray
from scipy.sparse.csgraph import reverse_cuthill_mckee

from propopt.base.arrays import Array, Attributions, Sparse
from propopt.base.errors import SolverFailure
from propopt.base.resources import few_threads, for_each_column, memory_refusal
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import Reason
from propopt.losses import GradientMatching, Program
from propopt.losses.algebra import positive_terms
from propopt.losses.linear_algebra import (
    EPSILON,
    SLAB,
    Components,
    conjugate_gradients,
    slabs,
)
from propopt.losses.maps import (
    ImplicitOverPoints,
    OverPoints,
)
from propopt.losses.operators import Operator
from propopt.losses.restricted import Restriction, has_exact_zeros
from propopt.proofs.curvature import (
    Quadratic,
    QuadraticBasis,
    Waves,
    curve_refusal,
    eigenbases,
    eigenbasis_refusal,
    lattice_of,
)
from propopt.solvers.factored import (
    Elimination,
    Factored,
)
from propopt.solvers.solver import (
    Curve,
    Dispatcher,
    Fallback,
    Measurement,
    Prepared,
    Solution,
    Solver,
)


# ---- ⟨E, H⁻¹E⟩ for all weights, from the curve of the program with target E


_TOLERANCE = 1e-10
"""The relative error of F*, as differences of it may be small."""


def energy_on_curve(
    program: Program, solver: Solver, E: Array
) -> Callable[[Array], float]:
    """A function from weights to a² ⟨E, H⁻¹E⟩, for E (N, D)."""
    matching = [isinstance(loss, GradientMatching) for loss in program.losses].index(
        True
    )
    losses = list(program.losses)
    losses[matching] = GradientMatching(E, name=losses[matching].name)
    with few_threads(program.shape[0]):
        curve = solver.prepare(Program(tuple(losses), (), program.shape))
    assert isinstance(curve, Curve), "the solver prepares curves"
    size = float(np.vdot(E, E))

    def energy(weights: Array) -> float:
        with few_threads(program.shape[0]):
            F = float(weights @ curve.measure(weights, _TOLERANCE).losses)
        return max(float(weights[matching]) * size - F, 0.0)

    return energy


# ---- Conjugate gradients for one column: (s + b P) w = a g


MOST_GRADIENTS = 50_000
_LOOK_EVERY = 5
_RESTARTS = 3
"""Restarts from the true residual, when the recurrence has lost it to rounding."""


@dataclass(frozen=True, eq=False)
class ShiftedSystem:
    """The problem min_w a‖w − g‖² + (s − a)‖w‖² + b wᵀP w: (s + b P) w = a g."""

    P: Any  # (N, N): positive semidefinite: sparse, dense or an operator
    a: float  # weights; s ≥ a > 0
    b: float
    s: float
    g: Array  # (N,): the target
    most_steps: int = MOST_GRADIENTS  # after which it fails

    def solve(self, w: Array, tolerance: float) -> Array:
        """The minimiser to a relative excess of a tenth of ``tolerance``."""
        # start at w or zero, whichever has the smaller residual and less rounding
        r = self._residual(w)
        w = w.copy()
        if float(r @ r) > self.a**2 * float(self.g @ self.g):
            w = np.zeros_like(w)
            r = self.a * self.g
        for _ in range(_RESTARTS):
            w = self._descend(w, r, 0.1 * tolerance)
            r = self._residual(w)  # the one of the recurrence is free of w's rounding
            if self._is_done(w, r, 0.1 * tolerance):
                break
        return w

    def _residual(self, w: Array) -> Array:
        return self.a * self.g - self.s * w - self.b * (self.P @ w)

    def _descend(self, w: Array, r: Array, tolerance: float) -> Array:
        looks = count()

        def product(p: Array) -> Array:
            Ap: Array = self.P @ p
            Ap *= self.b
            Ap += self.s * p
            return Ap

        def is_enough(w: Array, r: Array) -> bool:
            return next(looks) % _LOOK_EVERY == 0 and self._is_done(w, r, tolerance)

        if conjugate_gradients(
            product,
            w,
            r,
            precondition=self._precondition,
            most_steps=self.most_steps,
            is_enough=is_enough,
        ):
            return w
        raise SolverFailure(
            f"conjugate gradients did not converge in {self.most_steps} steps: the "
            "graph may be badly scaled; try solver='spectral'"
        )

    def _is_done(self, w: Array, r: Array, tolerance: float) -> bool:
        """Whether ‖r‖²/a, the bound of the excess objective, is within the tolerance.

        With d = g − w the objective is a‖d‖² + wᵀ(a d − r), as b P w + (s − a) w =
        a d − r.
        """
        squared = float(r @ r)
        d = self.g - w
        objective = self.a * float(d @ d)
        d *= self.a
        d -= r
        objective += float(w @ d)
        rounding = (1e-15 * self.a) ** 2 * float(self.g @ self.g)
        return squared <= max(tolerance * self.a * objective, rounding)

    @cached_property
    def _precondition(self) -> Callable[[Array], Array]:
        if isinstance(self.P, Operator) or self.b == 0.0:
            return np.copy  # grids have nearly constant diagonals
        inverse = 1.0 / (self.s + self.b * self.P.diagonal())
        return lambda r: inverse * r


# ---- Losses of the optimum from the spectral masses of G at pairs (θ, ν)


_DIGITS = 1e-13
"""The relative error of masses, which are sums of many products."""


@dataclass(frozen=True, eq=False)
class Nodes:
    """Masses τ at nodes (θ, ν) with bounds of their errors; all broadcast."""

    # eigenvalues over points and over features, ≥ 0; parts without cost at zero
    theta: Array
    nu: Array
    tau: Array  # the masses, which add up to ‖G‖²
    theta_error: Array  # bounds of the errors of θ and ν; zero for constants
    nu_error: Array

    @classmethod
    def joined(cls, rules: Sequence[Nodes]) -> Nodes:
        """Concatenate the nodes of several rules of one axis."""
        parts = zip(*(vars(rule).values() for rule in rules), strict=True)
        return cls(*map(np.concatenate, parts))

    def losses(self, abc: Array) -> Array:
        """The matching loss, the loss over points and the loss over features."""
        h, removed = self._shares(abc)
        retained = self.tau * h**2
        return np.array(
            [
                (self.tau * removed**2).sum(),
                (retained * self.theta).sum(),
                (retained * self.nu).sum(),
            ]
        )

    def optimum(self, abc: Array) -> float:
        """The smallest objective, Σ τ a (1 − h)."""
        return float(abc[0] * (self.tau * self._shares(abc)[1]).sum())

    def rounding(self, abc: Array) -> float:
        """A bound of the error of the optimum: b ‖W‖ ‖δθ W‖ per axis, and rounding.

        As ⟨W, ΔP W⟩ ≤ ‖W‖ ‖ΔP W‖, where ΔP maps a unit eigenvector to at most δθ; W is
        bounded from above.
        """
        retained = self.tau * self._largest_share(abc) ** 2
        _, b, c = abc
        moved = b * _root_sum(retained * self.theta_error**2)
        moved += c * _root_sum(retained * self.nu_error**2)
        seen = np.maximum(self.theta_error, self.nu_error) > 0.0
        size = _root_sum(retained * seen)
        return 2.0 * size * moved + _DIGITS * self.optimum(abc)

    def losses_rounding(self, abc: Array) -> Array:
        """Bounds of the error of each loss; that of h is h (b δθ + c δν)/(a + bθ + cν).

        More steps cannot make losses more accurate than this.
        """
        _, removed = self._shares(abc)
        h = self._largest_share(abc)
        moved = (abc[1] * self.theta_error + abc[2] * self.nu_error) * h / abc[0]
        retained = self.tau * h**2
        return np.array(
            [
                (2.0 * self.tau * removed * h * moved).sum(),
                (retained * (self.theta_error + 2.0 * self.theta * moved)).sum(),
                (retained * (self.nu_error + 2.0 * self.nu * moved)).sum(),
            ]
        )

    def _shares(self, abc: Array) -> tuple[Array, Array]:
        """The shares h, and 1 − h without cancellation."""
        a, b, c = abc
        stiffness = b * self.theta + c * self.nu
        h = a / (a + stiffness)
        return h, stiffness / a * h

    def _largest_share(self, abc: Array) -> Array:
        """The share h for the smallest possible θ and ν."""
        a, b, c = abc
        theta = np.maximum(self.theta - self.theta_error, 0.0)
        nu = np.maximum(self.nu - self.nu_error, 0.0)
        return a / (a + b * theta + c * nu)


def _root_sum(squares: Array) -> float:
    return float(np.sqrt(squares.sum()))


NO_NODES = Nodes(*(np.zeros(0) for _ in range(5)))


# ---- Condensing many masses, so that each weight is cheap


_FEW = 2048
"""Up to this many nodes are not condensed."""

_PARTS = 8
"""Parts of each octave of θ."""

_NODES = 11
"""Chebyshev nodes of each part."""


def condensed(theta: Array, tau: Array) -> tuple[Array, Array]:
    """Condense masses tau (N, k) at theta (N,) to nodes (J,) and masses (J, k).

    In each part of an octave, f is replaced by its polynomial through Chebyshev points
    x_j: with T_n at x of each node,

        Σ_i τ_i f(θ_i) = Σ_j f(x_j) (2/J) Σ'_n T_n(x_j) Σ_i τ_i T_n(θ_i).

    h, h² and θ h² have their pole at θ = −(a + cν)/b ≤ 0, sixteen half-widths from the
    part or more: the polynomial is within 4 M ρ^(−11)/(ρ − 1) ≤ 1e-15 of f, relative to
    its least, with ρ = 27 and M its largest within that ellipse (Trefethen,
    "Approximation Theory and Approximation Practice", 2013, Theorem 8.2).
    """
    if len(theta) <= _FEW:
        return theta, tau
    mantissa, octave = np.frexp(theta)
    position = (mantissa - 0.5) * (2 * _PARTS)
    part = np.minimum(position.astype(np.intp), _PARTS - 1)
    x = 2.0 * (position - part) - 1.0
    positive = theta > 0.0
    first = int(octave[positive].min(initial=0))
    count = (int(octave[positive].max(initial=0)) - first + 1) * _PARTS
    part += (octave - first) * _PARTS
    # the last part is θ = 0
    x[~positive] = 0.0
    part[~positive] = count
    moments = np.zeros((_NODES, count + 1, tau.shape[1]))
    for rows in range(0, len(theta), SLAB):
        here = slice(rows, rows + SLAB)
        columns = tau[here].T
        for n, T in enumerate(chebvander(x[here], _NODES - 1).T):
            for k, masses in enumerate(columns):
                moments[n, :, k] += np.bincount(part[here], masses * T, count + 1)
    points = chebpts1(_NODES)
    basis = chebvander(points, _NODES - 1).T * (2.0 / _NODES)
    basis[0] *= 0.5
    occupied = np.unique(part[positive])
    tau = np.einsum("nj,npk->pjk", basis, moments[:, occupied]).reshape(
        -1, tau.shape[1]
    )
    octaves, parts = np.divmod(occupied, _PARTS)
    middles = 0.5 + (parts[:, None] + 0.5 * (1.0 + points)) / (2 * _PARTS)
    theta = np.ldexp(middles, (octaves + first)[:, None]).ravel()
    return np.append(theta, 0.0), np.concatenate([tau, moments[0, -1:]])


# ---- Gradient matching, one robustness and one smoothness loss, in closed form


@final
@dataclass(frozen=True)
class Spectral(Solver):
    """Closed form in the eigenbasis of the two graphs; see the module's formula."""

    name = "spectral"

    def refusal(self, program: Program) -> str | None:
        return curve_refusal(program) or eigenbasis_refusal(program)

    def prepare(self, program: Program) -> Prepared:
        return Diagonal(Quadratic.of(program))


@final
class Diagonal(Curve):
    """A program in the eigenbases over points and over features."""

    def __init__(self, quadratic: Quadratic) -> None:
        self._quadratic = quadratic
        self._constants = quadratic.constants
        # over points and over features
        self.bases: tuple[QuadraticBasis, QuadraticBasis] = eigenbases(quadratic)
        self._over_points, self._over_features = self.bases
        coefficients = self._columns()
        if isinstance(self._over_points, Waves):
            self._over_points.turn(coefficients)
        else:
            coefficients = self._over_points.forward(coefficients.T).T
        if quadratic.Q is not None:
            coefficients = self._over_features.forward(coefficients)
        self._G_hat = coefficients  # (D, N)

    def _columns(self) -> Array:
        """G minus its constants on pairs of parts, in columns (D, N)."""
        G = self._quadratic.G
        constants = self._constants
        columns = np.empty(G.shape[::-1])
        for rows in slabs(G):
            least = constants if len(constants) == 1 else constants[rows]
            np.subtract(G[rows].T, least.T, out=columns[:, rows])
        return columns

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        del tolerance, start  # a closed form is exact, and needs no start
        a, b, c = self._quadratic.coefficients(weights)
        points = self._over_points
        features = self._over_features
        # a (W − G) + b BᵀB W + c W CᵀC = 0
        h = b * points.values
        h += a
        if self._quadratic.Q is not None:
            W_hat = a * self._G_hat / (h + c * features.values[:, None])
            W = points.backward(features.backward(W_hat).T)
        else:
            h = np.divide(a, h, out=h)
            if isinstance(points, Waves):
                return Solution(W=self._by_waves(points, h))
            W = points.backward((self._G_hat * h).T)
        return Solution(W=np.add(W, self._constants, out=np.empty(W.shape)))

    def _by_waves(self, points: Waves, h: Array) -> Array:
        """W with the coefficients of all columns scaled by h (N,), by columns."""
        W = np.empty(self._G_hat.shape[::-1])
        constants = np.broadcast_to(self._constants, W.shape)
        for g, constant, w in zip(self._G_hat, constants.T, W.T, strict=True):
            np.add(points.lattice.backward(g * h), constant, out=w)
        return W

    def measure(self, weights: Array, tolerance: float) -> Measurement:
        del tolerance
        abc = np.array(self._quadratic.coefficients(weights))
        losses = self._nodes.losses(abc)
        excess = self._nodes.rounding(abc) + self._transform_rounding(abc, losses)
        placed = self._quadratic.in_program_order(*losses.tolist())
        return Measurement(losses=placed, excess=excess)

    def _transform_rounding(self, abc: Array, losses: Array) -> float:
        """The effect of errors δ of Ĝ on the optimum F, whose root is a norm of Ĝ.

        F(δ) ≤ a k/(a + k) ‖δ‖² for the largest curvature k of the other losses.
        """
        rate = sum([x.rounding for x in self.bases if isinstance(x, Waves)])
        if not rate:
            return 0.0
        a, b, c = abc
        points, features = self.bases
        k = b * points.values.max() + c * features.values.max()
        moved = rate * float(np.sqrt(self._nodes.tau.sum() * a * k / (a + k)))
        return moved * (2.0 * float(np.sqrt(abc @ losses)) + moved)

    @cached_property
    def _nodes(self) -> Nodes:
        if isinstance(self._over_points, Waves):
            tau = self._G_hat**2
            if self._quadratic.Q is None:
                tau = tau.sum(axis=0, keepdims=True)
            theta, tau = condensed(self._over_points.values, tau.T)
            nu = self._over_features.values[: tau.shape[1]]
            errors = self._over_features.errors[: tau.shape[1]]
            # errors of θ are a few units of θ itself: they are within _DIGITS
            return Nodes(theta[:, None], nu, tau, np.zeros((len(theta), 1)), errors)
        return Nodes(
            theta=self._over_points.values[:, None],
            nu=self._over_features.values,
            tau=self._G_hat.T**2,
            theta_error=self._over_points.errors[:, None],
            nu_error=self._over_features.errors,
        )


# ---- Gauss and Gauss–Radau quadrature for the spectral measure of a vector


_FIRST_STEPS = 10
_GROWTH = 0.4  # of the steps so far in each extension: checks are expensive
_ROUNDING = 8 * EPSILON
"""Errors of nodes relative to ‖P‖; the tests measure them."""


class Lanczos:
    """A Lanczos run with a matrix P ≥ 0 from a vector g, extended on request.

    ``gauss`` and ``radau`` are its rules, ``earlier`` is the previous Gauss rule.
    Without reorthogonalisation: rounding lets converged eigenvalues appear again, which
    costs steps and does no harm to the quadrature.
    """

    def __init__(
        self, P: Any, g: Array, norm: float, nu: float = 0.0, nu_error: float = 0.0
    ) -> None:
        self._P = P
        self._error = _ROUNDING * norm
        self._nu = nu
        self._nu_error = nu_error
        self._mass = float(g @ g)
        self._alpha: list[float] = []
        self._beta: list[float] = []
        self._vector = g / np.sqrt(self._mass) if self._mass > 0 else g
        self._before = np.zeros_like(g)
        # where an operator writes its products; matrices make a new array
        self._spare = np.zeros_like(g) if isinstance(P, Operator) else np.zeros(0)
        self.exhausted: bool = self._mass == 0.0
        self.gauss: Nodes = NO_NODES
        self.earlier: Nodes = NO_NODES
        self.radau: Nodes = NO_NODES

    @property
    def n_steps(self) -> int:
        """The number of products with P so far."""
        return len(self._alpha)

    def extend(self) -> None:
        """Take some more steps, or until the space is exhausted."""
        for _ in range(max(_FIRST_STEPS, int(_GROWTH * self.n_steps))):
            if self.exhausted:
                break
            self._step()
        earlier = self.gauss
        radau = None if self.exhausted else self._radau_rule()
        self.gauss = self._rule(self._alpha, self._beta[:-1])
        self.earlier = earlier if radau else self.gauss
        self.radau = radau or self.gauss

    def _step(self) -> None:
        # β_{k+1} v_{k+1} = P v_k − α_k v_k − β_k v_{k−1}, in three arrays that rotate
        v = self._vector
        work = self._before
        following = self._product(v)
        if self._beta:
            work *= self._beta[-1]
            following -= work
        alpha = float(following @ v)
        np.multiply(v, alpha, out=work)
        following -= work
        beta = float(np.sqrt(following @ following))
        self._alpha.append(alpha)
        self._beta.append(beta)
        # such a β moves the nodes by no more than rounding does
        self.exhausted = beta <= self._error
        if not self.exhausted:
            following /= beta
            self._before = v
            self._vector = following
            if isinstance(self._P, Operator):
                self._spare = work

    def _product(self, v: Array) -> Array:
        if not isinstance(self._P, Operator):
            return self._P @ v
        self._P.apply(v, self._spare)
        return self._spare

    def _rule(self, alpha: list[float], beta: list[float]) -> Nodes:
        if not alpha:
            return NO_NODES
        theta, vectors = la.eigh_tridiagonal(alpha, beta)
        tau = self._mass * vectors[0] ** 2
        columns = (self._nu, self._error, self._nu_error)
        nu, errors, nu_errors = (np.full(len(theta), value) for value in columns)
        return Nodes(np.maximum(theta, 0.0), nu, tau, errors, nu_errors)

    def _radau_rule(self) -> Nodes:
        """The rule with one more node at zero, below all eigenvalues."""
        zero = -self._error  # rounding may produce eigenvalues this low
        pivot = self._last_pivot(zero)
        while pivot <= 0.0:  # an even lower one
            self._error *= 2.0
            zero = -self._error
            pivot = self._last_pivot(zero)
        last = zero + self._beta[-1] ** 2 / pivot
        return self._rule([*self._alpha, last], self._beta)

    def _last_pivot(self, zero: float) -> float:
        """The last pivot of T − zero I; 0 if an eigenvalue is below ``zero``."""
        pivot = np.inf
        for alpha, beta in zip(self._alpha, [0.0, *self._beta[:-1]], strict=True):
            pivot = alpha - zero - beta**2 / pivot
            if pivot <= 0.0:
                return 0.0
        return pivot


# ---- Components of a graph by the size of their similarities


_APART = 1e3
"""Components whose largest entries differ by a smaller factor form one batch."""


Batch: TypeAlias = tuple[Any, NDArray[np.intp] | slice]
"""Components of P: their part of P, and their nodes."""


def _batches_of(P: Sparse | Array | Operator, parts: Components | None) -> list[Batch]:
    """Batches of components, the largest first, without isolated nodes."""
    if isinstance(P, Operator) or not sp.issparse(P):
        return [(P, slice(None))]
    if parts is None or parts.count == 1:
        return [_batch(P, None)]
    batches = _batches(P.diagonal(), parts)
    if not batches.any():
        return [_batch(P, None)]
    members = (
        np.flatnonzero(batches == batch) for batch in np.unique(batches[batches >= 0])
    )
    return [_batch(sp.csr_array(P)[nodes][:, nodes], nodes) for nodes in members]


_IN_CACHE = 20_000
"""Up to this many numbers, the order of nodes does not matter for speed."""


def _batch(P: Sparse, nodes: NDArray[np.intp] | None) -> Batch:
    """The batch of P, with neighbours close in memory (reverse Cuthill–McKee)."""
    if P.shape[0] <= _IN_CACHE:
        return P, slice(None) if nodes is None else nodes
    order = reverse_cuthill_mckee(sp.csr_matrix(P), symmetric_mode=True)
    ordered = sp.csr_array(P)[order][:, order]
    ordered.sort_indices()
    return ordered, order if nodes is None else nodes[order]


def _batches(diagonal: Array, parts: Components) -> NDArray[np.intp]:
    """For each node, the number of factors by which its component is below the largest.

    Minus one for isolated nodes.
    """
    largest = np.zeros(parts.count)
    np.maximum.at(largest, parts.labels, diagonal)
    positive = largest > 0.0
    batches = np.full(parts.count, -1)
    sizes = np.log(largest[positive])
    below = sizes.max(initial=-np.inf) - sizes
    batches[positive] = np.floor(below / np.log(_APART))
    return batches[parts.labels]


def _norm(P: Sparse | Array | Operator) -> float:
    """A bound of all eigenvalues: the largest row sum of absolute values."""
    if isinstance(P, Operator):
        return P.largest
    return float(abs(P).sum(axis=1).max())


# ---- The same losses as the closed form, for graphs too large for an eigenbasis


_RETAINED = 10_000_000
"""Numbers of G up to which Lanczos vectors are retained while W is computed."""

MOST_STEPS = 10_000
"""Graphs of a million points took a few hundred steps of Lanczos."""


@final
@suggests_arguments
@dataclass(frozen=True)
class Krylov(Solver):
    """Solver of squared losses for many rows: Lanczos and conjugate gradients.

    Parameters
    ----------
    most_steps : int, optional
        Steps of Lanczos, and of conjugate gradients, before it gives up; by default
        10,000 and 50,000.
    fallback : Solver, optional
        Another solver with curves, for weights at which this one fails or misses the
        tolerance.
    """

    most_steps: int | None = None
    fallback: Solver | None = None

    name = "krylov"

    def refusal(self, program: Program) -> str | None:
        n_points, n_features = program.shape
        label = f"conjugate gradients on {n_points} points and {n_features} features"
        # G, its rotation, W, and the vectors of each recurrence
        n_bytes = 80.0 * n_points * n_features
        reason = memory_refusal(n_bytes, label, "explain fewer points")
        return curve_refusal(program) or reason

    def prepare(self, program: Program) -> Prepared:
        curve = _KrylovSpaces(Quadratic.of(program), self.most_steps)
        if self.fallback is None:
            return curve
        return Fallback(program, curve, self.fallback)


class _KrylovSpaces(Curve):
    def __init__(self, quadratic: Quadratic, most_steps: int | None) -> None:
        self._quadratic = quadratic
        self._most_steps = most_steps or MOST_STEPS
        self._most_gradients = most_steps or MOST_GRADIENTS
        self._basis = quadratic.feature_basis
        self._nu = self._basis.values
        self._parts = quadratic.point_parts
        self._means, self._columns = quadratic.split(quadratic.G)
        P = quadratic.P
        self._batches = [] if P is None else _batches_of(P, self._parts)
        self._gauss = self._earlier = self._radau = NO_NODES
        self._exhausted = False

    @cached_property
    def _spaces(self) -> list[Lanczos]:
        return [
            Lanczos(P, g[nodes], norm, float(nu), float(error))
            for P, nodes in self._batches
            for norm in [_norm(P)]
            for g, nu, error in zip(
                self._columns, self._nu, self._basis.errors, strict=True
            )
        ]

    @cached_property
    def _constants(self) -> Nodes:
        """Nodes that P does not affect: means, or all of G without P."""
        tau = np.zeros(len(self._nu))
        if self._parts is not None:
            tau += self._means**2 @ self._parts.sizes
        if not self._batches:
            tau += (self._columns**2).sum(axis=1)
        zero = np.zeros(len(tau))
        return Nodes(zero, self._nu, tau, zero, self._basis.errors)

    def measure(self, weights: Array, tolerance: float) -> Measurement:
        abc = np.array(self._quadratic.coefficients(weights))
        if self._gauss is NO_NODES:
            self._extend()
        while True:
            losses = self._gauss.losses(abc)
            rounding = self._gauss.rounding(abc)
            # exactly, the Radau rule is below the Gauss rule; any difference counts
            apart = abs(self._gauss.optimum(abc) - self._radau.optimum(abc))
            settled = apart <= max(tolerance * float(abc @ losses), rounding)
            if self._exhausted or (settled and self._is_still(abc, losses, tolerance)):
                placed = self._quadratic.in_program_order(*losses.tolist())
                return Measurement(losses=placed, excess=apart + rounding)
            self._extend()

    def _is_still(self, abc: Array, losses: Array, tolerance: float) -> bool:
        """Whether the last steps changed each loss within tolerance or rounding."""
        change = np.abs(losses - self._earlier.losses(abc))
        little = np.maximum(tolerance * losses, self._gauss.losses_rounding(abc))
        return bool((change <= little).all())

    def _extend(self) -> None:
        steps = max((space.n_steps for space in self._spaces), default=0)
        if steps > self._most_steps:
            raise SolverFailure(
                f"Lanczos did not converge in {steps} steps: the graph is badly "
                "scaled, like the precision of a kernel; try solver='spectral'"
            )
        spaces = self._spaces
        for_each_column(
            lambda k: spaces[k].extend(), len(spaces), self._columns.shape[1]
        )
        fixed = self._constants
        self._gauss = Nodes.joined([fixed, *(space.gauss for space in spaces)])
        self._earlier = Nodes.joined([fixed, *(space.earlier for space in spaces)])
        self._radau = Nodes.joined([fixed, *(space.radau for space in spaces)])
        self._exhausted = all(space.exhausted for space in spaces)

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        a, b, c = self._quadratic.coefficients(weights)
        shifts = (a + c * self._nu)[:, None]
        if self._columns.size > _RETAINED:  # their memory; a finer curve starts anew
            vars(self).pop("_spaces", None)
        W_hat = a * self._columns / shifts
        means = a * self._means / shifts
        begin = W_hat
        if start is not None:
            _, begin = self._quadratic.split(start.W)

        def column(k: int) -> None:
            P, nodes = self._batches[k // len(begin)]
            j = k % len(begin)
            system = ShiftedSystem(
                P,
                a,
                b,
                float(shifts[j, 0]),
                self._columns[j, nodes],
                self._most_gradients,
            )
            W_hat[j, nodes] = system.solve(begin[j, nodes], tolerance)

        for_each_column(column, len(self._batches) * len(begin), begin.shape[1])
        return Solution(W=self._quadratic.joined(means, W_hat))


# ---- Choosing the fastest solver with a curve


_USUAL_STEPS = 40.0  # Lanczos or gradient steps that usual weights take
SECONDS_PER_OPERATION = 6e-10  # of eigenvectors, over N³, and of products with a matrix
SECONDS_PER_STEP = 6e-5  # overhead of a step
SECONDS_PER_NUMBER = 1e-8  # overhead of a step per point
PATIENCE = 3.0  # Lanczos may cost this many factors before Factored takes over


def choose_curve_solver(program: Program) -> Solver | Reason:
    """Choose Spectral, Factored or Krylov, or return the reason for none.

    The choice follows an estimate of seconds. Kernel precisions are dense and badly
    conditioned: Lanczos would take many more steps than points.
    """
    reason = curve_refusal(program)
    if reason is not None:
        return Reason(reason)
    robust = program.kinds["robustness"]
    coupled = robust[0].map if robust else None
    if eigenbasis_refusal(program) is None:
        is_dense = isinstance(getattr(coupled, "matrix", None), np.ndarray)
        eigenbasis = SECONDS_PER_OPERATION * float(program.shape[0]) ** 3
        if (
            is_dense
            or eigenbasis <= _seconds_of_lanczos(program)
            or lattice_of(coupled) is not None
        ):
            return Spectral()
    factored = Factored().take(program)
    if isinstance(factored, Reason):
        return Krylov().take(program)
    assert factored.elimination is not None, "see Factored.take"
    lanczos = _seconds_of_lanczos(program)
    factors = _seconds_per_weight(program, factored.elimination)
    if factors <= lanczos:
        return factored
    # stop Lanczos after the time of a few factors
    steps = math.ceil(_USUAL_STEPS * PATIENCE * factors / lanczos)
    return Krylov(most_steps=steps, fallback=Factored()).take(program)


def _seconds_of_lanczos(program: Program) -> float:
    """Estimated seconds for the steps of all features that usual weights take."""
    n_points, n_features = program.shape
    step = SECONDS_PER_STEP + SECONDS_PER_NUMBER * n_points
    for loss in program.kinds["robustness"]:
        match loss.map:
            case OverPoints(matrix=B) if not isinstance(B, np.ndarray):
                # a row of B with two entries gives two of BᵀB off its diagonal
                step += SECONDS_PER_OPERATION * B.nnz
            case ImplicitOverPoints(gram=gram):
                step += SECONDS_PER_OPERATION * 20.0 * gram.size
    return _USUAL_STEPS * (n_features * step)


def _seconds_per_weight(program: Program, elimination: Elimination) -> float:
    """Estimated seconds for factors, one per feature eigenvalue with two solves."""
    _, n_features = program.shape
    n_factors = 1 if len(program.losses) < 3 else n_features
    solves = 2 * n_features - n_factors
    solve = elimination.seconds(1) - elimination.seconds(0)
    return n_factors * elimination.seconds(1) + solves * solve


# ---- One bound on a squared loss: a scalar root on the exact curve


MARGIN = 0.01  # of the tolerance, between the loss and its limit
SLACK = 0.3  # of the tolerance, by which the free optimum may exceed the limit


@final
@dataclass(frozen=True)
class OneBound(Dispatcher):
    """One bound, by a root search on the curve of another solver.

    ``curve`` may be given if prepared for other limits; else ``solver`` prepares it.
    """

    curve: Curve | None = None
    solver: Solver | None = None

    name = "one_bound"

    def take(self, program: Program) -> Solver | Reason:
        reason = _bound_refusal(program)
        if reason is not None:
            return Reason(reason)
        if self.curve is not None:
            return self
        solver = choose_curve_solver(_with_bound_as_loss(program))
        return solver if isinstance(solver, Reason) else replace(self, solver=solver)

    def prepare(self, program: Program) -> Prepared:
        return _OnCurve(program, self.curve or self.curve_of(program))

    def curve_of(self, program: Program) -> Curve:
        """Prepare the curve of the objective with the bounded loss as a loss."""
        free = _with_bound_as_loss(program)
        assert self.solver is not None, "see take"
        curve = self.solver.prepare(free)
        assert isinstance(curve, Curve), "spectral and krylov prepare curves"
        return curve


def _bound_refusal(program: Program) -> str | None:
    """The reason why the bounds are not a single positive one on a suitable loss."""
    if len(program.bounds) != 1:
        return f"it takes one bound, and there are {len(program.bounds)}"
    bound = program.bounds[0]
    if bound.limit == 0.0:
        return "a limit of zero needs an infinite multiplier"
    if bound.loss.is_direct:
        for loss in program.losses:
            if not has_exact_zeros(loss):
                return f"the attributions with zero {loss.name} have no closed form"
    return None


def _with_bound_as_loss(program: Program) -> Program:
    return Program(program.all_losses, (), program.shape)


class _OnCurve(Prepared):
    def __init__(self, program: Program, curve: Curve) -> None:
        self._curve = curve
        self._losses = program.losses
        self._shape = program.shape
        self._bound = program.bounds[0]

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        del start
        # W solves a linear system: its losses err by the root of the objective's excess
        fine = tolerance**2
        limit = self._bound.limit
        free = self._free_loss(weights, fine)
        if free <= limit * (1.0 + SLACK * tolerance):
            W = self._free_attributions(weights, fine)
            return Solution(W=W, multipliers=(0.0,))
        limit -= MARGIN * tolerance * min(limit, free - limit)
        multiplier = self._root(weights, limit, free, fine)
        solution = self._curve.solve(np.append(weights, multiplier), fine)
        return Solution(W=solution.W, multipliers=(multiplier,))

    def _root(
        self, weights: Array, limit: float, free: float, tolerance: float
    ) -> float:
        tiny = np.finfo(float).tiny

        def height(log_multiplier: float) -> float:
            point = np.append(weights, np.exp(log_multiplier))
            loss = max(self._curve.measure(point, tolerance).losses[-1], tiny)
            return float(np.log(loss / max(free - loss, tiny)) - level)

        level = float(np.log(limit / (free - limit)))
        low, high = self._enclosed(height, float(np.log(weights.max())))
        return float(np.exp(opt.brentq(height, low, high, xtol=1e-14, rtol=1e-14)))

    def _enclosed(
        self, height: Callable[[float], float], middle: float
    ) -> tuple[float, float]:
        """Logarithms of one multiplier that is too small and one that is too large."""
        rises = height(middle) > 0.0
        inner = middle
        for decades in np.cumsum(np.arange(1, 11)):
            outer = middle + (1.0 if rises else -1.0) * decades * np.log(10.0)
            if (height(outer) > 0.0) != rises:
                return (inner, outer) if rises else (outer, inner)
            inner = outer
        raise SolverFailure(
            f"no multiplier up to {np.exp(inner):.0e} meets {self._bound}"
        )

    def _free_loss(self, weights: Array, tolerance: float) -> float:
        """The bounded loss at the optimum without the bound."""
        if self._bound.loss.is_direct:
            return self._bound.loss.value_at(
                self._free_attributions(weights, tolerance)
            )
        return float(self._curve.measure(np.append(weights, 0.0), tolerance).losses[-1])

    def _free_attributions(self, weights: Array, tolerance: float) -> Attributions:
        if not self._bound.loss.is_direct:
            return self._curve.solve(np.append(weights, 0.0), tolerance).W
        costly = [loss for _, loss in positive_terms(weights, self._losses)]
        G = np.broadcast_to(self._bound.loss.target, self._shape)
        return Restriction.to_zero(costly, self._shape).nearest(G)
