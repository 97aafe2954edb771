"""Shapley values from the ``shap`` package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from propopt._typing import Array, Attributions, Points
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
from propopt.extras import require
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
    """Shapley values, as the ``shap`` package computes them (Lundberg and Lee 2017).

    φ_j = Σ_{S ∌ j} |S|! (D − |S| − 1)! / D!  (v(S ∪ j) − v(S)),
    v(S) = mean over the background rows b of f(x on S, b elsewhere)

    Needs ``pip install "propopt[baselines]"``. The completeness gap is reported and
    never raised: it is of the order of the rounding of f.

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
        samples orders of the features. ``"auto"`` is exact for D ≤ 12, if that takes
        no more than 2^17 evaluations per point.
    n_permutations : int
        Random orders per point, each walked in both directions (2D + 1 subsets).

    Of documents the background is the text without any word, and the features are its
    words.

    Raises
    ------
    InvalidInput
        If a setting is outside its range, or the background has other columns than X.
    MissingExtra
        If ``shap`` is not installed.

    Examples
    --------
    For a sum of functions of one feature each, φ_j = f_j(x_j) − f_j(r_j).

    >>> import numpy as np
    >>> from propopt.functions import Power
    >>> shap = Shap(background=np.zeros((1, 2)))
    >>> shap.explain(Power(2), [[1.0, 3.0]]).attributions  # doctest: +SKIP
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
        subsets = 2**D if exact else self.n_permutations * (2 * D + 1)
        return N * n_rows * subsets

    def _findings(self, request: Request) -> Findings:
        background = background_rows(self.background, request)
        is_exact = self._is_exact(request.points.shape[1], len(background))
        method = _exact if is_exact else self._sampled
        values = method(request, background)
        base = np.full(len(request.points), request.value(background).mean())
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

    def _sampled(self, request: Request, background: Array) -> Attributions:
        """φ over random orders: one explainer, hence one seed, per point."""
        package = require("shap")
        subsets = 2 * request.points.shape[1] + 1
        masker, batch = _masker(package, background, subsets)
        rows: list[Array] = []
        with _global_generator_kept():
            for point, seed in zip(request.points, request.row_seeds(), strict=True):
                explainer = package.explainers.PermutationExplainer(
                    request.value, masker, seed=seed
                )
                evaluations = self.n_permutations * subsets
                rows.append(_values(explainer, point[None], evaluations, batch)[0])
                request.advance(1)
        return np.stack(rows)

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


def _exact(request: Request, background: Array) -> Attributions:
    """φ over all 2^D subsets."""
    package = require("shap")
    subsets = 2 ** request.points.shape[1]
    masker, batch = _masker(package, background, subsets)
    explainer = package.explainers.ExactExplainer(request.value, masker)
    return _values(explainer, request.points, subsets, batch)


def _values(explainer: Any, points: Points, evaluations: int, batch: int) -> Array:
    result = explainer(points, max_evals=evaluations, batch_size=batch, silent=True)
    return np.asarray(result.values, float)


def _masker(package: Any, background: Array, subsets: int) -> tuple[Any, int]:
    """A masker over the whole background, and how many subsets to evaluate at once."""

    class Background(package.maskers.Independent):  # type: ignore[misc]  # shap has no types
        """Skips evaluations where x equals the background, not where it is close.

        The package skips on ``np.isclose``, which for x = 2020.01 and b = 2020 would
        call the feature missing; what is missing in both is equal.
        """

        def invariants(self, x: Array) -> Any:
            return (x == self.data) | (np.isnan(x) & np.isnan(self.data))

    # By default the package would draw 100 rows of a larger background.
    masker = Background(background, max_samples=len(background))
    batch = perturbations.PERTURBED_POINTS.rows(8 * background.size)
    # The package's fast path has all subsets of a point in memory at once.
    masker.supports_delta_masking = subsets <= batch
    return masker, batch


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


@contextmanager
def _global_generator_kept() -> Iterator[None]:
    """The package seeds NumPy's global generator and draws from it; restore it."""
    state = np.random.get_state()  # noqa: NPY002  # see above
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002  # see above
