"""Shapley values as the ``shap`` package has them, without the package."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb
from typing import ClassVar, Literal, TypeAlias, final, get_args

import numpy as np

from propopt._typing import Array, Attributions, Points, Positions, Truths, Values
from propopt.checks import read_count
from propopt.errors import InvalidInput
from propopt.explainers.background import (
    NO_WORDS,
    Background,
    background_refusal,
    background_rows,
    n_background_rows,
    read_background,
)
from propopt.explainers.base import Baseline, Findings, PackageUnits
from propopt.explainers.request import Request
from propopt.explainers.texts.each import WordsFound
from propopt.results.explanation import Parameter
from propopt.sampling import perturbations


Algorithm: TypeAlias = Literal["auto", "exact", "permutation"]

EXACT_BY_DEFAULT = 12
EXACT_AT_MOST = 20
EXACT_EVALUATIONS = 2**17
"""Per point, above which orders are sampled by default."""

_NEGLIGIBLE = 1e-8
"""|x − r| ≤ this · max(|x|, |r|) counts as x = r when dividing by x − r."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Shap(Baseline):
    """Shapley values of the background game (Lundberg and Lee 2017).

    φ_j = Σ_{S ∌ j} |S|! (D − |S| − 1)! / D!  (v(S ∪ j) − v(S)),
    v(S) = mean over the background rows b of f(x on S, b elsewhere)

    The numbers are those of the explainers of the ``shap`` package, orders drawn by the
    same seeds too, but for rounding, and the package is not needed: f is asked for all
    subsets of a point at once, and never twice for a row in which nothing has changed.
    The completeness gap is reported and never raised: it is of the order of the
    rounding of f.

    ================================ ====== ==========================================
    ``details["base_value"]``        (N,)   v(∅), the mean of f over the background
    ``details["completeness_gap"]``  (N,)   Σ_j φ_j − (f(x) − v(∅))
    ``details["undefined"]``         (N,)   with ``units="gradient"``: how many
                                            features equal the reference
    ================================ ====== ==========================================

    Parameters
    ----------
    background : array or DataFrame (B, D), int or "mean"
        What a missing feature is replaced by; the cost grows with B. Rows of a table,
        such as the one that the model was fitted on; so many rows of X, drawn by
        ``rng``; or one row, the column means of X and its most frequent categories.
        Values may be missing, as in X: a feature is then known to be missing.
    units : {"output", "gradient"}
        ``"output"``: φ. ``"gradient"``: φ_j / (x_j − r_j) with r the mean of the
        background, which is comparable with gradients. Where x_j equals r_j to
        rounding (|x_j − r_j| ≤ 1e-8 max(|x_j|, |r_j|)) this is undefined: the
        attribution is set to 0 and counted in the details. φ_j of a category, and of a
        number that is missing in x, stays as it is.
    algorithm : {"auto", "exact", "permutation"}
        ``"exact"`` evaluates all 2^D subsets per point, for D ≤ 20. ``"permutation"``
        samples orders of the features, each forwards and backwards (Mitchell et al.
        2022). ``"auto"`` is exact for D ≤ 12, if that takes
        no more than 2^17 evaluations per point.
    n_permutations : int
        Random orders per point, each walked in both directions: 2D subsets. Where
        features equal the whole background there are more orders of the others.

    Of documents the background is the text without any word, and the features are its
    words.

    Raises
    ------
    InvalidInput
        If a setting is outside its range, or the background has other columns than X.

    Examples
    --------
    For a sum of functions of one feature each, φ_j = f_j(x_j) − f_j(r_j).

    >>> import numpy as np
    >>> from propopt.functions import Power
    >>> shap = Shap(background=np.zeros((1, 2)))
    >>> shap.explain(Power(2), [[1.0, 3.0]]).attributions
    array([[1., 9.]])
    """

    method: ClassVar[str] = "shap"

    background: Background = 100
    units: PackageUnits = "output"
    algorithm: Algorithm = "auto"
    n_permutations: int = 10

    def __post_init__(self) -> None:
        for name, options in [("units", PackageUnits), ("algorithm", Algorithm)]:
            if getattr(self, name) not in get_args(options):
                raise InvalidInput(
                    f"{name}: expected one of {', '.join(get_args(options))}, "
                    f"got {getattr(self, name)!r}"
                )
        read_count(self.n_permutations, "n_permutations")
        object.__setattr__(self, "background", read_background(self.background))

    def _texts_refusal(self) -> str | None:
        return background_refusal(self.background)

    def _texts_parameters(self) -> dict[str, Parameter]:
        told = {k: v for k, v in self.parameters.items() if k != "units"}
        return {**told, "background": NO_WORDS}

    def _words(self, request: Request) -> WordsFound:
        """Against the text without any word."""
        assert request.function.schema is not None, "a document has one"
        empty = request.function.schema.decode(np.zeros(request.points.shape))
        return super(Shap, replace(self, background=empty))._words(request)

    def _expected(self, request: Request) -> int:
        N, D = request.points.shape
        n_rows = n_background_rows(self.background, N)
        exact = self._is_exact(D, n_rows)
        subsets = 2**D if exact else 2 * D * self.n_permutations
        return N * n_rows * subsets

    def _expected_calls(self, request: Request) -> int:
        return len(request.points)

    def _findings(self, request: Request) -> Findings:
        background = background_rows(self.background, request)
        empty = request.value(background)
        values = self._values(request, background, empty)
        base = np.full(len(request.points), empty.mean())
        gap = values.sum(axis=1) - (request.value(request.points) - base)
        details = {"base_value": base, "completeness_gap": gap}
        if self.units == "output":
            return Findings(attributions=values, details=details)
        numeric = ~request.categorical
        slopes, details["undefined"] = _slopes(
            values[:, numeric],
            request.points[:, numeric],
            _known_means(background[:, numeric]),
        )
        values[:, numeric] = slopes
        return Findings(attributions=values, details=details)

    def _values(
        self, request: Request, background: Array, empty: Values
    ) -> Attributions:
        """φ of each point, (N, D)."""
        is_exact = self._is_exact(request.points.shape[1], len(background))
        seeds = None if is_exact else request.row_seeds()
        values = np.empty(request.points.shape)
        for n, point in enumerate(request.points):
            game = _Game(request, point, background, empty)
            if seeds is None:
                values[n] = game.exact()
            else:
                values[n] = game.sampled(self.n_permutations, seeds[n])
            request.advance(1)
        return values

    def _is_exact(self, n_features: int, n_rows: int) -> bool:
        if self.algorithm == "exact" and n_features > EXACT_AT_MOST:
            raise InvalidInput(
                f"algorithm: 'exact' takes 2^{n_features} evaluations per point, and "
                f"is offered for at most {EXACT_AT_MOST} features; use 'permutation'"
            )
        if self.algorithm != "auto":
            return self.algorithm == "exact"
        few = 2.0**n_features * n_rows <= EXACT_EVALUATIONS
        return n_features <= EXACT_BY_DEFAULT and few


def _known_means(points: Points) -> Array:
    """Means of the columns over the numbers that are not missing, NaN if all are."""
    if not np.isnan(points).any():
        return np.asarray(points.mean(axis=0))
    columns = (column[~np.isnan(column)] for column in points.T)
    return np.array([c.mean() if len(c) > 0 else np.nan for c in columns])


@final
@dataclass(frozen=True, eq=False)
class _Game:
    """What f is worth on subsets of the features of one point.

    Parameters
    ----------
    request : Request
        f.
    point : array (D,)
        x.
    background : array (B, D)
        The rows b.
    empty : array (B,)
        f(b).
    """

    request: Request
    point: Array
    background: Points
    empty: Values

    @property
    def differs(self) -> Truths:
        """Where x is another value than b, (B, D): what is missing in both is not."""
        x, b = self.point, self.background
        return ~((x == b) | (np.isnan(x) & np.isnan(b)))

    @property
    def playing(self) -> Positions:
        """The features that change rows of the background, those that change few first.

        φ of all others is 0.
        """
        n_changed = self.differs.sum(axis=0)
        order = np.argsort(n_changed, kind="stable")
        return order[n_changed[order] > 0]

    def exact(self) -> Values:
        """φ from all subsets of what plays, in Gray's order: the first comes most."""
        playing = self.playing
        n, values = len(playing), np.zeros(len(self.point))
        place = np.arange(2**n)
        gray = place ^ (place >> 1)
        step = np.log2(gray[1:] ^ gray[:-1]).astype(np.intp)
        worth = np.empty(2**n)
        worth[gray] = self.worths(playing[step])
        shares = np.array([1.0 / (n * comb(n - 1, size)) for size in range(n)])
        for j in range(n):
            without = place[(place >> j) % 2 == 0]
            gains = worth[without | (1 << j)] - worth[without]
            values[playing[j]] = gains @ shares[np.bitwise_count(without)]
        return values

    def sampled(self, n_orders: int, seed: int) -> Values:
        """φ from drawn orders, in which features come and then go again."""
        order, values = np.sort(self.playing), np.zeros(len(self.point))
        n_orders = n_orders * (2 * len(values) + 1) // (2 * len(order) + 1)
        rng = np.random.RandomState(seed)  # its shuffles are those of the package
        walks = np.empty((n_orders, 2, len(order)), np.intp)
        for walk in walks:
            rng.shuffle(order)
            walk[:] = order
        changes = np.diff(self.worths(walks.ravel())).reshape(walks.shape)
        np.add.at(values, walks[:, 0], changes[:, 0] - changes[:, 1])
        return values / (2 * n_orders)

    def worths(self, features: Positions) -> Values:
        """v(∅), and v after each feature came, or went if it was there: (T + 1,)."""
        inside = np.zeros(len(self.point), bool)
        differs, last, worths = (
            self.differs,
            self.empty,
            [self.empty.mean(keepdims=True)],
        )
        tables = perturbations.PERTURBED_POINTS
        for part in tables.blocks(len(features), 8 * self.background.size):
            some = features[part]
            subsets = np.zeros((len(some), len(inside)), bool)
            subsets[np.arange(len(some)), some] = True
            subsets = inside ^ np.logical_xor.accumulate(subsets, axis=0)
            changed = differs[:, some].T  # (T, B): of other rows f is known
            step, row = np.nonzero(changed)
            mixed = np.where(subsets[step], self.point, self.background[row])
            known = np.vstack([last, np.empty(changed.shape)])
            known[1:][changed] = self.request.value(mixed)
            latest = np.where(changed, np.arange(1, 1 + len(some))[:, None], 0)
            now = np.take_along_axis(known, np.maximum.accumulate(latest), axis=0)
            worths.append(now.mean(axis=1))
            inside, last = subsets[-1], now[-1]
        return np.concatenate(worths)


def _slopes(
    values: Attributions, points: Array, reference: Array
) -> tuple[Attributions, Array]:
    """φ_j / (x_j − r_j), and per point the number of entries without a quotient.

    Where x_j is missing, φ_j is an effect and stays one.
    """
    steps = points - reference
    size = np.maximum(np.abs(points), np.abs(reference))
    absent = np.isnan(points)
    defined = np.abs(steps) > _NEGLIGIBLE * size
    slopes: Attributions = np.where(absent, values, 0.0)
    np.divide(values, steps, out=slopes, where=defined)
    return slopes, (~(defined | absent)).sum(axis=1).astype(float)
