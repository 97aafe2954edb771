"""Contributions: targets that add up to f(x) minus a base."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, TypeAlias

import numpy as np

from propopt.base.arrays import Array, Attributions, Indices, Points, Values
from propopt.base.checkpoints import checkpointed_array
from propopt.base.checks import read_rng, read_seed
from propopt.base.errors import InvalidInput, Refused
from propopt.base.resources import DrawPlan, row_blocks
from propopt.base.terminal import counting
from propopt.base.text import Reason
from propopt.explaining.main_effect_rule import MainEffectRule
from propopt.explaining.targets import LawChoice, TargetRule, Targets, target_rule
from propopt.functions import Function
from propopt.functions.function import EXACT
from propopt.functions.means import (
    CheckedLink,
    CheckedStructure,
    checked_link,
    link_holds,
)
from propopt.laws.background import (
    Background,
    Reference,
    canonical_rows,
    row_keys,
)
from propopt.laws.players import Players
from propopt.laws.shapley_draws import (
    QUICK_ROWS,
    ShapleyDraws,
)
from propopt.losses.faithfulness import Estimate
from propopt.results.explanation import Explanation
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.boxes.links import MOST_LINK_STEPS, LinkedShapley
from propopt.structures.boxes.shapley import BoxShapley, shapley_against
from propopt.structures.products.sums import ProductShapley, SumOfProducts
from propopt.tables.frames import Labels
from propopt.tables.imported import read_attributions


ContributionsLike: TypeAlias = Any
"""``"shapley"``, ``"slopes"``, or attributions given as a table or an explanation."""

ContributionChoice: TypeAlias = Literal["shapley", "slopes"]
"""Contributions that can be computed for any row."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ContributionRule:
    """The rule that computes contributions of rows to the output of a function."""

    function: Function  # f
    reference: Reference  # rows for backgrounds, means and laws
    kind: ContributionsLike = "shapley"  # how to compute them, or given ones
    law: LawChoice = "auto"  # of the slopes, if these are the targets
    # random orders for each point, if Shapley values are sampled; more of them until
    # the error is small enough, if several points are explained together
    draws: DrawPlan = DrawPlan(n_samples=100)
    error: Callable[[Targets], float] | None = None  # the error to be made small
    rng: int | np.random.Generator | None = None  # the seed of all draws
    # rows that replace unknown columns; by default as many as can be afforded
    given_background: Background | None = None
    # all rows of data, if they have weights or are more than the reference
    table: Background | None = None
    players: Players | None = None  # groups of columns that count as one
    progress: bool | None = None  # whether to show bars

    def __getstate__(self) -> dict[str, Any]:
        """What workers are sent: rows that were drawn, in place of the table."""
        drawn = {"given_background": self.background, "table": None}
        fields = {name: x for name, x in vars(self).items() if "_table" not in name}
        return {**fields, **drawn}

    def of(self, points: Points, labels: Labels) -> Targets:
        """The contributions of rows, with the base and the predictions."""
        if not isinstance(self.kind, str):
            targets = self._given(self.kind, points, labels)
        elif self.kind == "shapley":
            targets = self.shapley(points, labels, read_rng(self.rng))
        else:
            base = float(self._table.mean(self._of_table))
            targets = self._stepped(points, labels, base)
        estimate = replace(targets.estimate, quantity=self.function.quantity)
        return replace(targets, estimate=estimate)

    def of_row(self, points: Points, labels: Labels, base: float | None) -> Targets:
        """The contributions of one row (1, D), independent of other rows.

        The random orders depend only on the seed and the values of the row.
        """
        assert base is not None, "those of the reference have one"
        if self.kind == "slopes":
            return self._stepped(points, labels, base)
        named = points
        schema = self.function.schema
        if schema is not None:  # codes of other categories depend on other rows
            named = np.where(schema.new_categories(points), -1.0, points)
        stream = np.random.default_rng([read_seed(self.rng), *_words_of(named)])
        return self.shapley(points, labels, stream, base=base, alone=True)

    @property
    def is_row_independent(self) -> bool:
        """True if results of a row never depend on other rows: sums of trees."""
        is_exact = isinstance(self.kind, str) and self.kind == "shapley"
        if not is_exact or not isinstance(self.checked.structure, Boxes):
            return False
        return self._ready is not None

    @property
    def n_streamed(self) -> int:
        """Leaves of trees whose tables each call makes anew; 0 if they are retained."""
        ready = self._ready if self.is_row_independent else None
        if not isinstance(ready, BoxShapley) or not ready.is_streamed:
            return 0
        return len(ready.nodes.leaves)

    def of_rows(self, points: Points, labels: Labels, base: float | None) -> Targets:
        """The contributions of rows (N, D), each independent of the other rows."""
        if isinstance(replace(self.checked).at(points, labels), Reason):
            rows = range(len(points))  # the structure differs from f in some
            parts = (
                self.of_row(points[[n]], labels.of_positions([n]), base) for n in rows
            )
            return Targets.joined(list(parts))
        return self.shapley(points, labels, None, base=base, alone=True)

    def shapley(
        self,
        points: Points,
        labels: Labels,
        generator: np.random.Generator | None,  # None if nothing is sampled
        *,
        base: float | None = None,
        alone: bool = False,
    ) -> Targets:
        """Shapley values of points for the background rows."""
        before = self.function.calls.rows
        if base is None:
            base = self.base
        prediction = self.function.value_at(points, labels)
        exact: Attributions | None
        tolerance = 0.0
        if self._n_players == 1:
            exact = (prediction - base)[:, None]
            by = "the only order of one feature"
        else:
            exact = self._exact(points, labels, alone)
            read = self.checked.structure
            tolerance = 0.0 if isinstance(read, Reason) else read.tolerance
            trees = isinstance(read, Boxes)
            by = "TreeSHAP" if trees else "Shapley values of products"
            if exact is None:
                exact = self._linked(points, prediction)
                by = "all sets of the features, from its scores"
        if exact is None:
            assert generator is not None, "orders are drawn"
            ends = np.full(len(points), base), prediction
            estimate = self._sampled(points, labels, ends, generator, alone)
        else:
            estimate = self._of_background(exact, by, labels)
        rows = self.function.calls.rows - before
        return Targets(
            estimate=replace(estimate, evaluations=rows),
            base=np.full(len(points), base),
            prediction=prediction,
            tolerance=tolerance,
        )

    def _of_background(self, exact: Array, by: str, labels: Labels) -> Estimate:
        """The estimate from values (N, D), or from those of blocks (10, N, D)."""
        words = self.background.in_words()
        labels = self.named(labels)
        if exact.ndim == 2:
            return Estimate(
                values=exact,
                source=f"exact ({by}, {words})",
                exact=True,
                labels=labels,
                units="output",
            )
        return Estimate.of_blocks(
            self.background.corrected(exact),
            source=f"{by}, exact for {words}",
            n_draws=len(self.background.points),
            labels=labels,
            units="output",
        )

    def _stepped(self, points: Points, labels: Labels, base: float) -> Targets:
        slopes = self._slopes.at(points, labels)
        steps = self._steps(points)
        estimate = replace(
            slopes,
            values=slopes.values * steps,
            blocks=None if slopes.blocks is None else slopes.blocks * steps,
            source=f"{slopes.source}, times steps from the mean",
            units="output",
        )
        return Targets(
            estimate=estimate,
            base=np.full(len(points), base),
            prediction=self.function.value_at(points, labels),
        )

    def _given(self, carrier: Any, points: Points, labels: Labels) -> Targets:
        """Targets from given attributions, with their base if they have one."""
        names = self.named(labels)
        shape = (len(points), self._n_players)
        imported = read_attributions(
            carrier, "contributions", names, shape, saved=Explanation.load
        )
        phi = imported.values
        base = imported.base
        if phi.shape != shape:
            table = "X" if self.players is None else "rows and groups"
            raise InvalidInput(
                f"contributions: expected the shape of {table}, {shape}, got "
                f"{phi.shape}"
            )
        if base is None:
            base = np.full(len(points), self.base)
        return Targets(
            estimate=Estimate(
                values=np.array(phi), source="given", labels=names, units="output"
            ),
            base=base,
            prediction=self.function.value_at(points, labels),
        )

    def named(self, labels: Labels) -> Labels:
        """Names of the rows, and of the columns or groups of columns."""
        return labels if self.players is None else self.players.labels(labels)

    @property
    def _n_players(self) -> int:
        if self.players is None:
            return self.reference.points.shape[1]
        return self.players.count

    @property
    def _of_column(self) -> Indices | None:
        return None if self.players is None else self.players.of_column

    @property
    def background(self) -> Background:
        """The background rows: as many of the table as can be afforded."""
        return self._drawn[0]

    @cached_property
    def _drawn(self) -> tuple[Background, Values | None]:
        """The background rows, with the values of f if these were needed to draw."""
        if self.given_background is not None:
            return self.given_background, None
        table = self._table
        structure = self.checked.structure
        most = table.affordable(structure)
        if len(table.points) <= most:
            return table, None
        values = self._of_table
        drawn = table.thinned(most, values, in_parts=not isinstance(structure, Reason))
        return drawn, values[table.drawn_places(most)]

    @cached_property
    def _table(self) -> Background:
        if self.table is not None:
            return self.table
        return Background(self.reference.points, self.reference.n_rows)

    @cached_property
    def _of_table(self) -> Values:
        """The values of f at all rows of the table, (M₀,)."""
        points = self._table.points
        names = self.reference.labels.of_columns()
        parts = []
        with counting("explain: the base", 0, len(points), self.progress) as advance:
            for rows in row_blocks(*points.shape):
                parts.append(self.function.value_at(points[rows], names))
                advance(len(parts[-1]))
        return np.concatenate(parts)

    @cached_property
    def main_effects(self) -> MainEffectRule:
        """The rule for main effects of any row, over the same background."""
        return MainEffectRule.of(
            self.function, self.background, self.reference.labels, self._of_column
        )

    @cached_property
    def of_background(self) -> Values:
        """The values of f at the rows of the background, (M,)."""
        background, values = self._drawn
        if values is not None:
            return values
        if background is self._table:
            return self._of_table
        names = self.reference.labels.of_columns()
        return self.function.value_at(background.points, names)

    @property
    def base(self) -> float:
        """The base v(∅): the mean of f over all rows, by weights of drawn ones."""
        return float(self.background.mean(self.of_background))

    @cached_property
    def checked(self) -> CheckedStructure:
        """The structure of the function, prepared once."""
        return CheckedStructure.of(self.function, self.reference.points.shape[1])

    def _exact(self, points: Points, labels: Labels, alone: bool) -> Array | None:
        """Exact values (N, D); None if the function has no structure, or another one.

        For a sampled background they are the values of each block, (10, N, D).

        With ``alone`` each row is checked separately, without the results of earlier
        rows.
        """
        checked = replace(self.checked) if alone else self.checked
        ready = None
        if not isinstance(checked.at(points, labels), Reason):
            ready = self._ready
        if ready is None:
            return None
        return self._values(ready, points)

    def _linked(self, points: Points, prediction: Values) -> Array | None:
        """Exact values for a link of trees, if all sets of columns can be afforded."""
        if self._link is None:
            return None
        checked, ready = self._link
        if not link_holds(*checked, points, prediction):
            return None
        return self._values(ready, points)

    def _values(
        self, ready: BoxShapley | ProductShapley | LinkedShapley, points: Points
    ) -> Array:
        """Values against the whole background (N, D), or of its blocks (10, N, D)."""
        values = checkpointed_array(
            "shapley", partial(self._of_blocks, ready, points), points
        )
        if self.background.is_whole:
            return np.ascontiguousarray(values[:, 0])
        if self.background.traits is not None:
            values = self.background.estimates_of_games @ values
        return np.ascontiguousarray(values.transpose(1, 0, 2))

    def _of_blocks(
        self, ready: BoxShapley | ProductShapley | LinkedShapley, points: Points
    ) -> Array:
        """Values of each block (N, blocks, D), which may be saved if streamed."""
        if not isinstance(ready, BoxShapley) or not ready.is_streamed:
            return ready.of_blocks(points)
        keys = row_keys(points)
        if self._saved.keys() >= set(keys):
            return np.stack([self._saved[key] for key in keys])
        return ready.of_blocks(points, self.progress)

    def compute_ahead(self, rows: Points) -> None:
        """Save the values of rows of later calls, which the same tables give."""
        assert isinstance(self._ready, BoxShapley), "see n_streamed"
        values = self._ready.of_blocks(rows, self.progress)
        self._saved.update(zip(row_keys(rows), values, strict=True))

    @cached_property
    def _saved(self) -> dict[bytes, Array]:
        """The values of rows (blocks, D), by their bytes."""
        return {}

    @cached_property
    def _link(self) -> tuple[CheckedLink, LinkedShapley] | None:
        """A link of trees, and its values if all sets of columns can be afforded."""
        names = self.reference.labels.of_columns()
        checked = checked_link(self.function, self.reference.points, names)
        background = self.background
        n_rows = len(background.points)
        if checked is None or checked[0].steps_of_row(n_rows) > MOST_LINK_STEPS:
            return None
        return checked, LinkedShapley(checked[0], background.game(self.players))

    @cached_property
    def _ready(self) -> BoxShapley | ProductShapley | None:
        """Prepared Shapley values for the background, whole or in ten blocks."""
        read = self.checked.structure
        assert isinstance(read, SumOfProducts), "it was read before"
        try:
            return shapley_against(read, self.background.game(self.players))
        except Refused:  # paths of more columns than a word has bits
            return None

    @cached_property
    def _slopes(self) -> TargetRule:
        ones = np.ones(self.reference.points.shape[1])
        return target_rule(
            self.function, self.reference, ones, law=self.law, rng=self.rng
        )

    def _sampled(
        self,
        points: Points,
        labels: Labels,
        ends: tuple[Array, Values],  # base and prediction (N,)
        rng: np.random.Generator,
        alone: bool,
    ) -> Estimate:
        """The estimate from all sets of columns if they are cheap, else from orders."""
        drawn_from = self.background
        value = partial(self.function.value_at, labels=labels.of_columns())
        plan = DrawPlan(self.draws.n_samples) if alone else self.draws
        function = self.function
        # trees and networks are fast
        is_quick = function.piecewise_constant or function.gradient_method == EXACT
        drawn = ShapleyDraws.of(
            value,
            drawn_from,
            points,
            rng,
            plan,
            ends=(ends[1], self.of_background),
            players=self._of_column,
            quick_rows=QUICK_ROWS if is_quick else 0,
        )
        if drawn.is_exact:
            phi = drawn.blocks(1.0)
            phi = phi[0] if drawn_from.is_whole else phi
            return self._of_background(phi, "all sets of the features", labels)

        def size(drawn: ShapleyDraws) -> float:
            assert self.error is not None, "without it draws have no other error"
            # more draws do not reduce the error of a sampled background
            estimate = self._of_draws(drawn, labels, 0.0)
            base, prediction = ends
            return self.error(
                Targets(estimate=estimate, base=base, prediction=prediction)
            )

        drawn = drawn.enough(plan, None if self.error is None else size)
        return self._of_draws(drawn, labels)

    def _of_draws(
        self,
        drawn: ShapleyDraws,
        labels: Labels,
        correction: float | None = None,  # for the error of a sampled background
    ) -> Estimate:
        return Estimate.of_blocks(
            drawn.blocks(correction),
            source=f"{drawn.in_words} of the features, {self.background.in_words()}",
            n_draws=2 * drawn.n_units,
            labels=self.named(labels),
            units="output",
        )

    def _steps(self, points: Points) -> Array:
        """Distances x − mean for numbers; 1 for categories and missing numbers."""
        means = observed_means(self.reference.points)
        numeric = self.function.numeric_columns(points) & ~np.isnan(points)
        return np.where(numeric, points - np.nan_to_num(means), 1.0)


AnyRule: TypeAlias = TargetRule | ContributionRule
"""A rule that computes targets, with a fixed seed: independent of other rows."""


def observed_means(points: Points) -> Array:
    """Means of the columns over their observed numbers, (D,); NaN without any."""
    return np.ma.masked_invalid(points).mean(axis=0).filled(np.nan)


def _words_of(points: Points) -> list[int]:
    """The values of a row as integers for a seed; all NaN, and both zeros, agree."""
    content = canonical_rows(points).astype("<f8").tobytes()
    return np.frombuffer(hashlib.sha256(content).digest(), "<u4").tolist()
