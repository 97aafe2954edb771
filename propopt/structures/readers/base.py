"""How a fitted model is read: its scores, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from propopt.structures.links import Link, Score, class_link
from propopt.structures.networks import Network


@final
@dataclass(frozen=True)
class ScoredOutput:
    """What is wanted of a model with K scores.

    Parameters
    ----------
    output : str
        ``"value"``, ``"probability"``, ``"log_odds"`` or ``"margin"``.
    index : int
        The class, or the column of the output.
    n_scores : int
        K.
    """

    output: str
    index: int
    n_scores: int


LinkRule: TypeAlias = Callable[[Any, ScoredOutput], Link | None]
"""What reads a quantity from the scores of a fitted model; None if none is known."""


def one_score(_model: Any, quantity: ScoredOutput) -> Link:
    """The score itself, as regressors predict it."""
    return Score(quantity.index)


def of_logits(_model: Any, quantity: ScoredOutput) -> Link:
    """Any output of a classifier whose scores are logits."""
    return class_link(quantity.output, quantity.index, quantity.n_scores)


def margin_alone(model: Any, quantity: ScoredOutput) -> Link | None:
    """The score of a class, from which no probability is known."""
    return of_logits(model, quantity) if quantity.output == "margin" else None


@final
@dataclass(frozen=True)
class Reader:
    """How fitted models of one class are read.

    Parameters
    ----------
    network : callable
        From a fitted model to its scores; None if its settings give them a kink.
    link : callable
        What is read from the scores: :func:`one_score`, :func:`of_logits`,
        :func:`margin_alone` or a rule of one's own.
    """

    network: Callable[[Any], Network | None]
    link: LinkRule = one_score
