"""Sources that attributions may come from: backgrounds, and values of packages.

Two values of one model and one row can differ and both be right: they belong to
different games. Path-dependent values (Lundberg et al. 2018, Algorithm 2) have no
background: where a column is unknown, both branches of a tree are followed, weighted by
the rows that it was fitted on. Those of Saabas (2014) add up changes of the node means
on the path of a row. Sums over one-hot columns belong to the game in which each
indicator is a player.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Final, final

import numpy as np

from propopt.base.arrays import Array, Attributions, Indices, Points, Values
from propopt.base.resources import row_blocks
from propopt.base.text import Reason
from propopt.explaining.explainers.shapley_values import typical_row
from propopt.functions import Function
from propopt.functions.models import NumericalModel, structure_of
from propopt.functions.wrapping import wrap
from propopt.laws.background import Background, mean_of_rows
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.boxes.path_dependent import PathDependent
from propopt.structures.boxes.shapley import shapley_against
from propopt.structures.fitted_model import FittedModel
from propopt.structures.kinds import is_a
from propopt.structures.products.sums import Game, SumOfProducts
from propopt.structures.readers.pipelines import plain_array
from propopt.tables.frames import Labels


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ReferenceHypothesis:
    """A source that the audited values may come from, with its values and base."""

    words: str  # after "they are"
    base: float
    # the values (N, D), computed when needed; None if only the base is known
    compute: Callable[[], Attributions] | None = None
    cause: str = "another background"
    tolerance: Array | float = 0.0  # (N, D) or (): smaller differences are rounding

    @cached_property
    def values(self) -> Attributions:
        """The values of a source that has more than a base, (N, D)."""
        assert self.compute is not None, "only its base is known"
        return self.compute()

    @property
    def is_given(self) -> bool:
        """Whether these are the values for the given background."""
        return self.cause == EXACT_VALUES


N_SAMPLED: Final = 100  # number of rows that shap samples from a larger background
# median miss of rows that add up to an output, relative to its standard deviation
_MAX_MISS: Final = 1e-3


EXACT_VALUES: Final = "exact values"

GIVEN: Final = "exact Shapley values for the given background"

AUDITED_ROWS: Final = "exact Shapley values with the audited rows as background"

SINGLE_PRECISION: Final = "single precision"
"""The cause of values of trees with thresholds in float32."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ReferenceSources:
    """The sources of one function at the audited rows."""

    function: Function  # f
    structure: SumOfProducts | None  # f as a sum of products, if it is one
    points: Points  # (N, D)
    background: Background
    labels: Labels
    exact: Attributions  # (N, D): values for the given background, or sampled ones
    is_given: bool = True  # the background; otherwise it is the audited rows
    # the base to which rows add up, if they do, and the largest error of a base
    base: float | None = None
    tolerance: float = 0.0

    def __iter__(self) -> Iterator[ReferenceHypothesis]:
        """The given background first, then others, and the values of packages."""
        given = GIVEN if self.is_given else AUDITED_ROWS
        base = float(self.background.mean(self._value(self.background.points)))
        yield ReferenceHypothesis(
            words=given, base=base, compute=lambda: self.exact, cause=EXACT_VALUES
        )
        for words, rows, weights in self._tables():
            yield self.against(words, rows, weights)
        function = self.function
        if isinstance(self.structure, Boxes):
            yield from without_background(self.structure, self.points)
        rescaled = rescaled_scores(function, self.points, self.background, self.labels)
        if rescaled is not None:
            yield rescaled
        if (rounded := boxes_in_single(function, self.points)) is not None:
            single = replace(self, structure=rounded[0], points=rounded[1])
            first = (given, self.background.points, self.background.weights)
            for made in (
                *(single.against(*table) for table in (first, *self._tables())),
                *without_background(*rounded),
            ):
                yield replace(
                    made, words=f"{made.words}, {_ROUNDED}", cause=SINGLE_PRECISION
                )
        if self.structure is not None and self.base is not None:
            yield from self._summaries(self.base)
        if (behind := behind_steps(self)) is not None:
            yield from _summed(*behind)

    def _tables(self) -> Iterator[tuple[str, Points, Values | None]]:
        """Tables that may have been the background, with their weights."""
        rows = self.background.points
        if self.background.weights is not None:
            yield "exact values for the background without weights", rows, None
        if self.is_given and not np.array_equal(self.points, rows, equal_nan=True):
            yield AUDITED_ROWS, self.points, None
        if len(rows) > N_SAMPLED:
            for sample, words in (
                (_sample_of_shap(len(rows)), "100 rows that shap samples from the"),
                (np.arange(N_SAMPLED), "first 100 rows of the"),
            ):
                yield f"exact values for the {words} background", rows[sample], None
        if self.structure is not None:  # the model itself need not accept such a row
            for words, row in typical_rows(self.function, rows).items():
                yield words, row, None

    def _summaries(self, base: float) -> Iterator[ReferenceHypothesis]:
        """One row of the tables, and centres of clusters, with the base of the sums."""
        rows = np.concatenate([self.background.points, self.points])
        is_close = np.abs(self._value(rows) - base) <= self.tolerance
        for n in np.flatnonzero(is_close)[:_MAX_SINGLE].tolist():
            yield self.against("exact values for one row as background", rows[[n]])
        rows = self.background.points
        is_plain = self.function.numeric_columns(rows).all() and np.isfinite(rows).all()
        if len(rows) > _MAX_CLUSTERED or not is_plain:
            return
        for k in _CLUSTERS[: np.searchsorted(_CLUSTERS, len(rows))]:
            centres, counts = shap_kmeans(rows, k)
            for weights, how in ((counts / len(rows), "weighted "), (None, "")):
                words = f"exact values for {k} {how}centres of clusters (shap.kmeans)"
                made = self.against(words, centres, weights)
                if abs(made.base - base) <= self.tolerance:
                    yield made

    def _value(self, rows: Points) -> Values:
        """The predictions; the model itself need not accept a row of means."""
        if self.structure is None:
            return self.function.value_at(rows, self.labels.of_columns())
        return self.structure.value(rows)

    def against(
        self, words: str, rows: Points, weights: Values | None = None
    ) -> ReferenceHypothesis:
        """Shapley values against some rows."""
        compute = None
        if (structure := self.structure) is not None:
            game = Game(rows, weights=weights)

            def compute() -> Attributions:
                return shapley_against(structure, game).values(self.points)

        base = float(mean_of_rows(self._value(rows), weights))
        return ReferenceHypothesis(words=words, base=base, compute=compute)


_MAX_SINGLE: Final = 3  # number of single rows with the base that are tried

_CLUSTERS: Final = (5, 10, 20, 25, 30, 50, 100)
"""The numbers of clusters that are tried."""

_MAX_CLUSTERED: Final = 5000  # number of rows for which clusters are tried


def _sample_of_shap(count: int) -> Indices:
    """The rows that the package shap takes from a larger background."""
    order = np.arange(count)
    np.random.RandomState(0).shuffle(order)
    return order[:N_SAMPLED]


def typical_rows(function: Function, background: Points) -> dict[str, Points]:
    """Single rows that are used as background: the mean, the median, zeros."""
    D = background.shape[1]
    categorical = ~function.numeric_columns(background)
    rows = {}
    if not (np.isnan(background) & categorical).any():
        mean = typical_row(background, categorical)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a column without numbers
            median = np.nanmedian(background, axis=0, keepdims=True)
        rows["exact values for the mean row of the background"] = mean
        rows["exact values for the median row of the background"] = np.where(
            categorical, mean, median
        )
    return {**rows, "exact values for a row of zeros": np.zeros((1, D))}


def shap_kmeans(rows: Points, k: int) -> tuple[Points, Values]:
    """Centres of k clusters, at values of rows, and their counts, as shap.kmeans."""
    from sklearn.cluster import KMeans

    fitted = KMeans(n_clusters=k, random_state=0, n_init=10).fit(rows)
    centres = [
        x[np.abs(x[:, None] - c).argmin(axis=0)]
        for x, c in zip(rows.T, fitted.cluster_centers_.T, strict=True)
    ]
    return np.stack(centres, axis=1), np.bincount(fitted.labels_).astype(np.float64)


# ---- Trees whose thresholds were rounded to single precision


_ROUNDED: Final = "with thresholds in single precision"

_SINGLE_ROWS: Final = (
    "sklearn.BaseDecisionTree",
    "sklearn.BaseForest",
    "sklearn.BaseGradientBoosting",
)
"""Classes of scikit-learn that round rows to float32, and thresholds not."""


def boxes_in_single(function: Function, points: Points) -> tuple[Boxes, Points] | None:
    """The function and rows as the package shap reads them: thresholds in float32.

    Explained rows of forests are rounded, too, and the background is not. None if the
    function is no sum of trees of scikit-learn of the columns as they are.
    """
    structure = structure_of(function)
    if structure is None or structure.boxes is None or structure.model.before:
        return None
    model = deepcopy(structure.model.core)
    is_histogram = is_a(model, "sklearn.BaseHistGradientBoosting")
    if is_histogram:
        stages = model._predictors  # noqa: SLF001
        thresholds = [x.nodes["num_threshold"] for stage in stages for x in stage]
    elif is_a(model, *_SINGLE_ROWS):
        members = np.ravel(getattr(model, "estimators_", model))
        thresholds = [x.tree_.threshold for x in members]
    else:
        return None
    for cuts in thresholds:
        cuts[:] = cuts.astype(np.float32)
    boxes = replace(structure, model=FittedModel.of(model)).boxes
    if boxes is None or is_histogram:
        return None if boxes is None else (boxes, points)
    assert boxes.trees is not None, "it was read from trees"
    trees = [
        replace(tree, threshold=tree.threshold.astype(np.float32).astype(np.float64))
        for tree in boxes.trees.trees
    ]
    boxes = replace(boxes.trees, trees=tuple(trees)).boxes()
    return boxes, points.astype(np.float32).astype(np.float64)


# ---- Values by the training rows at each node


PATHS: Final = (
    "path-dependent values (TreeSHAP without a background, the default of shap and "
    "LightGBM)"
)

SAABAS: Final = (
    "Saabas values (treeinterpreter, approximate=True of shap, approx_contribs of "
    "XGBoost), which are no Shapley values"
)


def without_background(read: Boxes, points: Points) -> Iterator[ReferenceHypothesis]:
    """Path-dependent and Saabas values of trees that store how many rows they saw."""
    game = PathDependent.of(read)
    if isinstance(game, Reason):
        return
    for words, cause, compute in (
        (PATHS, "path-dependent", game.values),
        (SAABAS, "Saabas", game.saabas),
    ):
        yield ReferenceHypothesis(
            words=words, base=game.base, compute=partial(compute, points), cause=cause
        )


# ---- Log-odds rescaled to probabilities, as the package shap does


RESCALED: Final = (
    "log-odds contributions rescaled to probabilities row by row (shap with "
    "model_output='probability')"
)


def rescaled_scores(
    function: Function, points: Points, background: Background, labels: Labels
) -> ReferenceHypothesis | None:
    """Mean over background rows b of φ(x, b) (p(x) − p(b)) / (m(x) − m(b)).

    φ(x, b) are the Shapley values of the margin m against b alone. None if the function
    is no probability of a sum of trees.
    """
    boxes = function.margin_boxes
    rows = background.points
    if boxes is None or function.quantity.kind != "probability":
        return None
    if isinstance(function.products, Boxes):
        return None
    if len(rows) > N_SAMPLED:
        rows = rows[_sample_of_shap(len(rows))]
    m_x = boxes.value(points)[:, None]
    m_b = boxes.value(rows)
    p_x = function.value_at(points, labels)[:, None]
    p_b = function.value_at(rows, labels.of_columns())
    with np.errstate(invalid="ignore", divide="ignore"):
        factors = np.where(m_x == m_b, 0.0, (p_x - p_b) / (m_x - m_b))
    shapley = shapley_against(boxes, Game(rows, len(rows)))
    parts = [
        np.einsum("nb,nbd->nd", factors[few], shapley.of_blocks(points[few]))
        / len(rows)
        for few in row_blocks(len(points), rows.size)
    ]
    exact = np.concatenate(parts)
    return ReferenceHypothesis(
        words=RESCALED,
        base=float(p_b.mean()),
        compute=lambda: exact,
        cause="rescaled log-odds",
    )


# ---- The model behind the steps of a pipeline, and sums over its columns


def behind_steps(outer: ReferenceSources) -> tuple[ReferenceSources, Array] | None:
    """Sources of the final model at encoded rows, and each table column's columns.

    None if the function is no pipeline, or its steps do not name their columns.
    """
    function = outer.function
    if not isinstance(function, NumericalModel) or function.structure is None:
        return None
    structure = function.structure
    steps = structure.model.before
    core = FittedModel.of(structure.model.core)
    if not steps:
        return None
    labels = outer.labels
    D = outer.points.shape[1]
    names = [str(c) for c in labels.columns or labels.feature_names(D)]

    def encoded(points: Points) -> Array:
        table: Any = function.readout.table(points, labels.of_columns())
        for step in steps:
            table = step.transform(table)
        return plain_array(table).astype(np.float64)

    def encoded_column(name: str) -> int | None:
        """The column with the longest name that an encoded name begins with."""
        name = name.rpartition("__")[2]
        matches = [n for n in names if name == n or name.startswith(f"{n}_")]
        return names.index(max(matches, key=len)) if matches else None

    try:
        columns = [encoded_column(x) for x in steps[-1].get_feature_names_out()]
        background = replace(outer.background, points=encoded(outer.background.points))
        points = encoded(outer.points)
        if None in columns or points.shape[1] != len(columns):
            return None
        target = structure.index
        if core.classes is not None and target is not None:
            target = core.classes[target]
        output: Any = structure.output
        inner = wrap(core.estimator, target, output, data=background.points)
        products = inner.products_in(len(columns))
        if isinstance(products, Reason):
            return None
        game = Game(background.points, weights=background.weights)
        exact = shapley_against(products, game).values(points)
    except Exception:  # noqa: BLE001 - transformers of other packages raise anything
        return None
    made = replace(
        outer,
        function=inner,
        structure=products,
        points=points,
        background=background,
        labels=Labels(),
        exact=exact,
    )
    return made, np.equal.outer(np.array(columns), np.arange(D)).astype(np.float64)


def _summed(sources: ReferenceSources, sums: Array) -> Iterator[ReferenceHypothesis]:
    """The values of sources, summed over the columns of each table column.

    Games of the final model are those of the pipeline if no column is encoded as many.
    """
    is_same = (sums.sum(axis=0) <= 1.0).all()
    games = (EXACT_VALUES, "another background")
    for one in sources:
        if one.compute is None or (is_same and one.cause in games):
            continue
        yield replace(
            one,
            words=one.words if is_same else f"{SUMMED}: {one.words}",
            compute=partial(_sums_of, one, sums),
            cause="one-hot sums" if one.cause in games else one.cause,
        )


SUMMED: Final = "sums over one-hot columns"


def _sums_of(source: ReferenceHypothesis, sums: Array) -> Attributions:
    """The values of a source, summed by table column."""
    return source.values @ sums


# ---- Sums of rows


def adds_up_to(sums: Values, f: Values) -> bool:
    """True if most rows add up to f minus one constant."""
    deviation = float(np.std(f))
    misses = sums - f
    scatter = float(np.median(np.abs(misses - np.median(misses))))
    return bool(np.isfinite(deviation)) and 0.0 < deviation * _MAX_MISS >= scatter
