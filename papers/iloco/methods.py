"""The methods that are compared: their names, settings and looks."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from papers.iloco.comparisons import faith_shap, h_statistic
from propopt.base.arrays import Indices, Points, Values
from propopt.base.errors import ImpreciseWarning
from propopt.interactions import DataSplit, Minipatches
from propopt.interactions.features import Features
from propopt.interactions.minipatches import PatchErrors
from propopt.interactions.patch_draws import BLOCK, Patches


SPLIT: Final = "iLOCO-Split"
PATCHES: Final = "iLOCO-MP"
SIZES: Final = {SPLIT: "|iLOCO-Split|", PATCHES: "|iLOCO-MP|"}
"""The same by the size of the score, whatever its sign."""
H: Final = "H-statistic"
FAITH: Final = "Faith-Shap, mean size"
FAITH_OF_MEANS: Final = "Faith-Shap, size of mean"
PAIRS: Final = "iLOCO of pairs"
WITHIN: Final = "any pair of the product"
TRIPLES: Final = "iLOCO of triples"
LOOKS: Final[Mapping[str, tuple[str, str]]] = {
    SPLIT: ("#1f4e79", "-"),
    SIZES[SPLIT]: ("#1f4e79", "--"),
    PATCHES: ("#c0392b", "-"),
    SIZES[PATCHES]: ("#c0392b", "--"),
    H: ("#2e7d32", ":"),
    FAITH: ("#dd8452", "-."),
    FAITH_OF_MEANS: ("#dd8452", ":"),
    PAIRS: ("#1f4e79", "-"),
    WITHIN: ("#1f4e79", ":"),
    TRIPLES: ("#c0392b", "--"),
}
"""Colour and line of each."""


def comparison_scores(model: Any, X: Points, seed: int) -> dict[str, Values]:
    """Scores of all pairs by other definitions, of a fitted learner."""
    h = h_statistic(model, X, n_rows=20, n_background=20, rng=seed)
    faith = faith_shap(model, X, n_rows=6, n_background=10, rng=seed)
    return {
        H: h.estimates, FAITH: faith.estimates, FAITH_OF_MEANS: faith.sizes_of_means
    }  # fmt: skip


@dataclass
class Halves:
    """A splitter: half of the rows, spread over a permutation, as on record."""

    random_state: int | None = None

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[Indices, Indices]]:
        """One pair of training rows and test rows."""
        del y, groups
        order = np.random.default_rng(self.random_state).permutation(len(X))
        passed = np.arange(len(X) + 1) * round(0.5 * len(X)) // len(X)
        is_test = np.diff(passed) > 0
        yield order[~is_test], order[is_test]


def halves() -> DataSplit:
    """iLOCO-Split of the paper."""
    return DataSplit(cv=Halves())


@dataclass(frozen=True, kw_only=True)
class PatchesOfOneSize(Minipatches):
    """iLOCO-MP of the paper: each patch has exactly m features, as in algorithm 2."""

    def draw(self, n_table: int, features: Features, seed: int) -> Patches:
        patches = super().draw(n_table, features, seed)
        n_features = len(features)
        m = round(self.coverage(n_table, features).n_in_patch)
        size = max(1, BLOCK // n_table)
        parts = []
        for number in range(-(-len(patches) // size)):
            sequence = np.random.SeedSequence(seed, spawn_key=(number,))
            rng = np.random.default_rng(sequence)
            rng.random((size, n_table))  # the rows, which super() draws
            keys = rng.random((size, n_features))
            chosen = np.argpartition(keys, m - 1, axis=1)[:, :m]
            part = np.zeros(keys.shape, dtype=bool)
            np.put_along_axis(part, chosen, True, axis=1)
            parts.append(part)
        return replace(patches, features=np.concatenate(parts)[: len(patches)])

    def fit(self, *args: Any, **settings: Any) -> PatchErrors:
        """Errors of the patches; no score is zero by a rule."""
        return replace(super().fit(*args, **settings), used=None)


def schemes(n_patches: int) -> dict[str, DataSplit | Minipatches]:
    """Those of the paper; a patch has a fifth of the rows and of the features."""
    return {
        SPLIT: halves(),
        PATCHES: PatchesOfOneSize(n_patches=n_patches, n_features=0.2),
    }


def signed_and_sized(method: str, scores: Values) -> Iterator[tuple[str, Values]]:
    """The scores of a variant of iLOCO, and their sizes."""
    yield method, scores
    yield SIZES[method], np.abs(scores)


def with_seed(learner: Any, seed: int) -> Any:
    """The same learner; what it draws has this seed, if it draws."""
    if "random_state" in learner.get_params():
        return learner.set_params(random_state=seed)
    return learner


@contextmanager
def quietly() -> Iterator[None]:
    """Without warnings of what is so on purpose, and told in the pages.

    Networks stop after the steps that they are given, and patches are few.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", ImpreciseWarning)
        yield
