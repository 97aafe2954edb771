"""Runs of the ``lime`` package, and the theory of each."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from propopt._typing import Array, Points, Truths
from propopt.checks import read_count
from propopt.errors import InvalidInput
from propopt.functions.base import Function, read_function
from propopt.lime.expectations import ExactLimits, Limits
from propopt.lime.finite.comparison import Coefficients, PackageComparison
from propopt.lime.finite.expected import expected
from propopt.lime.finite.selection import Selection, kept_columns
from propopt.lime.laws import TabularLaw
from propopt.lime.laws.widths import default_kernel_width
from propopt.lime.surrogates.estimate import estimate_limits
from propopt.output.progress import progress_bar
from propopt.structures.products import SumOfProducts
from propopt.tables.names import Labels


def compare_with_package(
    explainer: Any,
    function: Function,
    row: Array,
    n_runs: int = 100,
    *,
    n_samples: int = 5000,
    num_features: int | None = None,
    rng: int = 0,
    progress: bool | None = None,
) -> PackageComparison:
    """Run the ``lime`` package many times, and hold it against its expected output.

    Never against the bare limit: with many runs ridge and the row among the samples
    show. What is expected is the solution of the mean normal equations with λ = 1 and
    the row as first sample, where bins have the package's frequencies.

    Parameters
    ----------
    explainer : lime.lime_tabular.LimeTabularExplainer
        With its settings; it is copied, and its random state set anew.
    function : Function
        f. Of a classifier's explainer it is the probability of the label 1.
    row : array (D,)
        The row that is explained.
    n_runs : int
        R, at least 2.
    n_samples : int
        Samples of each run, the row itself included.
    num_features : int, optional
        How many columns are kept; by default all.
    rng : int
        The seed of the runs, and of an estimated limit where f is no sum of products.
    progress : bool, optional
        Show a bar on standard error; by default only on a terminal.

    Returns
    -------
    PackageComparison
        Runs, what is expected, and what is so without each of its parts.

    Raises
    ------
    InvalidInput
        If a setting is out of its range.
    Refused
        If the explainer has no bins, or a kernel of its own.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from lime.lime_tabular import LimeTabularExplainer
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.random.default_rng(0).uniform(size=(200, 2))
    >>> explainer = LimeTabularExplainer(X, mode="regression")
    >>> line = po.wrap(LinearRegression().fit(X, X @ [2.0, -1.0]))
    >>> found = po.lime.compare_with_package(
    ...     explainer, line, X[0], n_runs=20, n_samples=500
    ... )
    >>> bool(abs(found.z).max() < 5)
    True
    """
    point = np.asarray(row, float)
    read_function(function)
    law = TabularLaw.from_lime(explainer)
    if read_count(n_runs, "n_runs") < 2:
        raise InvalidInput("n_runs: expected at least 2, to tell their scatter")
    if point.shape != (len(law.columns),):
        raise InvalidInput(
            f"row: expected {len(law.columns)} numbers, got shape {point.shape}"
        )
    n_kept = len(point) if num_features is None else num_features
    runs = []
    with progress_bar("lime package", n_runs, progress) as bar:
        package = _Package(explainer, function, point, n_samples, n_kept)
        for seed in range(n_runs):
            runs.append(package.run(rng * n_runs + seed))
            bar.advance(bar.task_ids[0])
    theory = _Theory(function, point[None], law, n_samples, n_kept, package.selection)
    return PackageComparison(
        np.array(runs), theory.expected(rng), theory.without(rng), _names(law)
    )


def _names(law: TabularLaw) -> tuple[str, ...]:
    return tuple(map(str, law.labels.feature_names(len(law.columns))))


@final
@dataclass(frozen=True, eq=False)
class _Package:
    """Runs of the package around one row."""

    explainer: Any
    function: Function
    row: Array
    n_samples: int
    n_kept: int

    @property
    def selection(self) -> Selection:
        """How the explainer chooses the columns that it keeps."""
        how: Any = self.explainer.feature_selection
        chosen: Selection = "auto" if how == "none" else how
        return chosen

    def run(self, seed: int) -> Coefficients:
        """Intercept and coefficients of one run."""
        explainer = copy.deepcopy(self.explainer)
        explainer.random_state.seed(seed)  # what all its parts draw from
        fit = explainer.explain_instance(
            self.row,
            self._answers,
            labels=(1,),
            num_features=self.n_kept,
            num_samples=self.n_samples,
        )
        coefficients = np.zeros(1 + len(self.row))
        coefficients[0] = fit.intercept[1]
        # in regression the label 1 has the coefficients, and 0 their negatives
        for place, coefficient in fit.as_map()[1]:
            coefficients[1 + place] = coefficient
        return coefficients

    def _answers(self, points: Points) -> Array:
        values = self.function.value_at(points)
        if self.explainer.mode == "regression":
            return values
        return np.stack([1.0 - values, values], axis=1)


@final
@dataclass(frozen=True, eq=False)
class _Theory:
    """What runs give in their mean, and what they would without a part of it."""

    function: Function
    point: Points
    law: TabularLaw
    n_samples: int
    n_kept: int
    selection: Selection

    def expected(self, seed: int) -> Coefficients:
        return self._of(self.law, seed)

    def without(self, seed: int) -> dict[str, Coefficients]:
        paper = default_kernel_width(len(self.law.columns), "paper")
        return {
            "row": self._of(self.law, seed, first_row=False),
            "ridge": self._of(self.law, seed, first_row=False, ridge=0.0),
            "frequencies": self._of(_with_equal_shares(self.law), seed),
            "width": self._of(self.law.with_width(paper), seed),
        }

    def _of(
        self, law: TabularLaw, seed: int, ridge: float = 1.0, first_row: bool = True
    ) -> Coefficients:
        limits = self._limits(law, seed)
        values = self.function.value_at(self.point, Labels())
        kept = self._kept(limits)
        found = expected(limits, values, self.n_samples, ridge, first_row, kept)
        return np.concatenate([found.intercept, found.coefficients[0]])

    def _limits(self, law: TabularLaw, seed: int) -> Limits:
        products = self.function.products
        if isinstance(products, SumOfProducts):
            return ExactLimits(products, law).of(self.point)
        rng = np.random.default_rng(seed)
        return estimate_limits(
            self.function, law, self.point, n_samples=50_000, rng=rng, progress=False
        ).limits

    def _kept(self, limits: Limits) -> Truths | None:
        if self.n_kept >= len(self.law.columns):
            return None
        return kept_columns(limits, self.n_kept, self.selection)


def _with_equal_shares(law: TabularLaw) -> TabularLaw:
    """The law in which all bins of a column that occur are drawn alike."""
    columns = [
        replace(column, shares=(column.shares > 0.0) / (column.shares > 0.0).sum())
        for column in law.columns
    ]
    return replace(law, columns=tuple(columns))
