"""The result of explaining: attributions, what they cost, and how good that is."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from propopt._typing import Array, Attributions
from propopt.certificate import Certificate, certify
from propopt.checks import sealed
from propopt.errors import InvalidInput, no_such_name
from propopt.estimates import Units, units_in_words
from propopt.losses import Constraint, Objective, Program, PropertyLoss, bounds_of
from propopt.losses.base import read_for
from propopt.output.csv import write_csv
from propopt.output.html import explanation_html, explanation_print, explanation_text
from propopt.quantity import Quantity
from propopt.results.aim import Aim
from propopt.results.arrays import (
    own_attributions,
    own_details,
    own_standard_errors,
    seal_unpickled,
)
from propopt.results.conclusions.methods import certain, loss_shares, shares, stability
from propopt.results.coordinates import sizes_for, sums_over
from propopt.results.deferred import Deferred, WhenRead
from propopt.results.later import Later, WhenAsked, settled
from propopt.results.saving import read_fields, trusted_fields, write_fields
from propopt.results.shap_package import explanation_of_shap, shap_of_explanation
from propopt.results.slopes import slopes_of_contributions
from propopt.results.target_error import TargetError
from propopt.tables.names import Labels


Parameter: TypeAlias = float | int | str | bool | None
_NAMES_OF_OTHERS = {
    "values": "attributions, or to_frame() with names",
    "shap_values": "attributions, or to_frame() with names",
    "base_values": "details['base_value'], of po.explain(..., units='output')",
    "feature_names": "labels.features, or the columns of to_frame()",
    "as_list": "to_frame(), a table with a column for each feature",
}
"""What explanations of other packages are asked for, and how that is called here."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Explanation:
    """One attribution vector per point, with what was measured about them.

    Parameters
    ----------
    attributions : array (N, D) or Deferred
        Row n explains point n. Arrays are read-only: one that can be written to is
        copied. Those of a point on an exact curve are computed when they are first
        read. Until then losses and certificate are those of the curve, and from then on
        those of the attributions; a warning says so if the curve was wrong by more than
        the tolerance.
    method : str
        ``"optimized"``, or the name of the baseline that made it.
    labels : Labels
        Names of points and features, where the inputs had names.
    parameters : mapping
        The settings of a baseline.
    weights, losses : mapping
        By loss its weight in the objective that was minimised; its value, unweighted.
    certificate : Certificate or None
        The proof of optimality; a baseline has none.
    multipliers : mapping
        For each bound, the weight its loss would have needed in a weighted sum.
    standard_errors : array (N, D) or None
        How far, in standard deviations, each attribution may be off because it was
        estimated from samples; None where it was not, or that is not known. Those of
        optimized attributions are the scatter of the optima for blocks of the target's
        draws, with ``target.n_blocks − 1`` degrees of freedom. They say nothing of
        another sample of data, nor of what a model of the gradients does not know, such
        as the posterior of :mod:`propopt.inductive`.
    details : mapping of arrays
        What a method knows besides: local R², intercepts; for max-differences in l2
        ``edge_weights.<loss>``, one number per edge of the graph.
    solver, seconds : str or None, float
        The solver that was used, and wall-clock time.
    units : {"gradient", "output", "scaled"}
        What the attributions of numeric features are: slopes, output per unit of the
        feature; parts of the output; or slopes times a scale. Those of categories are
        parts of the output always.
    evaluations : int
        Rows that a model was given for it; 0 where none were counted.
    target : TargetError or None
        What the error of an estimated target costs the optimum; None where nothing was
        optimized.
    quantity : Quantity or None
        What is explained; None where that is not known, as of attributions from
        elsewhere.
    program : Program or None
        The losses and bounds that it was optimized for. It is not saved, and stays
        behind where the explanation is pickled.
    """

    attributions: WhenRead = WhenRead()
    method: str
    labels: Labels = Labels()
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    losses: Mapping[str, float] = field(default_factory=dict)
    certificate: Certificate | None = None
    multipliers: Mapping[str, float] = field(default_factory=dict)
    standard_errors: WhenAsked[Array] = WhenAsked()
    details: Mapping[str, Array] = field(default_factory=dict)
    solver: str | None = None
    seconds: float = 0.0
    units: Units = "gradient"
    evaluations: int = 0
    target: WhenAsked[TargetError] = WhenAsked()
    quantity: Quantity | None = None
    program: Program | None = None

    def __post_init__(self) -> None:
        fields = vars(self)
        if not isinstance(fields["attributions"], Deferred):
            fields["attributions"] = own_attributions(fields["attributions"])
        self.labels.check(self.shape, "labels")
        errors = fields["standard_errors"]
        if not isinstance(errors, Later):
            fields["standard_errors"] = own_standard_errors(errors, self.shape)
        fields["details"] = own_details(self.details)

    if not TYPE_CHECKING:  # which trusts whatever a class with __getattr__ is asked

        def __getattr__(self, name: str) -> NoReturn:
            raise no_such_name(self, name, _NAMES_OF_OTHERS)

    def __getstate__(self) -> dict[str, Any]:
        # losses hold whole tables and graphs, which who reads a pickle has or lacks
        return {**settled(self), "program": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        seal_unpickled(state)
        self.__dict__.update(state)

    @property
    def shape(self) -> tuple[int, int]:
        """N and D, without computing attributions."""
        N, D = vars(self)["attributions"].shape
        return N, D

    @property
    def objective(self) -> float | None:
        """The weighted sum of the losses; None where no objective is known."""
        if not self.weights or not self.weights.keys() <= self.losses.keys():
            return None
        return sum(self.weights[name] * self.losses[name] for name in self.weights)

    @property
    def rates(self) -> dict[str, float]:
        """Weights and multipliers: what one unit of each loss costs at this optimum."""
        return {**self.weights, **self.multipliers}

    @property
    def gap(self) -> float | None:
        """The certified relative gap to the best possible; None without certificate."""
        return None if self.certificate is None else self.certificate.gap

    @property
    def units_in_words(self) -> str:
        """What attributions of numbers are, and of what."""
        return units_in_words(self.units, self.quantity, self._scale_in_words)

    @property
    def _scale_in_words(self) -> str:
        """What slopes are per; "std" stands for standard deviations."""
        scale = self.parameters.get("scale")
        return "standard deviation" if scale == "std" else "given scale"

    @property
    def target_error(self) -> float:
        """The estimated relative error for the true target; NaN where not known."""
        return math.nan if self.target is None else self.target.relative

    def measured(self, losses: Objective | PropertyLoss) -> Explanation:
        """This explanation with the value of each loss of ``losses`` added.

        If one of its own losses is another of that name, what it claimed of its
        objective is left out.
        """
        values = self._values(Objective.of(losses).losses)
        own = self if self._agrees(values) else self._unclaimed()
        return dataclasses.replace(own, losses={**own.losses, **values})

    def _values(self, losses: Sequence[PropertyLoss]) -> dict[str, float]:
        array = read_for(losses, self, f"{self.method}: attributions")
        return {loss.name: loss.value_at(array) for loss in losses}

    def _agrees(self, losses: Mapping[str, float]) -> bool:
        """Whether losses of names known here have the values known here."""
        both = self.losses.keys() & losses.keys()
        return all(math.isclose(losses[k], self.losses[k], rel_tol=1e-9) for k in both)

    def scaled(self, scale: ArrayLike) -> Explanation:
        """Slopes in units of a scale: attributions times one number per feature.

        Parameters
        ----------
        scale : array or Series (D,)
            Such as standard deviations, from ``schema.scales("std")``: then features of
            different units can be compared. A Series is read by names of features.

        Returns
        -------
        Explanation
            With units ``"scaled"``, and standard errors scaled alike; effects, where
            ``details["effects"]`` tells of them, stay as they are. Losses, weights,
            certificate and other details belong to the old units, and are left out.

        Raises
        ------
        InvalidInput
            If the units are not ``"gradient"``, or the scale is not D numbers.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> slopes = po.Explanation(attributions=np.array([[1.0, 2.0]]), method="mine")
        >>> slopes.scaled([10.0, 0.5]).attributions
        array([[10.,  1.]])
        """
        if self.units != "gradient":
            raise InvalidInput(
                f"scaled: expected attributions in units 'gradient', got {self.units!r}"
            )
        sizes = sizes_for(scale, self.shape, self.labels, self.details)
        errors = self.standard_errors
        return dataclasses.replace(
            self._elsewhere(self.attributions * sizes),
            units="scaled",
            standard_errors=None if errors is None else sealed(errors * np.abs(sizes)),
        )

    def grouped(self, groups: Mapping[str, Sequence[str]]) -> Explanation:
        """The attributions of several features as one: signed sums over each group.

        Parameters
        ----------
        groups : mapping of a name to the features it stands for
            Features in no group stay as they are. A group has the place of its first
            feature.

        Returns
        -------
        Explanation
            Losses, weights, certificate and details belong to the old features, and are
            left out; so are standard errors, as those of a sum depend on how errors of
            its terms go together, which is not known.

        Raises
        ------
        InvalidInput
            If a feature is unknown or in two groups, a group is empty, or two features
            would have one name.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> W = np.array([[1.0, 2.0, 4.0]])
        >>> parts = po.Explanation(attributions=W, method="mine")
        >>> parts.grouped({"pair": ["x0", "x2"]}).to_frame()
           pair   x1
        0   5.0  2.0
        """
        return self._elsewhere(*sums_over(groups, self.attributions, self.labels))

    def _elsewhere(
        self, attributions: Attributions, labels: Labels | None = None
    ) -> Explanation:
        """Attributions in other coordinates, without what was measured in these."""
        return dataclasses.replace(
            self._unclaimed(),
            attributions=sealed(attributions),
            labels=labels or self.labels,
            losses={},
            standard_errors=None,
            details={},
        )

    def _unclaimed(self) -> Explanation:
        """The same attributions, without a claim to be optimal."""
        optimum = dataclasses.replace(self, weights={}, multipliers={}, target=None)
        return dataclasses.replace(optimum, certificate=None, program=None)

    def to_frame(self) -> pd.DataFrame:
        """The attributions as a DataFrame, with the names of the input."""
        return self.labels.frame(self.attributions)

    def to_csv(self, path: str | Path) -> None:
        """Write :meth:`to_frame`: names of rows in the first column, then features.

        Numbers read back to the same value, by pandas before 3 with
        ``float_precision="round_trip"``. Names that a spreadsheet would take for
        formulas have an apostrophe before them.

        Raises
        ------
        InvalidInput
            If the folder is not there.
        Unwritten
            If the operating system refuses.

        Examples
        --------
        >>> import tempfile, numpy as np, pandas as pd, propopt as po
        >>> third = po.Explanation(attributions=np.full((1, 2), 1 / 3), method="mine")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     third.to_csv(f"{folder}/third.csv")
        ...     pd.read_csv(f"{folder}/third.csv", index_col=0)
                 x0        x1
        0  0.333333  0.333333
        """
        write_csv(path, self.to_frame(), names_of_rows=True)

    def certified(
        self,
        objective: Objective | PropertyLoss,
        *,
        subject_to: Sequence[Constraint] = (),
    ) -> Explanation:
        """This explanation with the losses and the certificate of an objective.

        By :func:`propopt.certify`, from the attributions and the multipliers of bounds
        alone: for max-differences a solver, which knows duals, may give a smaller gap.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> objective = po.GradientMatching(np.eye(2)) + 1.0 * po.Sparsity()
        >>> po.Explanation(attributions=np.eye(2) / 2, method="mine").certified(
        ...     objective
        ... ).gap
        0.0
        """
        objective = Objective.of(objective)
        bounds = bounds_of(subject_to, objective.losses)
        bounded = [bound.loss for bound in bounds]
        prices = {loss.name: self.multipliers.get(loss.name, 0.0) for loss in bounded}
        values = self._values([*objective.losses, *bounded])
        mu = list(prices.values())
        certificate = certify(
            objective, self, bounds=bounds, multipliers=mu, losses=values
        )
        program = Program(objective.losses, bounds)
        aim = Aim(program)
        return dataclasses.replace(
            self,
            weights=objective.weights,
            losses={**self.losses, **values},
            certificate=certificate,
            multipliers=prices,
            target=aim.error(objective.coefficients, certificate.scale, mu),
            program=program,
        )

    def save(self, path: str | Path) -> None:
        """Write to an ``.npz`` file: arrays, and one JSON header; no pickles.

        Raises
        ------
        InvalidInput
            If the folder is not there, or a field is not what can be loaded again.

        Examples
        --------
        >>> import tempfile, numpy as np, propopt as po
        >>> best = po.solve(1.0 * po.GradientMatching(np.eye(3)))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     best.save(f"{folder}/best.npz")
        ...     same = po.Explanation.load(f"{folder}/best.npz")
        >>> bool((same.attributions == best.attributions).all())
        True
        """
        _ = self.attributions  # losses and certificate are then theirs
        write_fields(path, settled(self))

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        objective: Objective | PropertyLoss | None = None,
        subject_to: Sequence[Constraint] = (),
    ) -> Explanation:
        """Read what :meth:`save` wrote.

        Parameters
        ----------
        path : path
            The file.
        objective, subject_to
            If given, losses and certificate are computed anew by :meth:`certified`.
            Else a certificate that contradicts the stored losses is refused.

        Raises
        ------
        InvalidInput
            If the file is another one, or holds what no explanation has.
        FileNotFoundError
            If there is none.
        """
        if objective is None:
            return cls(**trusted_fields(path))
        explanation = cls(**read_fields(path))
        return explanation.certified(objective, subject_to=subject_to)

    to_shap = shap_of_explanation
    to_slopes = slopes_of_contributions
    from_shap = classmethod(explanation_of_shap)
    certain = certain
    shares = shares
    loss_shares = property(loss_shares)
    stability = stability
    _repr_html_ = explanation_html
    __repr__ = explanation_text
    __str__ = explanation_print
