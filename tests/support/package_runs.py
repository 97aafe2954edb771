"""Many runs of the package ``lime``, and the mean that theory gives for them."""

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
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
from propopt.lime.laws.tabular_law import TabularLaw
from propopt.lime.sampled_limits import estimate_limits
from propopt.lime.text.word_limits import (
    TextLaw,
    WordRegression,
    checked_subsets,
    enumerated_words,
)
from propopt.losses.faithfulness import error_of_blocks
from propopt.structures.products.sums import SumOfProducts
from propopt.structures.subsets.sets import SizeMeans
from propopt.tables.documents import PatternWords, TextDocument
from propopt.tables.frames import Labels


@dataclass(frozen=True, eq=False)
class PackageRuns:
    """Coefficients of R runs and their expectation; the intercept comes first."""

    runs: Array  # (R, 1 + D); 0 for columns that a run did not keep
    expected: Array  # (1 + D,)
    # the expectation without one of its parts: "row", "ridge", "frequencies" (bins of
    # equal shares), "width" (the paper's √(0.75 D)), "leverage" (of texts)
    without: Mapping[str, Array]
    labels: tuple[str, ...]

    @property
    def mean(self) -> Array:
        return np.asarray(self.runs.mean(axis=0))

    @property
    def error(self) -> Array:
        return error_of_blocks(self.runs)

    @property
    def z(self) -> Array:
        return self.z_of(self.expected)

    def z_of(self, coefficients: Array) -> Array:
        """How many errors the mean is off; 0 where nothing moves."""
        error = self.error
        moves = error > 1e-12 * np.abs(self.mean).max(initial=0.0)
        off = self.mean - coefficients
        return np.divide(off, error, out=np.zeros_like(off), where=moves)

    def to_frame(self) -> pd.DataFrame:
        """A row for each coefficient: the limit, what is added to it, and the sum."""
        limit, no_row = self.without["ridge"], self.without["row"]
        columns = {
            "limit": limit,
            "ridge": no_row - limit,
            "row": self.without.get("leverage", self.expected) - no_row,
            "expected": self.expected,
        }
        if "leverage" in self.without:
            columns["leverage"] = self.expected - self.without["leverage"]
        return pd.DataFrame(columns, index=["(intercept)", *self.labels])


def runs_and_theory(
    run: Callable[[int], PackageFit],
    n_runs: int,
    theories: Mapping[str, FiniteFit],
    labels: tuple[str, ...],
) -> PackageRuns:
    """Runs with the seeds 0 to n_runs − 1, and the means that theories give."""
    fits = [run(seed) for seed in range(n_runs)]
    runs = np.array([[intercept, *slopes] for slopes, intercept, _ in fits])
    means = {
        name: np.concatenate([fit.intercept, fit.coefficients[0]])
        for name, fit in theories.items()
    }
    return PackageRuns(runs, means.pop("expected"), means, labels)


def runs_of_row(
    explainer: Any,
    function: Function,
    row: Array,
    n_runs: int,
    *,
    n_samples: int,
) -> PackageRuns:
    """Runs of copies of a ``LimeTabularExplainer`` at a row (D,)."""
    law, n_columns = law_of_package(explainer), len(row)
    value = function.value_at(row[None], Labels())

    def run(seed: int) -> PackageFit:
        mine = copy.deepcopy(explainer)
        mine.random_state.seed(seed)  # all its parts draw from it
        return package_fit(mine, row, function.value_at, n_columns, n_samples)

    def theory(
        law: TabularLaw = law, ridge: float = 1.0, first_row: bool = True
    ) -> FiniteFit:
        if isinstance(function.products, SumOfProducts):
            limits = ExactLimits(function.products, law).of(row[None])
        else:
            draws = DrawPlan(50_000)
            limits = estimate_limits(
                function, law, row[None], draws=draws, progress=False
            )
        return expected(limits, value, n_samples, ridge, first_row)

    # all bins of a column that occur have one probability
    columns = tuple(column.with_equal_shares for column in law.columns)
    alike = replace(law, columns=columns)
    theories = {
        "expected": theory(),
        "row": theory(first_row=False),
        "ridge": theory(ridge=0.0, first_row=False),
        "frequencies": theory(alike),
        "width": theory(law.with_width(math.sqrt(0.75 * n_columns))),
    }
    return runs_and_theory(run, n_runs, theories, law.names)


def first_order(
    function: SizeMeans,
    law: TextLaw,
    n_samples: int,
    ridge: float = 1.0,
    first_row: bool = True,
) -> FiniteFit:
    """The mean of runs without the leverage of samples: for n much larger than d."""
    limits = WordRegression(function).at(np.array([law.bandwidth]))
    bits = law.bits(function.n_words)
    return FiniteFit(
        limits.coefficients,
        limits.intercept + bits.share * limits.coefficients.sum(axis=1),
        bits,
        function.mean_by_size()[-1:] if first_row else None,
        n_samples,
        ridge,
    )


def runs_of_text(
    function: TextFunction,
    text: str,
    n_runs: int,
    n_samples: int,
    bandwidth: float = 0.25,
    *,
    words: SizeMeans | None = None,
) -> PackageRuns:
    """Runs of ``LimeTextExplainer``; ``words`` is F as a function of sets of words."""
    document, law = TextDocument.of(text, PatternWords()), TextLaw(bandwidth)
    sets = checked_subsets(function, document) if words is None else words
    if isinstance(sets, Reason):
        sets = enumerated_words(function, document)

    def run(seed: int) -> PackageFit:
        return package_run(
            function.texts_value,
            text,
            document.n_words,
            n_samples,
            100.0 * bandwidth,
            seed,
        )

    theories = {
        "expected": expected_run(sets, law, None, n_samples),
        "leverage": first_order(sets, law, n_samples),
        "row": first_order(sets, law, n_samples, first_row=False),
        "ridge": first_order(sets, law, n_samples, ridge=0.0, first_row=False),
    }
    return runs_and_theory(run, n_runs, theories, document.words)
