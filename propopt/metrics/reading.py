"""What the metrics are given, checked once."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Attributions, Points, Truths
from propopt.checks import read_seed
from propopt.errors import InvalidInput
from propopt.explainers.request import Request
from propopt.functions.base import read_function
from propopt.functions.text import DocumentFunction
from propopt.losses.entries import counted
from propopt.results.explanation import Explanation
from propopt.tables.alignment import aligned
from propopt.tables.names import Labels, read_table
from propopt.tables.text import is_documents


_STREAM = 0x6D657472
"""Sets the draws of metrics apart from those of explainers with the same seed.

Were they the same, a sampled explanation would be judged on the very samples that it
was fitted to, and look better than it is.
"""


def metric_rng(rng: object) -> np.random.Generator:
    """A generator from a seed, None (seed 0) or a generator, which is then advanced."""
    if isinstance(rng, np.random.Generator):
        return rng
    return np.random.default_rng([read_seed(rng), _STREAM])


AbsoluteOrRelative: TypeAlias = Literal["absolute", "relative"]


def read_task(
    function: object, X: object, rng: int | np.random.Generator | None
) -> Request:
    """The function, the points as it reads them, and a generator of metrics."""
    f = read_function(function)
    points, labels = f.read(X)
    return Request(function=f, points=points, labels=labels, rng=metric_rng(rng))


def attributions_of(
    explanation: object, points: Points, labels: Labels
) -> Attributions:
    """W (N, D) in the order of X, refused if it is of other points or features."""
    attributions = aligned(explanation, labels, "attributions", "X")
    if attributions.shape != points.shape:
        raise InvalidInput(
            f"attributions: expected the shape of X, {points.shape}, got "
            f"{attributions.shape}"
        )
    return attributions


def read_units(units: object) -> None:
    """Refuse units that are neither relative nor absolute."""
    if units not in get_args(AbsoluteOrRelative):
        raise InvalidInput(f"units: expected 'absolute' or 'relative', got {units!r}")


BACKGROUND_OF_TEXTS: Final = (
    "of documents the background is the text without any word; leave it out"
)


def read_present(
    given: object, explanation: object, attributions: Attributions
) -> Truths | None:
    """Which features each point has, (N, D); None where all have all.

    Raises
    ------
    InvalidInput
        If the table has another shape than the attributions.
    """
    if given is not None:
        table, _ = read_table(given, "present")
        if table.shape != attributions.shape:
            raise InvalidInput(
                f"present: expected the shape of the attributions, "
                f"{attributions.shape}, got {table.shape}"
            )
        return np.asarray(table != 0.0)
    if not isinstance(explanation, Explanation) or explanation.program is None:
        return None
    support = counted(explanation.program)
    return None if support is None else support.mask


def refuse_documents(metric: str, X: object) -> None:
    """Refuse texts where points near a point are asked for.

    Raises
    ------
    InvalidInput
        If X are documents.
    """
    if is_documents(X):
        raise InvalidInput(
            f"{metric}: it adds noise to numbers, and words of documents are present "
            "or absent; how far explanations of similar documents are apart is what "
            "propopt.SharedRobustness measures"
        )


def mean_point(task: Request) -> Array:
    """The mean of X, (D,); refused for categories, which have none.

    Of a document what is left of it without words.
    """
    if isinstance(task.function, DocumentFunction):
        return np.zeros(task.points.shape[1])
    if task.categorical.any():
        raise InvalidInput(
            "baseline: categories have no mean; give a baseline, or a background"
        )
    mean: Array = task.points.mean(axis=0)
    return mean


def read_size(k: int | None, n_features: int) -> int:
    """k, by default a quarter of the features; refused if there are fewer."""
    if k is None:
        return max(1, n_features // 4)
    if k > n_features:
        raise InvalidInput(
            f"k: expected at most the {n_features} features of X, got {k}"
        )
    return k


def most_important(attributions: Attributions, k: int) -> NDArray[np.bool_]:
    """True for the k largest |w| of each row; of equal ones, those that come first."""
    order = np.argsort(-np.abs(attributions), axis=1, kind="stable")
    chosen = np.zeros(attributions.shape, dtype=bool)
    np.put_along_axis(chosen, order[:, :k], values=True, axis=1)
    return chosen
