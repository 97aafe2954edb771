"""How often pairs that do not interact are called significant, at 10 %, and why.

``python -m benchmarks.null_rejections [--replicates R] [--rows N] [--uncorrelated]``
prints a table. The features are independent and the first five of ten have effects,
none of which interact (simulation (i) of Little, Zheng & Allen at snr 0), so that the
population score of every pair is zero. A learner that is fitted to a table sees chance
correlations of its columns, and to it pairs of which both have effects are not quite
null; with ``--uncorrelated`` the columns of each table have none. With ``--target``
the table shows what the scores are for, by other patches of the same table on new
rows, and how often intervals miss that.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.patches_at_once import (
    Array,
    Ensemble,
    KnownEffects,
    Learner,
    kernel_ridge,
    least_squares,
    trees,
)
from papers.iloco.methods import PatchesOfOneSize
from propopt.interactions import InteractionScores, Minipatches
from propopt.interactions.features import FeatureSets


N_FEATURES, N_EFFECTS = 10, 5
LEVEL = 0.1

PATCHES_OF_TARGET, ROWS_OF_TARGET = 16_000, 1000
"""Others than those of the scores, and new rows."""

LEARNERS: dict[str, Callable[[Array], Learner]] = {
    "known effects": KnownEffects,
    "least squares": lambda _: least_squares,
    "kernel ridge": lambda _: kernel_ridge,
    "trees": lambda _: trees,
}
"""Of the effects, which only the first may know."""

SCHEMES = {"of one size": PatchesOfOneSize, "independent": Minipatches}
"""Patches with equally many features, as in the paper, or on average."""

KINDS = ("without effects", "both have effects")


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

    def ensemble(self, seed: int) -> Ensemble:
        """Of a table, and its own patches."""
        X, y, effects = self.table(seed)
        return Ensemble(LEARNERS[self.learner](effects), self.scheme, X, y, seed)

    def rejected(self, seed: int) -> Array:
        """Shares of pairs of each kind: see :func:`rejections`, (2, 2)."""
        result = self.ensemble(seed).scores()
        return by_kind(rejections(result), result.sets)

    def against_target(self, seed: int) -> Array:
        """Of each kind the mean target, and how often intervals miss it, (2, 2).

        The target is that of the same table: other patches, so many that their error is
        small, on new rows without noise, which adds nothing to squared errors' scores.
        Both errors of what stands for it are counted as parts of the interval.
        """
        own = self.ensemble(seed)
        result, (_, _, effects) = own.scores(), self.table(seed)
        new = np.random.default_rng([seed, 1]).normal(size=(ROWS_OF_TARGET, N_FEATURES))
        many = replace(self.scheme, n_patches=PATCHES_OF_TARGET)
        others = replace(own, scheme=many, seed=seed + 10**6)
        target = others.judged(new, new @ effects, result.sets)
        low, high = result.intervals(level=1.0 - LEVEL, adjust="none").T
        beside = np.hypot(target["standard_errors"], target["monte_carlo"])
        wider = np.hypot(result.total_errors, beside) / result.total_errors
        missed = np.abs(result.scores - target["scores"]) > wider * (high - low) / 2
        return by_kind(np.stack([target["scores"], missed]), result.sets)


def rejections(result: InteractionScores) -> Array:
    """Whether pairs are rejected by the error of other rows alone, and in total."""
    p = [result.p_values(errors="rows"), result.p_values()]
    return np.array(p) <= LEVEL


def by_kind(values: Array, pairs: FeatureSets) -> Array:
    """Means over pairs without effects, and over those of two effects, (2, k)."""
    without = (pairs >= N_EFFECTS).all(axis=1)
    both = (pairs < N_EFFECTS).all(axis=1)
    return np.stack([values[:, own].mean(axis=1) for own in (without, both)])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=40)
    parser.add_argument("--rows", type=int, default=250)
    parser.add_argument("--kept", type=int, nargs="+", default=[2])
    parser.add_argument("--patches", type=int, nargs="+", default=[1000, 4000])
    parser.add_argument("--of-a-patch", nargs="+", default=["sqrt"], help="rows")
    parser.add_argument("--learners", nargs="+", default=list(LEARNERS))
    parser.add_argument("--columns", nargs="+", default=list(SCHEMES))
    parser.add_argument("--uncorrelated", action="store_true")
    parser.add_argument("--target", action="store_true")
    options = parser.parse_args()
    print(__doc__.split("\n\n")[0], end="\n\n")
    print(
        "Mean target; share of intervals that miss it."
        if options.target
        else "Rejected by the error of other rows alone; by the total error."
    )
    print(f"\n| learner | n | m | B | columns | {' | '.join(KINDS)} |")
    print("|---|---:|---:|---:|---|---:|---:|", flush=True)
    cases = itertools.product(
        options.learners,
        options.of_a_patch,
        options.kept,
        options.patches,
        options.columns,
    )
    for learner, n, m, n_patches, columns in cases:
        rows = n if n == "sqrt" else float(n) if "." in n else int(n)
        scheme = SCHEMES[columns](n_patches=n_patches, rows=rows, n_features=m)
        study = Study(learner, scheme, options.rows, options.uncorrelated)
        measured = study.against_target if options.target else study.rejected
        result = np.array([measured(seed) for seed in range(options.replicates)])
        cells = " | ".join(cell(result[:, kind]) for kind in range(len(KINDS)))
        print(
            f"| {learner} | {n} | {m} | {n_patches} | {columns} | {cells} |", flush=True
        )


def cell(values: Array) -> str:
    """Means over the tables, with the standard error of each."""
    errors = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    pairs = zip(values.mean(axis=0), errors, strict=True)
    return ", ".join(f"{mean:.3f} ± {error:.3f}" for mean, error in pairs)


if __name__ == "__main__":
    main()
