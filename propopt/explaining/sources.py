"""Whose values these could be: exact values for backgrounds, and those of packages.

Two values of one model and one row can differ and both be right: they answer for other
backgrounds. Path-dependent ones (Lundberg et al. 2018, Algorithm 2) have none: where a
column is unknown, a tree is followed down both ways, by the shares of the rows that it
was fitted on. They are recognised by asking the package that makes them. Values of
one-hot columns, summed, belong to the game in which each indicator is a player.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, final

import numpy as np
from scipy.special import expit, logit

from propopt.base.arrays import Array, Attributions, Points
from propopt.base.errors import MissingExtra
from propopt.base.text import Reason
from propopt.explaining.explainers.shapley_values import typical_row
from propopt.functions import Function
from propopt.functions.models import NumericalModel
from propopt.functions.wrapping import wrap
from propopt.laws.background import Background, mean_of_rows
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.boxes.shapley import shapley_against
from propopt.structures.fitted_model import of_class
from propopt.structures.kinds import UNREADABLE
from propopt.structures.products.sums import Game, SumOfProducts
from propopt.structures.readers.pipelines import plain_array
from propopt.tables.frames import Labels


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ReferenceHypothesis:
    """Values that somebody could have meant, with which audited ones are compared."""

    words: str  # whose they are, after "they are"
    base: float | None  # what they are added to; None where that is not known
    exact: Attributions | None = None  # (N, D); None where only the base is known
    room: Array | float = 0.0  # (N, D) or (): what differs by less is the same
    is_given: bool = False  # those against the given background
    is_fitted: bool = False  # a mixture that was fitted to the audited values

    @property
    def values(self) -> Attributions:
        """The values, of a source that has them."""
        assert self.exact is not None, "only its base is known"
        return self.exact


GIVEN: Final = "exact Shapley values for the background"

N_DRAWN: Final = 100
"""Rows that shap draws of a background, where it is given more."""


def candidates(
    function: Function,
    read: SumOfProducts | None,  # what the function is, where that is known
    points: Points,
    given: Background,
    labels: Labels,
) -> Iterator[ReferenceHypothesis]:
    """The given background first, then others, then paths, then bases alone."""
    background = given.points
    tables = {GIVEN: background}
    if given.weights is not None:
        tables["exact values for the background without weights"] = background
    if not np.array_equal(points, background, equal_nan=True):
        tables["exact values for the audited rows themselves"] = points
    if len(background) > N_DRAWN:
        drawn = np.arange(len(background))
        np.random.RandomState(0).shuffle(drawn)  # as the package does
        words = "exact values for the 100 rows that shap samples from the background"
        tables[words] = background[drawn[:N_DRAWN]]
        words = "exact values for the first 100 rows of the background"
        tables[words] = background[:N_DRAWN]
    for words, rows in tables.items():
        weights = given.weights if words == GIVEN else None
        values = function.value_at(rows, labels.of_columns())
        base = float(mean_of_rows(values, weights))
        exact = None
        if read is not None:
            exact = shapley_against(read, Game(rows, weights=weights)).values(points)
        is_given = words == GIVEN
        yield ReferenceHypothesis(
            words=words, base=base, exact=exact, is_given=is_given
        )
    if read is not None:  # the model itself need not take such a row
        for words, row in made_up_rows(function, background).items():
            base = float(read.value(row)[0])
            exact = shapley_against(read, Game(row)).values(points)
            yield ReferenceHypothesis(words=words, base=base, exact=exact)
    others = (
        path_values(function, points, labels),
        sums_of_indicators(function, points, given, labels),
    )
    yield from (one for one in others if one is not None)
    f = function.value_at(background, labels.of_columns())
    kind = function.quantity.kind
    if kind == "log_odds":
        mean = float(logit(given.mean(expit(f))))
        words = "values over the log-odds of the mean probability"
        yield ReferenceHypothesis(words=words, base=mean)
    yield ReferenceHypothesis(words="values over a base of zero", base=0.0)


def made_up_rows(function: Function, background: Points) -> dict[str, Points]:
    """Single rows that people take as background: a typical one, a median, zeros."""
    schema, D = function.schema, background.shape[1]
    categorical = np.zeros(D, bool) if schema is None else schema.categorical
    found = {}
    codes = np.isnan(background) & categorical
    if not codes.any():
        found["mean"] = typical_row(background, categorical)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a column without numbers
            median = np.nanmedian(background, axis=0, keepdims=True)
        found["median"] = np.where(categorical, found["mean"], median)
    rows = {
        f"exact values for the {x} row of the background": r for x, r in found.items()
    }
    rows["exact values for a row of zeros"] = np.zeros((1, D))
    return rows


# ---- Path-dependent values, by the package that grew the trees


PATHS: Final = (
    "path-dependent values (TreeSHAP without a background, the default of shap and "
    "LightGBM)"
)


def path_values(
    function: Function, points: Points, labels: Labels
) -> ReferenceHypothesis | None:
    """Path-dependent values of LightGBM, XGBoost, CatBoost; of others by shap.

    None where the function is no sum of trees of the columns as they are, or nobody
    who makes such values is installed.
    """
    if not isinstance(function, NumericalModel) or function.structure is None:
        return None
    model, readout = function.structure.model, function.readout
    way = of_class(model.core, lambda reader: reader.path_values)
    if way is None or not isinstance(function.products, Boxes):
        return None
    ask = model.behind_steps(partial(way, model.core))
    position = function.structure.index
    table: Any = readout.table(points, labels.of_columns())
    try:
        found = np.asarray(ask(table), dtype=np.float64)
        found = found.reshape(len(points), -1, points.shape[1] + 1)
    except (*UNREADABLE, MissingExtra, NotImplementedError):
        return None
    is_one = found.shape[1] == 1
    own = found[:, 0 if is_one else position or 0]
    if is_one and position == 0:  # the first of two classes
        own = -own
    return ReferenceHypothesis(words=PATHS, base=float(own[0, -1]), exact=own[:, :-1])


# ---- Sums over one-hot columns, of the model behind an encoder


def sums_of_indicators(
    function: Function, points: Points, given: Background, labels: Labels
) -> ReferenceHypothesis | None:
    """Exact values of the columns behind steps, summed for each column of the table.

    None where the function is no pipeline, or its steps do not name their columns.
    """
    if not isinstance(function, NumericalModel) or function.structure is None:
        return None
    before, final = function.structure.model.before, function.structure.model.core
    if not before:
        return None
    background = given.points
    names = [str(c) for c in labels.columns or labels.feature_names(len(background.T))]
    readout = function.readout

    def encoded(points: Points) -> Array:
        table: Any = readout.table(points, labels.of_columns())
        for steps in before:
            table = steps.transform(table)
        return plain_array(table).astype(np.float64)

    try:
        owner = [_owner(x, names) for x in before[-1].get_feature_names_out()]
        rows = encoded(background)
        if len(owner) == len(names) or None in owner or rows.shape[1] != len(owner):
            return None
        output: Any = function.structure.output
        inner = wrap(final, function.structure.index, output, data=rows)
        read = inner.products_in(rows.shape[1])
        if isinstance(read, Reason):
            return None
        exact = shapley_against(read, Game(rows, weights=given.weights))
        values = exact.values(encoded(points))
        base = float(given.mean(read.value(rows)))
    except Exception:  # noqa: BLE001 - steps of others may raise anything
        return None
    sums = np.equal.outer(np.array(owner), np.arange(len(names))).astype(float)
    return ReferenceHypothesis(words=SUMMED, base=base, exact=values @ sums)


SUMMED: Final = "sums of the exact values of one-hot columns"


def _owner(encoded: str, names: Sequence[str]) -> int | None:
    """The column that an encoded one is of, by the longest name that begins it."""
    rest = encoded.rpartition("__")[2]
    found = [n for n in names if rest == n or rest.startswith(f"{n}_")]
    return names.index(max(found, key=len)) if found else None


# ---- Sums of rows


def fits(sums: Array, f: Array) -> bool:
    """Whether most rows add up to f less one number."""
    spread = float(np.std(f))
    misses = sums - f
    scatter = float(np.median(np.abs(misses - np.median(misses))))
    return bool(np.isfinite(spread)) and spread > 0.0 and scatter <= OF_ANOTHER * spread


OF_ANOTHER: Final = 1e-3
"""Of the spread of predictions: rows that miss by so little are parts of these."""
