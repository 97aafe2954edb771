"""What an inductive explanation is made from: observations, and inducing inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, final

import numpy as np
from sklearn.base import clone

from propopt._typing import Attributions
from propopt.inductive import (
    FarthestInputs,
    GaussianProcessExplainer,
    GivenInputs,
    GreedyVariance,
    InducingRule,
    KMeansInputs,
    RandomInputs,
)
from propopt.problems import inductive as spec
from propopt.problems.source import Location
from propopt.results.explanation import Explanation


METHOD = "inductive"
Pair: TypeAlias = tuple[float, float]
Counted: TypeAlias = (
    spec.RandomRule | spec.KMeansRule | spec.FarthestRule | spec.GreedyRule
)


@final
@dataclass(frozen=True, eq=False)
class Observations:
    """New inputs, and observations with their gradients.

    Parameters
    ----------
    new : array or DataFrame (m, D)
        Inputs to explain.
    others : array or DataFrame (N, D)
        Observations.
    gradients : array (N, D)
        At the observations.
    own : array (m, D)
        At the new inputs.
    n_shared : int
        So many rows, from the first, are in both.
    """

    new: Any
    others: Any
    gradients: Attributions
    own: Attributions
    n_shared: int

    def first(self, count: int) -> Observations:
        """The same with only so many observations."""
        return replace(
            self,
            others=self.others[:count],
            gradients=self.gradients[:count],
            n_shared=min(self.n_shared, count),
        )


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """One way to explain the new inputs.

    Parameters
    ----------
    rule : str
        As in the file.
    own_gradients : bool
        Each new input is explained with its own gradient, too.
    place : tuple
        Where the file says so.
    inducing : InducingRule or None
        None is all observations.
    n_observations : int
        How many gradients are known, from the first.
    """

    rule: str
    own_gradients: bool
    place: Location
    n_observations: int
    inducing: InducingRule | None

    def explain(
        self,
        explainer: GaussianProcessExplainer,
        known: Observations,
        pairs: Sequence[Pair],
    ) -> list[Explanation]:
        """The new inputs under each pair of weights, from one fit."""
        seen = known.first(self.n_observations)
        model = clone(explainer).set_params(inducing=self.inducing)
        model.fit(seen.others, seen.gradients)
        return [self._named(found) for found in self._path(model, seen, pairs)]

    def _path(
        self,
        model: GaussianProcessExplainer,
        known: Observations,
        pairs: Sequence[Pair],
    ) -> list[Explanation]:
        plain = model.explain_path(known.new, pairs)
        if not self.own_gradients:
            return plain
        found = model.explain_path(known.new, pairs, gradients=known.own)
        return [
            _with_first(own, other, known.n_shared)
            for own, other in zip(found, plain, strict=True)
        ]

    def _named(self, found: Explanation) -> Explanation:
        parameters = {
            "rule": self.rule,
            "own_gradients": self.own_gradients,
            **found.parameters,
        }
        return replace(found, method=METHOD, parameters=parameters)


def plans(given: Sequence[spec.AnyInducing], known: Observations) -> Iterator[Plan]:
    """The plans of ``inductive.inducing``, in the order of the file."""
    available = len(known.others)
    for number, section in enumerate(given):
        place: Location = ("inductive", "inducing", number)
        for n_observations, inducing in _rules(section, available):
            yield Plan(
                rule=section.rule,
                own_gradients=section.own_gradients,
                place=place,
                n_observations=n_observations,
                inducing=inducing,
            )


def _rules(
    section: spec.AnyInducing, available: int
) -> Iterator[tuple[int, InducingRule | None]]:
    """How many gradients are known, and the rule for inducing inputs among these."""
    match section:
        case spec.AllInputs():
            yield available, None
        case spec.SubsetInputs():
            yield from ((count, None) for count in section.counts)
        case spec.GivenRule():
            yield available, GivenInputs(section.inputs)
        case _:
            for count in section.counts:
                yield available, _rule(section, count)


def _rule(section: Counted, count: int) -> InducingRule:
    match section:
        case spec.RandomRule():
            return RandomInputs(count)
        case spec.KMeansRule():
            return KMeansInputs(count)
        case spec.FarthestRule():
            return FarthestInputs(count)
        case spec.GreedyRule():
            return GreedyVariance(count, section.tolerance)


def _with_first(found: Explanation, other: Explanation, count: int) -> Explanation:
    """An explanation whose first rows are those of another."""
    rows = np.concatenate([other.attributions[:count], found.attributions[count:]])
    return replace(found, attributions=rows)
