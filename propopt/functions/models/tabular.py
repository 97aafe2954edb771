"""Models of tables with categories: what they are given, and their gradients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Attributions, Points, Values
from propopt.batches import row_blocks
from propopt.functions.differences import describe_step, slopes_of
from propopt.functions.missing import MISSING_EFFECT, missing_effects
from propopt.functions.models.called import DifferencedModel
from propopt.tables.columns import Coded
from propopt.tables.names import Labels
from propopt.tables.schema import TableSchema


CATEGORY_EFFECT = "of a category f(x) − Σ_c p_c f(x with c)"


@dataclass(frozen=True, eq=False, repr=False)
class TabularModel(DifferencedModel):
    """A model that is always given the DataFrames that its schema describes.

    Of a numeric column the gradient is a central difference. Of a categorical column it
    is the effect of its category, in units of the output,

    f(x) − Σ_c p_c f(x with c),

    with p_c the frequencies in the table that the schema was made of. For a model that
    is linear in indicators this is Σ_c β_c (1[x = c] − p_c), whichever of them is left
    out as reference. Of a number that is missing it is the effect of that, likewise
    f(x) − Σ_v p_v f(x with v), with p_v the shares of the values that are not missing.

    Parameters
    ----------
    table : TableSchema
        The columns.
    """

    table: TableSchema = field(kw_only=True)

    @property
    def schema(self) -> TableSchema:
        """The table that the function takes."""
        return self.table

    @property
    def gradient_method(self) -> str:
        """The rule for numeric columns, its step, and the rule for categories."""
        rules = []
        if not self.schema.categorical.all():
            rules.append(describe_step(self._known_step))
        if self.schema.categorical.any():
            rules.append(CATEGORY_EFFECT)
        if any(column.misses for column in self.schema.columns):
            rules.append(MISSING_EFFECT)
        return "; ".join(rules)

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        slopes = self._slopes(points, labels)
        absent = np.isnan(points).any()
        if not (self.schema.categorical.any() or absent):
            return slopes
        values = self._value(points, labels)
        if self.schema.categorical.any():
            slopes += self._effects(points, values, labels)
        if absent:
            slopes += self._missing_effects(points, values, labels)
        return slopes

    def _slopes(self, points: Points, labels: Labels) -> Attributions:
        """Central differences of numbers, zero of categories and what is missing."""
        names, moved = labels.of_columns(), ~self.schema.categorical
        slopes = np.zeros(points.shape)
        entries = np.flatnonzero(moved & ~np.isnan(points))
        if len(entries) > 0:
            self._try_near(points, moved, names)
            self._look_for_jumps(points, labels)
        for block in row_blocks(len(entries), points.shape[1], copies=2):
            slopes.flat[entries[block]] = slopes_of(
                lambda shifted: self._read(shifted, names),
                points,
                entries[block],
                self._known_step,
            )
        if len(entries) > 0:
            self._warn_if_flat(slopes)
        return slopes

    def _effects(self, points: Points, values: Values, labels: Labels) -> Attributions:
        """f(x) − Σ_c p_c f(x with c) in categorical columns, zero in others."""
        names = labels.of_columns()
        effects = np.zeros(points.shape)
        for rows, columns, others, shares in self._alternatives.of(points):
            changed = points[rows]
            changed[np.arange(len(rows)), columns] = others
            # Σ_c p_c = 1, and the category that is there contributes nothing
            differences = shares * (values[rows] - self._read(changed, names))
            np.add.at(effects, (rows, columns), differences)
        return effects

    def _missing_effects(
        self, points: Points, values: Values, labels: Labels
    ) -> Attributions:
        """f(x) − Σ_v p_v f(x with v) where a number is missing, zero elsewhere."""
        names = labels.of_columns()
        return missing_effects(
            lambda changed: self._read(changed, names),
            points,
            values,
            self.schema.observed,
        )

    @cached_property
    def _alternatives(self) -> Alternatives:
        return Alternatives.of_schema(self.schema)


@dataclass(frozen=True, eq=False)
class Alternatives:
    """Every category of every categorical column that has a frequency above zero.

    Parameters
    ----------
    columns : array (M,)
        The positions of their columns.
    codes : array (M,)
        Their codes.
    shares : array (M,)
        Their frequencies.
    """

    columns: NDArray[np.intp]
    codes: Array
    shares: Array

    @classmethod
    def of_schema(cls, schema: TableSchema) -> Alternatives:
        """All of them, column by column."""
        alternatives = [
            (j, float(code), share)
            for j, column in enumerate(schema.columns)
            if isinstance(column, Coded)
            for code, share in enumerate(column.frequencies)
            if share > 0
        ]
        columns, codes, shares = zip(*alternatives, strict=True)
        return cls(np.array(columns, np.intp), np.array(codes), np.array(shares))

    def of(
        self, points: Points
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp], Array, Array]]:
        """Rows, columns, codes and shares of all single changes, in batches."""
        n_changes = len(points) * len(self.codes)
        for block in row_blocks(n_changes, points.shape[1]):
            rows, which = np.divmod(np.arange(block.start, block.stop), len(self.codes))
            differs = points[rows, self.columns[which]] != self.codes[which]
            rows, which = rows[differs], which[differs]
            if len(rows) > 0:
                yield rows, self.columns[which], self.codes[which], self.shares[which]
