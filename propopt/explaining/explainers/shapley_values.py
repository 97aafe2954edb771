"""Shapley values: by orders and subsets, of trees exactly, and backgrounds."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, replace
from typing import (
    Any,
    ClassVar,
    Final,
    Literal,
    TypeAlias,
    final,
)

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt.base.arrays import (
    Array,
    Attributions,
    Indices,
    Mask,
    Points,
    Values,
    quotient,
)
from propopt.base.checks import read_count, read_option
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import Reason
from propopt.explaining.contributions import observed_means
from propopt.explaining.explainers.baseline import (
    Baseline,
    Findings,
    PackageUnits,
    Request,
)
from propopt.functions.means import CheckedStructure
from propopt.functions.texts import DocumentFunction
from propopt.laws import perturbations
from propopt.lime.text.word_limits import checked_subsets
from propopt.losses.faithfulness import Units
from propopt.proofs.optimum import Parameter
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.boxes.path_dependent import PathDependent
from propopt.structures.boxes.shapley import BoxShapley, shapley_against
from propopt.structures.products.sums import Game, ProductShapley, SumOfProducts
from propopt.structures.subsets.sets import shapley_of_coalitions, word_shapley
from propopt.tables.frames import as_frame, read_points


# ---- BackgroundLike tables: the points that stand for "feature unknown"


BackgroundLike: TypeAlias = Array | pd.DataFrame | int | Literal["mean"]
"""Rows; how many rows of X to draw; or one row of means."""


N_ROWS: Final = 100
"""Default number of background rows of X."""


NO_WORDS: Final = "the text without any word"
"""The background of documents."""


def background_rows(background: BackgroundLike | None, request: Request) -> Points:
    """The rows (B, D) that a background stands for, of the columns of X."""
    assert background is not None, "only TreeShap has none"
    if isinstance(background, str):
        return typical_row(request.points, request.categorical)
    if isinstance(background, int):
        n_rows = min(background, len(request.points))
        sampled = request.rng.choice(len(request.points), n_rows, replace=False)
        return request.points[np.sort(sampled)]
    return same_columns(background, request)


def typical_row(points: Points, categorical: NDArray[np.bool_]) -> Array:
    """Means and first modes of the values that are there; missing where none is."""
    row = observed_means(points)[None]
    for j in np.flatnonzero(categorical):
        row[0, j] = np.bincount(points[:, j].astype(np.intp)).argmax()
    return row


def checked_background(background: object) -> Array | pd.DataFrame:
    """A copy that later changes do not reach; the function reads categories of it.

    Categories may be called by digits: what is no number by its dtype stays as it is.
    """
    frame = as_frame(background, "data")
    if frame is None:
        array, _ = read_points(background, "data")
        return array
    if any(dtype.kind not in "iuf" for dtype in frame.table.dtypes):
        return frame.table.copy(deep=True)
    array, labels = read_points(frame.table, "data")
    return labels.table(array)


def same_columns(background: Array | pd.DataFrame, request: Request) -> Array:
    """The background as an array (B, D); an error if its columns are not those of X."""
    n_features = request.points.shape[1]
    labels = request.labels
    array, names = request.function.read(background, "data")
    if array.shape[1] != n_features:
        raise InvalidInput(
            f"data: expected {n_features} features as in X, got {array.shape[1]}"
        )
    if (
        None not in (names.features, labels.features)
        and names.features != labels.features
    ):
        raise InvalidInput(
            f"data: expected the columns of X, {labels.features}, in that order; "
            f"got {names.features}"
        )
    return array


@dataclass(frozen=True, kw_only=True, eq=False)
class OfBackground(Baseline):
    """A method with a background that supplies values of unknown features."""

    data: BackgroundLike | None = N_ROWS

    def __post_init__(self) -> None:
        data = self.data
        if isinstance(data, str):
            if data != "mean":
                raise InvalidInput(
                    f"data: expected a table, a number of rows or 'mean', got {data!r}"
                )
        elif isinstance(data, int | np.integer):
            object.__setattr__(self, "data", read_count(data, "data"))
        else:
            object.__setattr__(self, "data", checked_background(data))

    def _texts_refusal(self) -> str | None:
        if isinstance(self.data, int) and self.data == N_ROWS:
            return None
        return f"data: of documents it is {NO_WORDS}; leave it out"

    def _texts_parameters(self) -> dict[str, Parameter]:
        settings = {k: x for k, x in self.parameters.items() if k != "units"}
        return {**settings, "data": NO_WORDS}


# ---- Shapley values as the ``shap`` package has them, without the package


Algorithm: TypeAlias = Literal["auto", "exact", "permutation"]

EXACT_BY_DEFAULT = 12
EXACT_AT_MOST = 20
EXACT_EVALUATIONS = 2**17
"""Per point, above which orders are sampled by default."""

_NEGLIGIBLE = 1e-8
"""|x − r| ≤ this · max(|x|, |r|) counts as x = r when dividing by x − r."""


@suggests_arguments
@dataclass(frozen=True, kw_only=True, eq=False)
class Shap(OfBackground):
    """Shapley values of the background game (Lundberg and Lee 2017).

    .. math::

        φ_j = Σ_{S ∌ j} |S|! (D − |S| − 1)! / D! (v(S ∪ j) − v(S)),

    v(S) = mean over the background rows b of f(x on S, b elsewhere)

    The numbers are those of the explainers of the ``shap`` package, orders drawn by the
    same seeds too, up to rounding, and the package is not needed: f is evaluated for
    all subsets of a point in one call, and never twice for an unchanged row. The
    completeness gap is reported: it is of the order of the rounding of f.

    ================================ ====== ==========================================
    ``base_value``                   (N,)   v(∅), the mean of f over the background
    ``prediction``                   (N,)   f(x)
    ``additivity_error``             (N,)   Σ_j φ_j − (f(x) − v(∅)), of parts
    ``details["undefined"]``         (N,)   with ``units="gradient"``: how many
                                            features equal the reference
    ================================ ====== ==========================================

    Parameters
    ----------
    data : array or DataFrame (B, D), int or "mean"
        What a missing feature is replaced by; the cost grows with B. Rows of a table,
        such as the one that the model was fitted on; so many rows of X, drawn by
        ``rng``; or one row, the column means of X and its most frequent categories.
        Values may be missing, as in X.
    units : {"output", "gradient"}
        ``"output"``: φ. ``"gradient"``: φ_j / (x_j − r_j) with r the mean of the
        background, which is comparable with gradients. Where x_j equals r_j to
        rounding (|x_j − r_j| ≤ 1e-8 max(|x_j|, |r_j|)) this is undefined: the
        attribution is set to 0 and counted in the details. φ_j of a category, and of a
        number that is missing in x, stays as it is.
    algorithm : {"auto", "exact", "permutation"}
        ``"exact"`` evaluates all 2^D subsets per point, for D ≤ 20. ``"permutation"``
        samples orders of the features, each forwards and backwards (Mitchell et al.
        2022). ``"auto"`` is exact for D ≤ 12, if that takes
        no more than 2^17 evaluations per point.
    n_permutations : int
        Random orders per point, each walked in both directions: 2D subsets. Where
        features equal the whole background there are more orders of the others.

    Of documents the background is the text without any word, and the features are its
    words.

    Raises
    ------
    InvalidInput
        If a setting is outside its range, or the background has other columns than X.

    Examples
    --------
    For a sum of functions of one feature each, φ_j = f_j(x_j) − f_j(r_j).

    >>> import numpy as np
    >>> from propopt.functions import Power
    >>> shap = Shap(data=np.zeros((1, 2)))
    >>> shap.explain(Power(2), [[1.0, 3.0]]).attributions
    array([[1., 9.]])
    """

    method: ClassVar[str] = "shap"

    units: PackageUnits = "output"
    algorithm: Algorithm = "auto"
    n_permutations: int = 10

    def __post_init__(self) -> None:
        read_option(self.units, PackageUnits, "units")
        read_option(self.algorithm, Algorithm, "algorithm")
        read_count(self.n_permutations, "n_permutations")
        super().__post_init__()

    def _words(self, request: Request) -> Findings:
        """Against the text without any word."""
        assert request.function.schema is not None, "a document has one"
        empty = request.function.schema.decode(np.zeros(request.points.shape))
        return super(Shap, replace(self, data=empty))._words(request)

    def _findings(self, request: Request) -> Findings:
        background = background_rows(self.data, request)
        empty = request.value(background)
        values = self._values(request, background, empty)
        ends: dict[str, Any] = {
            "base_value": np.full(len(request.points), empty.mean()),
            "prediction": request.value(request.points),
        }
        if self.units == "output":
            return Findings(attributions=values, **ends)
        numeric = ~request.categorical
        slopes, undefined = _slopes(
            values[:, numeric],
            request.points[:, numeric],
            observed_means(background[:, numeric]),
        )
        values[:, numeric] = slopes
        return Findings(attributions=values, details={"undefined": undefined}, **ends)

    def _values(
        self, request: Request, background: Array, empty: Values
    ) -> Attributions:
        """φ of each point, (N, D)."""
        is_exact = self._is_exact(request.points.shape[1], len(background))
        seeds = None if is_exact else request.row_seeds()
        values = np.empty(request.points.shape)
        for n, point in enumerate(request.points):
            game = _Game(request, point, background, empty)
            if seeds is None:
                values[n] = game.exact()
            else:
                values[n] = game.sampled(self.n_permutations, seeds[n])
            request.advance(1)
        return values

    def _is_exact(self, n_features: int, n_rows: int) -> bool:
        if self.algorithm == "exact" and n_features > EXACT_AT_MOST:
            raise InvalidInput(
                f"algorithm: 'exact' takes 2^{n_features} evaluations per point, and "
                f"is offered for at most {EXACT_AT_MOST} features; use 'permutation'"
            )
        if self.algorithm != "auto":
            return self.algorithm == "exact"
        few = 2.0**n_features * n_rows <= EXACT_EVALUATIONS
        return n_features <= EXACT_BY_DEFAULT and few


@final
@dataclass(frozen=True, eq=False)
class _Game:
    """What f is worth on subsets of the features of one point."""

    request: Request  # f
    point: Array  # (D,): x
    background: Points  # (B, D): the rows b
    empty: Values  # (B,): f(b)

    @property
    def differs(self) -> Mask:
        """Where x is another value than b, (B, D): what is missing in both is not."""
        x = self.point
        b = self.background
        return ~((x == b) | (np.isnan(x) & np.isnan(b)))

    @property
    def playing(self) -> Indices:
        """The features that change rows of the background, few of them first."""
        n_changed = self.differs.sum(axis=0)
        order = np.argsort(n_changed, kind="stable")
        return order[n_changed[order] > 0]

    def exact(self) -> Values:
        """φ from all subsets of what plays, in Gray's order: the first comes most."""
        playing = self.playing
        n = len(playing)
        values = np.zeros(len(self.point))
        subsets = np.arange(2**n)
        gray = subsets ^ (subsets >> 1)
        step = np.log2(gray[1:] ^ gray[:-1]).astype(np.intp)
        worth = np.empty(2**n)
        worth[gray] = self.worths(playing[step])
        values[playing] = shapley_of_coalitions(worth)
        return values

    def sampled(self, n_orders: int, seed: int) -> Values:
        """φ from drawn orders, in which features come and then go again."""
        order = np.sort(self.playing)
        values = np.zeros(len(self.point))
        n_orders = n_orders * (2 * len(values) + 1) // (2 * len(order) + 1)
        rng = np.random.RandomState(seed)  # its shuffles are those of the package
        walks = np.empty((n_orders, 2, len(order)), np.intp)
        for walk in walks:
            rng.shuffle(order)
            walk[:] = order
        changes = np.diff(self.worths(walks.ravel())).reshape(walks.shape)
        np.add.at(values, walks[:, 0], changes[:, 0] - changes[:, 1])
        return values / (2 * n_orders)

    def worths(self, features: Indices) -> Values:
        """The values v(∅), and v after each feature is added or removed (T + 1,)."""
        inside = np.zeros(len(self.point), bool)
        differs = self.differs
        last = self.empty
        worths = [last.mean(keepdims=True)]
        for part in perturbations.PERTURBED_POINTS.blocks(
            len(features), 8 * self.background.size
        ):
            some = features[part]
            subsets = np.zeros((len(some), len(inside)), bool)
            subsets[np.arange(len(some)), some] = True
            subsets = inside ^ np.logical_xor.accumulate(subsets, axis=0)
            changed = differs[:, some].T  # (T, B): other rows are unchanged
            step, row = np.nonzero(changed)
            mixed = np.where(subsets[step], self.point, self.background[row])
            values = np.vstack([last, np.empty(changed.shape)])
            values[1:][changed] = self.request.value(mixed)
            latest = np.where(changed, np.arange(1, 1 + len(some))[:, None], 0)
            now = np.take_along_axis(values, np.maximum.accumulate(latest), axis=0)
            worths.append(now.mean(axis=1))
            inside = subsets[-1]
            last = now[-1]
        return np.concatenate(worths)


def _slopes(
    values: Attributions, points: Array, reference: Array
) -> tuple[Attributions, Array]:
    """φ_j / (x_j − r_j), effects if x_j is missing, and how many have no quotient."""
    steps = points - reference
    size = np.maximum(np.abs(points), np.abs(reference))
    absent = np.isnan(points)
    defined = np.abs(steps) > _NEGLIGIBLE * size
    slopes = quotient(values, steps, np.where(absent, values, 0.0), defined)
    return slopes, (~(defined | absent)).sum(axis=1).astype(float)


# ---- Shapley values of sums of products, of which trees are one kind, exactly


_OF_ANY: Final = "of any function Shap(algorithm='permutation') samples Shapley values"

_ROWS: Final = 64
"""Points from one move of the progress bar to the next, and so many of trees: ..."""

_TREE_ROWS: Final = 4096
"""... they take less time for each."""


@suggests_arguments
@dataclass(frozen=True, kw_only=True, eq=False)
class ExactShap(OfBackground):
    """Exact Shapley values of models that are sums of products.

    .. math::

        φ_j = Σ_{S ∌ j} |S|! (D − |S| − 1)! / D! (v(S ∪ j) − v(S)),

    v(S) = mean over the background rows b of f(x on S, b elsewhere)

    for every order of the features and every background row, with neither draws nor
    packages. Trees and their sums are counted as :class:`TreeShap` does. Kernel
    machines with a gaussian kernel, polynomials, splines, linear and additive models,
    and all else that ``function.products_in(D)`` gives, are integrals of polynomials
    over the share of known features, computed with as many nodes as are exact. A column
    without a factor has exactly zero.

    For documents, models have to be functions of the set of words
    (:func:`propopt.lime.text_limits` lists them); the background is the text without
    any word.

    ============================ ====== ==============================================
    ``base_value``               (N,)   mean of f over the background, in each row
    ``prediction``               (N,)   f(x)
    ``additivity_error``         (N,)   Σ_j φ_j − (f(x) − base), zero to rounding
    ============================ ====== ==============================================

    Parameters
    ----------
    data : array or DataFrame (B, D), int or "mean"
        What a missing feature is replaced by: rows of a table, such as the one that the
        model was fitted on; so many rows of X, drawn by ``rng``; or one row, the column
        means of X and its most frequent categories.

    Raises
    ------
    InvalidInput
        If the function is no sum of products, with the reason, or the background has
        other columns than X.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.array([[0.0, 5.0], [1.0, 5.0], [2.0, 8.0]])
    >>> function = po.wrap(LinearRegression().fit(X, [0.0, 2.0, 7.0]), data=X)
    >>> po.explainers.ExactShap(data=X).explain(function, X).attributions.round(9)
    array([[-2., -1.],
           [ 0., -1.],
           [ 2.,  2.]])
    """

    method: ClassVar[str] = "exact_shap"

    @property
    def units(self) -> Units:
        return "output"

    def _words(self, request: Request) -> Findings:
        """Of whatever is read as a function of sets of words, as trees are."""
        at = request.function
        assert isinstance(at, DocumentFunction), "see Baseline"
        words = checked_subsets(at.function, at.document)
        if isinstance(words, Reason):
            raise InvalidInput(
                f"{self.method}: {words.reason}; Shap(algorithm='permutation') samples "
                "Shapley values of any model"
            )
        phi = word_shapley(words)[None]
        ends = request.value(np.array([request.points[0], np.zeros(at.n_words)]))
        return Findings(attributions=phi, base_value=ends[1:], prediction=ends[:1])

    def _findings(self, request: Request) -> Findings:
        checked = self._read(request)
        read = self._believed(checked.structure)
        exact, mean = self._against(read, request)
        f = request.value(request.points)
        if not checked.is_confirmed(request.points, f):
            self._believed(checked.at(request.points, request.labels))
        phi = np.empty(request.points.shape)
        step = _TREE_ROWS if isinstance(read, Boxes) else _ROWS
        for start in range(0, len(phi), step):
            some = slice(start, start + step)
            phi[some] = exact.values(request.points[some])
            request.advance(len(phi[some]))
        return Findings(
            attributions=phi,
            base_value=np.full(len(phi), mean),
            prediction=f,
        )

    def _believed(self, read: SumOfProducts | Reason) -> SumOfProducts:
        """The structure of a function; raises with the reason if there is none."""
        if isinstance(read, Reason):
            raise InvalidInput(f"{self.method}: {read.reason}; {_OF_ANY}")
        return read

    def _against(
        self, read: SumOfProducts, request: Request
    ) -> tuple[_Shapley | PathDependent, float]:
        """The Shapley values for the background, and its mean, cached for tables."""
        served = weakref.ref(request.function), request.labels.features, read
        last = _LAST.get(self)
        if last is not None and last[0] == served:
            return last[1:]
        background = background_rows(self.data, request)
        exact = shapley_against(read, Game(background))
        mean = float(request.value(background).mean())
        if not isinstance(self.data, int | str):
            _LAST[self] = served, exact, mean
        return exact, mean

    def _read(self, request: Request) -> CheckedStructure:
        """What the function is read as, which is not compared with it as yet."""
        return CheckedStructure.of(request.function, request.points.shape[1])


_Shapley: TypeAlias = BoxShapley | ProductShapley

_LAST: Final = weakref.WeakKeyDictionary[ExactShap, tuple[Any, _Shapley, float]]()
"""For each explainer its last function, names and structure, with their game."""


@final
@suggests_arguments
@dataclass(frozen=True, kw_only=True, eq=False)
class TreeShap(ExactShap):
    """Exact Shapley values of trees and sums of trees (Lundberg et al. 2020).

    .. math::

        φ_j = Σ_{S ∌ j} |S|! (D − |S| − 1)! / D! (v(S ∪ j) − v(S)),

    v(S) = mean over the background rows b of f(x on S, b elsewhere)

    for every order of the features and every background row: interventional TreeSHAP,
    with neither draws nor packages. It takes all models that are read as boxes
    (``function.boxes``): scikit-learn's trees, forests and boosting, LightGBM, XGBoost,
    CatBoost, and pipelines, votes and sums of these, with categories and missing
    values. Tables are computed once for a function and a background and cached for the
    last three: a second call costs only its rows, and the cost of boosted trees does
    not depend on the number of background rows. A boosted classifier is explained in
    its margin or log-odds, not its probability. A column without splits has exactly
    zero.

    Without a background (``data=None``) values are path-dependent (Lundberg et al.
    2020), the default of ``shap.TreeExplainer``: where a column is unknown, both
    branches of a node are followed,

    v(S) at a node = v(S) at the child where x goes, if S has its column, else

    (n_left v_left(S) + n_right v_right(S)) / (n_left + n_right),

    with n the weight of the training rows that reached a child, as the library stores
    it: counts (LightGBM, histograms of scikit-learn), sums of weights (scikit-learn,
    CatBoost) or of Hessians (XGBoost). Their sum v(∅) is ``base_value``. They are
    computed by quadrature, exactly to rounding.

    For documents, models have to be functions of the set of words
    (:func:`propopt.lime.text_limits` lists them): trees on words, and linear models.
    The background is the text without any word. The result has the fields of
    :class:`ExactShap`.

    Parameters
    ----------
    data : array or DataFrame (B, D), int, "mean" or None
        What a missing feature is replaced by: rows of a table, such as the one that the
        model was fitted on; so many rows of X, drawn by ``rng``; or one row, the column
        means of X and its most frequent categories. None for path-dependent values.

    Raises
    ------
    InvalidInput
        If the function is no sum of boxes, or the background has other columns than X;
        or if there is none, and the trees do not store how many rows reached each node.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X = np.array([[0.0, 5.0], [1.0, 5.0], [2.0, 5.0]])
    >>> function = po.wrap(DecisionTreeRegressor().fit(X, [0.0, 3.0, 3.0]), data=X)
    >>> po.explainers.TreeShap(data=X).explain(function, X).attributions
    array([[-2.,  0.],
           [ 1.,  0.],
           [ 1.,  0.]])
    >>> po.explainers.TreeShap(data=None).explain(function, X).base_value
    array([2., 2., 2.])
    """

    method: ClassVar[str] = "tree_shap"

    def __post_init__(self) -> None:
        if self.data is not None:
            super().__post_init__()

    def _against(
        self, read: SumOfProducts, request: Request
    ) -> tuple[_Shapley | PathDependent, float]:
        if self.data is not None:
            return super()._against(read, request)
        assert isinstance(read, Boxes), "see _read"
        game = PathDependent.of(read)
        if isinstance(game, Reason):
            raise InvalidInput(f"{self.method}: {game.reason}")
        return game, game.base

    def _read(self, request: Request) -> CheckedStructure:
        """Its trees, and nothing else."""
        function = request.function
        return CheckedStructure(
            function,
            function.boxes
            or Reason(
                f"{function!r} is not read as a sum of trees; of a boosted classifier "
                "wrap(model, output='log_odds') is one"
            ),
        )
