"""Contributions of retrained models, by the settings of an explanation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Self, final

import numpy as np

from propopt.base.arrays import Array, Indices, Points
from propopt.base.errors import InvalidInput
from propopt.base.text import Reason
from propopt.explaining.comparison import version_of
from propopt.explaining.contributions import ContributionRule
from propopt.explaining.problem import RowsProblem
from propopt.results.interactions import Interactions
from propopt.structures.boxes.boxes import Boxes


_N_REFERENCE: Final = 200
"""Rows of the background that show how far retraining moves a column."""


@final
@dataclass(frozen=True, eq=False)
class RetrainedRows:
    """Explained rows, for contributions of other models by the same settings.

    Only explanations by contributions have them, not slopes.

    Background, players and output are those of the explanation. If contributions are
    sampled, all models have the same draws.
    """

    problem: RowsProblem
    points: Points  # (N, D): the explained rows

    @property
    def n_rows(self) -> int:
        """The number of rows of the table behind the background."""
        return self.problem.reference.n_rows

    def of_rows(self, rows: Indices) -> Self:
        """Some of the rows."""
        return replace(self, points=self.points[rows])

    def contributions(self, model: Any = None) -> tuple[Array, Array]:
        """Contributions of a model, or of the explained one, at rows and background.

        Shapes are (N, K) and (R, K), with about 200 rows of the background.
        """
        problem = self.problem
        rule = problem.rule
        assert isinstance(rule, ContributionRule), "slopes have no retrained rows"
        function = problem.function
        if model is not None:
            function = version_of(problem, model)
        background = rule.background
        rule = replace(rule, function=function, given_background=background)
        rows = np.concatenate([self.points, background.points[:_N_REFERENCE]])
        phi = rule.of(rows, problem.reference.labels.of_columns()).estimate.values
        return phi[: len(self.points)], phi[len(self.points) :]

    def interactions(self) -> Interactions:
        """The interaction values of the rows, by the same settings.

        Raises
        ------
        InvalidInput
            If the function is not read as a sum of trees.
        """
        problem = self.problem
        rule = problem.rule
        assert isinstance(rule, ContributionRule), "slopes have no retrained rows"
        labels = problem.reference.labels.of_columns()
        trees = rule.checked.at(self.points, labels)
        if not isinstance(trees, Boxes):
            reason = trees.reason if isinstance(trees, Reason) else "it has no trees"
            raise InvalidInput(
                f"interactions: {rule.function!r} is not read as a sum of trees: "
                f"{reason}"
            )
        game = replace(rule.background.game(rule.players), n_blocks=1)
        return Interactions.of_trees(
            trees,
            game,
            self.points,
            (rule.base, rule.function.value_at(self.points, labels)),
            rule.background.in_words(),
            rule.named(labels),
            rule.function.quantity,
        )

    def __reduce__(self) -> str:
        raise TypeError("the model and the background are no part of a pickle")
