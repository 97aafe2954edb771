"""Explanation methods, asked about points and about perturbed copies of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt._typing import Array, Attributions, Points
from propopt.checks import read_seed
from propopt.errors import InvalidInput
from propopt.explainers import Baseline
from propopt.functions import Function
from propopt.tables.alignment import aligned
from propopt.tables.names import Labels, read_points
from propopt.tables.schema import TableSchema


@dataclass(frozen=True, kw_only=True, eq=False)
class BaselineMethod:
    """An explainer of one function, as a callable ``method(points) -> attributions``.

    This is what the robustness metrics ask, because they need attributions at points
    that nobody has explained yet. An explainer that samples draws anew for every point,
    from one stream which each metric reads from its beginning: the metric then measures
    the Monte-Carlo error of the explainer too, as a user would meet it.

    Parameters
    ----------
    explainer : Baseline
        A method whose explanation of a point does not depend on the other points.
    function : Function
        f.
    rng : int or None
        The seed of the explainer; None is seed 0.

    Raises
    ------
    InvalidInput
        If the explainer would take its background from the points themselves.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.explainers import Gradient
    >>> from propopt.functions import Power
    >>> method = BaselineMethod(explainer=Gradient(), function=Power(2))
    >>> method(np.array([[1.0, 3.0]]))
    array([[2., 6.]])
    """

    explainer: Baseline
    function: Function
    rng: int | None = None

    def __post_init__(self) -> None:
        read_seed(self.rng)
        settings = self.explainer.parameters
        background = settings.get("background")
        if background == "mean" or isinstance(background, int):  # no table of rows
            raise InvalidInput(
                f"explainer: {self.explainer.method} without a table as background "
                "takes it from the points at hand, so that perturbed points would "
                "change it; give one, such as background=X"
            )

    def __call__(self, X: Any) -> Attributions:
        """Attributions (N, D) at the rows of X; the same each time."""
        return self.begin()(X)

    def begin(self) -> Callable[[Any], Attributions]:
        """The method with one stream of draws, which successive calls read on."""
        rng = np.random.default_rng(read_seed(self.rng))

        def explain(X: Any) -> Attributions:
            explanation = self.explainer.explain(
                self.function, X, rng=rng, progress=False
            )
            return explanation.attributions

        return explain


ExplanationMethod: TypeAlias = Callable[[Any], Any]
"""An explanation method: points (m, D), a DataFrame where X is one, to (m, D)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MethodAtPoints:
    """A method and the points that it explains.

    Parameters
    ----------
    explain : callable
        The method.
    points : array (N, D)
        X; in a categorical column the codes of the schema.
    labels : Labels
        The names that came with X.
    schema : TableSchema or None
        How perturbed points become the tables that the method takes.
    """

    explain: ExplanationMethod
    points: Points
    labels: Labels
    schema: TableSchema | None

    @classmethod
    def read(cls, explain: object, X: object, function: Function | None = None) -> Self:
        """The method with the points, read as its function reads them."""
        if isinstance(explain, BaselineMethod):
            return cls._of(explain.begin(), X, explain.function)
        if not callable(explain):
            raise InvalidInput(
                "explain: expected a callable from points to attributions, got "
                f"{type(explain).__name__}; propopt.metrics.BaselineMethod makes one "
                "of an explainer and a function"
            )
        return cls._of(explain, X, function)

    @classmethod
    def _of(
        cls, explain: ExplanationMethod, X: object, function: Function | None
    ) -> Self:
        if function is None:
            points, labels = read_points(X, "X")
            return cls(explain=explain, points=points, labels=labels, schema=None)
        points, labels = function.read(X)
        return cls(
            explain=explain, points=points, labels=labels, schema=function.schema
        )

    @cached_property
    def W(self) -> Attributions:
        """Attributions of the points themselves, (N, D)."""
        return self(self.points)

    @property
    def fixed(self) -> NDArray[np.bool_]:
        """Codes of categories and missing numbers: what no noise moves, (N, D)."""
        absent = np.isnan(self.points)
        return absent if self.schema is None else absent | self.schema.categorical

    def __call__(self, points: Array) -> Attributions:
        """Attributions at points (..., D), as an array of the same shape."""
        rows = points.reshape(-1, points.shape[-1])
        answer, names = self.explain(self._table(rows)), self.labels.of_columns()
        W = aligned(answer, names, "explain(X)", "X")
        if W.shape != rows.shape:
            raise InvalidInput(
                f"explain(X): expected attributions of shape {rows.shape}, got "
                f"{W.shape}"
            )
        return W.reshape(points.shape)

    def _table(self, rows: Array) -> Array | pd.DataFrame:
        if self.schema is not None:
            return self.schema.decode(rows)
        # Only the columns are named: a perturbed point is no longer a row of X.
        return self.labels.of_columns().table(rows)
