"""Limits of LIME as attributions: differences of outputs, or slopes."""

from __future__ import annotations

import warnings
from typing import Final

import numpy as np

from propopt._typing import Array, Attributions, Values
from propopt.errors import EstimatedWarning
from propopt.explainers.base import Findings, PackageUnits
from propopt.explainers.request import Request
from propopt.lime.expectations import Limits
from propopt.lime.expectations.steps import bit_steps
from propopt.lime.explanation.subject import LimeSubject
from propopt.lime.fidelity.effective import effective_share
from propopt.lime.laws import LimeLaw
from propopt.lime.surrogates import EstimatedLimits


LEAST_STEP: Final = 0.02
"""|v_j| shorter than this, over the distance of the outermost bins, says nothing."""


def warn_of_estimates(subject: LimeSubject) -> None:
    """Say why coefficients are no exact ones."""
    warnings.warn(
        f"exact_lime: coefficients are estimated from {subject.n_draws:,} draws "
        f"around each row, as {subject.reason}",
        EstimatedWarning,
        stacklevel=4,
    )


def found_limits(
    subject: LimeSubject,
    limits: Limits | EstimatedLimits,
    request: Request,
    units: PackageUnits,
) -> Findings:
    """Limits at the rows of a subject, with what is known of the surrogates."""
    values = subject.function.value_at(subject.points, subject.labels)
    shares = effective_share(subject.law, subject.points)
    details = details_of(limits, values, shares)
    return in_units(limits, details, subject.law, request, units)


def in_units(
    limits: Limits | EstimatedLimits,
    details: dict[str, Array],
    law: LimeLaw,
    request: Request,
    units: PackageUnits,
) -> Findings:
    """The limits in the units that were asked for."""
    errors = limits.standard_errors if isinstance(limits, EstimatedLimits) else None
    if units == "output":
        return Findings(
            attributions=limits.coefficients,
            standard_errors=errors,
            details=details,
        )
    steps = _steps(law, request)
    undefined = (steps == 0.0).sum(axis=1).astype(float)
    return Findings(
        attributions=_per_step(limits.coefficients, steps),
        standard_errors=None if errors is None else _per_step(errors, abs(steps)),
        details={**details, "steps": steps, "undefined": undefined},
    )


def details_of(
    limits: Limits | EstimatedLimits, values: Values, shares: Values
) -> dict[str, Array]:
    """What is known of the surrogates, of f at the rows and effective shares."""
    at_row = limits.intercept + limits.coefficients.sum(axis=1)
    return {
        "intercept": limits.intercept,
        "local_gap": values - at_row,
        "alpha": limits.alpha,
        "mean_weight": np.exp(limits.log_weight),
        "effective_share": shares,
    }


def _steps(law: LimeLaw, request: Request) -> Array:
    """v_j of numbers, 0 where they are too short; 1 of what is no number, (N, D)."""
    steps, spans = bit_steps(law, request.points)
    seen = np.abs(steps) > LEAST_STEP * spans  # False of NaN
    return np.where(request.fixed, 1.0, np.where(seen, steps, 0.0))


def _per_step(coefficients: Attributions, steps: Array) -> Attributions:
    slopes: Attributions = np.zeros(steps.shape)
    np.divide(coefficients, steps, out=slopes, where=steps != 0.0)
    return slopes
