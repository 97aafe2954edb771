"""The ``lime`` package's tabular explainer as a baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np
import pandas as pd

from propopt.base.arrays import Array, Values
from propopt.base.checks import read_count, read_positive
from propopt.base.errors import InvalidInput
from propopt.base.extras import require
from propopt.base.suggestions import suggests_arguments
from propopt.explaining.explainers.baseline import (
    Baseline,
    Findings,
    Request,
)
from propopt.explaining.explainers.shapley_values import (
    checked_background,
    same_columns,
)
from propopt.functions.texts import DocumentFunction
from propopt.losses.faithfulness import Units
from propopt.proofs.optimum import Parameter
from propopt.tables.columns import CategoricalColumn
from propopt.tables.documents import PatternWords
from propopt.tables.frames import listed
from propopt.tables.schema import TableSchema


# ---- One run of the package


TEXT_WIDTH: Final = 25.0
"""The kernel width of the package on texts by default."""


PackageFit: TypeAlias = tuple[Values, float, float]
"""Coefficients (D,), the intercept, and the local R²."""


def package_fit(
    explainer: Any,
    instance: Any,
    values_of: Callable[[Any], Values],
    n_columns: int,
    n_samples: int,
) -> PackageFit:
    """One run of an explainer of the package at a row, or a text of D words.

    In regression the label 1 has the coefficients, and 0 their negatives.
    """

    def predictions(inputs: Any) -> Array:
        values = values_of(inputs)
        if vars(explainer).get("mode") == "regression":
            return values
        return np.stack([1.0 - values, values], axis=1)

    fit = explainer.explain_instance(
        instance,
        predictions,
        labels=(1,),
        num_features=n_columns,
        num_samples=n_samples,
    )
    coefficients = np.zeros(n_columns)
    for position, coefficient in fit.as_map()[1]:  # words as they first come
        coefficients[position] = coefficient
    return coefficients, float(fit.intercept[1]), float(fit.score)


def package_run(
    values_of: Callable[[list[str]], Values],
    text: str,
    n_words: int,
    n_samples: int,
    kernel_width: float,
    seed: int,
) -> PackageFit:
    """One run of ``LimeTextExplainer``."""
    explainer = require("lime.lime_text").LimeTextExplainer(
        kernel_width=kernel_width,
        feature_selection="none",
        random_state=seed,
    )
    return package_fit(explainer, text, values_of, n_words, n_samples)


# ---- The baseline


@suggests_arguments
@dataclass(frozen=True, kw_only=True, eq=False)
class LimePackage(Baseline):
    """Tabular LIME as the ``lime`` package computes it (Ribeiro et al. 2016).

    Samples are drawn from the background, f is regressed on them by ridge regression
    with the package's kernel, and all D slopes are returned in the order of columns.
    A slope is that of "same quartile (or category) as the point", a difference of
    outputs.
    Needs ``pip install "propopt[baselines]"``. The package takes no missing numbers;
    :class:`Lime` does.

    Each point is explained by a new explainer with a seed that depends on ``rng`` and
    on the position of the point. Given ``data``, the attributions of
    a point therefore do not change when later points are added or removed.

    ``details`` has ``intercept`` (N,) and ``r2`` (N,), the package's local score.

    Parameters
    ----------
    n_samples : int
        Samples per point, the point itself included.
    kernel_width : float or None
        In the package's coordinates; None is its default, 0.75 √D.
    data : array or DataFrame (B, D), optional
        Where means, deviations and quartiles come from; by default X itself.

    Raises
    ------
    InvalidInput
        If a setting is outside its range, or the background has other columns than X.
    MissingExtra
        If ``lime`` is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.functions import Power
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> lime = LimePackage(n_samples=100, data=X)
    >>> lime.explain(Power(2), X[:3]).attributions.shape  # doctest: +SKIP
    (3, 2)
    """

    method: ClassVar[str] = "lime_package"
    units: ClassVar[Units] = "output"

    n_samples: int = 5000
    kernel_width: float | None = None
    data: Array | pd.DataFrame | None = None

    def __post_init__(self) -> None:
        if read_count(self.n_samples, "n_samples") < 2:
            raise InvalidInput("n_samples: expected at least 2, the point and one more")
        if self.kernel_width is not None:
            read_positive(self.kernel_width, "kernel_width")
        if self.data is not None:
            object.__setattr__(self, "data", checked_background(self.data))

    def _texts_refusal(self) -> str | None:
        if self.data is None:
            return None
        return "data is about tables; of documents leave it out"

    def _texts_parameters(self) -> dict[str, Parameter]:
        width = TEXT_WIDTH if self.kernel_width is None else self.kernel_width
        return {"bandwidth": width / 100.0, "n_samples": self.n_samples}

    def _words(self, request: Request) -> Findings:
        """By ``LimeTextExplainer``, with all words and no selection among them.

        The package finds words by itself, as ``PatternWords()`` does. Where those of
        the function are others, it is given a text of as many words that stand for
        them, and of the document those are deleted that it deletes.
        """
        at = request.function
        assert isinstance(at, DocumentFunction), "see Baseline"
        function = at.function
        document = at.document
        text = document.text
        words = document.words
        same = function.text_schema.rule == PatternWords()
        if not same:
            words = tuple(f"word{position}" for position in range(at.n_words))
            text = " ".join(words)

        def values(texts: Iterable[str]) -> Values:
            if same:
                return function.texts_value(texts)
            retained = (set(text.split()) for text in texts)
            bits = np.array(
                [
                    [word in words_of_text for word in words]
                    for words_of_text in retained
                ]
            )
            return function.texts_value(document.each(bits))

        coefficients, intercept, score = package_run(
            values,
            text,
            len(words),
            self.n_samples,
            TEXT_WIDTH if self.kernel_width is None else self.kernel_width,
            int(request.rng.integers(2**32)),
        )
        return Findings(
            attributions=coefficients[None],
            details={"intercept": np.array([intercept]), "r2": np.array([score])},
        )

    def _findings(self, request: Request) -> Findings:
        background = request.points
        if self.data is not None:
            background = same_columns(self.data, request)
        _refuse_missing(request.points, request, "X")
        _refuse_missing(background, request, "data")
        lime = require("lime.lime_tabular")
        fits = []
        names = _category_names(request.function.schema)
        for row, seed in zip(request.points, request.row_seeds(), strict=True):
            explainer = lime.LimeTabularExplainer(
                background,
                mode="regression",
                categorical_features=[*names],
                categorical_names=names,
                kernel_width=self.kernel_width,
                feature_selection="none",  # all are kept; the default refits to rank
                random_state=seed,
            )
            fits.append(
                package_fit(explainer, row, request.value, len(row), self.n_samples)
            )
            request.advance(1)
        slopes, intercepts, scores = map(np.array, zip(*fits, strict=True))
        details = {"intercept": intercepts, "r2": scores}
        return Findings(attributions=slopes, details=details)


def _refuse_missing(points: Array, request: Request, label: str) -> None:
    """The package scales and draws numbers, and knows none that are missing."""
    absent = np.isnan(points).any(axis=0)
    if absent.any():
        names = request.labels.feature_names(points.shape[1])
        wrong = [names[j] for j in np.flatnonzero(absent)]
        raise InvalidInput(
            f"lime_package: {label} has missing numbers in {listed(wrong)}, and the "
            "lime package takes none; po.explainers.Lime does"
        )


def _category_names(schema: TableSchema | None) -> dict[int, list[str]]:
    """The categories of each categorical column, under its position."""
    if schema is None:
        return {}
    return {
        j: [str(category) for category in column.categories]
        for j, column in enumerate(schema.columns)
        if isinstance(column, CategoricalColumn)
    }
