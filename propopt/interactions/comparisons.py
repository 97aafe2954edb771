"""Scores of pairs as others define them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, final

import numpy as np
import pandas as pd

from propopt.base.arrays import Array, Points, Positions, Truths, Values
from propopt.base.cards import N_FEATURES, Card, CardRow, others_in_words
from propopt.base.checks import read_count, read_rng
from propopt.base.declared import stored
from propopt.base.errors import InvalidInput
from propopt.base.extras import require
from propopt.base.resources import MODEL_CALLS
from propopt.base.text import printable
from propopt.base.words_of_others import knows_other_words
from propopt.functions.function import Function
from propopt.functions.wrapping import wrap
from propopt.interactions.features import Features, Places
from propopt.interactions.scores import ScoresOfSets
from propopt.results.certain import plural
from propopt.tables.frames import Labels, is_frame


_NO_ERROR: Final = "of one fitted model, without intervals: no error is known"

ALL_SUBSETS_OF: Final = 15
"""Features of which all 2^M subsets are evaluated, at most."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class RowGames:
    """v_i(A) = mean over background rows b of f(x_i on A, b elsewhere), for n rows.

    Of one feature and of two it is the partial dependence at the row (Friedman 2001),
    and v_i is the game of Shapley values with a marginal background.
    """

    function: Function  # f
    points: Points  # (n, D): the rows x_i
    background: Points  # (B, D): what stands for features that are not known
    labels: Labels
    features: Features  # M features, each of one or several columns

    @classmethod
    def of(
        cls,
        model: Any,
        X: Any,  # shape (N, D)
        target: Any,
        groups: Mapping[Hashable, Sequence[Hashable]] | None,
        n_rows: int,
        n_background: int,
        rng: int | np.random.Generator | None,
    ) -> RowGames:
        """The games of rows of X that are drawn, against others that are drawn."""
        function = wrap(model, target, data=X if is_frame(X, "X") else None)
        points, labels = function.read(X)
        generator = read_rng(rng)

        def drawn(count: int) -> Points:
            if count >= len(points):
                return points
            own = generator.choice(len(points), count, replace=False)
            return points[np.sort(own)]

        return cls(
            function=function,
            points=drawn(read_count(n_rows, "n_rows")),
            background=drawn(read_count(n_background, "n_background")),
            labels=labels.of_columns(),
            features=Features.of(
                labels.columns or tuple(range(points.shape[1])), groups
            ),
        )

    def values(self, known: Truths) -> Array:
        """Of q sets A of features, shape (n, q); known (q, M)."""
        n_rows, n_background = len(self.points), len(self.background)
        n_columns = self.points.shape[1]
        result = np.empty((n_rows, len(known)))
        columns = np.zeros((len(known), n_columns), dtype=bool)
        for feature, own in enumerate(self.features.columns):
            columns[:, list(own)] = known[:, [feature]]
        copies = n_rows * n_background
        for block in MODEL_CALLS.blocks(len(known), 8 * n_columns, copies):
            own_columns = columns[block, None, None]
            # of q sets, n rows, B background rows and D columns
            mixed = np.where(own_columns, self.points[:, None], self.background)
            values = self.function.value_at(mixed.reshape(-1, n_columns), self.labels)
            values = values.reshape(len(own_columns), n_rows, -1)
            result[:, block] = values.mean(axis=2).T
        return result

    @cached_property
    def table(self) -> Array:
        """Of all subsets, shape (n, 2^M): the place of A is Σ_{j ∈ A} 2^j."""
        n_features = len(self.features)
        if n_features > ALL_SUBSETS_OF:
            raise InvalidInput(
                f"X: 2^{n_features} subsets of features are too many to evaluate; at "
                f"most {ALL_SUBSETS_OF} features can be compared, so give fewer "
                "columns, or groups of them"
            )
        indices = np.arange(2**n_features)[:, None]
        return self.values((indices >> np.arange(n_features)) % 2 == 1)

    def scores(
        self, estimates: Values, method: str, units: str = "units of the output"
    ) -> PairScores:
        """What was made of the games, of all pairs."""
        return PairScores(
            sets=self.features.all_sets(2),
            names=self.features.names,
            estimates=estimates,
            method=method,
            units=units,
            n_rows=len(self.points),
            quantity=self.function.quantity,
        )

    def mean_sizes(
        self, matrix: Callable[[Callable[[Any], Values], int], Array], method: str
    ) -> PairScores:
        """mean_i |matrix of v_i|: a package evaluates v_i by its table."""
        pairs, n_players = self.features.all_sets(2), len(self.features)

        def of_row(table: Values) -> Values:
            def game(subsets: Any) -> Values:
                """From subsets as bits (q, M) to their values."""
                return table[np.asarray(subsets).astype(np.intp) @ powers]

            return np.abs(matrix(game, n_players)[pairs[:, 0], pairs[:, 1]])

        powers = 1 << np.arange(n_players)
        return self.scores(np.mean(list(map(of_row, self.table)), axis=0), method)


# ---- Scores of pairs of features without intervals


@final
class PairScores(
    ScoresOfSets, kind="propopt pair scores", noun="saved scores of pairs", version=1
):
    """How strongly pairs of features interact in one fitted model, by some method.

    Of the same table it has the pairs of :class:`InteractionScores`, in their order;
    no method of this kind knows an error of its scores.

    Parameters
    ----------
    sets : array of int (Q, 2)
        Places of the features of each pair, ascending.
    names : tuple (M,)
        Of the features.
    estimates : array (Q,)
        The scores, none of them negative.
    method : str
        What they are called.
    units : str
        Of the scores.
    n_rows : int
        Rows over which they are taken together.
    quantity : Quantity or None
        What the model predicts.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.interactions import h_statistic
    >>> X = np.random.default_rng(0).normal(size=(30, 3))
    >>> scores = h_statistic(lambda X: X[:, 0] * X[:, 1] + X[:, 2], X)
    >>> scores.top(1)[["feature_1", "feature_2"]]
       feature_1  feature_2
    0          0          1
    """

    sets: Places = stored("Q 2")
    estimates: Values = stored("Q", low=0.0)

    def to_frame(self) -> pd.DataFrame:
        """One row for each pair: ``feature_1``, ``feature_2`` and ``estimate``."""
        return pd.DataFrame({**self._features(), "estimate": self.estimates})

    def top(self, k: int = 10) -> pd.DataFrame:
        """The k pairs with the largest scores, largest first.

        Raises
        ------
        InvalidInput
            If k is no integer ≥ 1.
        """
        return self.to_frame().iloc[self._order[: read_count(k, "k")]]

    @property
    def _order(self) -> Positions:
        """The pairs from the largest score down."""
        return np.argsort(-self.estimates, kind="stable")

    def card(self) -> Card:
        """The pair that is first, the largest scores, and that no error is known."""
        first, others = np.split(self._order, [N_FEATURES])
        names = [self._name_of(q) for q in first]
        where = "" if self.quantity is None else f" in the {self.quantity}"
        count, none = plural(len(self), "pair"), not self.estimates.any()
        return Card(
            title=f"None of {count} interacts{where}"
            if none
            else f"{names[0]} interact most{where}, of {count}",
            subtitle=f"{self.method}: {self.units}; {plural(self.n_rows, 'row')}",
            rows=[
                CardRow(name=name, value=float(self.estimates[q]))
                for name, q in zip(names, first, strict=True)
            ],
            rest=others_in_words(self.estimates[others]),
            proof=_NO_ERROR,
            rests_on={_NO_ERROR: "not said"},
        )

    def __repr__(self) -> str:
        words = [plural(len(self), "pair"), plural(len(self.names), "feature")]
        words += [plural(self.n_rows, "row"), self.method]
        return f"PairScores({printable('; '.join(words))})"


# ---- The H-statistic of Friedman and Popescu (2008)


_ROUNDING: Final = 1e-12
"""Of centred partial dependences, over the largest of them."""


@knows_other_words
def h_statistic(
    model: Any,
    X: Any,
    *,
    target: Any = None,
    groups: Mapping[Hashable, Sequence[Hashable]] | None = None,
    scaled: bool = True,
    n_rows: int = 50,
    n_background: int = 50,
    rng: int | np.random.Generator | None = None,
) -> PairScores:
    """The share of the joint effect of two features that is no sum of their effects.

    H²_jk = Σ_i [PD_jk(x_i) − PD_j(x_i) − PD_k(x_i)]² / Σ_i PD_jk(x_i)²

    with partial dependences PD_S(x_i) = mean over background rows b of f(x_i on S, b
    elsewhere), each less its mean over the rows i (Friedman and Popescu, 2008,
    Predictive learning via rule ensembles). Of a pair without any effect it is 0.

    Parameters
    ----------
    model : estimator, callable or Function
        Fitted; see :func:`propopt.wrap` for what is explained of a classifier.
    X : array or DataFrame (N, D)
        Rows are drawn from it.
    target : class label or int, optional
        The class, as in :func:`propopt.wrap`.
    groups : mapping of a feature to its columns, optional
        Columns that are one feature.
    scaled : bool
        H², a share. A weak pair can have a large one, since both its effects are small;
        False is the root of the mean of the numerator, in units of the output.
    n_rows, n_background : int
        Rows i and b, drawn apart; M (M + 1) / 2 times their product evaluations.
    rng : int, numpy.random.Generator or None
        For the draws; None is seed 0.

    Returns
    -------
    PairScores
        Of all pairs.

    Raises
    ------
    InvalidInput
        If an argument cannot be used.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> additive = h_statistic(lambda X: np.sin(X).sum(axis=1), X)
    >>> bool(additive.estimates.max() < 1e-20)
    True
    """
    games = RowGames.of(model, X, target, groups, n_rows, n_background, rng)
    pairs = games.features.all_sets(2)
    alone: Truths = np.eye(len(games.features), dtype=np.bool_)
    either = alone[pairs[:, 0]] | alone[pairs[:, 1]]
    single, both = (
        own - own.mean(axis=0) for own in map(games.values, (alone, either))
    )
    beyond = both - single[:, pairs].sum(axis=2)
    if not scaled:
        return games.scores(np.sqrt((beyond**2).mean(axis=0)), "H-statistic")
    joint, shares = (both**2).sum(axis=0), np.zeros(len(pairs))
    # 0 where the joint effect is rounding
    floor = len(both) * (_ROUNDING * np.abs(both).max(initial=0.0)) ** 2
    np.divide((beyond**2).sum(axis=0), joint, out=shares, where=joint > floor)
    return games.scores(shares, "H-statistic", "share of the joint effect")


# ---- Interaction indices of the games of rows, by the packages that define them


@knows_other_words
def shap_interactions(
    model: Any,
    X: Any,
    *,
    target: Any = None,
    groups: Mapping[Hashable, Sequence[Hashable]] | None = None,
    n_rows: int = 20,
    n_background: int = 20,
    rng: int | np.random.Generator | None = None,
) -> PairScores:
    """Mean size over rows of Shapley-Taylor interactions, by the package ``shap``.

    φ_jk = (2 / M) Σ_{A ∌ j,k} [v(A ∪ jk) − v(A ∪ j) − v(A ∪ k) + v(A)] / C(M − 1, |A|),

    both halves that the package gives together, of the game v(A) = mean over background
    rows b of f(x on A, b elsewhere). It takes all 2^M subsets of the features. This is
    what the package has for any model (Dhamdhere, Agarwal and Sundararajan, 2020); what
    it has for trees weighs sets as the interaction index of Shapley does.

    Parameters
    ----------
    model : estimator, callable or Function
        Fitted; see :func:`propopt.wrap` for what is explained of a classifier.
    X : array or DataFrame (N, D)
        Rows are drawn from it.
    target : class label or int, optional
        The class, as in :func:`propopt.wrap`.
    groups : mapping of a feature to its columns, optional
        Columns that are one feature.
    n_rows, n_background : int
        Rows x and b, drawn apart; 2^M times their product evaluations.
    rng : int, numpy.random.Generator or None
        For the draws; None is seed 0.

    Returns
    -------
    PairScores
        Of all pairs.

    Raises
    ------
    InvalidInput
        If an argument cannot be used, or M is above 15.
    MissingExtra
        If ``shap`` is not installed.

    Examples
    --------
    Against a row b φ_01 of x_0 x_1 is (x_0 − b_0)(x_1 − b_1), here 0 or 2.

    >>> import numpy as np
    >>> X = np.array([[1.0, 2.0, 5.0], [0.0, 0.0, 0.0]])
    >>> product = lambda X: X[:, 0] * X[:, 1]
    >>> shap_interactions(product, X).matrix()[0, 1]  # doctest: +SKIP
    1.0
    """
    package = require("shap")
    games = RowGames.of(model, X, target, groups, n_rows, n_background, rng)

    def matrix(game: Callable[[Any], Values], n_players: int) -> Array:
        explainer = package.explainers.ExactExplainer(game, np.zeros((1, n_players)))
        every = 2**n_players
        result = explainer(
            np.ones((1, n_players)), interactions=2, max_evals=every, silent=True
        )
        values = np.asarray(result.values[0], dtype=np.float64)
        return values + values.T

    return games.mean_sizes(matrix, "SHAP interactions")


@knows_other_words
def faith_shap(
    model: Any,
    X: Any,
    *,
    target: Any = None,
    groups: Mapping[Hashable, Sequence[Hashable]] | None = None,
    n_rows: int = 20,
    n_background: int = 20,
    rng: int | np.random.Generator | None = None,
) -> PairScores:
    """Mean size over rows of Faith-Shap values of order 2, by the package ``shapiq``.

    Of the game v(A) = mean over background rows b of f(x on A, b elsewhere) it is the
    coefficient of the pair in the polynomial of order 2 that is nearest to v under
    Shapley's weights, equal to v at no and at all features (Tsai, Yeh and Ravikumar,
    2023). It takes all 2^M subsets of the features.

    Parameters
    ----------
    model, X, target, groups, n_rows, n_background, rng
        As for :func:`shap_interactions`.

    Returns
    -------
    PairScores
        Of all pairs.

    Raises
    ------
    InvalidInput
        If an argument cannot be used, or M is above 15.
    MissingExtra
        If ``shapiq`` is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(30, 3))
    >>> product = lambda X: X[:, 0] * X[:, 1] + X[:, 2]
    >>> faith_shap(product, X).top(1)  # doctest: +SKIP
       feature_1  feature_2  estimate
    0          0          1   1.38...
    """
    package = require("shapiq")
    games = RowGames.of(model, X, target, groups, n_rows, n_background, rng)

    def matrix(game: Callable[[Any], Values], n_players: int) -> Array:
        computer = package.ExactComputer(game, n_players=n_players)
        result = computer("FSII", order=2).get_n_order_values(2)
        return np.asarray(result, dtype=np.float64)

    return games.mean_sizes(matrix, "Faith-Shap")
