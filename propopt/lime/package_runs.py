"""Runs of the package ``lime`` beside the limits, on rows of tables and on texts."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, final

import numpy as np
import pandas as pd

from propopt.base.arrays import Array, Values
from propopt.base.checks import read_count, read_seed
from propopt.base.errors import InvalidInput, Refused
from propopt.base.extras import require
from propopt.base.resources import DrawPlan
from propopt.base.terminal import progress_bar
from propopt.base.text import Reason
from propopt.base.words_of_others import knows_other_words
from propopt.functions.function import Function, read_function
from propopt.functions.texts import TextFunction
from propopt.lime.expectations import ExactLimits
from propopt.lime.laws.tabular_law import TabularLaw
from propopt.lime.single_runs import (
    FiniteFit,
    Selection,
    expected,
    expected_run,
    kept_columns,
    kept_words,
)
from propopt.lime.surrogates import estimate_limits
from propopt.lime.text.text_reading import (
    TextLaw,
    WordRegression,
    checked_subsets,
    enumerated_words,
)
from propopt.losses.faithfulness import error_of_blocks
from propopt.structures.products.sums import SumOfProducts
from propopt.structures.subsets.sets import SizeMeans
from propopt.tables.documents import Document, PatternWords
from propopt.tables.frames import Labels


# ---- One run of the package


TEXT_WIDTH: Final = 25.0
"""The kernel width of the package on texts by default."""


PackageFit: TypeAlias = tuple[Values, float, float]
"""Coefficients (D,), the intercept, and R² of its own fit.

Words as they first come; 0 for what it leaves out.
"""


def package_fit(
    explainer: Any,
    asked: Any,
    values_of: Callable[[Any], Values],
    n_columns: int,
    n_samples: int,
    n_kept: int | None = None,
) -> PackageFit:
    """One run of an explainer of the package at a row, or a text of D words.

    In regression the label 1 has the coefficients, and 0 their negatives.
    """

    def answers(inputs: Any) -> Array:
        values = values_of(inputs)
        if getattr(explainer, "mode", None) == "regression":
            return values
        return np.stack([1.0 - values, values], axis=1)

    fit = explainer.explain_instance(
        asked,
        answers,
        labels=(1,),
        num_features=n_columns if n_kept is None else n_kept,
        num_samples=n_samples,
    )
    coefficients = np.zeros(n_columns)
    for place, coefficient in fit.as_map()[1]:  # words as they first come
        coefficients[place] = coefficient
    return coefficients, float(fit.intercept[1]), float(fit.score)


def package_run(
    values_of: Callable[[list[str]], Values],
    text: str,
    n_words: int,
    n_samples: int,
    kernel_width: float,
    seed: int,
    n_kept: int | None = None,
) -> PackageFit:
    """One run of ``LimeTextExplainer``."""
    explainer = require("lime.lime_text").LimeTextExplainer(
        kernel_width=kernel_width,
        feature_selection="none" if n_kept is None else "auto",
        random_state=seed,
    )
    return package_fit(explainer, text, values_of, n_words, n_samples, n_kept)


# ---- Many runs of the package, and the theory of each


@final
@knows_other_words
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
    expected: Array
    without: Mapping[str, Array]
    labels: tuple[str, ...]

    @property
    def mean(self) -> Array:
        """Of the runs."""
        return np.asarray(self.runs.mean(axis=0))

    @property
    def error(self) -> Array:
        """The standard error of the mean."""
        return error_of_blocks(self.runs)

    @property
    def z(self) -> Array:
        """How many errors the mean is off what is expected; 0 where nothing moves."""
        return self.z_of(self.expected)

    def z_of(self, coefficients: Array) -> Array:
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
        return pd.DataFrame(columns, index=pd.Index(["(intercept)", *self.labels]))


def _seeds(n_runs: int, rng: int) -> range:
    """Those of the runs."""
    if read_count(n_runs, "n_runs") < 2:
        raise InvalidInput("n_runs: expected at least 2, to tell their scatter")
    return range(rng * n_runs, (rng + 1) * n_runs)


def _compared(
    run: Callable[[int], PackageFit],
    seeds: range,
    progress: bool | None,
    theories: Mapping[str, FiniteFit],
    labels: tuple[str, ...],
) -> PackageComparison:
    """Runs by their seeds, and the means that theories say of them."""
    runs = []
    with progress_bar("lime package", len(seeds), progress) as bar:
        for seed in seeds:
            coefficients, intercept, _ = run(seed)
            runs.append([intercept, *coefficients])
            bar.advance(bar.task_ids[0])
    means = {
        name: np.concatenate([own.intercept, own.coefficients[0]])
        for name, own in theories.items()
    }
    return PackageComparison(np.array(runs), means.pop("expected"), means, labels)


@knows_other_words
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
    law, seeds = TabularLaw.from_lime(explainer), _seeds(n_runs, rng)
    if point.shape != (len(law.columns),):
        raise InvalidInput(
            f"row: expected {len(law.columns)} numbers, got shape {point.shape}"
        )
    value, n_columns = function.value_at(point[None], Labels()), len(point)
    how: Any = explainer.feature_selection
    chosen: Selection = "auto" if how == "none" else how

    def run(seed: int) -> PackageFit:
        own = copy.deepcopy(explainer)
        own.random_state.seed(seed)  # what all its parts draw from
        return package_fit(
            own, point, function.value_at, n_columns, n_samples, num_features
        )

    def theory(
        law: TabularLaw = law, ridge: float = 1.0, first_row: bool = True
    ) -> FiniteFit:
        """What runs under a law give in their mean."""
        products, kept = function.products, None
        if isinstance(products, SumOfProducts):
            limits = ExactLimits(products, law).of(point[None])
        else:
            limits = estimate_limits(
                function,
                law,
                point[None],
                draws=DrawPlan(50_000, read_seed(rng)),
                progress=False,
            )
        if num_features is not None and num_features < n_columns:
            kept = kept_columns(limits, num_features, chosen)
        return expected(limits, value, n_samples, ridge, first_row, kept)

    # all bins of a column that occur are drawn alike
    alike = replace(law, columns=tuple(column.alike for column in law.columns))
    paper = law.with_width(math.sqrt(0.75 * n_columns))
    theories = {
        "expected": theory(),
        "row": theory(first_row=False),
        "ridge": theory(ridge=0.0, first_row=False),
        "frequencies": theory(alike),
        "width": theory(paper),
    }
    return _compared(run, seeds, progress, theories, law.names)


_MOST_ASKED: Final = 12
"""Words up to which all texts are asked for, where a model was not read."""


@knows_other_words
def compare_text_with_package(
    function: TextFunction,
    document: str | Document,
    n_runs: int = 20,
    n_samples: int = 5000,
    bandwidth: float = 0.25,
    *,
    num_features: int | None = None,
    words: SizeMeans | None = None,
    rng: int = 0,
    progress: bool | None = None,
) -> PackageComparison:
    """Run the ``lime`` package on a text many times, and hold it against its theory.

    Never against the bare limit: with many runs ridge, the document among the samples
    and leverage show, and with few samples they are most of what is seen.

    Parameters
    ----------
    function : TextFunction
        f, which the package has as the probability of the label 1.
    document : str or Document
        The text, of which the package's words are taken.
    n_runs : int
        R, at least 2; each has a seed of its own.
    n_samples : int
        Samples of each run, the document itself included.
    bandwidth : float
        ν; the package's ``kernel_width`` is 100 ν.
    num_features : int, optional
        How many words are kept, chosen as the package does by default; by default all
        words, without a choice.
    words : SizeMeans, optional
        F as a function of which of these words are kept. By default what the model was
        read as, once it was found to be that, or its answers for all texts where there
        are at most 12 words.
    rng : int
        The seed of the runs.
    progress : bool, optional
        Show a bar on standard error; by default only on a terminal.

    Returns
    -------
    PackageComparison
        Runs, what is expected of them, and what is so without each of its parts.

    Raises
    ------
    InvalidInput
        If a setting is out of its range.
    Refused
        If the model was not read and there are more words.

    Examples
    --------
    >>> import propopt as po
    >>> notes = ["good food, good price", "no good food"]
    >>> f = po.wrap(lambda texts: [("food" in t) + 1.0 for t in texts], data=notes)
    >>> found = compare_text_with_package(f, notes[1], n_runs=10, n_samples=200)
    >>> found.labels, bool(abs(found.z).max() < 6)
    (('no', 'good', 'food'), True)
    """
    text = document.text if isinstance(document, Document) else document
    own, law = Document.of(text, PatternWords()), TextLaw(bandwidth)
    seeds = _seeds(n_runs, rng)
    if read_count(n_samples, "n_samples") < 2:
        raise InvalidInput("n_samples: expected at least 2, the document and one more")
    known = checked_subsets(function, own) if words is None else words
    if isinstance(known, Reason):
        if own.n_words > _MOST_ASKED:
            raise Refused(
                f"the model was not read: {known.reason}; and a text of {own.n_words} "
                "words has too many parts to ask for all: give `words`"
            )
        known = enumerated_words(function, own)
    WordRegression(known)  # one word is refused before runs are made
    n_kept = None if num_features is None else read_count(num_features, "num_features")
    kept = None
    if n_kept is not None:
        kept = kept_words(known, law, None, n_kept, n_samples=n_samples)

    def run(seed: int) -> PackageFit:
        ask, width = function.texts_value, 100.0 * bandwidth
        return package_run(ask, own.text, own.n_words, n_samples, width, seed, n_kept)

    def theory(
        ridge: float = 1.0, first_row: bool = True, leverage: bool = True
    ) -> FiniteFit:
        """What runs give in their mean."""
        return expected_run(
            known, law, None, n_samples, ridge, first_row, kept, leverage=leverage
        )

    theories = {
        "expected": theory(),
        "leverage": theory(leverage=False),
        "row": theory(first_row=False, leverage=False),
        "ridge": theory(ridge=0.0, first_row=False, leverage=False),
    }
    return _compared(run, seeds, progress, theories, own.words)
