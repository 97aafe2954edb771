"""Contributions of retrained models, by the settings of an explanation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Self, final

import numpy as np

from propopt.base.arrays import Array, Indices, Points
from propopt.base.errors import InvalidInput
from propopt.explaining.comparison import version_of
from propopt.explaining.contributions import ContributionRule
from propopt.explaining.problem import RowsProblem
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.boxes.shapley import BoxShapley


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
        background = rule.background
        if model is not None:
            given = background if background.traits is None else rule.given_background
            function = version_of(problem, model)
            rule = replace(rule, function=function, given_background=given)
        rows = np.concatenate([self.points, background.points[:_N_REFERENCE]])
        phi = rule.of(rows, problem.reference.labels.of_columns()).estimate.values
        return phi[: len(self.points)], phi[len(self.points) :]

    def pairs(self) -> tuple[Array, str]:
        """Interaction values of the rows (N, K, K), and the background in words.

        Raises
        ------
        InvalidInput
            If the contributions are not Shapley values of trees.
        """
        problem = self.problem
        rule = problem.rule
        assert isinstance(rule, ContributionRule), "slopes have no retrained rows"
        trees = rule.checked.at(self.points, problem.reference.labels.of_columns())
        is_given = not isinstance(rule.kind, str)
        kind = "given" if is_given else rule.kind
        if kind != "shapley" or not isinstance(trees, Boxes):
            raise InvalidInput(
                "interactions: expected Shapley values of a sum of trees, got "
                f"contributions of kind {kind!r} of {rule.function!r}"
            )
        game = replace(rule.background.game(rule.players), n_blocks=1)
        pairs = BoxShapley.of(trees, game, order=2)
        return pairs.values(self.points), rule.background.in_words()

    def __reduce__(self) -> str:
        raise TypeError("the model and the background are no part of a pickle")
