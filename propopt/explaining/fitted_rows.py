"""Reference rows with their attributions, and the answers that they give."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, final

import numpy as np

from propopt._typing import Array, Points
from propopt.errors import InvalidInput
from propopt.estimates import Estimate
from propopt.explaining.anchored import AnchoredRobustness
from propopt.explaining.conditional import ConditionalRow, FeatureModes
from propopt.explaining.defaults import coordinates_of
from propopt.explaining.nearest import NearestRows
from propopt.explaining.row_answers import RowAnswers
from propopt.explaining.target import TargetRule
from propopt.functions import Function
from propopt.losses import GradientMatching, Program, Smoothness
from propopt.output.progress import progress_bar
from propopt.results.aim import Aim
from propopt.results.explanation import Explanation, Parameter
from propopt.results.later import Later
from propopt.sampling.laws import Reference
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
    wrapped : bool
        Whether the model was given as a Function.
    table : Reference
        The rows that scales and laws are made of.
    rows : array (n, D)
        The reference rows, encoded.
    rule : TargetRule
        How the target of a row is made.
    nearest : NearestRows
        Who is similar to a new row.
    reference : Explanation
        The joint optimum of the reference rows.
    names : tuple of str
        The three losses: gradient matching, robustness, smoothness.
    weights : (float, float, float)
        Theirs: a, b and c.
    smooth : Smoothness or None
        Which features are similar.
    settings : mapping
        What an explanation says of how it was made.
    """

    function: Function
    wrapped: bool
    table: Reference
    rows: Points
    rule: TargetRule
    nearest: NearestRows
    reference: Explanation
    names: tuple[str, str, str]
    weights: tuple[float, float, float]
    smooth: Smoothness | None
    settings: Mapping[str, Parameter]

    @cached_property
    def modes(self) -> FeatureModes | None:
        """Of the graph of features, taken apart once."""
        return None if self.smooth is None else FeatureModes.of(self.smooth.graph)

    def explain(self, X: object, progress: bool | None) -> Explanation:
        """Each row of X with its own target."""
        began = time.perf_counter()
        _, labels = self.function.read(X, "X_new")
        with progress_bar("explain", _length(X), progress) as bar:
            targets = []
            for row in _single_rows(X):
                targets.append(self._target(row))
                bar.advance(bar.task_ids[0])
        aim = estimate_of_rows(targets, labels)
        return self._explanation(self._answers(X, aim.values), labels, aim, began)

    def interpolate(self, X: object) -> Explanation:
        """Each row of X from the reference rows alone: the model is not asked."""
        began = time.perf_counter()
        if self.weights[1] == 0.0:
            raise InvalidInput(
                "interpolate: the weight of robustness is 0, so that nothing ties a "
                "row without a target to the reference rows"
            )
        _, labels = self.function.read(X, "X_new")
        answers = self._answers(X, None)
        for n, row in enumerate(answers.rows):
            if not row.similarities.any():
                name = n if labels.points is None else labels.points[n]
                raise InvalidInput(
                    f"X_new: row {name!r}: no similar reference row: similarities to "
                    f"the {len(row.similarities)} nearest are 0; explain it by its own "
                    "target, or fit with weights='uniform' or a larger lengthscale"
                )
        return self._explanation(answers, labels, None, began)

    def _target(self, row: Any) -> Estimate:
        """That of one row asked alone: a model may answer many in other digits."""
        return self.rule.of(row)

    def _answers(self, X: object, targets: Array | None) -> RowAnswers:
        points = coordinates_of(self.function, X, self.rule.sizes)
        W = self.reference.attributions
        rows, near = [], []
        for n, point in enumerate(points):
            places, similarities = self.nearest.of(point)
            near.append(places)
            rows.append(
                ConditionalRow(
                    target=None if targets is None else targets[n],
                    similarities=similarities,
                    fixed=W[places],
                    weights=self.weights,
                    modes=self.modes,
                )
            )
        return RowAnswers(rows, np.stack(near))

    def _explanation(
        self,
        answers: RowAnswers,
        labels: Labels,
        aim: Estimate | None,
        began: float,
    ) -> Explanation:
        used = self._used(aim is not None)
        losses = dict(zip(self.names, answers.losses.tolist(), strict=True))
        weights = {name: self.weights[self.names.index(name)] for name in used}
        certificate = answers.certificate
        own = {} if aim is None else {"gradient": aim.values}
        bare = Explanation(
            attributions=answers.attributions,
            method="optimized",
            labels=labels,
            parameters=self.settings,
            weights=weights,
            losses={name: losses[name] for name in used},
            certificate=certificate,
            details={**answers.details, **own},
            solver="conditional",
            units=self.reference.units,
            quantity=self.function.quantity,
            evaluations=0 if aim is None else aim.evaluations,
            seconds=time.perf_counter() - began,
        )
        if aim is None or not answers.similarities.any():
            return bare
        program = self._program(aim, answers)
        errors = Aim(program)
        c = np.array(list(weights.values()))
        return replace(
            bare,
            target=Later(partial(errors.error, c, certificate.scale)),
            standard_errors=Later(partial(errors.standard_errors, c)),
            program=program,
        )

    def _program(self, aim: Estimate, answers: RowAnswers) -> Program:
        """The conditional program of all rows, as losses."""
        own, pairs, _ = self.names
        drawn = AnchoredRobustness(
            self.reference.attributions, answers.near, answers.similarities, name=pairs
        )
        smooth = () if self.smooth is None else (self.smooth,)
        return Program((GradientMatching(aim, name=own), drawn, *smooth))

    def _used(self, has_target: bool) -> list[str]:
        """The losses that rows have."""
        own, pairs, smooth = self.names
        used = [own] if has_target else []
        return [*used, pairs, *([smooth] if self.smooth is not None else [])]


def estimate_of_rows(parts: Sequence[Estimate], labels: Labels) -> Estimate:
    """Targets of tables as that of the table of all their rows."""
    first = parts[0]
    drawn = [part.blocks for part in parts if part.blocks is not None]
    return replace(
        first,
        values=np.concatenate([part.values for part in parts]),
        exact=all(part.exact for part in parts),
        blocks=np.concatenate(drawn, axis=1) if len(drawn) == len(parts) else None,
        evaluations=sum(part.evaluations for part in parts),
        labels=labels,
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    )


def _length(X: Any) -> int:
    return len(X)


def _single_rows(X: Any) -> Iterator[Any]:
    """Tables of one row each."""
    for n in range(len(X)):
        yield rows_of(X, [n])
