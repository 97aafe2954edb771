"""Reference rows with their attributions, and the answers that they give."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, final

import numpy as np

from propopt._typing import Array, Points, Positions, Truths
from propopt.curvature.excess import Excess
from propopt.errors import InvalidInput
from propopt.estimates import Estimate
from propopt.explaining.anchored import AnchoredRobustness
from propopt.explaining.conditional import ConditionalRow, FeatureModes, RowTotal
from propopt.explaining.contributions import (
    ContributionChoice,
    ContributionRule,
    Contributions,
    FeatureMetric,
)
from propopt.explaining.defaults import coordinates_of
from propopt.explaining.nearest import NearestRows
from propopt.explaining.output_units import ROUNDING_OF_TOTALS, metric_roots
from propopt.explaining.row_answers import RowAnswers
from propopt.explaining.target import TargetRule
from propopt.functions import Function
from propopt.losses import Completeness, GradientMatching, Program, Smoothness
from propopt.output.progress import progress_bar
from propopt.results.aim import Aim
from propopt.results.explanation import Explanation, Parameter
from propopt.results.later import Later
from propopt.results.target_error import TargetError, exact_target, unknown_target
from propopt.sampling.laws import Reference
from propopt.tables.frames import rows_of
from propopt.tables.names import Labels


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
        rows, near = [], []
        for n, (places, similarities) in enumerate(self._neighbours(X)):
            near.append(places)
            rows.append(
                ConditionalRow(
                    target=None if targets is None else targets[n],
                    similarities=similarities,
                    fixed=self.reference.attributions[places],
                    weights=self.weights,
                    modes=self.modes,
                )
            )
        return RowAnswers(rows, np.stack(near))

    def _neighbours(self, X: object) -> Iterator[tuple[Positions, Array]]:
        """Places of the reference rows near each row, and their similarities."""
        points = coordinates_of(self.function, X, self.rule.sizes)
        return map(self.nearest.of, points)

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
            quantity=self.function.quantity,
            units=self.reference.units,
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


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class FittedParts(FittedRows):
    """Reference rows in parts of the output, and rows to come that add up as they do.

    In coordinates w_d/√ω_d each new row, with contributions Φ and f(x) − base = t, has
    the optimum of

        ‖w − Φ‖² + 2b Σ_j s_j ‖w − w_j‖²  subject to  Σ_d √ω_d w_d = t.

    Parameters
    ----------
    parts : ContributionRule
        How Φ is made, settled.
    kind : {"shapley", "slopes"}
        Which Φ.
    metric : {"uniform", "effects"}
        Whether ω_d is one, or the mean of Φ_nd² over the reference rows.
    """

    parts: ContributionRule
    kind: ContributionChoice
    metric: FeatureMetric

    @cached_property
    def base(self) -> float:
        """What f is without x."""
        return float(self.reference.details["base_value"][0])

    @cached_property
    def used(self) -> Truths:
        """Columns that contribute to some reference row, (D,)."""
        return np.asarray(self.reference.details["contributions"].any(axis=0))

    @cached_property
    def roots(self) -> Array:
        """√ω, (D,)."""
        return metric_roots(self.reference.details["contributions"], self.metric)

    def explain(self, X: object, progress: bool | None) -> Explanation:
        """Each row of X with its own contributions and prediction."""
        began = time.perf_counter()
        _, labels = self.function.read(X, "X_new")
        known = []
        with progress_bar("explain", _length(X), progress) as bar:
            for row in _single_rows(X):
                known.append(self.contributions(row))
                bar.advance(bar.task_ids[0])
        answers = self._complete(X, known, labels)
        return self._in_parts(answers, known, labels, began)

    def interpolate(self, X: object) -> Explanation:
        """Refused: only the model knows what a row adds up to."""
        del X
        raise InvalidInput(
            "interpolate: parts of the output add up to a prediction, which only the "
            "model knows; explain(rows) asks it, and units='scaled' needs it not"
        )

    def contributions(self, row: object) -> Contributions:
        """Those of one row asked alone."""
        return self.parts.of_row(row, self.kind, self.base)

    def _complete(
        self, X: object, known: Sequence[Contributions], labels: Labels
    ) -> RowAnswers:
        fixed = self.reference.attributions / self.roots
        rows, near = [], []
        for n, (places, similarities) in enumerate(self._neighbours(X)):
            near.append(places)
            name = n if labels.points is None else labels.points[n]
            rows.append(
                ConditionalRow(
                    target=known[n].estimate.values[0] / self.roots,
                    similarities=similarities,
                    fixed=fixed[places],
                    weights=self.weights,
                    adds_up=self._total(known[n], name),
                )
            )
        return RowAnswers(rows, np.stack(near))

    def _total(self, known: Contributions, name: object) -> RowTotal | None:
        """What a row adds up to, over columns that some reference row or it uses."""
        used, total = self.used | known.used, float(known.total[0])
        if used.any():
            axis = np.where(used, self.roots, 0.0)
            fixed_axis = np.where(self.used, self.roots, 0.0)
            return RowTotal(axis=axis, fixed_axis=fixed_axis, total=total)
        size = max(abs(self.base), abs(float(known.prediction[0])))
        if abs(total) > ROUNDING_OF_TOTALS * size:
            raise InvalidInput(
                f"X_new: row {name!r}: no feature contributes, and its prediction "
                f"differs from the base by {total:.3g}: nothing can add up; give fit() "
                "reference rows that differ in what the model reads"
            )
        return None

    def _in_parts(
        self,
        answers: RowAnswers,
        known: Sequence[Contributions],
        labels: Labels,
        began: float,
    ) -> Explanation:
        W = answers.attributions * self.roots
        aim = estimate_of_rows([one.estimate for one in known], labels)
        total = np.concatenate([one.total for one in known])
        own, pairs, _ = self.names
        largest = float(self.roots.max())  # from w/√ω back to w
        proof, known_of_rows = answers.certificate, answers.details
        assert proof.distance is not None, "each row knows its own"
        certificate = replace(proof, distance=largest * proof.distance)
        known_of_rows["joint_distance"] = largest * known_of_rows["joint_distance"]
        return Explanation(
            attributions=W,
            method="optimized",
            labels=labels,
            parameters=self.settings,
            weights={own: self.weights[0], pairs: self.weights[1]},
            losses=dict(zip((own, pairs), answers.losses.tolist(), strict=False)),
            certificate=certificate,
            details={
                **known_of_rows,
                "contributions": aim.values,
                "base_value": np.full(len(W), self.base),
                "prediction": np.concatenate([one.prediction for one in known]),
                "completeness_gap": W.sum(axis=1) - total,
            },
            solver="conditional",
            quantity=self.function.quantity,
            units="output",
            evaluations=aim.evaluations,
            seconds=time.perf_counter() - began,
            target=self._target_error(answers, aim, certificate.scale),
            standard_errors=self._standard_errors(answers, aim),
            program=self._complete_program(answers, aim, total),
        )

    def _target_error(
        self, answers: RowAnswers, aim: Estimate, scale: float
    ) -> TargetError:
        """A² ⟨E, H⁻¹E⟩ of the rows together, from the blocks of their draws."""
        if aim.exact:
            return exact_target(aim.source, scale)
        if aim.blocks is None:
            return unknown_target(f"by {aim.source}", scale)
        gram = np.zeros((len(aim.blocks), len(aim.blocks)))
        for row, E in zip(answers.rows, self._deviations(aim), strict=True):
            gram += row.weights[0] * E @ row.moved(E).T
        excess = Excess.of((gram + gram.T) / 2.0)
        source = f"{aim.source}, {aim.n_draws:,} draws"
        return TargetError(**vars(excess), scale=scale, source=source)

    def _standard_errors(self, answers: RowAnswers, aim: Estimate) -> Array | None:
        """Of each attribution: the scatter of the optima for the blocks over √B."""
        if aim.exact or aim.blocks is None:
            return None
        B = len(aim.blocks)
        moved = [
            row.moved(E) * self.roots
            for row, E in zip(answers.rows, self._deviations(aim), strict=True)
        ]
        squares = np.stack([(of_row**2).sum(axis=0) for of_row in moved])
        return np.asarray(np.sqrt(squares / (B * (B - 1))))

    def _deviations(self, aim: Estimate) -> Array:
        """Of the blocks of each row from their mean, in the metric, (m, B, D)."""
        assert aim.blocks is not None, "it is drawn"
        apart = (aim.blocks - aim.blocks.mean(axis=0)) / self.roots
        return np.asarray(apart.transpose(1, 0, 2))

    def _complete_program(
        self, answers: RowAnswers, aim: Estimate, total: Array
    ) -> Program | None:
        """The conditional program of all rows; none in the metric of effects."""
        if self.metric == "effects" or not answers.similarities.any():
            return None
        axes = [row.adds_up for row in answers.rows]
        masks = np.stack(
            [np.zeros(len(self.used)) if x is None else x.axis for x in axes]
        )
        losses = self._program(aim, answers).losses
        if not masks.any():
            return Program(losses)
        shared = bool((masks == masks[0]).all())
        adding_up = Completeness(total, masks[0] if shared else masks)
        return Program(losses, (adding_up.bound(len(self.used)),))


def estimate_of_rows(parts: Sequence[Estimate], labels: Labels) -> Estimate:
    """Targets of tables as that of the table of all their rows.

    Beside rows that are drawn, those that are exact have the same blocks each.
    """
    first = next((part for part in parts if not part.exact), parts[0])
    n_blocks = max(
        (len(part.blocks) for part in parts if part.blocks is not None), default=0
    )
    drawn = [_blocks(part, n_blocks) for part in parts] if n_blocks else []
    known = [blocks for blocks in drawn if blocks is not None]
    return replace(
        first,
        values=np.concatenate([part.values for part in parts]),
        exact=all(part.exact for part in parts),
        blocks=np.concatenate(known, axis=1) if len(known) == len(parts) else None,
        evaluations=sum(part.evaluations for part in parts),
        labels=labels,
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    )


def _blocks(part: Estimate, n_blocks: int) -> Array | None:
    """Its blocks; of what is exact its values, so often; None where not known."""
    if part.blocks is None and part.exact:
        return np.broadcast_to(part.values, (n_blocks, *part.values.shape))
    return part.blocks


def _length(X: Any) -> int:
    return len(X)


def _single_rows(X: Any) -> Iterator[Any]:
    """Tables of one row each."""
    for n in range(len(X)):
        yield rows_of(X, [n])
