"""A point on an exact curve: its losses are known before its attributions are."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import pandas as pd

from propopt._typing import Attributions
from propopt.certificate import Certificate
from propopt.errors import UncertifiedWarning
from propopt.results.explanation import Explanation, Parameter
from propopt.tables.names import Labels


@dataclass(frozen=True, kw_only=True, eq=False)
class CurvePoint:
    """An optimal explanation on an exact curve: its losses are known before it is.

    Attributions are computed when they are first asked for: a curve of hundreds of
    weights costs no memory for attributions nobody reads. Once they are there, losses
    and certificate are theirs, proved from the attributions themselves; a warning says
    so if the curve was wrong by more than the tolerance.

    Parameters
    ----------
    weights, losses, certificate, solver, seconds
        As for :class:`Explanation`; losses and certificate are those of the curve until
        attributions are read.
    tolerance : float
        By how much, relatively, the curve may err without a warning.
    compute : callable
        Gives the explanation.
    """

    weights: Mapping[str, float]
    losses: Mapping[str, float]
    certificate: Certificate
    solver: str
    seconds: float
    tolerance: float
    compute: Callable[[], Explanation]
    method: str = "optimized"
    parameters: Mapping[str, Parameter] = field(default_factory=dict)

    @property
    def objective(self) -> float:
        """The weighted sum of the losses."""
        return sum(self.weights[name] * self.losses[name] for name in self.weights)

    @property
    def rates(self) -> dict[str, float]:
        """The weights: what one unit of each loss costs at this optimum."""
        return dict(self.weights)

    @property
    def gap(self) -> float:
        """The certified relative gap of the losses to the best possible."""
        return self.certificate.gap

    @cached_property
    def explanation(self) -> Explanation:
        """The explanation in full, computed now; from now on this has its losses."""
        found = self.compute()
        if found.certificate is not None:
            self._compare(found.certificate)
            # kept as ``cached_property`` keeps what it returns
            vars(self).update(losses=found.losses, certificate=found.certificate)
        return found

    def _compare(self, proof: Certificate) -> None:
        """Warn if what the attributions prove contradicts what the curve claimed."""
        claim = self.certificate
        too_high = claim.lower_bound - proof.value
        too_low = proof.lower_bound - (2.0 * claim.value - claim.lower_bound)
        if max(too_high, too_low) > self.tolerance * proof.scale:
            warnings.warn(
                f"the curve of {self.solver} has an objective of "
                f"{claim.value:.9g} to a gap of {claim.gap:.1e}, and its "
                f"attributions have {proof.value:.9g} to a gap of {proof.gap:.1e}: "
                "these losses count",
                UncertifiedWarning,
                stacklevel=3,
            )

    @property
    def labels(self) -> Labels:
        """Names of points and features; the explanation is computed for them."""
        return self.explanation.labels

    @property
    def attributions(self) -> Attributions:
        """One attribution vector per point, shape (N, D), computed now."""
        return self.explanation.attributions

    def to_frame(self) -> pd.DataFrame:
        """The attributions as a DataFrame, with the names of the input."""
        return self.explanation.to_frame()

    def _repr_html_(self) -> str:
        return self.explanation._repr_html_()  # the notebook's own name

    def save(self, path: str | Path) -> None:
        """Write the explanation to an ``.npz`` file."""
        self.explanation.save(path)


Outcome: TypeAlias = Explanation | CurvePoint
"""What a sweep holds for each vector of weights."""
