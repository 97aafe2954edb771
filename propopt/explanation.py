"""The result of explaining: attributions, what they cost, and how good that is."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from propopt._typing import Array, Attributions
from propopt.archives import FORMAT, VERSION, archive_path, read_archive
from propopt.certificate import Certificate
from propopt.checks import read_array
from propopt.errors import InvalidInput
from propopt.files import written_whole
from propopt.labels import Labels, read_groups
from propopt.losses import Objective, PropertyLoss
from propopt.notebook import explanation_html


Parameter: TypeAlias = float | int | str | bool | None
Units: TypeAlias = Literal["gradient", "output", "scaled"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Explanation:
    """One attribution vector per point, with what was measured about them.

    Parameters
    ----------
    attributions : array (N, D)
        Row n explains point n.
    method : str
        ``"optimized"``, or the name of the baseline that made it.
    labels : Labels
        Names of points and features, where the inputs had names.
    parameters : mapping
        The settings of a baseline.
    weights : mapping
        The weight of each loss in the objective that was minimised.
    losses : mapping
        The value of each loss, unweighted.
    certificate : Certificate or None
        The proof of optimality; a baseline has none.
    multipliers : mapping
        For each bound, the weight its loss would have needed in a weighted sum.
    details : mapping of arrays
        What a method knows besides: standard errors, local R², intercepts; for
        max-differences in l2 ``edge_weights.<loss>``, one number per edge of the graph.
    solver : str or None
        The solver that was used.
    seconds : float
        Wall-clock time.
    units : {"gradient", "output", "scaled"}
        What the attributions of numeric features are: slopes, output per unit of the
        feature; parts of the output; or slopes times a scale. Those of categories are
        parts of the output always.
    evaluations : int
        Rows that a model was given for it; 0 where none were counted.
    """

    attributions: Attributions
    method: str
    labels: Labels = Labels()
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    losses: Mapping[str, float] = field(default_factory=dict)
    certificate: Certificate | None = None
    multipliers: Mapping[str, float] = field(default_factory=dict)
    details: Mapping[str, Array] = field(default_factory=dict)
    solver: str | None = None
    seconds: float = 0.0
    units: Units = "gradient"
    evaluations: int = 0

    @property
    def objective(self) -> float | None:
        """The weighted sum of the losses; None where no objective is known."""
        if not self.weights:
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

    def measured(self, losses: Objective | PropertyLoss) -> Explanation:
        """This explanation with the value of each loss of ``losses`` added."""
        found = Objective.of(losses).breakdown(self.attributions)
        return dataclasses.replace(self, losses={**self.losses, **found})

    def scaled(self, scale: ArrayLike) -> Explanation:
        """Slopes in units of a scale: attributions times one number per feature.

        Parameters
        ----------
        scale : array (D,)
            Such as standard deviations, from ``schema.scales("std")``: then features of
            different units can be compared.

        Returns
        -------
        Explanation
            With units ``"scaled"``, and standard errors scaled alike. Losses, weights,
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
        sizes = read_array(scale, "scale", ndim=1)
        if sizes.shape != self.attributions.shape[1:]:
            raise InvalidInput(
                f"scale: expected {self.attributions.shape[1]} numbers, one for each "
                f"feature, got {len(sizes)}"
            )
        errors = {
            name: array * sizes
            for name, array in self.details.items()
            if name == "standard_error"
        }
        return dataclasses.replace(
            self._elsewhere(self.attributions * sizes), units="scaled", details=errors
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
            left out.

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
        features = tuple(self.labels.frame(self.attributions).columns)
        names = read_groups(groups, features)
        place = {name: j for j, name in enumerate(dict.fromkeys(names))}
        sums = np.zeros((len(self.attributions), len(place)))
        np.add.at(sums.T, [place[name] for name in names], self.attributions.T)
        labels = Labels(points=self.labels.points, features=tuple(place))
        return dataclasses.replace(self._elsewhere(sums), labels=labels)

    def _elsewhere(self, attributions: Attributions) -> Explanation:
        """Attributions in other coordinates, without what was measured in these."""
        return dataclasses.replace(
            self,
            attributions=attributions,
            weights={},
            losses={},
            certificate=None,
            multipliers={},
            details={},
        )

    def to_frame(self) -> pd.DataFrame:
        """The attributions as a DataFrame, with the names of the input."""
        return self.labels.frame(self.attributions)

    def save(self, path: str | Path) -> None:
        """Write to an ``.npz`` file: arrays, and one JSON header; no pickles.

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
        header = json.dumps(self._header())
        details = {f"details.{name}": array for name, array in self.details.items()}
        with written_whole(archive_path(path)) as draft:
            np.savez(
                draft,
                allow_pickle=False,
                header=np.array(header),
                attributions=self.attributions,
                **details,
            )

    @classmethod
    def load(cls, path: str | Path) -> Explanation:
        """Read what :meth:`save` wrote.

        Raises
        ------
        InvalidInput
            If the file is another one, or written by a later version.
        """
        header, arrays = read_archive(archive_path(path))
        return cls._from_header(header, arrays)

    def _header(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": VERSION,
            "method": self.method,
            "labels": {
                "points": _plain(self.labels.points),
                "features": self.labels.features,
            },
            "parameters": dict(self.parameters),
            "weights": dict(self.weights),
            "losses": dict(self.losses),
            "certificate": (
                None if self.certificate is None else vars(self.certificate).copy()
            ),
            "multipliers": dict(self.multipliers),
            "solver": self.solver,
            "seconds": self.seconds,
            "units": self.units,
            "evaluations": self.evaluations,
        }

    @classmethod
    def _from_header(
        cls, header: dict[str, Any], arrays: dict[str, Array]
    ) -> Explanation:
        names = header.pop("labels")
        certificate = header.pop("certificate")
        attributions = arrays.pop("attributions")
        return cls(
            attributions=attributions,
            labels=Labels(
                points=_tuple(names["points"]), features=_tuple(names["features"])
            ),
            certificate=None if certificate is None else Certificate(**certificate),
            details={
                name.removeprefix("details."): array for name, array in arrays.items()
            },
            **header,
        )

    def _repr_html_(self) -> str:
        n_points, n_features = self.attributions.shape
        facts = {name: str(value) for name, value in self.parameters.items()}
        if self.evaluations:
            facts["model evaluations"] = f"{self.evaluations:,}"
        if self.certificate is not None:
            facts["certified gap"] = f"{self.certificate.gap:.1e}"
        if self.solver is not None:
            facts["solver"] = f"{self.solver}, {self.seconds:.3g} s"
        return explanation_html(
            f"{self.method}: {n_points} points × {n_features} features",
            facts,
            self.losses,
            self.weights,
            self.to_frame(),
        )

    def __repr__(self) -> str:
        shape = "{} points × {} features".format(*self.attributions.shape)
        parts = [f"{self.method}, {shape}"]
        parts += [f"{name}={value:.6g}" for name, value in self.losses.items()]
        if self.objective is not None:
            parts.append(f"objective={self.objective:.6g}")
        if self.gap is not None:
            parts.append(f"gap={self.gap:.1e}")
        if self.solver is not None:
            parts.append(f"solver={self.solver}")
        if self.evaluations > 0:
            parts.append(f"evaluations={self.evaluations}")
        return f"Explanation({', '.join(parts)})"


@dataclass(frozen=True, kw_only=True, eq=False)
class CurvePoint:
    """An optimal explanation on an exact curve: its losses are known before it is.

    Attributions are computed, and certified by themselves, when they are first asked
    for: a curve of hundreds of weights costs no memory for attributions nobody reads.

    Parameters
    ----------
    weights, losses, certificate, solver, seconds
        As for :class:`Explanation`; the certificate is that of the losses.
    compute : callable
        Gives the explanation.
    """

    weights: Mapping[str, float]
    losses: Mapping[str, float]
    certificate: Certificate
    solver: str
    seconds: float
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
        """The explanation in full, computed now."""
        return self.compute()

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


def _tuple(names: list[Any] | None) -> tuple[Any, ...] | None:
    return None if names is None else tuple(names)


def _plain(names: tuple[Any, ...] | None) -> list[Any] | None:
    """Row names as JSON has them: numbers stay numbers, anything else becomes text."""
    if names is None:
        return None
    return [_json_name(name) for name in names]


def _json_name(name: Any) -> int | float | str:
    if isinstance(name, int | np.integer):
        return int(name)
    return float(name) if isinstance(name, float) else str(name)
