"""Structure of an output of a fitted model: boxes, products, or a link of scores."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar, final

import numpy as np
import pandas as pd

from propopt.base.arrays import Points
from propopt.base.errors import InexactBoxesWarning
from propopt.base.text import Reason
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.boxes.links import LinkedScores, exact_score
from propopt.structures.fitted_model import FittedModel
from propopt.structures.kinds import UNREADABLE
from propopt.structures.products.sums import SumOfProducts
from propopt.structures.readers.pipelines import ColumnView, ModelOutput
from propopt.structures.readers.tree_models import exact_boxes
from propopt.structures.scores import Link
from propopt.tables.schema import TableSchema


_Read = TypeVar("_Read")


@final
@dataclass(frozen=True, eq=False)
class ModelStructure:
    """One output of a model with its exact structures, each computed at first use."""

    model: FittedModel
    output: str  # such as "probability"
    index: int | None  # the class, or the column of the output
    # the model's input table; None for a table of numbers
    schema: TableSchema | None = None

    @cached_property
    def boxes(self) -> Boxes | None:
        """The output as a sum of boxes; None if it is no sum of trees."""
        read = self._read(exact_boxes)
        return read if isinstance(read, Boxes) else None

    @cached_property
    def margin_boxes(self) -> Boxes | None:
        """The output, or the score behind it, as a sum of boxes; else None."""
        return self.boxes if self.boxes is not None else self.margin.boxes

    @cached_property
    def margin(self) -> ModelStructure:
        """The structure of the margin of the same class."""
        return replace(self, output="margin")

    @cached_property
    def links(self) -> tuple[LinkedScores, ...]:
        """Candidates for the output as a link of exact scores, if it is no sum itself.

        A comparison with predictions selects one of them.
        """
        from propopt.structures.networks import LogOdds, ScoreLink, Softmax

        if self.output == "margin" or isinstance(self.products, SumOfProducts):
            return ()
        classes, index = self.model.classes, self.index or 0
        n_classes = 0 if classes is None else len(classes)
        share = replace(self, output="probability")
        if self.output == "log_odds" and share.boxes is not None:
            return (LinkedScores((share.boxes,), ScoreLink("logit")),)
        if self.output == "value" or n_classes <= 2:
            margin = replace(self, output="log_odds")
            links: list[Link] = [ScoreLink("logistic")]
            if self.output == "value":
                margin, links = self.margin, [ScoreLink("exp"), *links]
            exact = exact_score(margin.products)
            if exact is None:
                return ()
            return tuple(LinkedScores((exact,), link) for link in links)
        parts = (replace(self.margin, index=k) for k in range(n_classes))
        exact_scores = [exact_score(part.products) for part in parts]
        scores = tuple(s for s in exact_scores if s is not None)
        if len(scores) < n_classes:
            return ()
        if self.output == "log_odds":
            return (LinkedScores(scores, LogOdds(index)),)
        # votes that the other classes share, then classes one against the rest
        shared = tuple(s.scaled(1.0 / (n_classes - 1)) for s in scores)
        return (
            LinkedScores(scores, Softmax(index)),
            LinkedScores(shared, Softmax(index)),
            LinkedScores((scores[index],), ScoreLink("logistic")),
        )

    @cached_property
    def products(self) -> SumOfProducts | Reason:
        """The output as a sum of products; the reason if it is none."""
        if self.boxes is not None:
            return self.boxes
        from propopt.structures.registry import exact_products  # not needed for trees

        return self._read(exact_products)

    def _read(
        self, reader: Callable[[Any, ModelOutput, ColumnView], _Read]
    ) -> _Read | Reason:
        """The structure that a reader computes; the reason if it cannot."""
        view = self._view
        if view is None:
            return Reason(f"{self.model.name} can only be called")
        try:
            return reader(
                self.model.estimator, ModelOutput(self.output, self.index), view
            )
        except UNREADABLE as error:
            # future versions of libraries may store trees differently
            reason = (
                f"its structure cannot be computed: {type(error).__name__}: {error}"
            )
            warnings.warn(
                f"{self.model.name}: {reason}; means and slopes are sampled",
                InexactBoxesWarning,
                stacklevel=1,
            )
            return Reason(f"{self.model.name}: {reason}")

    @property
    def _view(self) -> ColumnView | None:
        if self.schema is not None:
            return ColumnView.of_schema(self.schema)
        names, count = self.model.columns, self.model.n_columns
        if count is None:
            return None

        def table(points: Points) -> Any:
            copy = np.array(points)  # a model may write into its input
            return copy if names is None else pd.DataFrame(copy, columns=list(names))

        return ColumnView.of_numbers(count, table)
