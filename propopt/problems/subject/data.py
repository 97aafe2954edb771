"""The section ``data``: points of a grid, drawn at random, or rows of a table."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Literal

import numpy as np
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from propopt._typing import Points
from propopt.graphs import grid
from propopt.graphs.grid_points import grid_size
from propopt.problems.section import Count, Interval, Section, refuse_settings


class Grid(Interval):
    """A product grid of points."""

    per_dimension: Count
    dimensions: Count
    first: Count | None = None

    def build(self) -> Points:
        """The points, the last dimension fastest."""
        return grid(**self.model_dump())

    def some(self, count: int) -> Points:
        """The first points, and the last of a whole grid."""
        total = grid_size(self.per_dimension, self.dimensions, self.first)
        some = self.model_copy(update={"first": min(total, count)}).build()
        last = np.full((int(self.first is None), self.dimensions), self.high)
        return np.concatenate([some, last])


class Uniform(Interval):
    """Independent points, uniform in a cube; drawn by the seed of the file."""

    points: Count
    dimensions: Count

    def build(self, seed: int) -> Points:
        """The points that a seed draws."""
        shape = (self.points, self.dimensions)
        return np.random.default_rng(seed).uniform(self.low, self.high, shape)

    def some(self, count: int, seed: int) -> Points:
        """So many points at most."""
        count = min(self.points, count)
        return self.model_copy(update={"points": count}).build(seed)


class Data(Section):
    """Where the points come from: exactly one of grid, uniform, sklearn and csv."""

    grid: Grid | None = None
    uniform: Uniform | None = None
    sklearn: Literal["breast_cancer", "diabetes", "digits", "iris", "wine"] | None = (
        None
    )
    csv: str | None = None
    text: str | None = Field(
        None,
        description="column of the CSV that holds documents, which are explained word "
        "by word; no other column is read but the target",
    )
    target: str | None = Field(
        None, description="column of the CSV that the model learns"
    )
    explain: Count | None = Field(
        None,
        description="rows to explain; the model is then fitted on the others, and in "
        "the inductive setting gradients are known at the others",
    )
    categorical: list[str] = Field(
        [], description="columns of the CSV that are categories: text, or codes"
    )
    groups: dict[str, list[str]] = Field(
        {}, description="columns that one-hot encode a feature, by the feature's name"
    )
    standardize: bool = Field(
        False,
        description="scale numeric columns to mean 0, variance 1 of the fitted rows",
    )

    @model_validator(mode="after")
    def _one_source(self) -> Data:
        sources = ("grid", "uniform", "sklearn", "csv")
        given = [n for n in sources if getattr(self, n) is not None]
        if len(given) != 1:
            raise PydanticCustomError(
                "one_source",
                "expected exactly one of grid, uniform, sklearn and csv, got {given}",
                {"given": " and ".join(given) or "none of them"},
            )
        refuse_settings(self, given[0], _NOT_OF_SOURCE[given[0]])
        if self.text is not None:
            refuse_settings(self, "text", _NOT_OF_TEXT)
        return self

    @model_validator(mode="after")
    def _columns_once(self) -> Data:
        listed = [*self.categorical, *chain.from_iterable(self.groups.values())]
        twice = next((name for name in listed if listed.count(name) > 1), None)
        if twice is not None:
            raise PydanticCustomError(
                "column_twice",
                "column {name} stands twice in categorical and groups",
                {"name": repr(twice)},
            )
        small = next((n for n, group in self.groups.items() if len(group) < 2), None)
        if small is not None:
            raise PydanticCustomError(
                "small_group",
                "group {name} needs at least two columns",
                {"name": repr(small)},
            )
        return self

    @property
    def is_table(self) -> bool:
        """Whether there are rows of a table, not points of a grid or drawn."""
        return self.grid is None and self.uniform is None

    @property
    def outcome(self) -> str | None:
        """What the model learns, in words; None where the labels say it themselves."""
        return self.target if self.sklearn is None else _OUTCOMES.get(self.sklearn)

    def numeric(self, table: Iterable[object]) -> list[str]:
        """The columns that neither are categories nor encode one."""
        one_hot = chain.from_iterable(self.groups.values())
        coded = {*self.categorical, *one_hot}
        return [column for column in map(str, table) if column not in coded]

    def points(self, seed: int) -> tuple[Points, Points]:
        """Points to explain and the others, where there is no table."""
        if self.grid is not None:
            points = self.grid.build()
            return points, points
        assert self.uniform is not None
        points = self.uniform.build(seed)
        if self.explain is None:
            return points, points
        return points[: self.explain], points[self.explain :]

    def some_points(self, count: int, seed: int) -> Points:
        """Some of these points."""
        if self.grid is not None:
            return self.grid.some(count)
        assert self.uniform is not None
        return self.uniform.some(count, seed)


_OUTCOMES = {"diabetes": "disease progression", "digits": "digit"}
"""Of scikit-learn's tables; labels of the others are text, such as "malignant"."""

_NOT_OF_TEXT = ("standardize", "categorical", "groups")
_NOT_OF_SOURCE = {
    "grid": ("target", "explain", "text", *_NOT_OF_TEXT),
    "uniform": ("target", "text", *_NOT_OF_TEXT),
    "sklearn": ("target", "text", "categorical", "groups"),
    "csv": (),
}
