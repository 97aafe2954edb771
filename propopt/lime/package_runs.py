"""Runs of the package ``lime`` beside the limits."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, final

import numpy as np
import pandas as pd

from propopt.base.arrays import Array, Points
from propopt.base.checks import read_count
from propopt.base.errors import InvalidInput
from propopt.base.terminal import progress_bar
from propopt.functions.function import Function, read_function
from propopt.lime.expectations import ExactLimits, Limits
from propopt.lime.laws.lime_law import default_kernel_width
from propopt.lime.laws.tabular_law import TabularLaw
from propopt.lime.single_runs import Selection, expected, kept_columns
from propopt.lime.surrogates import estimate_limits
from propopt.losses.faithfulness import error_of_blocks
from propopt.structures.products.sums import SumOfProducts
from propopt.tables.frames import Labels


# ---- Runs of the ``lime`` package, and the theory of each


_INTERCEPT: Final = "(intercept)"

Coefficients: TypeAlias = Array
"""The intercept and the coefficients, (1 + D,)."""


@final
@dataclass(frozen=True, eq=False)
class PackageComparison:
    """What runs of the ``lime`` package gave, and what theory says that they give.

    Arrays have the intercept first.

    Parameters
    ----------
    runs : array (R, 1 + D)
        Each run; 0 for columns that it did not keep.
    expected : array (1 + D,)
        The mean of such runs: ridge 1, the row as first sample, the package's bins.
    without : mapping of str to array (1 + D,)
        The same without one of what makes it: ``"row"``, ``"ridge"`` (and row: the
        limit), ``"frequencies"`` (bins of equal shares), ``"width"`` (the paper's
        √(0.75 D)), ``"leverage"`` (of texts: that samples pull the fit to themselves).
    labels : tuple of str (D,)
        Names of the columns, or the words.

    Examples
    --------
    >>> runs = np.array([[0.9, 2.1], [1.1, 1.9], [1.0, 2.3]])
    >>> found = PackageComparison(runs, np.array([1.0, 2.0]), {}, ("age",))
    >>> found.z.round(2)
    array([0.  , 0.87])
    """

    runs: Array
    expected: Coefficients
    without: Mapping[str, Coefficients]
    labels: tuple[str, ...]

    @property
    def mean(self) -> Coefficients:
        """Of the runs."""
        return np.asarray(self.runs.mean(axis=0))

    @property
    def error(self) -> Coefficients:
        """The standard error of the mean."""
        return error_of_blocks(self.runs)

    @property
    def z(self) -> Coefficients:
        """How many errors the mean is off what is expected; 0 where nothing moves."""
        return self.z_of(self.expected)

    def z_of(self, coefficients: Coefficients) -> Coefficients:
        """How many errors the mean is off any coefficients (1 + D,)."""
        error = self.error
        moves = error > 1e-12 * np.abs(self.mean).max(initial=0.0)
        off = self.mean - coefficients
        return np.divide(off, error, out=np.zeros_like(off), where=moves)

    def to_frame(self) -> pd.DataFrame:
        """A row for each coefficient: the runs, what is expected, and its parts.

        ``expected`` is the ``limit`` and what ``ridge``, the first ``row`` among the
        samples and, of texts, their ``leverage`` add; ``frequencies`` and ``width`` are
        what it is off bins of equal shares and the paper's width: parts of a gap that
        such a theory has.
        """
        columns = {
            "package": self.mean,
            "error": self.error,
            "expected": self.expected,
            "z": self.z,
        }
        if "ridge" in self.without:
            limit, no_row = self.without["ridge"], self.without["row"]
            columns |= {
                "limit": limit,
                "ridge": no_row - limit,
                "row": self.without.get("leverage", self.expected) - no_row,
            }
        for name in ("leverage", "frequencies", "width"):
            if name in self.without:
                columns[name] = self.expected - self.without[name]
        return pd.DataFrame(columns, index=pd.Index([_INTERCEPT, *self.labels]))


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
        for seed in range(rng * n_runs, (rng + 1) * n_runs):
            runs.append(_run(explainer, function, point, n_samples, n_kept, seed))
            bar.advance(bar.task_ids[0])
    value = function.value_at(point[None], Labels())
    how: Any = explainer.feature_selection
    chosen: Selection = "auto" if how == "none" else how

    def theory(
        law: TabularLaw, ridge: float = 1.0, first_row: bool = True
    ) -> Coefficients:
        """What runs under a law give in their mean."""
        limits, kept = _limits(function, law, point[None], rng), None
        if n_kept < len(point):
            kept = kept_columns(limits, n_kept, chosen)
        fit = expected(limits, value, n_samples, ridge, first_row, kept)
        return np.concatenate([fit.intercept, fit.coefficients[0]])

    paper = default_kernel_width(len(point), "paper")
    alike = tuple(column.alike for column in law.columns)
    without = {
        "row": theory(law, first_row=False),
        "ridge": theory(law, ridge=0.0, first_row=False),
        "frequencies": theory(replace(law, columns=alike)),
        "width": theory(law.with_width(paper)),
    }
    return PackageComparison(np.array(runs), theory(law), without, law.names)


def _run(
    explainer: Any,
    function: Function,
    row: Array,
    n_samples: int,
    n_kept: int,
    seed: int,
) -> Coefficients:
    """Intercept and coefficients of one run of the package."""
    own = copy.deepcopy(explainer)
    own.random_state.seed(seed)  # what all its parts draw from

    def answers(points: Points) -> Array:
        values = function.value_at(points)
        if own.mode == "regression":
            return values
        return np.stack([1.0 - values, values], axis=1)

    fit = own.explain_instance(
        row, answers, labels=(1,), num_features=n_kept, num_samples=n_samples
    )
    coefficients = np.zeros(1 + len(row))
    coefficients[0] = fit.intercept[1]
    # in regression the label 1 has the coefficients, and 0 their negatives
    for place, coefficient in fit.as_map()[1]:
        coefficients[1 + place] = coefficient
    return coefficients


def _limits(function: Function, law: TabularLaw, point: Points, seed: int) -> Limits:
    products = function.products
    if isinstance(products, SumOfProducts):
        return ExactLimits(products, law).of(point)
    rng = np.random.default_rng(seed)
    return estimate_limits(
        function, law, point, n_samples=50_000, rng=rng, progress=False
    )
