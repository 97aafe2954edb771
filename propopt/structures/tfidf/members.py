"""Models that add up what other models say of a text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.linear_model import RANSACRegressor
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline

from propopt.structures.products import NoProducts
from propopt.structures.readers.trees.pipelines.views import View
from propopt.structures.readers.trees.scores import TreeOutput
from propopt.structures.readers.trees.sums import SUMS, ModelSum, Part
from propopt.structures.subsets import AddedSets, NoSetFunction, SetFunction
from propopt.structures.tfidf.structure import TextStructure
from propopt.tables.text import Document


@final
@dataclass(frozen=True, eq=False)
class AddedTexts:
    """Base + Σ_k weight_k f_k, of functions of the words of any document.

    Parameters
    ----------
    parts : tuple of (float, TextStructure)
        At least one weight and function.
    base : float
        What is added to them.
    """

    parts: tuple[tuple[float, TextStructure], ...]
    base: float

    def at(self, document: Document, /) -> SetFunction | NoSetFunction:
        """The function of which words of a document are kept."""
        parts = []
        for weight, structure in self.parts:
            found = structure.at(document)
            if isinstance(found, NoSetFunction):
                return found
            parts.append((weight, found))
        alone = len(parts) == 1 and parts[0][0] == 1.0 and self.base == 0.0
        return parts[0][1] if alone else AddedSets(parts, self.base)


MemberRule: TypeAlias = Callable[[Any, TreeOutput], ModelSum | NoProducts]
"""From a model and an output of it to outputs of its members, and their weights."""


def members_of(model: Any, output: TreeOutput) -> ModelSum | NoSetFunction | None:
    """What a model adds up; None where it has no members that are given what it is.

    Parameters
    ----------
    model : estimator
        Of texts, or of features; a pipeline is parted at its last step.
    output : TreeOutput
        The output, and the class or column.
    """
    if type(model) is Pipeline:
        return _behind(model, output)
    rule = _RULES.get(type(model))
    if rule is None:
        return None
    found = rule(model, output)
    return NoSetFunction(found.reason) if isinstance(found, NoProducts) else found


def _behind(model: Pipeline, output: TreeOutput) -> ModelSum | NoSetFunction | None:
    """The members of the last step, each behind the same steps before."""
    found = members_of(model.steps[-1][1], output)
    if not isinstance(found, ModelSum):
        return found
    parts = [
        part._replace(model=Pipeline([*model.steps[:-1], ("member", part.model)]))
        for part in found.parts
    ]
    return ModelSum(tuple(parts), found.base)


_NO_TABLE: Final = View.of_numbers(0, np.asarray)
"""Members are read by themselves, and not in what a table has for them."""


def _summed(model: Any, output: TreeOutput) -> ModelSum | NoProducts:
    return SUMS[type(model)](model, output, _NO_TABLE)


def _consensus(model: Any, output: TreeOutput) -> ModelSum:
    return _one(model.estimator_, output)


def _one_against_rest(model: Any, output: TreeOutput) -> ModelSum | NoProducts:
    """A model for each class; one for two."""
    if len(model.estimators_) == 1:
        return _one(model.estimators_[0], output)
    if output.name != "margin" or output.index is None:
        return NoProducts(
            f"{output.name!r} of one class against the rest is divided by a sum over "
            "classes; output='margin' is not"
        )
    return _one(model.estimators_[output.index], TreeOutput("margin", 1))


def _one(model: Any, output: TreeOutput) -> ModelSum:
    return ModelSum((Part(1.0, model, output, _NO_TABLE),))


_RULES: Final[Mapping[type, MemberRule]] = {
    **dict.fromkeys((GridSearchCV, RandomizedSearchCV), _summed),
    **dict.fromkeys((StackingClassifier, StackingRegressor), _summed),
    **dict.fromkeys((VotingClassifier, VotingRegressor), _summed),
    MultiOutputRegressor: _summed,
    OneVsRestClassifier: _one_against_rest,
    RANSACRegressor: _consensus,
    TransformedTargetRegressor: _summed,
}
"""Models by their class, never a subclass; bags give each member columns of its own."""
