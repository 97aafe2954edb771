"""What an output of a fitted model is made of: boxes, products, links of scores."""

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
from propopt.structures.boxes.links import LinkedScores, score
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
    """An output of a model, as what it may be made of; read when it is asked for."""

    model: FittedModel
    output: str  # such as "probability"
    index: int | None  # the class, or the column of the output
    # the table that the model is given; None for a table of numbers
    schema: TableSchema | None = None

    @cached_property
    def boxes(self) -> Boxes | None:
        """The output itself; None where it is no sum of trees."""
        read = self._read(exact_boxes)
        return read if isinstance(read, Boxes) else None

    @cached_property
    def margin_boxes(self) -> Boxes | None:
        """The score that the output is made of, which may be the output itself."""
        return self.boxes if self.boxes is not None else self.margin.boxes

    @cached_property
    def margin(self) -> ModelStructure:
        """The margin of the same class, read when asked for."""
        return replace(self, output="margin")

    @cached_property
    def links(self) -> tuple[LinkedScores, ...]:
        """What the output may be of scores that are read, if it is none.

        Which of them it is, values tell.
        """
        from propopt.structures.networks import LogOdds, ScoreLink, Softmax

        if self.output == "margin" or isinstance(self.products, SumOfProducts):
            return ()
        classes, place = self.model.classes, self.index or 0
        n_classes = 0 if classes is None else len(classes)
        share = replace(self, output="probability")
        if self.output == "log_odds" and share.boxes is not None:
            return (LinkedScores((share.boxes,), ScoreLink("logit")),)
        if self.output == "value" or n_classes <= 2:
            margin = replace(self, output="log_odds")
            links: list[Link] = [ScoreLink("logistic")]
            if self.output == "value":
                margin, links = self.margin, [ScoreLink("exp"), *links]
            own = score(margin.products)
            return () if own is None else tuple(LinkedScores((own,), h) for h in links)
        parts = (replace(self.margin, index=k) for k in range(n_classes))
        read = [score(part.products) for part in parts]
        scores = tuple(own for own in read if own is not None)
        if len(scores) < n_classes:
            return ()
        if self.output == "log_odds":
            return (LinkedScores(scores, LogOdds(place)),)
        # of votes that others share, and of classes by themselves
        shared = tuple(own.scaled(1.0 / (n_classes - 1)) for own in scores)
        return (
            LinkedScores(scores, Softmax(place)),
            LinkedScores(shared, Softmax(place)),
            LinkedScores((scores[place],), ScoreLink("logistic")),
        )

    @cached_property
    def products(self) -> SumOfProducts | Reason:
        """The output as a sum of products; the reason where it is none."""
        if self.boxes is not None:
            return self.boxes
        from propopt.structures.registry import exact_products  # if no trees

        return self._read(exact_products)

    def _read(
        self, read: Callable[[Any, ModelOutput, ColumnView], _Read]
    ) -> _Read | Reason:
        """What the model is read as; the reason where it cannot be."""
        view = self._view
        if view is None:
            return Reason(f"{self.model.name} can only be called")
        try:
            return read(
                self.model.estimator, ModelOutput(self.output, self.index), view
            )
        except UNREADABLE as error:
            # libraries may keep trees in another way in versions to come
            reason = f"cannot be read: {type(error).__name__}: {error}"
            warnings.warn(
                f"{self.model.name} {reason}; means and slopes are sampled",
                InexactBoxesWarning,
                stacklevel=1,
            )
            return Reason(f"{self.model.name} {reason}")

    @property
    def _view(self) -> ColumnView | None:
        if self.schema is not None:
            return ColumnView.of_schema(self.schema)
        names, count = self.model.columns, self.model.n_columns
        if count is None:
            return None

        def table(points: Points) -> Any:
            own = np.array(points)  # a model may write into what it is given
            return own if names is None else pd.DataFrame(own, columns=list(names))

        return ColumnView.of_numbers(count, table)
