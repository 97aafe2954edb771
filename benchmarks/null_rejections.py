"""How often pairs that do not interact are called significant, at 10 %.

``python -m benchmarks.null_rejections [--replicates R] [--rows N] [--uncorrelated]``
prints a table. The features are independent and the first five of ten have effects,
none of which interact (simulation (i) of Little, Zheng & Allen at snr 0), so that the
population score of every pair is zero. A learner that is fitted to a table sees chance
correlations of its columns, and to it pairs of which both have effects are not quite
null; with ``--uncorrelated`` the columns of each table have none. Learners are fitted
to blocks of patches at once.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from propopt.interactions import InteractionScores, Minipatches
from propopt.interactions.features import Features
from propopt.interactions.minipatches.drawing.patches import Patches
from propopt.interactions.minipatches.means import PatchErrors
from propopt.interactions.row_errors import SquaredError
from propopt.interactions.scoring import Scoring


Array = NDArray[np.float64]
Rows = NDArray[np.intp]
Predictions = Callable[[Array, Array, Rows, Array], Array]
"""From X, y, rows (b, n) and features (b, M) of b patches to predictions (b, N)."""

N_FEATURES, N_EFFECTS, AT_ONCE = 10, 5, 200
LEVEL = 0.1


@dataclass(frozen=True)
class KnownEffects:
    """The ideal learner: Σ_{j ∈ F} β_j x_j, whatever the rows."""

    effects: Array

    def __call__(self, X: Array, y: Array, rows: Rows, shown: Array) -> Array:
        del y, rows
        return (shown * self.effects) @ X.T


def least_squares(X: Array, y: Array, rows: Rows, shown: Array) -> Array:
    """Predictions of linear fits with an intercept, (patches, N)."""
    own = X[rows] * shown[:, None, :]
    centre = own.mean(axis=1, keepdims=True)
    target = y[rows]
    level = target.mean(axis=1, keepdims=True)
    own -= centre
    gram = own.transpose(0, 2, 1) @ own + 1e-6 * np.eye(N_FEATURES)
    right = own.transpose(0, 2, 1) @ (target - level)[..., None]
    slopes = np.linalg.solve(gram, right)
    return ((X[None] - centre) @ slopes)[..., 0] + level


def kernel_ridge(X: Array, y: Array, rows: Rows, shown: Array) -> Array:
    """Predictions of kernel ridge, exp(−|x − z|²/|F|) and a penalty of 1."""
    own = X[rows] * shown[:, None, :]
    apart = (X**2 @ shown.T).T[..., None] + (own**2).sum(axis=2)[:, None, :]
    apart -= 2.0 * X[None] @ own.transpose(0, 2, 1)
    kernel = np.exp(-apart / np.maximum(shown.sum(axis=1), 1.0)[:, None, None])
    gram = np.take_along_axis(kernel, rows[..., None], axis=1) + np.eye(rows.shape[1])
    return (kernel @ np.linalg.solve(gram, y[rows][..., None]))[..., 0]


def fitted_in_blocks(
    learner: Predictions, X: Array, y: Array, scheme: Minipatches, seed: int
) -> PatchErrors:
    """Minipatches whose learners are fitted many at once, by a formula."""
    features = Features.of(list(range(N_FEATURES)))
    drawn = scheme.draw(len(X), features, seed)
    return PatchErrors(
        patches=drawn,
        predictions=predicted(learner, X, y, drawn),
        y=y,
        error=SquaredError(),
        features=features,
        row_weights=np.ones(len(X)),
    )


def pair_scores(source: PatchErrors, scheme: Minipatches) -> InteractionScores:
    """Of all pairs, with the leak."""
    scoring = Scoring(source, scheme, source.error)
    pairs = source.features.all_sets(2)
    return scoring.of(pairs, scoring.main_effects(), n_candidates=len(pairs))


def predicted(learner: Predictions, X: Array, y: Array, drawn: Patches) -> Array:
    """Predictions of all patches at all rows of X, (B, N, 1)."""
    shown = drawn.features.astype(np.float64)
    found = np.empty((len(drawn), len(X), 1))
    for start in range(0, len(drawn), AT_ONCE):
        own = slice(start, start + AT_ONCE)
        found[own, :, 0] = learner(X, y, drawn.rows[own], shown[own])
    return found


LEARNERS: dict[str, Callable[[Array], Predictions]] = {
    "known effects": KnownEffects,
    "least squares": lambda _: least_squares,
    "kernel ridge": lambda _: kernel_ridge,
}
"""Of the effects, which only the first may know."""


@dataclass(frozen=True)
class Study:
    """Tables of N rows, and the scheme by which their pairs are scored."""

    learner: str
    scheme: Minipatches
    n_rows: int
    uncorrelated: bool = False

    def table(self, seed: int) -> tuple[Array, Array, Array]:
        """X, y and the effects."""
        rng = np.random.default_rng([seed, self.n_rows])
        X = rng.normal(size=(self.n_rows, N_FEATURES))
        if self.uncorrelated:
            left, _, right = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
            X = np.sqrt(self.n_rows) * left @ right
        strong = np.arange(N_FEATURES) < N_EFFECTS
        effects = np.where(strong, rng.normal(2.0, 0.5, N_FEATURES), 0.0)
        return X, X @ effects + rng.normal(size=self.n_rows), effects

    def scores(self, seed: int) -> InteractionScores:
        """Of all pairs, with the leak."""
        X, y, effects = self.table(seed)
        learner = LEARNERS[self.learner](effects)
        source = fitted_in_blocks(learner, X, y, self.scheme, seed)
        return pair_scores(source, self.scheme)

    def rejected(self, seed: int) -> Array:
        """Shares that are rejected of pairs without effects, and with two, (2, 3).

        By the error of other rows alone, by the total error, and by the total error
        where the leak stands for zero.
        """
        found = self.scores(seed)
        p = [
            found.p_values(errors="rows"),
            found.p_values(),
            found.p_values(against="leak"),
        ]
        without = (found.sets >= N_EFFECTS).all(axis=1)
        both = (found.sets < N_EFFECTS).all(axis=1)
        small = np.array(p) <= LEVEL
        return np.stack([small[:, own].mean(axis=1) for own in (without, both)])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=40)
    parser.add_argument("--rows", type=int, default=250)
    parser.add_argument("--kept", type=int, nargs="+", default=[2])
    parser.add_argument("--patches", type=int, nargs="+", default=[1000, 4000])
    parser.add_argument("--learners", nargs="+", default=list(LEARNERS))
    parser.add_argument("--uncorrelated", action="store_true")
    options = parser.parse_args()
    print(
        "Each cell: by the error of other rows alone; by the total error; by the total"
    )
    print("total error with the leak in place of zero.\n")
    print("| learner | n | m | B | columns | without effects | both have effects |")
    print("|---|---:|---:|---:|---|---:|---:|", flush=True)
    cases = itertools.product(
        options.learners,
        ("sqrt", 0.2),
        options.kept,
        options.patches,
        ("fixed", "bernoulli"),
    )
    for learner, n, m, n_patches, columns in cases:
        scheme = Minipatches(n_patches=n_patches, rows=n, n_features=m, columns=columns)
        study = Study(learner, scheme, options.rows, options.uncorrelated)
        shares = np.array([study.rejected(seed) for seed in range(options.replicates)])
        cells = " | ".join(cell(shares[:, kind]) for kind in range(2))
        print(
            f"| {learner} | {n} | {m} | {n_patches} | {columns} | {cells} |", flush=True
        )


def cell(shares: Array) -> str:
    """Means over the tables, with the standard error of each."""
    errors = shares.std(axis=0, ddof=1) / np.sqrt(len(shares))
    pairs = zip(shares.mean(axis=0), errors, strict=True)
    return ", ".join(f"{mean:.2f} ± {error:.2f}" for mean, error in pairs)


if __name__ == "__main__":
    main()
