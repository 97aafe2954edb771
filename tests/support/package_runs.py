"""Runs of the package ``lime`` at a row or on a text, and their expected mean."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from package_laws import law_of_package

from propopt.base.arrays import Array
from propopt.base.resources import DrawPlan
from propopt.base.text import Reason
from propopt.explaining.explainers.lime_package import (
    PackageFit,
    package_fit,
    package_run,
)
from propopt.functions.function import Function
from propopt.functions.texts import TextFunction
from propopt.lime.exact_limits import ExactLimits
from propopt.lime.finite_samples import FiniteFit, expected, expected_run
from propopt.lime.sampled_limits import estimate_limits
from propopt.lime.text.word_limits import TextLaw, checked_subsets, enumerated_words
from propopt.losses.faithfulness import error_of_blocks
from propopt.structures.products.sums import SumOfProducts
from propopt.tables.documents import PatternWords, TextDocument
from propopt.tables.frames import Labels


@dataclass(frozen=True, eq=False)
class PackageRuns:
    """Coefficients of R runs and their expectation; the intercept comes first."""

    runs: Array  # (R, 1 + D); 0 for columns that a run did not keep
    expected: Array  # (1 + D,)

    @classmethod
    def of(cls, run: Callable[[int], PackageFit], n_runs: int, fit: FiniteFit):
        """Runs with the seeds 0 to n_runs − 1."""
        fits = [run(seed) for seed in range(n_runs)]
        runs = np.array([[intercept, *slopes] for slopes, intercept, _ in fits])
        return cls(runs, np.concatenate([fit.intercept, fit.coefficients[0]]))

    @property
    def mean(self) -> Array:
        return np.asarray(self.runs.mean(axis=0))

    @property
    def z(self) -> Array:
        """How many errors the mean is off; 0 where nothing moves."""
        error = error_of_blocks(self.runs)
        moves = error > 1e-12 * np.abs(self.mean).max(initial=0.0)
        off = self.mean - self.expected
        return np.divide(off, error, out=np.zeros_like(off), where=moves)


def runs_of_row(
    explainer: Any,
    function: Function,
    row: Array,
    n_runs: int,
    *,
    n_samples: int,
) -> PackageRuns:
    """Runs of copies of a ``LimeTabularExplainer`` at a row (D,)."""
    law = law_of_package(explainer)

    def run(seed: int) -> PackageFit:
        mine = copy.deepcopy(explainer)
        mine.random_state.seed(seed)  # all its parts draw from it
        return package_fit(mine, row, function.value_at, len(row), n_samples)

    if isinstance(function.products, SumOfProducts):
        limits = ExactLimits(function.products, law).of(row[None])
    else:
        draws = DrawPlan(50_000)
        limits = estimate_limits(function, law, row[None], draws=draws, progress=False)
    value = function.value_at(row[None], Labels())
    return PackageRuns.of(run, n_runs, expected(limits, value, n_samples))


def runs_of_text(
    function: TextFunction,
    text: str,
    n_runs: int,
    n_samples: int,
    bandwidth: float = 0.25,
) -> PackageRuns:
    """Runs of ``LimeTextExplainer`` on a text."""
    document = TextDocument.of(text, PatternWords())
    sets = checked_subsets(function, document)
    if isinstance(sets, Reason):
        sets = enumerated_words(function, document)
    d = document.n_words

    def run(seed: int) -> PackageFit:
        width = 100.0 * bandwidth
        return package_run(function.texts_value, text, d, n_samples, width, seed)

    value = float(function.texts_value([text])[0])
    fit = expected_run(sets, TextLaw(bandwidth), value, n_samples)
    return PackageRuns.of(run, n_runs, fit)
