"""Shapley values of sums of trees, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from propopt._typing import Points
from propopt.errors import InvalidInput
from propopt.estimates import Units
from propopt.explainers.background import (
    NO_WORDS,
    Background,
    background_refusal,
    background_rows,
    read_background,
)
from propopt.explainers.base import Baseline, Findings
from propopt.explainers.request import Request
from propopt.explainers.texts.each import WordsFound
from propopt.functions import Function
from propopt.functions.smoothing.checked import CheckedBoxes
from propopt.functions.text import DocumentFunction
from propopt.lime.text.reading import checked_subsets
from propopt.results.explanation import Parameter
from propopt.structures.boxes import Boxes
from propopt.structures.boxes.shapley import BoxShapley
from propopt.structures.subsets import NoSetFunction, WordShapley


_ROWS = 64
"""Points from one move of the progress bar to the next."""


class _Ready:
    """What was counted of the last function and background, while these are asked."""

    def __init__(self) -> None:
        self._last: tuple[Function, Boxes, BoxShapley] | None = None

    def of(self, function: Function, boxes: Boxes, background: Points) -> BoxShapley:
        """Counted anew where the function, its trees or the rows are others."""
        if self._last is not None:
            known, trees, exact = self._last
            rows = exact.background
            same = known is function and trees is boxes
            if same and np.array_equal(rows, background, equal_nan=True):
                return exact
        exact = BoxShapley.of(boxes, background.copy())
        self._last = function, boxes, exact
        return exact


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeShap(Baseline):
    """Exact Shapley values of trees and sums of trees (Lundberg et al. 2020).

    φ_j = Σ_{S ∌ j} |S|! (D − |S| − 1)! / D!  (v(S ∪ j) − v(S)),
    v(S) = mean over the background rows b of f(x on S, b elsewhere)

    for every order of the features and every background row: interventional TreeSHAP,
    with neither draws nor packages. It takes all models that are read as boxes
    (``function.boxes``): scikit-learn's trees, forests and boosting, LightGBM, XGBoost,
    CatBoost, and pipelines, votes and sums of these, with categories and missing
    values. What is counted of trees and background is kept by the explainer for as long
    as it is asked of the same function: rows of a second call cost only themselves. Of
    a boosted classifier that is the margin or the log-odds, not the
    probability. A column that no tree asks for has exactly zero.

    Of documents it takes every model that is read as a function of which words are kept
    (:func:`propopt.lime.text_limits` says so), however many they are: trees on words,
    and linear models. The background is the text without any word.

    ============================ ====== ==============================================
    ``details["base_value"]``    (N,)   mean of f over the background, in each row
    ``details["completeness_gap"]`` (N,) Σ_j φ_j − (f(x) − base), zero to rounding
    ============================ ====== ==============================================

    Parameters
    ----------
    background : array or DataFrame (B, D), int or "mean"
        What a missing feature is replaced by: rows of a table, such as the one that the
        model was fitted on; so many rows of X, drawn by ``rng``; or one row, the column
        means of X and its most frequent categories.

    Raises
    ------
    InvalidInput
        If the function is no sum of boxes, or the background has other columns than X.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X = np.array([[0.0, 5.0], [1.0, 5.0], [2.0, 5.0]])
    >>> function = po.wrap(DecisionTreeRegressor().fit(X, [0.0, 3.0, 3.0]), data=X)
    >>> po.explainers.TreeShap(background=X).explain(function, X).attributions
    array([[-2.,  0.],
           [ 1.,  0.],
           [ 1.,  0.]])
    """

    method: ClassVar[str] = "tree_shap"

    background: Background = 100
    _ready: ClassVar[_Ready]

    def __post_init__(self) -> None:
        object.__setattr__(self, "background", read_background(self.background))
        object.__setattr__(self, "_ready", _Ready())

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_ready": _Ready()}  # workers count for themselves

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    @property
    def units(self) -> Units:
        return "output"

    def _texts_refusal(self) -> str | None:
        return background_refusal(self.background)

    def _texts_parameters(self) -> dict[str, Parameter]:
        return {"background": NO_WORDS}

    def _words(self, request: Request) -> WordsFound:
        """Of whatever is read as a function of sets of words, as trees are."""
        at = request.function
        assert isinstance(at, DocumentFunction), "see Baseline"
        read = checked_subsets(at.function, at.document)
        if isinstance(read, NoSetFunction):
            raise InvalidInput(
                f"tree_shap: {read.reason}; of any model Shap(algorithm='permutation') "
                "samples Shapley values"
            )
        phi = WordShapley(read).values
        ends = np.array([request.points[0], np.zeros(at.n_words)])
        whole, base = request.value(ends).tolist()
        gap = float(phi.sum()) - (whole - base)
        details = {"base_value": base, "completeness_gap": gap}
        return WordsFound(attributions=phi, details=details)

    def _findings(self, request: Request) -> Findings:
        boxes = CheckedBoxes.of(request.function).at(request.points, request.labels)
        if boxes is None:
            raise InvalidInput(
                f"tree_shap: {request.function!r} is not read as a sum of trees; of a "
                "boosted classifier wrap(model, output='log_odds') is one, and of any "
                "function Shap(algorithm='permutation') samples Shapley values"
            )
        background = background_rows(self.background, request)
        exact = self._ready.of(request.function, boxes, background)
        phi = np.empty(request.points.shape)
        for start in range(0, len(phi), _ROWS):
            some = slice(start, start + _ROWS)
            phi[some] = exact.values(request.points[some])
            request.advance(len(phi[some]))
        base = np.full(len(phi), request.value(background).mean())
        gap = phi.sum(axis=1) - (request.value(request.points) - base)
        return Findings(
            attributions=phi, details={"base_value": base, "completeness_gap": gap}
        )
