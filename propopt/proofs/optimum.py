"""Optima: their fields, phrases for gap and sampling error, checks, and their rows.

The gap bounds the distance of attributions from the optimum for the given target. The
cost of the error of that target is shown with it everywhere.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, Self, TypeAlias, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions, Indices, Mask, Points, Values
from propopt.base.checks import largest_entry, read_nonnegative, read_only
from propopt.base.codecs import arrays_of
from propopt.base.declared import Declared, field, transient
from propopt.base.document import Fact, number_text
from propopt.base.errors import InvalidInput
from propopt.base.resources import BATCH_BUDGET
from propopt.base.text import Quantity, value_in_words
from propopt.losses import Objective, Program, PropertyLoss
from propopt.losses.completeness import Constraint
from propopt.losses.faithfulness import Units, units_in_words
from propopt.proofs.certificate import Certificate, joint_proof
from propopt.proofs.sampling_error import TargetError
from propopt.tables.frames import Labels, joined_groups
from propopt.tables.imported import ExplanationFields


Parameter: TypeAlias = float | int | str | bool | None

_Best = TypeVar("_Best", bound="Optimum")


class Optimum(Declared, ExplanationFields, ABC):
    """Attributions W (N, D) with losses, certificate and target.

    The fields of an explanation, whose parameters are described there, and numbers that
    follow from them. Other attributions of the same rows by the same method retain
    what is declared to be of the method or of the rows; all other fields measure.
    """

    attributions: Attributions = field("N D", nonempty=True, lazy=True)
    method: str = field(of="method")
    labels: Labels = field(default=Labels())
    parameters: Mapping[str, Parameter] = field(
        factory=dict, missing=True, infinite=True, of="method"
    )
    weights: Mapping[str, float] = field(factory=dict, low=0.0)
    losses: Mapping[str, float] = field(factory=dict)
    certificate: Certificate | None = field(default=None)
    multipliers: Mapping[str, float] = field(factory=dict, low=0.0, infinite=True)
    standard_errors: Array | None = field(
        "N D", default=None, low=0.0, missing=True, infinite=True, lazy=True
    )
    points: Points | None = field("N D", default=None, missing=True, of="rows")
    categories: Mapping[str, tuple[str, ...]] = field(factory=dict, of="rows")
    gradient: Array | None = field("N D", default=None)
    contributions: Array | None = field("N D", default=None)
    base_value: Values | None = field("N", default=None, missing=True)
    prediction: Values | None = field("N", default=None, missing=True)
    effects: Mask | None = field("N D", default=None)
    details: Mapping[str, NDArray[Any]] = field(factory=dict)
    solver: str | None = field(default=None, of="method")
    seconds: float = field(default=0.0, low=0.0, of="method")
    units: Units = field(default="gradient", of="method")
    evaluations: int = field(default=0, low=0, of="method")
    model_seconds: float = field(default=0.0, of="method")
    target: TargetError | None = field(default=None, lazy=True)
    quantity: Quantity | None = field(default=None, of="method")
    background: str | None = field(default=None, of="method")
    together: tuple[tuple[str, ...], ...] = field(default=(), of="method")
    row_size: float | None = field(default=None, low=0.0)
    metric: Values | None = field("D", default=None, low=0.0)
    # shares of losses, for cards of loaded explanations without a program
    recorded_shares: Mapping[str, float] = field(
        factory=dict, missing=True, infinite=True
    )
    problem_data: Mapping[str, NDArray[Any]] = field(factory=dict)
    program: Program | None = transient(default=None, lazy=True)
    scaled_program: Program | None = transient(default=None, lazy=True)
    # contributions of other models at the rows, by the same settings
    retrained: Any = transient(default=None)

    @cached_property
    def shape(self) -> tuple[int, int]:
        """The numbers N of rows and D of columns, without computing attributions."""
        N, D = self.unread("attributions").shape
        return N, D

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the D features, ``x0, x1, ...`` without names."""
        return self.labels.feature_names(self.shape[1])

    @property
    def objective(self) -> float | None:
        """The weighted sum of the losses; None without an objective."""
        if not self.weights or not self.weights.keys() <= self.losses.keys():
            return None
        return sum([self.weights[name] * self.losses[name] for name in self.weights])

    @property
    def additivity_error(self) -> Values | None:
        """The error Σ_d w_nd − (f(x_n) − base) of each row sum (N,), if known."""
        if self.units != "output" or self.base_value is None or self.prediction is None:
            return None
        return self.attributions.sum(axis=1) - (self.prediction - self.base_value)

    def value_of(self, n: int, j: int) -> str:
        """The value of feature j in row n as text; empty if unknown.

        Parameters
        ----------
        n : int
            The position of the row.
        j : int
            The position of the feature.

        Returns
        -------
        str
            A number in the units of the data, or a category.

        Raises
        ------
        IndexError
            If there is no such row or feature.
        """
        if self.points is None:
            return ""
        categories = self.categories.get(self.features[j])
        return value_in_words(float(self.points[n, j]), categories)

    def together_of(
        self, groups: Mapping[str, Sequence[str]] | None
    ) -> tuple[tuple[str, ...], ...]:
        """The features that data hardly ever has apart, with groups as features.

        Parameters
        ----------
        groups : mapping of a name to the features it stands for, optional
            Features that are summed. What belongs together with one of them does so
            with their sum.

        Returns
        -------
        tuple
            The names in each group, two or more.
        """
        given = {x: name for name, members in (groups or {}).items() for x in members}
        return joined_groups(self.together, {x: given.get(x, x) for x in self.features})

    @property
    def rates(self) -> dict[str, float]:
        """The cost of a unit of each loss at this optimum: its weight or multiplier."""
        return {**self.weights, **self.multipliers}

    @property
    def gap(self) -> float | None:
        """The certified relative gap to the best possible; None without certificate."""
        return None if self.certificate is None else self.certificate.gap

    @property
    def units_in_words(self) -> str:
        """The units of attributions in words, with the explained quantity."""
        return units_in_words(self.units, self.quantity, self.parameters)

    @property
    def sampling_excess(self) -> float:
        """The relative excess of the objective due to the target's error.

        It is estimated, on the scale of :attr:`gap`; NaN if unknown.
        """
        return math.nan if self.target is None else self.target.relative

    @property
    def sampling_error(self) -> float:
        """The root mean square error of a sampled target, as a share of its size.

        0 if the target is exact, NaN if the error is unknown.
        """
        return math.nan if self.target is None else self.target.share

    @property
    def scales(self) -> Array | None:
        """The factor √ω of each column in the metric, (D,); None without a metric."""
        return None if self.scaled_program is None else np.sqrt(self.metric)  # type: ignore[arg-type]

    @property
    @abstractmethod
    def loss_shares(self) -> dict[str, float]:
        """Retained shares of faithfulness losses and removed shares of others."""

    @abstractmethod
    def measured(self, losses: Objective | PropertyLoss) -> Self:
        """The same attributions with the values of more losses."""

    @abstractmethod
    def certified(
        self,
        objective: Objective | PropertyLoss,
        *,
        subject_to: Sequence[Constraint] = (),
    ) -> Self:
        """The same attributions with the certificate of an objective."""

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """The attributions as a DataFrame (N, D), with the names of the input."""


# ---- Facts on the proven gap and the error of the target


_TOLERATED: Final = 1e-5
"""Violations up to this count as zero."""


def gap_fact(best: Optimum) -> Fact:
    """The proved gap, that of the worst row, or the reason why it is unknown."""
    certificate = best.certificate
    if certificate is None:
        if "gap" in best.details:
            return largest_gap_fact(float(best.details["gap"].max()))
        reason = str(best.parameters.get("not proved", ""))
        return Fact("gap to optimum", None, note=reason)
    if certificate.violation > _TOLERATED:
        violation = f"bounds violated by {certificate.violation:.1e}"
        return Fact("gap to optimum", None, note=violation)
    n_rows = certificate.n_rows
    whole = "" if n_rows is None else f"of all {n_rows:,} rows"
    return Fact("gap to optimum", certificate.gap, note=whole)


def largest_gap_fact(gap: float) -> Fact:
    """The largest of the gaps that are proved row by row."""
    return Fact("gap to optimum", gap, note="row by row, the largest")


def sampling_fact(target: TargetError | None) -> Fact:
    """The root mean square error of a target as a share of its size."""
    if target is None:
        return Fact("sampling error", None)
    is_exact = not target.n_blocks and not math.isnan(target.value)
    if is_exact:
        return Fact("sampling error", 0.0, "%")
    if math.isnan(target.value + target.share):  # the share, of an earlier file
        return Fact("sampling error", None, note=target.source)
    note = f"rms {number_text(target.rms)}, {target.source}"
    return Fact("sampling error", target.share, "%", "estimated", note)


def is_sampled(best: Optimum) -> bool:
    """Whether the error of its target is estimated from blocks of draws."""
    return best.target is not None and best.target.n_blocks > 0


# ---- Consistency of a saved certificate with its losses


_MISFIT = 1e-9
"""The largest relative difference between a certificate and its losses."""

SATISFIED = 1e-6
"""Violations up to the tolerance of solvers count as zero."""


def refuse_contradiction(best: Optimum) -> None:
    """Raise an error if the certificate does not match the losses."""
    certificate = best.certificate
    if certificate is None or certificate.n_rows is not None:
        return
    if not best.weights.keys() <= best.losses.keys():
        raise InvalidInput("certificate: some weighted losses are missing")
    value = best.objective
    if value is not None and not (
        abs(value - certificate.value) <= _MISFIT * certificate.value
    ):
        raise InvalidInput(
            f"certificate: its value is {certificate.value!r}, but the losses "
            f"give {value!r}"
        )
    if certificate.value > (1.0 + _MISFIT) * certificate.scale:
        raise InvalidInput("certificate: its scale is below its value")
    most = certificate.value + _most_above(certificate, best)
    if not certificate.lower_bound <= most:  # NaN passes
        raise InvalidInput(
            f"certificate: the lower bound {certificate.lower_bound!r} is above the "
            f"value {certificate.value!r}, by more than the violation "
            f"{certificate.violation:.3g} of constraints allows"
        )


def _most_above(certificate: Certificate, best: Optimum) -> float:
    """The largest excess of a lower bound over the value with violated constraints.

    L(W) = F(W) + Σ μ (loss(W) − limit) is at least its minimum, so a lower bound
    exceeds the value by at most the violation of limits, or totals, times their
    multipliers. A limit of zero has no finite multiplier: F grows with the distance
    from the allowed W, and the violation is its square. Attributions with a violation
    above :data:`SATISFIED` claim no optimum.
    """
    violation = certificate.violation
    scale = certificate.scale
    allowed = _MISFIT * scale
    if not violation:
        return allowed
    per_total = [
        float(np.abs(array).sum())
        for name, array in best.details.items()
        if name.endswith(".multiplier")
    ]
    finite = {k: mu for k, mu in best.multipliers.items() if math.isfinite(mu)}
    losses = best.losses
    price = sum(mu * abs(losses.get(name, 0.0)) for name, mu in finite.items())
    price += sum(per_total) * float(np.abs(best.attributions).sum(axis=1).max())
    if len(finite) < len(best.multipliers):
        allowed += math.sqrt(violation) * scale
    if violation > SATISFIED and not per_total:
        return math.inf
    return allowed + 2.0 * violation * price


# ---- The rows of an optimum, and how small a small change of one is


def root_mean_square(W: Array) -> float:
    """The root mean square of an array, without overflow."""
    unit = largest_entry(W) or 1.0
    return unit * float(np.sqrt(np.mean((W / unit) ** 2)))


SHARE: Final = 0.05
"""A small change of a row, as a share of the root mean square size of a row."""


def small_change_of(best: Optimum, given: float | None = None) -> float:
    """δ of an explanation: by default 5 % of the root mean square size of a row.

    By the reference rows where it has them, so that it is the same for one row alone.
    """
    if given is None:
        return SHARE * _row_size(best)
    return read_nonnegative(given, "small_change")


def _row_size(best: Optimum) -> float:
    """The root mean square of ‖w_n‖ over the rows, or over the reference rows."""
    if best.row_size is not None:
        return float(best.row_size)
    W = best.attributions
    return root_mean_square(W) * math.sqrt(W.shape[1])


def of_rows(best: _Best, rows: Indices) -> _Best:
    """Some rows of an explanation, with the δ of all.

    Rows that were explained one by one have their losses and their certificate; of
    others the certificate is that of all rows. Rows without names are named by their
    positions.
    """
    labels = best.labels.of_positions(rows)
    if labels.points is None:
        labels = replace(labels, points=tuple(rows.tolist()))
    changed: dict[str, Any] = {"labels": labels, "row_size": _row_size(best)}
    for name, codec in arrays_of(type(best)):
        if codec.axes is not None and codec.axes[0] == "N":
            array = getattr(best, name)
            changed[name] = None if array is None else read_only(array[rows])
    aim = changed["contributions" if best.units == "output" else "gradient"]
    target = best.target
    if best.retrained is not None:
        changed["retrained"] = best.retrained.of_rows(rows)
    if aim is not None and target is not None:
        changed["target"] = target.of_entries(aim)
    return replace(
        best,
        **changed,
        **_proof_of_rows(best, rows),
        multipliers={},
        recorded_shares={},
        program=None,
        scaled_program=None,
    )


def _proof_of_rows(best: Optimum, rows: Indices) -> dict[str, Any]:
    """The losses and the certificate of some rows, and what these follow from."""
    proof = best.certificate
    terms = best.details.get("value")
    if proof is None or terms is None or math.fsum(terms.tolist()) != proof.value:
        if proof is not None and proof.n_rows is None:
            proof = replace(proof, n_rows=best.shape[0])
        empty: dict[str, Any] = {
            "weights": {},
            "losses": {},
            "details": {},
            "problem_data": {},
        }
        return {"certificate": proof, **empty}
    details = {name: array[rows] for name, array in best.details.items()}
    sums = details["losses"].sum(axis=0).tolist()
    return {
        "losses": dict(zip(best.weights, sums, strict=True)),
        "certificate": joint_proof(details),
        "details": details,
        "problem_data": {
            name: array if name.endswith(".fixed") else array[rows]
            for name, array in best.problem_data.items()
        },
    }


def blocks_of(best: Optimum) -> Iterator[Optimum]:
    """An explanation in blocks of rows of bounded size; one block if it is small."""
    N, D = best.shape
    slices = BATCH_BUDGET.blocks(N, 8 * D)
    if len(slices) == 1:
        yield best
        return
    best = replace(best, row_size=_row_size(best))
    for block in slices:
        yield of_rows(best, np.arange(block.start, block.stop))
