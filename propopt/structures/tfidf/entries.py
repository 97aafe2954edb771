"""What a model of texts does first: the parts of it that are given the texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.pipeline import FeatureUnion

from propopt.structures.pipelines import first_step, is_passthrough


CountsWords: TypeAlias = CountVectorizer | HashingVectorizer
"""``TfidfVectorizer`` is a ``CountVectorizer`` too."""


def text_entries(model: Any) -> list[Any]:
    """The parts of a fitted model that see the texts: one, or one of each member.

    Pipelines, searches, calibrated classifiers, votes, bags, stacks, regressors of a
    transformed target and unions of features are opened.
    """
    entry = first_step(model)
    if isinstance(entry, FeatureUnion):
        parts = [part for _, part in entry.transformer_list if part != "drop"]
        return _entries(part for part in parts if not is_passthrough(part))
    if hasattr(entry, "best_estimator_"):
        return text_entries(entry.best_estimator_)
    if isinstance(entry, TransformedTargetRegressor):
        return text_entries(entry.regressor_)
    if isinstance(entry, CalibratedClassifierCV):
        return _entries(part.estimator for part in entry.calibrated_classifiers_)
    members = getattr(entry, "estimators_", None)
    if isinstance(members, list):
        return _entries(members)
    return [entry]


def text_vectorisers(model: Any) -> list[CountsWords]:
    """The vectorisers that a model begins with; none where another part sees texts."""
    entries = text_entries(model)
    found = [entry for entry in entries if isinstance(entry, CountsWords)]
    return found if len(found) == len(entries) else []


def _entries(parts: Iterable[Any]) -> list[Any]:
    return [entry for part in parts for entry in text_entries(part)]
