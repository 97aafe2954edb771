"""Reference rows with their attributions, and the answers that they give."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from propopt._typing import Array
from propopt.errors import InvalidInput
from propopt.estimates import Estimate
from propopt.explaining.answers import Answers
from propopt.explaining.conditional import ConditionalRow, FeatureModes
from propopt.explaining.defaults import coordinates_of
from propopt.explaining.nearest import NearestRows
from propopt.explaining.target import target_of
from propopt.functions import Function
from propopt.output.progress import progress_bar
from propopt.results.explanation import Explanation, Parameter
from propopt.tables.frames import rows_of
from propopt.tables.names import Labels


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class FittedRows:
    """What a fit leaves: everything that an answer depends on, but for the row.

    Parameters
    ----------
    function : Function
        The model.
    sizes : array (D,)
        The scale of each feature.
    nearest : NearestRows
        Who is similar to a new row.
    reference : Explanation
        The joint optimum of the reference rows.
    names : tuple of str
        The three losses: gradient matching, robustness, smoothness.
    weights : (float, float, float)
        Theirs: a, b and c.
    modes : FeatureModes or None
        Of the graph of features, where there is one.
    settings : mapping
        What an explanation says of how it was made.
    seed : int
        For targets that are sampled: each row gets the same draws.
    """

    function: Function
    sizes: Array
    nearest: NearestRows
    reference: Explanation
    names: tuple[str, str, str]
    weights: tuple[float, float, float]
    modes: FeatureModes | None
    settings: Mapping[str, Parameter]
    seed: int

    def explain(self, X: object, progress: bool | None) -> Explanation:
        """Each row of X with its own target."""
        began = time.perf_counter()
        _, labels = self.function.read(X, "X_new")
        with progress_bar("explain", _length(X), progress) as bar:
            targets = []
            for row in _single_rows(X):
                targets.append(self._target(row))
                bar.advance(bar.task_ids[0])
        answers = self._answers(X, [aim.values[0] for aim in targets])
        return self._explanation(answers, labels, targets, began)

    def interpolate(self, X: object) -> Explanation:
        """Each row of X from the reference rows alone: the model is not asked."""
        began = time.perf_counter()
        if self.weights[1] == 0.0:
            raise InvalidInput(
                "interpolate: the weight of robustness is 0, so that nothing ties a "
                "row without a target to the reference rows"
            )
        _, labels = self.function.read(X, "X_new")
        answers = self._answers(X, [None] * _length(X))
        for n, row in enumerate(answers.rows):
            if not row.similarities.any():
                name = n if labels.points is None else labels.points[n]
                raise InvalidInput(
                    f"X_new: row {name!r}: no similar reference row: similarities to "
                    f"the {len(row.similarities)} nearest are 0; explain it by its own "
                    "target, or fit with weights='uniform' or a larger lengthscale"
                )
        return self._explanation(answers, labels, [], began)

    def _target(self, row: object) -> Estimate:
        """That of one row asked alone: a model may answer many in other digits."""
        return target_of(self.function, row, self.sizes, rng=self.seed)

    def _answers(self, X: object, targets: Sequence[Array | None]) -> Answers:
        points = coordinates_of(self.function, X, self.sizes)
        W = self.reference.attributions
        rows, near = [], []
        for point, target in zip(points, targets, strict=True):
            places, similarities = self.nearest.of(point)
            near.append(places)
            rows.append(
                ConditionalRow(
                    target=target,
                    similarities=similarities,
                    fixed=W[places],
                    weights=self.weights,
                    modes=self.modes,
                )
            )
        return Answers(rows, np.stack(near))

    def _explanation(
        self,
        answers: Answers,
        labels: Labels,
        targets: Sequence[Estimate],
        began: float,
    ) -> Explanation:
        used = self._used(bool(targets))
        losses = dict(zip(self.names, answers.losses.tolist(), strict=True))
        weights = dict(zip(self.names, self.weights, strict=True))
        gradients = [aim.values for aim in targets]
        own = {"gradient": np.concatenate(gradients)} if gradients else {}
        return Explanation(
            attributions=answers.attributions,
            method="optimized",
            labels=labels,
            parameters=self.settings,
            weights={name: weights[name] for name in used},
            losses={name: losses[name] for name in used},
            certificate=answers.certificate,
            details={**answers.details, **own},
            solver="conditional",
            units=self.reference.units,
            evaluations=sum(aim.evaluations for aim in targets),
            seconds=time.perf_counter() - began,
        )

    def _used(self, has_target: bool) -> list[str]:
        """The losses that rows have."""
        own, pairs, smooth = self.names
        used = [own] if has_target else []
        return [*used, pairs, *([smooth] if self.modes is not None else [])]


def _length(X: Any) -> int:
    return len(X)


def _single_rows(X: Any) -> Iterator[Any]:
    """Tables of one row each."""
    for n in range(len(X)):
        yield rows_of(X, [n])
