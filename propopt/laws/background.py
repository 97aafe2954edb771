"""The rows of a table that stand for it: its reference rows, and the background.

Rows of a table are a set with repetitions. If they are sorted by a digest of their
values, sums over them round alike and samples of them are equal for any order of the
table, any types of its columns and any names of its rows. Digests are uniform, so the
first rows are a random sample, which one more row of the table changes in at most one
row.

A Shapley value, a centred partial dependence and the base are means over the same
background rows, which replace the values of unknown columns. If a table has more rows
than affordable, some are drawn by their digests, with a computable error: the mean of M
rows out of M₀ has the variance s²/M (1 − M/M₀). The base needs one value of f for each
row, and is the mean over all of them. Drawn rows have weights with which the mean of f
is this base, so that contributions add up to f(x) minus it, and s² is the variance of
residuals. If the model is called, each row is a game of its own, and means of the
columns are those of the table, too. The rows of an exact sum of trees or products are
ten parts, each of equal rows, and have the weights of the parts.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any, Final, Self, TypeAlias, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt.base.arrays import Array, Indices, Points, Values
from propopt.base.checks import read_only
from propopt.base.errors import InvalidInput
from propopt.base.text import Reason
from propopt.laws.calibration import (
    DRAWS_A_TRAIT,
    N_DRAWN_BLOCKS,
    calibrated_weights,
    linear_traits,
)
from propopt.laws.players import Players
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.boxes.shapley import tree_steps
from propopt.structures.products.sums import Game, SumOfProducts
from propopt.tables.columns import CategoricalColumn
from propopt.tables.frames import Labels, numbers_of_rows
from propopt.tables.schema import TableSchema


MOST_ROWS: Final = 10_000
"""This many rows of larger tables are taken."""

MOST_TREE_ROWS: Final = 60_000
"""Background rows of trees, whose tables are made once for all of them."""

N_BACKGROUND: Final = 100
"""Background rows of a black-box model, and the minimum for all models."""

_STEPS: Final = 5e7
"""Operations per explained row and background for a sum of trees."""

_PRODUCT_STEPS: Final = 5e6
"""Operations per row for other sums of products, which are slower."""

_ROWS_OF_TABLES: Final = 500
"""Explained rows that share the tables of trees in a call, about."""


# ---- The canonical order of rows: by digests of their values, not by their places


Digests: TypeAlias = NDArray[np.uint64]
"""A digest of 64 bits for each row."""

_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
"""2⁶⁴ over the golden ratio, so that no column and no copy has the step zero."""


def row_digests(points: Points, schema: TableSchema | None = None) -> Digests:
    """Digests (N,) of encoded rows; codes count as the categories that they encode."""
    digests = np.zeros(len(points), np.uint64)
    for j, values in enumerate(points.T):
        column = None if schema is None else schema.columns[j]
        if isinstance(column, CategoricalColumn):
            bits = digests_of(column.categories)[column.codes(values)]
        else:
            bits = canonical_rows(values).view(np.uint64)
        digests = _mixed((digests + _STEP) ^ bits)
    return digests


def digests_of(values: Iterable[Any]) -> Digests:
    """Digests (n,) of texts or categories: numbers have that of a column of numbers."""
    return np.array([_digest_of(value) for value in values], np.uint64)


def canonical_order(digests: Digests, weights: Values | None = None) -> Indices:
    """The places (N,) of rows by digest; equal rows are in the order of their weights.

    Each copy of a row has another digest, so that copies are no block of the order.
    """
    ties = np.zeros(len(digests)) if weights is None else weights
    order = np.lexsort((ties, digests))
    in_order = digests[order]
    places = np.arange(len(digests))
    repeats = np.append(False, in_order[1:] == in_order[:-1])
    copies = places - np.maximum.accumulate(np.where(repeats, 0, places))
    scattered = _mixed(in_order + copies.astype(np.uint64) * _STEP)
    return order[np.argsort(scattered, kind="stable")]


def _digest_of(value: Any) -> int:
    is_missing = not isinstance(value, str) and pd.isna(value)
    if is_missing or (isinstance(value, Real | np.bool_) and float(value) == value):
        number = np.array([np.nan if is_missing else float(value)])
        return int(canonical_rows(number).view(np.uint64)[0])
    content = str(value).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


def _mixed(digests: Digests) -> Digests:
    """Bits that all depend on each bit, by the finaliser of SplitMix64."""
    digests = (digests ^ (digests >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    digests = (digests ^ (digests >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return digests ^ (digests >> np.uint64(31))


# ---- Reference and background rows


@final
@dataclass(frozen=True, eq=False, repr=False)
class Reference:
    """The reference rows of a table, such as training data, as encoded points."""

    points: Points  # (R, D): numbers, NaN if missing, and codes
    # (D,): the number of codes of each column; None for numbers
    n_codes: tuple[int | None, ...]
    labels: Labels
    n_rows: int  # rows of the table before sampling

    @classmethod
    def of_points(
        cls,
        points: Points,
        labels: Labels | None = None,
        schema: TableSchema | None = None,
        order: Indices | None = None,
    ) -> Reference:
        """Take encoded rows in canonical order, or the first 10,000 of more."""
        if order is None:
            order = canonical_order(row_digests(points, schema))
        names = Labels() if labels is None else labels
        n_rows, n_columns = points.shape
        n_codes = (None,) * n_columns if schema is None else schema.n_codes
        chosen = order[:MOST_ROWS]
        rows = points[chosen] + 0.0
        names = names.of_positions(chosen)
        return cls(read_only(rows), n_codes, names, n_rows)

    def refuse_equal_rows(self) -> None:
        """Raise an error if all rows are equal, as slopes would be zero."""
        first = self.points[:1]
        if ((self.points == first) | (np.isnan(self.points) & np.isnan(first))).all():
            count = "1 row" if len(self.points) == 1 else f"{self.n_rows:,} equal rows"
            raise InvalidInput(
                f"data: expected rows that differ, got {count}, all equal; "
                "give the table that the model was fitted on"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns (D,), for messages."""
        return self.labels.feature_names(self.points.shape[1])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_words()})"

    def in_words(self) -> str:
        """Describe the size of the table and of the sample."""
        rows, columns = self.points.shape
        size = f"{rows:,} rows, {columns} columns"
        drawn = "" if rows == self.n_rows else f", drawn from {self.n_rows:,}"
        return f"{size}{drawn}"

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the rows in float64: equal for equal rows in any order."""
        return _hash_of_rows(self.points, self.n_codes).hexdigest()


def _hash_of_rows(points: Points, *others: object) -> Any:
    """SHA-256 of rows in float64, of their shape and of other values."""
    content = hashlib.sha256(repr((points.shape, *others)).encode())
    rows = np.ascontiguousarray(canonical_rows(points), dtype="<f8")
    content.update(rows.tobytes())
    return content


def canonical_rows(points: Points) -> Points:
    """Rows with one NaN and one zero, so that equal rows have equal bytes."""
    return np.where(np.isnan(points), np.nan, points + 0.0)


def row_keys(points: Points) -> list[bytes]:
    """The values of each row as bytes, equal for equal rows."""
    return [row.tobytes() for row in canonical_rows(points)]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Background:
    """Background rows (M, D), all or a sample of the M₀ rows of a table."""

    points: Points  # (M, D)
    n_rows: int  # M₀
    weights: Values | None = None  # (M,) > 0 with sum 1; None if equal
    by_weight: bool = False  # rows were drawn in proportion to weights
    # (M, T): of drawn rows, or of their ten parts (10, 1), minus their means over the
    # table, if weights are calibrated
    traits: Array | None = None

    @classmethod
    def of_points(cls, points: Points, weights: Values | None = None) -> Self:
        """Take all given rows; with weights (M,) ≥ 0 those with a positive weight."""
        if weights is None:
            return cls(read_only(points + 0.0), len(points))
        positive = weights > 0.0
        points = points[positive]
        weights = weights[positive] / weights.max()
        equal = bool((weights == weights[0]).all())
        # rounded once, for any order of the rows
        shares = None if equal else read_only(weights / math.fsum(weights.tolist()))
        return cls(read_only(points + 0.0), len(points), shares)

    def affordable(self, structure: SumOfProducts | Reason | None) -> int:
        """How many of these rows are affordable, or how many to draw of more."""
        most = affordable_rows(structure, len(self.points))
        return most if len(self.points) <= most else min(most, MOST_ROWS)

    @classmethod
    def weighed(cls, sample_weight: Any, table: Any, points: Points) -> Self | None:
        """Take all rows of a table with given weights; None without weights."""
        weights = weights_of_rows(sample_weight, table, len(points))
        return None if weights is None else cls.of_points(points, weights)

    def ordered(self, schema: TableSchema | None = None) -> Self:
        """The same rows in canonical order."""
        order = canonical_order(row_digests(self.points, schema), self.weights)
        weights = None if self.weights is None else read_only(self.weights[order])
        traits = self.traits
        if traits is not None and self.is_row_by_row:
            traits = read_only(traits[order])
        points = read_only(self.points[order])
        return replace(self, points=points, weights=weights, traits=traits)

    def thinned(
        self, most: int, values: Values | None = None, *, in_parts: bool = False
    ) -> Self:
        """Draw at most ``most`` of rows in canonical order: the last ones.

        The first ones are the reference rows. Weighted rows are drawn with replacement,
        in proportion to their weights, and then have equal weights. Draws
        get weights by their traits if the values of f at all rows (M,) are given: by
        that of their ten parts, the mean of f, or by those of each row.
        """
        if len(self.points) <= most:
            return self
        chosen = self.drawn_places(most)
        drawn = replace(
            self,
            points=read_only(self.points[chosen]),
            weights=None,
            by_weight=self.by_weight or (self.weights is not None and self.is_whole),
            traits=None,
        )
        most_traits = len(chosen) // DRAWS_A_TRAIT
        if self.traits is not None and self.is_row_by_row:
            return drawn.calibrated(self.traits[chosen, :most_traits])
        if values is None:
            return drawn
        base = float(self.mean(values))
        if in_parts:
            means = [values[chosen[part]].mean() - base for part in drawn.parts()]
            return drawn.calibrated(np.array(means)[:, None])
        # the columns of a large table are known from a part of it
        among = slice(0 if self.weights is not None else -MOST_ROWS, None)
        traits = linear_traits(self.points[among], values[among], base)[:, :most_traits]
        if self.weights is not None:
            traits = traits - self.mean(traits.T)
        return drawn.calibrated(traits[chosen - len(self.points)])

    def drawn_places(self, most: int) -> Indices:
        """The places of the rows that :meth:`thinned` draws."""
        n_rows = len(self.points)
        if n_rows <= most:
            return np.arange(n_rows)
        count = max(most // N_DRAWN_BLOCKS, 1) * N_DRAWN_BLOCKS
        if self.weights is None or self.traits is not None:
            return np.arange(n_rows)[-count:]
        rng = np.random.default_rng(0)
        return np.sort(rng.choice(n_rows, count, p=self.weights))

    def calibrated(self, traits: Array) -> Self:
        """The same draws with weights by traits (M, T) or (10, 1), of mean zero."""
        drawn = replace(self, traits=read_only(traits))
        weights, _ = calibrated_weights(traits, np.zeros(traits.shape[1]))
        return replace(drawn, weights=read_only(drawn.of_rows(weights)))

    @property
    def is_row_by_row(self) -> bool:
        """Whether weights are calibrated by traits of each row, not of ten parts."""
        return self.traits is not None and len(self.traits) == len(self.points)

    def of_rows(self, weights: Array) -> Array:
        """Weights (..., M) of rows, from these or from those of the parts (..., 10)."""
        if self.is_row_by_row:
            return weights
        of_rows = np.empty((*weights.shape[:-1], len(self.points)))
        for j, part in enumerate(self.parts()):
            of_rows[..., part] = weights[..., [j]] / len(part)
        return of_rows

    @property
    def is_whole(self) -> bool:
        """Whether the background has all rows of the table."""
        return len(self.points) == self.n_rows

    @property
    def correction(self) -> float:
        """The finite-population correction √(1 − M/M₀) of errors; 1 by weight."""
        if self.by_weight:
            return 1.0
        return math.sqrt(max(1.0 - len(self.points) / self.n_rows, 0.0))

    def parts(self) -> list[Indices]:
        """Indices of ten equal parts of a drawn background."""
        order = np.random.default_rng(1).permutation(len(self.points))
        return [np.sort(part) for part in np.split(order, N_DRAWN_BLOCKS)]

    def blocks(self) -> list[Points]:
        """The rows of the ten parts of a drawn background."""
        return [self.points[part] for part in self.parts()]

    @cached_property
    def deviations(self) -> Array | None:
        """Weights in ten estimates minus those of the mean (10, M); None if whole.

        The standard error of a mean is that of the ten, with the correction.
        """
        if self.is_whole:
            return None
        if self.traits is None:
            return self.of_rows(np.eye(N_DRAWN_BLOCKS)) - 1.0 / len(self.points)
        means = np.zeros(self.traits.shape[1])
        return self.of_rows(calibrated_weights(self.traits, means)[1])

    @property
    def estimates(self) -> Array:
        """Weights of the rows in one estimate of a mean (1, M), or in ten (10, M)."""
        n_rows = len(self.points)
        equal = np.full(n_rows, 1.0 / n_rows)
        weights = (equal if self.weights is None else self.weights)[None]
        return weights if self.deviations is None else weights + self.deviations

    @property
    def estimates_of_games(self) -> Array:
        """Weights of the games in ten estimates, (10, M) or (10, 10) of parts."""
        if self.is_row_by_row:
            return self.estimates
        sums = [self.estimates[:, part].sum(axis=1) for part in self.parts()]
        return np.stack(sums, axis=1)

    def game(self, players: Players | None = None) -> Game:
        """The game against all rows, or against each part or row of a drawn sample."""
        player_of_column = None if players is None else players.of_column
        if self.is_whole:
            return Game(self.points, weights=self.weights, players=player_of_column)
        if self.is_row_by_row:
            return Game(self.points, len(self.points), players=player_of_column)
        return Game(
            np.concatenate(self.blocks()), N_DRAWN_BLOCKS, players=player_of_column
        )

    def mean(self, values: Array) -> Array:
        """The weighted mean of values (..., M) over these rows."""
        return mean_of_rows(values, self.weights)

    def corrected(self, blocks: Array) -> Array:
        """Blocks (B, ...) with the finite-population correction about their mean."""
        mean = blocks.mean(axis=0)
        return mean + self.correction * (blocks - mean)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the set of rows, their weights and the number of table rows."""
        ordered = self.ordered()
        drawn = ("by weight",) if self.by_weight else ()
        content = _hash_of_rows(ordered.points, self.n_rows, *drawn)
        if ordered.weights is not None:  # as shares, to nine digits
            shares = [f"{share:.8e}" for share in ordered.weights.tolist()]
            content.update(" ".join(shares).encode())
        return content.hexdigest()

    def refuse_another(self, digest: str | None, label: str) -> None:
        """Raise an error for values that used another background."""
        if digest is not None and digest != self.digest:
            raise InvalidInput(
                f"{label}: made with another background (sha256:{digest[:12]}) than "
                f"sha256:{self.digest[:12]}, {self.in_words()}; give the same data"
            )

    def in_words(self) -> str:
        """Describe the background by its number of rows."""
        count = f"{len(self.points):,}"
        noun = "background row" if len(self.points) == 1 else "background rows"
        if self.is_whole:
            return f"{count} {'' if self.weights is None else 'weighted '}{noun}"
        by = " by weight" if self.by_weight else ""
        how = "" if self.traits is None else ", calibrated"
        return f"{count} draws{by} of {self.n_rows:,} background rows{how}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_words()})"


def mean_of_rows(values: Array, weights: Values | None) -> Array:
    """The mean of values (..., M) over rows, with weights (M,) of sum 1."""
    if weights is None:
        return values.mean(axis=-1)
    # sums along separate rows: digits do not depend on the number of rows
    return (values * weights).sum(axis=-1)


def weights_of_rows(sample_weight: Any, table: Any, n_rows: int) -> Values | None:
    """Read the weights (M,) of the rows of a table, or None."""
    if sample_weight is None:
        return None
    array = numbers_of_rows(sample_weight, table, n_rows, "sample_weight", "data")
    if (array < 0.0).any():
        raise InvalidInput(
            f"sample_weight: expected numbers >= 0, got {array[array < 0.0][0]:.6g}"
        )
    if not array.any():
        raise InvalidInput("sample_weight: all weights are 0; at least one must be > 0")
    return array


def affordable_rows(
    structure: SumOfProducts | Reason | None, n_rows: int = MOST_TREE_ROWS
) -> int:
    """How many background rows of a table are affordable, by a count of operations."""
    if structure is None or isinstance(structure, Reason):
        return N_BACKGROUND
    prepared, _, of_each = _steps(structure)
    is_trees = isinstance(structure, Boxes)
    all_rows = min(n_rows, MOST_TREE_ROWS if is_trees else MOST_ROWS)
    most = (_STEPS if is_trees else _PRODUCT_STEPS) // max(of_each, 1)
    rows = min(max(int(most), N_BACKGROUND), all_rows)
    # each block of draws has tables of its own, so that all rows may cost less
    tables = (N_DRAWN_BLOCKS - 1) * prepared
    fewer = (all_rows - rows) * of_each * _ROWS_OF_TABLES
    return all_rows if fewer <= tables else rows


def steps_of_row(structure: SumOfProducts, n_background: int) -> float:
    """Operations for the Shapley values of a row against ``n_background`` rows."""
    _, fixed, of_each = _steps(structure)
    return float(fixed + of_each * n_background)


def _steps(structure: SumOfProducts) -> tuple[int, int, int]:
    """Operations for each block of the background, for each row, and for each pair."""
    if isinstance(structure, Boxes) and structure.trees is not None:
        return tree_steps(structure.trees.nodes)
    lengths = structure.lengths
    return 0, 0, int((lengths * -(-lengths // 2)).sum())
