"""Interaction values of trees against background rows, exactly."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import final

import numpy as np

from propopt.base.checks import read_rng
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import Reason, plural
from propopt.explaining.explainers.baseline import Request
from propopt.explaining.explainers.shapley_values import (
    N_ROWS,
    BackgroundLike,
    TreeShap,
    background_rows,
)
from propopt.functions import Function
from propopt.functions.function import read_function
from propopt.functions.texts import TextFunction
from propopt.results.interactions import Interactions, interactions_of
from propopt.structures.boxes.path_dependent import PathDependent
from propopt.structures.boxes.shapley import BoxShapley
from propopt.structures.products.sums import Game


@final
@suggests_arguments
@dataclass(frozen=True, kw_only=True, eq=False)
class TreeInteractions:
    """Exact Shapley interaction values of trees and sums of trees.

    .. math::

        I_uv = Σ_{S ∌ u, v} |S|! (D − |S| − 2)! / (D − 1)!
               (v(S∪u∪v) − v(S∪u) − v(S∪v) + v(S))

    v(S) = mean over the background rows b of f(x on S, b elsewhere)

    for all pairs of features and every background row, without draws (Grabisch and
    Roubens 1999). It is the game of :class:`TreeShap`, and takes the same models, with
    categories and missing values. The package ``shap`` has interaction values of
    another game only, that of the paths of the trees; for a background it gives zeros.
    The result has a matrix for each row in the form of that package: half of I_uv for
    each of the two orders of a pair, and on the diagonal φ_u − Σ_v I_uv/2. Its rows add
    up to the Shapley values φ, and all of it to the prediction minus the base.

    Parameters
    ----------
    data : array or DataFrame (B, D), int, "mean" or None
        What a missing feature is replaced by: rows of a table, such as the one that the
        model was fitted on; so many rows of X, drawn by ``rng``; or one row, the column
        means of X and its most frequent categories. With None values depend on the
        paths of the trees instead, as those of ``shap`` without a background.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> function = po.wrap(DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 4.0]), data=X)
    >>> pairs = po.explainers.TreeInteractions(data=X).explain(function, X[3:])
    >>> pairs.values
    array([[[1. , 0.5],
            [0.5, 1. ]]])
    """

    data: BackgroundLike | None = N_ROWS

    def __post_init__(self) -> None:
        TreeShap(data=self.data)  # checks it

    def explain(
        self,
        function: Function,
        X: object,
        *,
        rng: int | np.random.Generator | None = None,
    ) -> Interactions:
        """Compute the interaction values of a function at the rows of ``X``.

        Parameters
        ----------
        function : Function
            f, of trees; see :func:`propopt.wrap`.
        X : array or DataFrame (N, D)
            The points. The names of a DataFrame are kept in the result.
        rng : int, numpy.random.Generator or None
            The seed of background rows that are drawn from X; 0 by default.

        Returns
        -------
        Interactions
            With ``values`` (N, D, D), ``contributions`` (N, D), a table of pairs, and
            a heat map.

        Raises
        ------
        InvalidInput
            If the function is no sum of trees, or differs from it in a row, which is
            named; if the background has other columns than X; or for documents.
        """
        f = read_function(function)
        if isinstance(f, TextFunction) or f.boxes is None:
            raise InvalidInput(
                f"tree_interactions: {f!r} is not read as a sum of trees of a table; "
                "expected trees, forests or boosting of scikit-learn, LightGBM, "
                "XGBoost or CatBoost, and of a boosted classifier "
                "wrap(model, output='log_odds')"
            )
        generator = read_rng(rng)
        same_draws = deepcopy(generator)
        shap = TreeShap(data=self.data).explain(f, X, rng=generator)
        f = f.with_categories_of(X)
        trees = f.boxes
        assert trees is not None, "they were read before"
        points, labels = f.read(X)
        if self.data is None:
            path_game = PathDependent.of(trees)
            assert not isinstance(path_game, Reason), "TreeShap has its values"
            pairs = path_game.pairs(points)
            background = "training rows of each node"
        else:
            request = Request(function=f, points=points, labels=labels, rng=same_draws)
            game = Game(background_rows(self.data, request))
            pairs = BoxShapley.of(trees, game, order=2).values(points)
            background = plural(len(game.background), "background row")
        return interactions_of(shap, shap.attributions, pairs, background)
