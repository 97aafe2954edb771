"""Sources that attributions may come from: backgrounds, and values of packages.

Two values of one model and one row can differ and both be right: they belong to
different backgrounds. Path-dependent values (Lundberg et al. 2018, Algorithm 2) have no
background: where a column is unknown, both branches of a tree are followed, weighted by
the rows that it was fitted on. They are computed by the package that grew the trees.
Sums over one-hot columns belong to the game in which each indicator is a player.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, final

import numpy as np
from scipy.special import expit, logit

from propopt.base.arrays import Array, Attributions, Indices, Points, Values
from propopt.base.errors import MissingExtra
from propopt.base.resources import row_blocks
from propopt.base.text import Reason
from propopt.explaining.explainers.shapley_values import typical_row
from propopt.functions import Function
from propopt.functions.models import NumericalModel
from propopt.functions.wrapping import wrap
from propopt.laws.background import Background, mean_of_rows
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.boxes.shapley import shapley_against
from propopt.structures.kinds import UNREADABLE
from propopt.structures.products.sums import Game, SumOfProducts
from propopt.structures.readers.pipelines import plain_array
from propopt.structures.registry import reader_of
from propopt.tables.frames import Labels


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ReferenceHypothesis:
    """A source that the audited values may come from, with its values and base."""

    words: str  # after "they are"
    base: float | None = None  # None if it is unknown
    exact: Attributions | None = None  # (N, D); None if only the base is known
    tolerance: Array | float = 0.0  # (N, D) or (): smaller differences are rounding
    is_given: bool = False  # the values for the given background

    @property
    def values(self) -> Attributions:
        """The values of a source that has more than a base, (N, D)."""
        assert self.exact is not None, "only its base is known"
        return self.exact


N_SAMPLED: Final = 100  # number of rows that shap samples from a larger background
# median miss of rows that add up to an output, relative to its standard deviation
_MAX_MISS: Final = 1e-3


GIVEN: Final = "exact Shapley values for the given background"

AUDITED_ROWS: Final = "exact Shapley values with the audited rows as background"


def reference_hypotheses(
    function: Function,
    structure: SumOfProducts | None,
    points: Points,
    background: Background,
    labels: Labels,
    exact: Attributions,
    *,
    is_given: bool = True,
) -> Iterator[ReferenceHypothesis]:
    """The given background, others, path-dependent values, then bases alone."""
    rows = background.points
    names = labels.of_columns()
    words = GIVEN if is_given else AUDITED_ROWS
    f = function.value_at(rows, names)
    base = float(mean_of_rows(f, background.weights))
    yield ReferenceHypothesis(words=words, base=base, exact=exact, is_given=True)
    tables: dict[str, tuple[Points, Values]] = {}
    if background.weights is not None:
        tables["exact values for the background without weights"] = rows, f
    if is_given and not np.array_equal(points, rows, equal_nan=True):
        tables[AUDITED_ROWS] = points, function.value_at(points, names)
    if len(rows) > N_SAMPLED:
        for sample, words in (
            (_sample_of_shap(len(rows)), "100 rows that shap samples from the"),
            (np.arange(N_SAMPLED), "first 100 rows of the"),
        ):
            words = f"exact values for the {words} background"
            tables[words] = rows[sample], f[sample]
    if structure is not None:  # the model itself need not accept such a row
        for words, row in typical_rows(function, rows).items():
            tables[words] = row, structure.value(row)
    for words, (table, predictions) in tables.items():
        values = None
        if structure is not None:
            values = shapley_against(structure, Game(table)).values(points)
        base = float(predictions.mean())
        yield ReferenceHypothesis(words=words, base=base, exact=values)
    for candidate in (
        path_values(function, points, labels),
        rescaled_scores(function, points, background, labels),
        sums_of_indicators(function, points, background, labels),
    ):
        if candidate is not None:
            yield candidate
    if function.quantity.kind == "log_odds":
        base = float(logit(background.mean(expit(f))))
        words = "values over the log-odds of the mean probability"
        yield ReferenceHypothesis(words=words, base=base)
    yield ReferenceHypothesis(words="values over a base of zero", base=0.0)


def _sample_of_shap(count: int) -> Indices:
    """The rows that the package shap takes from a larger background."""
    order = np.arange(count)
    np.random.RandomState(0).shuffle(order)
    return order[:N_SAMPLED]


def typical_rows(function: Function, background: Points) -> dict[str, Points]:
    """Single rows that are used as background: the mean, the median, zeros."""
    schema = function.schema
    D = background.shape[1]
    categorical = np.zeros(D, bool) if schema is None else schema.categorical
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


# ---- Path-dependent values, from the package that grew the trees


PATHS: Final = (
    "path-dependent values (TreeSHAP without a background, the default of shap and "
    "LightGBM)"
)


def path_values(
    function: Function, points: Points, labels: Labels
) -> ReferenceHypothesis | None:
    """Path-dependent values from LightGBM, XGBoost or CatBoost, else from shap.

    None if the function is no sum of trees of the columns as they are, or no package
    that computes such values is installed.
    """
    if not isinstance(function, NumericalModel) or function.structure is None:
        return None
    model = function.structure.model
    position = function.structure.index
    compute = reader_of(model.core).path_values
    if compute is None or not isinstance(function.products, Boxes):
        return None
    table: Any = function.readout.table(points, labels.of_columns())
    try:
        phi = model.behind_steps(partial(compute, model.core))(table)
        phi = np.asarray(phi, dtype=np.float64)
        phi = phi.reshape(len(points), -1, points.shape[1] + 1)
    except (*UNREADABLE, MissingExtra, NotImplementedError):
        return None
    has_one_output = phi.shape[1] == 1
    phi = phi[:, 0 if has_one_output else position or 0]
    if has_one_output and position == 0:  # the first of two classes
        phi = -phi
    predicted = function.value_at(points, labels)
    tolerance = _MAX_MISS * max(float(np.ptp(predicted)), float(np.abs(phi).max()))
    if (np.abs(phi.sum(axis=1) - predicted) > tolerance).any():
        return None  # such as sums over a forest of LightGBM, which predicts means
    base = float(phi[0, -1])
    exact = phi[:, :-1]
    table = function.structure.schema
    if table is not None and function.schema is not None:  # in the order of the table
        exact = exact[:, table.header.get_indexer(function.schema.header)]
    return ReferenceHypothesis(words=PATHS, base=base, exact=exact)


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
    return ReferenceHypothesis(
        words=RESCALED, base=float(p_b.mean()), exact=np.concatenate(parts)
    )


# ---- Sums over one-hot columns, for the model behind an encoder


SUMMED: Final = "sums of the exact values of one-hot columns"


def sums_of_indicators(
    function: Function, points: Points, background: Background, labels: Labels
) -> ReferenceHypothesis | None:
    """Exact values of the columns behind an encoder, summed for each table column.

    None if the function is no pipeline, or its steps do not name their columns.
    """
    if not isinstance(function, NumericalModel) or function.structure is None:
        return None
    structure = function.structure
    readout = function.readout
    steps = structure.model.before
    final_model = structure.model.core
    if not steps:
        return None
    D = background.points.shape[1]
    names = [str(c) for c in labels.columns or labels.feature_names(D)]

    def encoded(points: Points) -> Array:
        table: Any = readout.table(points, labels.of_columns())
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
        rows = encoded(background.points)
        if len(columns) == D or None in columns or rows.shape[1] != len(columns):
            return None
        output: Any = structure.output
        inner = wrap(final_model, structure.index, output, data=rows)
        products = inner.products_in(rows.shape[1])
        if isinstance(products, Reason):
            return None
        game = Game(rows, weights=background.weights)
        values = shapley_against(products, game).values(encoded(points))
        base = float(background.mean(products.value(rows)))
    except Exception:  # noqa: BLE001 - transformers of other packages raise anything
        return None
    sums = np.equal.outer(np.array(columns), np.arange(D)).astype(float)
    return ReferenceHypothesis(words=SUMMED, base=base, exact=values @ sums)


# ---- Sums of rows


def adds_up_to(sums: Values, f: Values) -> bool:
    """True if most rows add up to f minus one constant."""
    deviation = float(np.std(f))
    misses = sums - f
    scatter = float(np.median(np.abs(misses - np.median(misses))))
    return bool(np.isfinite(deviation)) and 0.0 < deviation * _MAX_MISS >= scatter
