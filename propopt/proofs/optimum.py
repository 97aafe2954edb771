"""The interface of an optimum, phrases for its gap and target error, and its checks.

The gap bounds the distance of attributions from the optimum for the given target. The
cost of the error of that target is shown with it everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions, Points, Values
from propopt.base.document import Basis
from propopt.base.errors import InvalidInput
from propopt.base.text import Quantity, gap_cell, percent
from propopt.losses import Objective, Program
from propopt.losses.faithfulness import Units
from propopt.proofs.certificate import Certificate
from propopt.proofs.target_error import TargetError
from propopt.tables.frames import Labels


class Optimum(Protocol):
    """The attributes of an explanation that conclusions, cards and reports use.

    W (N, D) with standard errors if estimated, the contributions or slopes (N, D) of
    the target, losses, weights and multipliers by name (``rates`` are both);
    ``target`` is the target error.
    """

    @property
    def attributions(self) -> Attributions: ...
    @property
    def standard_errors(self) -> Array | None: ...
    @property
    def contributions(self) -> Array | None: ...
    @property
    def gradient(self) -> Array | None: ...
    @property
    def points(self) -> Points | None: ...
    @property
    def base_value(self) -> Values | None: ...
    @property
    def prediction(self) -> Values | None: ...
    @property
    def completeness_gap(self) -> Values | None: ...
    @property
    def details(self) -> Mapping[str, NDArray[Any]]: ...
    @property
    def target(self) -> TargetError | None: ...
    @property
    def target_error(self) -> float: ...
    @property
    def certificate(self) -> Certificate | None: ...
    @property
    def gap(self) -> float | None: ...
    @property
    def objective(self) -> float | None: ...
    @property
    def program(self) -> Program | None: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def row_size(self) -> float | None: ...
    @property
    def scales(self) -> Array | None: ...
    @property
    def labels(self) -> Labels: ...
    @property
    def quantity(self) -> Quantity | None: ...
    @property
    def units(self) -> Units: ...
    @property
    def units_in_words(self) -> str: ...
    @property
    def method(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, float | int | str | bool | None]: ...
    @property
    def solver(self) -> str | None: ...
    @property
    def seconds(self) -> float: ...
    @property
    def evaluations(self) -> int: ...
    @property
    def weights(self) -> Mapping[str, float]: ...
    @property
    def losses(self) -> Mapping[str, float]: ...
    @property
    def loss_shares(self) -> Mapping[str, float]: ...
    @property
    def multipliers(self) -> Mapping[str, float]: ...
    @property
    def rates(self) -> dict[str, float]: ...
    def measured(self, losses: Objective) -> Optimum: ...
    def certified(self, objective: Objective) -> Optimum: ...
    def value_of(self, n: int, j: int) -> str: ...
    def to_frame(self) -> pd.DataFrame: ...


# ---- Phrases for the proven gap and the error of the target


_UNKNOWN: Final = "target error unknown"


def gap_in_words(best: Optimum) -> str:
    """The certified gap and the error of the target, as one phrase."""
    assert best.gap is not None, "it is certified"
    return f"gap {gap_cell(best.gap)}, proved · {target_in_words(best)}"


def target_in_words(best: Optimum) -> str:
    """The error of the target, as a phrase."""
    return _UNKNOWN if best.target is None else best.target.in_words()


def targets_in_words(explanations: Iterable[Optimum]) -> list[str]:
    """Phrases for the target errors of several explanations, ranges for draws."""
    optima = [best for best in explanations if best.gap is not None]
    sampled = [best for best in optima if is_sampled(best)]
    others = [target_in_words(best) for best in optima if not is_sampled(best)]
    words = list(dict.fromkeys(others))
    if not sampled:
        return words
    errors = [best.target_error for best in sampled]
    sources = dict.fromkeys(best.target.source for best in sampled if best.target)
    ends = f"{percent(min(errors))} to {percent(max(errors))}"
    return [f"target error {ends} % ({' and '.join(sources)})", *words]


def is_sampled(best: Optimum) -> bool:
    """Whether the error of its target is estimated from blocks of draws."""
    return best.target is not None and best.target.n_blocks > 0


def target_basis(best: Optimum) -> Basis:
    """The basis of statements about the target."""
    if best.target is None or math.isnan(best.target_error):
        return "not said"
    return "estimated" if is_sampled(best) else "checked"


def target_error_cell(best: Optimum) -> str:
    """The relative error of the target, for a table cell."""
    if best.target is None or math.isnan(best.target_error):
        return "unknown"
    if not best.target.n_blocks:
        return "exact"
    most = "≤ " if best.target.relation == "at most" else ""
    return f"{most}{best.target_error:.2g}"


# ---- Consistency of a saved certificate with its losses


_MISFIT = 1e-9
"""The largest relative difference between a certificate and its losses."""

SATISFIED = 1e-6
"""Violations up to the tolerance of solvers count as zero."""


def refuse_contradiction(best: Optimum) -> None:
    """Raise an error if the certificate does not match the losses."""
    certificate = best.certificate
    if certificate is None:
        return
    weights, losses = best.weights, best.losses
    if not weights.keys() <= losses.keys():
        raise InvalidInput("certificate: some weighted losses are missing")
    value = sum(weight * losses[name] for name, weight in weights.items())
    if weights and not abs(value - certificate.value) <= _MISFIT * certificate.value:
        raise InvalidInput(
            f"certificate: its value is {certificate.value!r}, but the losses "
            f"give {value!r}"
        )
    scale = certificate.scale
    if certificate.value > (1.0 + _MISFIT) * scale:
        raise InvalidInput("certificate: its scale is below its value")
    most = certificate.value + _most_above(certificate, best)
    if not certificate.lower_bound <= most:  # NaN passes
        raise InvalidInput(
            f"certificate: its lower bound {certificate.lower_bound!r} is above its "
            f"value {certificate.value!r}, by more than its violation "
            f"{certificate.violation:.3g} of constraints explains"
        )


def _most_above(certificate: Certificate, best: Optimum) -> float:
    """The largest excess of a lower bound over the value with violated constraints.

    L(W) = F(W) + Σ μ (loss(W) − limit) is at least its minimum, so a lower bound
    exceeds the value by at most the violation of limits, or totals, times their
    multipliers. A limit of zero has no finite multiplier: F grows with the distance
    from the allowed W, and the violation is its square. Attributions with a violation
    above :data:`SATISFIED` claim no optimum.
    """
    violation, scale = certificate.violation, certificate.scale
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
