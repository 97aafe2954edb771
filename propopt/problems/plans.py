"""What an inductive explanation is made from: observations, and inducing inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, final

import numpy as np
from sklearn.base import clone

from propopt._typing import Attributions
from propopt.inductive import GaussianProcessExplainer, InducingRule
from propopt.problems.parts import Location
from propopt.results.explanation import Explanation


METHOD = "inductive"
Pair: TypeAlias = tuple[float, float]


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

    def first(self, count: int | None) -> Observations:
        """The same with only so many observations; None is all."""
        if count is None:
            return self
        return replace(
            self,
            others=self.others[:count],
            gradients=self.gradients[:count],
            n_shared=min(self.n_shared, count),
        )


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """One way to explain new inputs.

    Parameters
    ----------
    rule : str
        What it is called, as ``rule`` in the table.
    inducing : InducingRule, optional
        None is all observations.
    n_observations : int, optional
        How many gradients are known, from the first; None is all.
    own_gradients : bool
        Each new input is explained with its own gradient, too.
    place : tuple
        The part of the problem that says so.
    """

    rule: str
    inducing: InducingRule | None = None
    n_observations: int | None = None
    own_gradients: bool = False
    place: Location = ()

    def explain(
        self,
        explainer: GaussianProcessExplainer,
        observations: Observations,
        pairs: Sequence[Pair],
    ) -> list[Explanation]:
        """The new inputs under each pair of weights, from one fit."""
        seen = observations.first(self.n_observations)
        model = clone(explainer).set_params(inducing=self.inducing)
        model.fit(seen.others, seen.gradients)
        return [self._named(one) for one in self._path(model, seen, pairs)]

    def _path(
        self,
        model: GaussianProcessExplainer,
        seen: Observations,
        pairs: Sequence[Pair],
    ) -> list[Explanation]:
        plain = model.explain_path(seen.new, pairs)
        if not self.own_gradients:
            return plain
        with_own = model.explain_path(seen.new, pairs, gradients=seen.own)
        return [
            _with_first(own, other, seen.n_shared)
            for own, other in zip(with_own, plain, strict=True)
        ]

    def _named(self, explanation: Explanation) -> Explanation:
        parameters = {
            "rule": self.rule,
            "own_gradients": self.own_gradients,
            **explanation.parameters,
        }
        return replace(explanation, method=METHOD, parameters=parameters)


def _with_first(
    explanation: Explanation, other: Explanation, count: int
) -> Explanation:
    """An explanation whose first rows are those of another."""
    rows = np.concatenate(
        [other.attributions[:count], explanation.attributions[count:]]
    )
    return replace(explanation, attributions=rows)
