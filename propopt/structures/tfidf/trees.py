"""Sums of trees behind a vectoriser."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

from propopt._typing import Points
from propopt.structures.pipelines import UNREADABLE, last_step, unreadable
from propopt.structures.products import NoProducts
from propopt.structures.readers.trees.pipelines.views import View
from propopt.structures.registry import exact_products, exact_trees
from propopt.structures.subsets import NoSetFunction, SetFunction
from propopt.structures.tfidf.features import document_features
from propopt.structures.tfidf.leaves import LeavesOnWords
from propopt.structures.tfidf.vectorisers import Vectoriser
from propopt.tables.text import Document


@final
@dataclass(frozen=True, eq=False)
class TextTrees:
    """A sum of trees of the features of a vectoriser, on any document.

    Parameters
    ----------
    trees : LeavesOnWords
        By the features.
    """

    trees: LeavesOnWords

    def at(self, document: Document, /) -> SetFunction | NoSetFunction:
        """The function of which words of a document are kept."""
        found = document_features(self.trees.vectoriser, document)
        return found if isinstance(found, NoSetFunction) else self.trees.at(found)


def read_text_trees(
    model: Any, output: str, index: int | None
) -> TextTrees | NoSetFunction:
    """Trees, forests and boosting on counts, presence or tf-idf that has no norm.

    Parameters
    ----------
    model : estimator
        A pipeline that begins with a vectoriser.
    output : str
        ``"value"``, ``"probability"``, ``"log_odds"`` or ``"margin"``.
    index : int or None
        The class, or the column of the output; None where there is only one.
    """
    vectoriser = Vectoriser.of(model)
    if isinstance(vectoriser, NoSetFunction):
        return vectoriser
    if vectoriser.rest is None:
        return NoSetFunction("a vectoriser alone gives no number")
    view = View.of_numbers(vectoriser.n_features, sp.csr_array)
    try:
        trees = exact_trees(vectoriser.rest, output, index, view)
    except UNREADABLE as error:
        return NoSetFunction(unreadable(model, error))
    if trees is None:
        return _no_boxes(vectoriser, output, index, view)
    if vectoriser.norm is not None:
        return NoSetFunction(
            f"trees ask for values that norm={vectoriser.norm!r} divides by a sum over "
            "all words at once; with norm=None they are exact"
        )
    absent = _absent(vectoriser.rest)
    if absent is None:
        return NoSetFunction(
            "a word that is absent is missing for some members and 0 for others"
        )
    return TextTrees(LeavesOnWords.of(vectoriser, trees, absent))


def _no_boxes(
    vectoriser: Vectoriser, output: str, index: int | None, view: View
) -> NoSetFunction:
    """Why the model behind a vectoriser is no sum of trees."""
    try:
        found = exact_products(vectoriser.rest, output, index, view)
    except UNREADABLE as error:
        return NoSetFunction(unreadable(vectoriser.rest, error))
    name = type(last_step(vectoriser.rest)).__name__
    if isinstance(found, NoProducts):
        return NoSetFunction(f"{name}: {found.reason}")
    return NoSetFunction(f"{name} is no sum of trees")


def _absent(rest: Any) -> float | None:
    """What is seen of a feature that does not come; None where members differ.

    What a sparse table does not hold is missing for XGBoost, and 0 for all others.
    """
    packages = {type(model).__module__.partition(".")[0] for model in _members(rest)}
    if "xgboost" not in packages or not sp.issparse(_given(rest)):
        return 0.0
    return np.nan if packages == {"xgboost"} else None


def _members(model: Any) -> Iterator[Any]:
    """The models that a model is made of; itself, where it is made of none."""
    last = last_step(model)
    parts = getattr(last, "estimators_", None)
    if hasattr(last, "best_estimator_"):
        yield from _members(last.best_estimator_)
    elif isinstance(parts, list):
        for part in parts:
            yield from _members(part)
    else:
        yield last


def _given(rest: Any) -> Any:
    """An empty document as the last step is given it."""
    if type(rest) is not Pipeline:
        return sp.csr_array((1, 1))
    n_features = rest.n_features_in_
    table: Points | Any = sp.csr_array((1, n_features), dtype=np.float64)
    return rest[:-1].transform(table)
