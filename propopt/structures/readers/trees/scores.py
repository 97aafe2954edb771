"""Which score of a model an output is, up to a factor: where that is exact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, final

from propopt.structures.boxes import DOUBLE_TOLERANCE, Tree, TreeSum
from propopt.structures.readers.trees.pipelines.views import View, table_numbers
from propopt.structures.readers.trees.questions import Numbers
from propopt.structures.readers.trees.resolving import resolved


@final
@dataclass(frozen=True)
class TreeOutput:
    """What is wanted of a model.

    Parameters
    ----------
    name : str
        ``"value"``, ``"probability"``, ``"log_odds"`` or ``"margin"``, which of models
        that are no classifiers is their score, before any link.
    index : int or None
        The class, or the column of the output; None where there is only one.
    """

    name: str
    index: int | None


TreeRule: TypeAlias = Callable[[Any, TreeOutput, View], TreeSum | None]
"""What reads an output of a fitted model in a view; None where it is not exact."""


class TreeScore(NamedTuple):
    """One score of a model, and the factor that the output has of it."""

    place: int
    factor: float = 1.0


@final
@dataclass(frozen=True)
class Scores:
    """The K scores of a model that are sums of trees, and what is made of them.

    Parameters
    ----------
    count : int
        K.
    is_value : bool
        Whether the scores are what the model predicts.
    logit : float or None
        The log-odds of the second of two classes are ``logit`` times the only score;
        None where they are another function of it.
    """

    count: int
    is_value: bool = False
    logit: float | None = None

    def read(self, output: TreeOutput) -> TreeScore | None:
        """The score that an output is; None if it is none of them."""
        match output.name:
            case "value" if self.is_value:
                return TreeScore(output.index or 0)
            case "margin":
                return self._margin(output, 1.0)
            case "log_odds" if self.logit is not None and self.count == 1:
                return self._margin(output, self.logit)
            case _:
                return None

    def _margin(self, output: TreeOutput, factor: float) -> TreeScore:
        """Two classes share one score, which is that of the second."""
        if self.count > 1:
            return TreeScore(output.index or 0, factor)
        return TreeScore(0, -factor if output.index == 0 else factor)


def sum_of_trees(
    trees: Sequence[Tree],
    base: float,
    view: View,
    numbers: Numbers = table_numbers,
    tolerance: float = DOUBLE_TOLERANCE,
) -> TreeSum | None:
    """A sum of trees by the columns of the table behind a view.

    Parameters
    ----------
    trees : sequence of Tree
        Of the columns of the view.
    base : float
        What is added to them.
    view : View
        What the model is given.
    numbers : callable
        What it makes of it.
    tolerance : float
        How precisely the model adds.
    """
    whole = resolved(trees, view, numbers)
    if whole is None:
        return None
    return TreeSum(tuple(whole), base, view.table, tolerance)
