"""The result of explaining: attributions, what they cost, and how good that is.

Attributions that are computed when they are first read. A curve knows the losses of
hundreds of optima without one attribution. Each is an explanation whose attributions
are a :class:`LazyAttributions`, until somebody reads them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from propopt.base.arrays import Array, Attributions, Mask, Points, Values
from propopt.base.checks import as_floats, read_count, read_only
from propopt.base.declared import Lazy, field, transient
from propopt.base.document import Document
from propopt.base.errors import InvalidInput, UncertifiedWarning
from propopt.base.extras import require
from propopt.base.suggestions import NameKind
from propopt.base.text import Quantity, value_in_words
from propopt.losses import Objective, Program, PropertyLoss
from propopt.losses.algebra import aligned_attributions
from propopt.losses.completeness import Constraint, bounds_of
from propopt.losses.faithfulness import Units, units_in_words
from propopt.proofs.certificate import Certificate
from propopt.proofs.certifying import certify
from propopt.proofs.ideal_nadir import IdealNadir, weighted
from propopt.proofs.near_optimal import OrderBy, with_certificate
from propopt.proofs.nearby_optima import Solve
from propopt.proofs.optimum import SATISFIED, refuse_contradiction
from propopt.proofs.problem_data import in_units_of_w, problem_data_of
from propopt.proofs.target_error import TargetError, TargetErrorOperator
from propopt.results.certain import NearOptimalConclusions, certain_of
from propopt.results.clear import Clear, clear_of
from propopt.results.explanation_document import (
    explanation_document,
    explanation_text,
)
from propopt.results.reasons import (
    LEAST_SHARE,
    N_REASONS,
    Reasons,
    Towards,
    reasons_of,
)
from propopt.results.result import Result
from propopt.results.shares import Shares, shares_of
from propopt.results.stability import TOP, ConclusionStability, stability_of
from propopt.tables.frames import (
    Labels,
    aligned_vector,
    as_frame,
    group_sums,
    holds_categories,
    orders_of,
    read_numbers,
    refuse_dates,
)
from propopt.tables.imported import (
    AttributionsLike,
    ExplanationFields,
    NoBaseValue,
    is_shap,
    read_attributions,
)


# ---- Explanations to and from the ``shap`` package, whose plots many readers know


def inputs_of(X: Any, explanation: Explanation) -> tuple[Array | None, Any]:
    """Numbers by which plots colour and place points, and what they write beside."""
    points, shape = explanation.points, explanation.shape
    if X is None:
        if points is None or not explanation.categories:
            return points, None
        cells = [explanation.value_of(n, j) for n, j in np.ndindex(shape)]
        return points, np.array(cells, dtype=object).reshape(shape)
    frame = as_frame(X, "X")
    table: Any = as_floats(X, "X") if frame is None else frame.table
    if table.shape != shape:
        raise InvalidInput(
            f"X: expected the shape of the attributions, {shape}, got {table.shape}; "
            "one column for each feature, as the explanation names them"
        )
    if frame is None:
        return table, None
    rows, columns = orders_of(frame.labels, explanation.labels, "X", "the explanation")
    table = table.iloc[rows, columns]
    numbers = [_numbers(table.iloc[:, j]) for j in range(shape[1])]
    return np.stack(numbers, axis=1), table.to_numpy(dtype=object)


def _numbers(column: pd.Series[Any]) -> Array:
    """A column as numbers, or the codes of its categories; NaN where missing."""
    if not holds_categories(column, "X"):
        refuse_dates(column, "X")
        return read_numbers(column, "X")
    codes = column.astype("category").cat.codes.to_numpy()
    return np.where(codes < 0, np.nan, codes)


# ---- Attributions that are computed when they are first read


_FIELDS_OF_THEIR_OWN: Final = (
    "gradient",
    "contributions",
    "base_value",
    "prediction",
    "effects",
)
"""Fields that no entry of ``details`` may be called."""

_ALIKE: Final = 1e-9
"""Of a loss that is added up in another order."""

_ROUNDING: Final = 1e-14
"""Of squares, whose differences lose what the numbers are rounded by."""

_PROVED = ("attributions", "losses", "certificate", "details", "target")
"""What an explanation takes over from the one that was computed."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LazyAttributions(Lazy["Explanation"]):
    """Attributions (N, D) to be computed, with losses and certificate of their own."""

    shape: tuple[int, int]  # N and D
    # by how much, relatively, what is claimed of them may err without a warning
    tolerance: float

    is_pickled: ClassVar[bool] = True

    def proved(self, best: Explanation, claim: Certificate | None) -> dict[str, Any]:
        """The fields that follow from W; a warning if they contradict the claim."""
        proof = best.certificate
        if claim is not None and proof is not None:
            too_high = claim.lower_bound - proof.value
            too_low = proof.lower_bound - (2.0 * claim.value - claim.lower_bound)
            if max(too_high, too_low) > self.tolerance * proof.scale:
                warnings.warn(
                    f"the curve of {best.solver} has an objective of {claim.value:.9g} "
                    f"to a gap of {claim.gap:.1e}, and its attributions have "
                    f"{proof.value:.9g} to a gap of {proof.gap:.1e}: these losses "
                    "count",
                    UncertifiedWarning,
                    stacklevel=4,
                )
        fields = vars(best)  # some may be computed later
        return {name: fields[name] for name in _PROVED}


def is_lazy(explanation: Explanation) -> bool:
    """Whether nobody has read its attributions yet."""
    return isinstance(vars(explanation)["attributions"], LazyAttributions)


Parameter: TypeAlias = float | int | str | bool | None


class Explanation(
    Result,
    ExplanationFields,
    kind="propopt explanation",
    noun="a saved explanation",
    version=7,
):
    """One attribution for each row and column, with what was measured of them.

    Print it, and it is a card. :meth:`to_frame` is the table of attributions, and
    :meth:`top` the columns that matter most. ``gap`` is the proved share by which it
    could still be better. :meth:`clear` has the signs and places that no small
    change of a row turns, :meth:`certain` those of every explanation that is almost as
    good, :meth:`reasons` the reasons of each row in sentences. :meth:`save` keeps it.

    >>> import numpy as np, propopt as po
    >>> X = np.linspace(-1, 1, 9)[:, None]
    >>> robust = po.PairwiseRobustness(po.graphs.chain_graph(9))
    >>> found = po.solve(po.GradientMatching(3 * X**2) + robust)
    >>> found.to_frame().shape, found.gap < 1e-12
    ((9, 1), True)

    Parameters
    ----------
    attributions : array (N, D) or LazyAttributions
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
    points : array (N, D) or None
        The rows that are explained: numbers, and codes of categories; NaN is missing.
    categories : mapping
        By feature of categories what their codes stand for.
    gradient, contributions : array (N, D) or None
        What an optimum is faithful to: slopes, in its units; or parts of the output.
    base_value, prediction : array (N,) or None
        What contributions are added to, and what they then give: f(x).
    effects : array (N, D) of bool or None
        Which attributions are effects on the output though others are slopes.
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
    background : str or None
        SHA-256 of the rows that contributions are compared with.
    row_size : float or None
        Root mean square of ‖w_n‖ over the reference rows; None: over these rows.
    metric : array (D,) or None
        ω of contributions: how much moves of each column count, and 0 where a column
        keeps its contribution; None where all count alike.
    problem_data : mapping of arrays
        Targets, graphs and totals of the losses, written by :meth:`save` so that a file
        can be checked without this package.
    program : Program or None
        The losses and bounds that it was optimized for. Files leave it out; copies and
        pickles have it.
    scaled_program : Program or None
        In its place with a ``metric``: that of Z, where W = Φ + Z diag(√ω).
    """

    attributions: Attributions = field("N D", nonempty=True, lazy=True)
    method: str = field()
    labels: Labels = field(default=Labels())
    parameters: Mapping[str, Parameter] = field(
        factory=dict, missing=True, infinite=True
    )
    weights: Mapping[str, float] = field(factory=dict, low=0.0)
    losses: Mapping[str, float] = field(factory=dict)
    certificate: Certificate | None = field(default=None)
    multipliers: Mapping[str, float] = field(factory=dict, low=0.0, infinite=True)
    standard_errors: Array | None = field(
        "N D", default=None, low=0.0, missing=True, infinite=True, lazy=True
    )
    points: Points | None = field("N D", default=None, missing=True)
    categories: Mapping[str, tuple[str, ...]] = field(factory=dict)
    gradient: Array | None = field("N D", default=None)
    contributions: Array | None = field("N D", default=None)
    base_value: Values | None = field("N", default=None, missing=True)
    prediction: Values | None = field("N", default=None, missing=True)
    effects: Mask | None = field("N D", default=None)
    details: Mapping[str, NDArray[Any]] = field(factory=dict)
    solver: str | None = field(default=None)
    seconds: float = field(default=0.0, low=0.0)
    units: Units = field(default="gradient")
    evaluations: int = field(default=0, low=0)
    target: TargetError | None = field(default=None, lazy=True)
    quantity: Quantity | None = field(default=None)
    background: str | None = field(default=None)
    row_size: float | None = field(default=None, low=0.0)
    metric: Values | None = field("D", default=None, low=0.0)
    # what cards say, and takes the program to know: of loaded ones
    recorded_shares: Mapping[str, float] = field(
        factory=dict, missing=True, infinite=True
    )
    problem_data: Mapping[str, NDArray[Any]] = field(factory=dict)
    program: Program | None = transient(default=None, lazy=True)
    scaled_program: Program | None = transient(default=None, lazy=True)

    rows_are_named: ClassVar[bool] = True
    _words: ClassVar[NameKind | None] = "explanation"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.labels.check(self.shape, "labels")
        for name in self.details:
            if name in _FIELDS_OF_THEIR_OWN:
                raise InvalidInput(f"details: {name!r} is a field: give {name}=...")

    def resolve(self, name: str, value: Any) -> None:
        """Put a lazy field's value in its place; with attributions what they cost."""
        fields = vars(self)
        lazy = fields[name]
        if isinstance(lazy, LazyAttributions):
            fields.update(lazy.proved(value, fields["certificate"]))
        else:
            super().resolve(name, value)

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
    def completeness_gap(self) -> Values | None:
        """Σ_d w_nd − (f(x_n) − base), (N,): what rows miss; None where not known."""
        if self.units != "output" or self.base_value is None or self.prediction is None:
            return None
        return self.attributions.sum(axis=1) - (self.prediction - self.base_value)

    def value_of(self, n: int, j: int) -> str:
        """The value of feature j in row n, as text; nothing where it is not known."""
        if self.points is None:
            return ""
        known = self.categories.get(self.labels.feature_names(self.shape[1])[j])
        return value_in_words(float(self.points[n, j]), known)

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
        deviations = self.parameters.get("scale") == "std"
        scale = "standard deviation" if deviations else "given scale"
        return units_in_words(self.units, self.quantity, scale)

    @property
    def target_error(self) -> float:
        """The estimated relative error for the true target; NaN where not known."""
        return math.nan if self.target is None else self.target.relative

    def measured(self, losses: Objective | PropertyLoss) -> Explanation:
        """This explanation with the value of each loss of ``losses`` added.

        If one of its own losses is another of that name, what it claimed of its
        objective is left out.
        """
        values, told = self._values(Objective.of(losses).losses), self.losses
        both = told.keys() & values.keys()
        agrees = all(math.isclose(values[k], told[k], rel_tol=1e-9) for k in both)
        own = self if agrees else self._unclaimed()
        return replace(own, losses={**told, **values})

    def _values(self, losses: Sequence[PropertyLoss]) -> dict[str, float]:
        array = aligned_attributions(losses, self, f"{self.method}: attributions")
        return {loss.name: loss.value_at(array) for loss in losses}

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
            With units ``"scaled"``, and standard errors scaled alike; ``effects`` stay
            as they are. Losses, weights, certificate, target and details belong to the
            old units, and are left out.

        Raises
        ------
        InvalidInput
            If the units are not ``"gradient"``, or the scale is not D numbers.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> slopes = po.results.Explanation(
        ...     attributions=np.array([[1.0, 2.0]]), method="mine"
        ... )
        >>> slopes.scaled([10.0, 0.5]).attributions
        array([[10.,  1.]])
        """
        if self.units != "gradient":
            raise InvalidInput(
                f"scaled: expected attributions in units 'gradient', got {self.units!r}"
            )
        D, own = self.shape[1], self.labels.features
        sizes = aligned_vector(scale, own, "scale", "the explanation")
        if sizes.shape != (D,):
            raise InvalidInput(
                f"scale: expected {D} numbers, one for each feature, got {len(sizes)}"
            )
        if self.effects is not None:
            sizes = np.where(self.effects, 1.0, sizes)
        errors = self.standard_errors
        return replace(
            self._elsewhere(self.attributions * sizes),
            units="scaled",
            standard_errors=None
            if errors is None
            else read_only(errors * np.abs(sizes)),
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
        >>> parts = po.results.Explanation(attributions=W, method="mine")
        >>> parts.grouped({"pair": ["x0", "x2"]}).to_frame()
           pair   x1
        0   5.0  2.0
        """
        W, labels = self.attributions, self.labels
        sums, names = group_sums(groups, labels.feature_names(W.shape[1]))
        return replace(
            self._elsewhere(W @ sums.T, Labels(labels.points, names)),
            base_value=self.base_value,
            prediction=self.prediction,
        )

    def _elsewhere(
        self, attributions: Attributions, labels: Labels | None = None
    ) -> Explanation:
        """In other coordinates, or of other features, without what was measured."""
        return replace(
            self._unclaimed(),
            attributions=read_only(attributions),
            labels=labels or self.labels,
            points=self.points if labels is None else None,
            categories=self.categories if labels is None else {},
            losses={},
            standard_errors=None,
            details={},
            gradient=None,
            contributions=None,
            base_value=None,
            prediction=None,
            effects=None,
            row_size=None,
            metric=None,
        )

    def _unclaimed(self) -> Explanation:
        """The same attributions, without a claim to be optimal."""
        optimum = replace(self, weights={}, multipliers={}, target=None)
        told = replace(optimum, recorded_shares={}, problem_data={})
        return replace(told, certificate=None, program=None, scaled_program=None)

    def to_frame(self) -> pd.DataFrame:
        """The attributions as a DataFrame, with the names of the input."""
        return self.labels.frame(self.attributions)

    def certified(
        self,
        objective: Objective | PropertyLoss,
        *,
        subject_to: Sequence[Constraint] = (),
    ) -> Explanation:
        """This explanation with the losses and the certificate of an objective.

        By :func:`propopt.proofs.certify`, from the attributions and the multipliers of
        bounds alone: for max-differences a solver, which knows duals, may give a
        smaller gap.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> objective = po.GradientMatching(np.eye(2)) + 1.0 * po.Sparsity()
        >>> po.results.Explanation(attributions=np.eye(2) / 2, method="mine").certified(
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
        aim = TargetErrorOperator(program)
        return replace(
            self,
            weights=objective.weights,
            losses={**self.losses, **values},
            certificate=certificate,
            multipliers=prices,
            target=aim.error(objective.coefficients, certificate.scale, mu),
            program=program,
        )

    def top(self, k: int = 10) -> pd.DataFrame:
        """The k features that matter most: largest mean |w| over the rows.

        Parameters
        ----------
        k : int
            How many; all where there are fewer.

        Returns
        -------
        DataFrame
            By feature: ``mean`` and ``mean_size`` of w and |w| over rows; ``raises``
            and ``lowers``, the shares of rows with w > 0 and w < 0.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> W = np.array([[1.0, -4.0, 0.0], [3.0, 2.0, 0.0]])
        >>> po.results.Explanation(attributions=W, method="mine").top(2)
                 mean  mean_size  raises  lowers
        feature
        x1       -1.0        3.0     0.5     0.5
        x0        2.0        2.0     1.0     0.0
        """
        W = self.attributions
        table = pd.DataFrame(
            {
                "mean": W.mean(axis=0),
                "mean_size": np.abs(W).mean(axis=0),
                "raises": (W > 0.0).mean(axis=0),
                "lowers": (W < 0.0).mean(axis=0),
            },
            index=pd.Index(self.labels.feature_names(W.shape[1]), name="feature"),
        )
        order = np.argsort(-table["mean_size"].to_numpy(), kind="stable")
        return table.iloc[order[: read_count(k, "k")]]

    def intervals(self, *, level: float = 0.95) -> Array:
        """Where attributions of the true target lie, (N, D, 2), each by itself.

        w ± q · ``standard_errors``, by Student's law with one degree of freedom less
        than the target has blocks of draws, by the normal one where there are none.
        Of an exact target both ends are w.

        Parameters
        ----------
        level : float
            The probability of each interval.

        Raises
        ------
        InvalidInput
            If standard errors are not known, or the level is not between 0 and 1.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> mine = po.results.Explanation(
        ...     attributions=np.array([[2.0]]), method="mine", standard_errors=[[1.0]]
        ... )
        >>> mine.intervals(level=0.95).round(2)
        array([[[0.04, 3.96]]])
        """
        from scipy.stats import norm, t

        if not 0.0 < level < 1.0:
            raise InvalidInput(f"level: expected a number between 0 and 1, got {level}")
        W, errors, target = self.attributions, self.standard_errors, self.target
        if errors is None and (target is None or target.value != 0.0):
            raise InvalidInput(
                "standard_errors: they are not known, so that there are no intervals; "
                "explanations of sampled targets have some"
            )
        if errors is None:
            return np.stack([W, W], axis=2)
        blocks = 0 if target is None else target.n_blocks
        law = t(blocks - 1) if blocks > 1 else norm()
        reach = float(law.ppf(0.5 + 0.5 * level)) * errors
        return np.stack([W - reach, W + reach], axis=2)

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
        ...     same = po.results.Explanation.load(f"{folder}/best.npz")
        >>> bool((same.attributions == best.attributions).all())
        True
        """
        _ = self.attributions  # losses and certificate are then theirs
        told = replace(
            self,
            recorded_shares=self.loss_shares,
            problem_data=self.problem_arrays,
        )
        super(Explanation, told).save(path)

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
            return super().load(path)
        return cls.load_unvalidated(path).certified(objective, subject_to=subject_to)

    def validate(self) -> None:
        """Refuse other losses, codes of no category, and parts that do not add up."""
        refuse_contradiction(self)
        names = self.labels.feature_names(self.shape[1])
        for name, words in self.categories.items():
            if self.points is None or name not in names:
                raise InvalidInput(f"categories: {name!r} is no feature with values")
            codes = self.points[:, names.index(name)]
            if not np.isin(codes, np.arange(len(words))).all():
                raise InvalidInput(
                    f"points: {name}: expected codes below {len(words)}, its categories"
                )
        self._refuse_other_loss()
        base, total = self.base_value, self.prediction
        if self.method != "optimized" or base is None or total is None:
            return
        W = self.attributions
        missed = np.abs(base + W.sum(axis=1) - total)
        scale = float((np.abs(W).sum(axis=1) + np.abs(total - base)).max())
        if (missed > SATISFIED * scale).any():
            n = int(missed.argmax())
            raise InvalidInput(
                f"attributions: row {n} and its base value miss the prediction by "
                f"{missed[n]:.3g}"
            )

    def _refuse_other_loss(self) -> None:
        """Refuse a loss of gradient matching that is not ‖W − G‖² of what is there."""
        told, target = self.losses.get("gradient_matching"), self.gradient
        omega = np.ones(self.shape[1]) if self.metric is None else self.metric
        if target is None and (
            self.metric is not None or self.parameters.get("metric") == "uniform"
        ):
            target = self.contributions
        if told is None or target is None:
            return
        moves = omega > 0.0  # others keep their contributions
        kept = np.abs(self.attributions - target)[:, ~moves].max(initial=0.0)
        size = float(np.abs(self.attributions).max(initial=0.0))
        W = self.attributions[:, moves]
        target, omega = target[:, moves], omega[moves]
        loss = float(((W - target) ** 2 / omega).sum())
        lost = kept > SATISFIED * size
        rounding = _ROUNDING * float(((W**2 + target**2) / omega).sum())
        if lost or not abs(loss - told) <= _ALIKE * max(loss, told) + rounding:
            raise InvalidInput(
                f"losses: gradient_matching is said to be {told:.9g}, and the target "
                f"and the attributions give {np.inf if lost else loss:.9g}"
            )

    def to_shap(self, X: object = None) -> Any:
        """A ``shap.Explanation`` of these attributions, for the plots of ``shap``.

        Needs ``pip install "propopt[baselines]"``. Contributions (units ``"output"``)
        have their base values where these are known. Slopes are parts of no sum and
        have none: of the package's plots, those that add up to an output (waterfall,
        decision, force) are refused, and parts are asked for.

        Parameters
        ----------
        X : array or DataFrame (N, D), optional
            The inputs, by which plots colour points; rows and columns that have names
            are put in the order of the explanation, and categories are coded. By
            default the rows that the explanation knows.

        Returns
        -------
        shap.Explanation
            With ``values``, ``feature_names``, and ``base_values`` and ``data`` where
            they are known.

        Raises
        ------
        InvalidInput
            If X is not a table of N rows and D columns.
        MissingExtra
            If ``shap`` is not installed.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> X = np.array([[1.0, 2.0], [3.0, 5.0]])
        >>> best = po.solve(1.0 * po.GradientMatching(X))
        >>> best.to_shap(X).values  # doctest: +SKIP
        array([[1., 2.],
               [3., 5.]])
        """
        data, shown = inputs_of(X, self)
        package = require("shap")
        D = self.shape[1]
        base = self.base_value if self.units == "output" else None
        return package.Explanation(
            values=np.array(self.attributions),
            base_values=NoBaseValue() if base is None else np.array(base, float),
            data=data,
            display_data=shown,
            feature_names=list(self.labels.feature_names(D)),
            compute_time=self.seconds,
        )

    @classmethod
    def from_shap(cls, explanation: Any) -> Explanation:
        """The attributions, names and base values of a ``shap.Explanation`` (N, D).

        Parameters
        ----------
        explanation : shap.Explanation (N, D)
            Of one output.

        Returns
        -------
        Explanation
            In units ``"output"``; ``base_value`` (N,) is what the attributions of a row
            are added to, where that is told.

        Raises
        ------
        InvalidInput
            If it is something else, is of several outputs, or holds a value that is not
            finite.
        """
        if not is_shap(explanation):
            raise InvalidInput(
                "explanation: expected a shap.Explanation, got "
                f"{type(explanation).__name__}; other attributions are "
                "po.results.Explanation(attributions=W, method=...)"
            )
        return explanation_of(explanation, "shap")

    def clear(
        self,
        delta: float | None = None,
        *,
        order: OrderBy = "size",
        groups: Mapping[str, Sequence[str]] | None = None,
    ) -> Clear:
        """Signs and places that no small change of a row turns.

        A sign or a place is clear if it survives every change of its row by ``delta``
        that keeps the row's sum. It is also the same in the contributions that the
        explanation is faithful to, and at twice the move away from them. For slopes,
        the slopes before optimization take their place, and there is no sum. Where
        neither is known, only changes by ``delta`` are considered.

        Parameters
        ----------
        delta : float, optional
            The length of the change, Euclidean, in the unit of the attributions; by
            default 5 % of the root mean square size of a row.
        order : {"size", "value"}
            Places of |w|, or of w.
        groups : mapping of a name to the features it stands for, optional
            Sums of features in place of these.

        Returns
        -------
        Clear
            ``sign`` and ``order``, whether each entry's is clear, with a table.

        Raises
        ------
        InvalidInput
            If ``delta`` is no length, or a group has no such feature.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> W = np.array([[2.0, -1.0, 0.05]])
        >>> parts = po.results.Explanation(
        ...     attributions=W, method="mine", units="output"
        ... )
        >>> clear = parts.clear()
        >>> round(clear.delta, 3), clear.sign.tolist()
        (0.112, [[True, True, False]])
        """
        return clear_of(self, delta=delta, by=order, groups=groups)

    def certain(
        self,
        budget: float | None = None,
        objective: Objective | PropertyLoss | None = None,
        *,
        rows: Sequence[Hashable] | None = None,
        order: OrderBy = "size",
        groups: Mapping[str, Sequence[str]] | None = None,
    ) -> NearOptimalConclusions:
        """What holds in every explanation whose objective is almost as good.

        All V with F(V) ≤ F(W) + β lie within √(β [H⁻¹]_nd,nd) of an optimal w_nd, where
        H is half the Hessian of the squared losses; with further convex losses no
        farther. The price of a sign is w²/[H⁻¹]: the least rise of the objective at
        which another explanation has another sign.

        Parameters
        ----------
        budget : float, optional
            δ for each statement, in the unit of the attributions: β = aδ², with a the
            weight of faithfulness, is what moving one row by δ costs in faithfulness.
            By default 5 % of the root mean square size of a row. Every explanation
            within the budget is at most δ from the optimum.
        objective : Objective, optional
            What it was optimized for; needed after loading, when it is not known.
        rows : sequence of labels or ints, optional
            Rows whose orders are wanted, by name or position. All by default, where
            their blocks of H⁻¹ can be afforded; of many points only the rows named here
            have half-widths that are as narrow as can be, by one block of conjugate
            gradients each.
        order : {"size", "value"}
            Ranks of |w|, or of w.
        groups : mapping of a name to the features it stands for, optional
            Sums of features in place of these, as :meth:`grouped` has them: ⟨ℓ, W⟩ for
            ℓ of ones on a group is off by at most √(β ⟨ℓ, H⁻¹ℓ⟩).

        Returns
        -------
        Certain
            Signs, ranks, half-widths and prices, with a table of them.

        Raises
        ------
        InvalidInput
            If no objective or no certificate is known, or there is no such row.
        Refused
            If there is no squared gradient-matching loss, or a limit is zero.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> objective = po.GradientMatching(np.array([[3.0, 0.01], [2.0, -0.02]]))
        >>> best = po.solve(objective + po.PairwiseRobustness(po.graphs.chain_graph(2)))
        >>> best.certain().to_frame()[["certain", "positive"]]
                 certain  positive
        feature
        x0           1.0       1.0
        x1           0.0       0.0
        """
        own, program = None, self.scaled_program
        if objective is not None or program is None:
            own, program = self._asked(objective, "certain")
        known = self if own is None else with_certificate(self, own)
        return certain_of(
            known, program, budget=budget, rows=rows, order=order, groups=groups
        )

    def reasons(
        self,
        k: int = N_REASONS,
        towards: Towards = "higher",
        groups: Mapping[str, Sequence[str]] | None = None,
        *,
        least_share: float = LEAST_SHARE,
        delta: float | None = None,
        rows: Sequence[Hashable] | None = None,
    ) -> Reasons:
        """The k largest contributions of each row towards a decision.

        They are ranked by the contributions that the explanation is faithful to, where
        these are known: for a model that is computed exactly, the exact ones. The
        optimized contribution stands next to each, with whether direction and place
        are clear (:meth:`clear`). No larger contribution is left out.

        Parameters
        ----------
        k : int
            How many reasons a row has at most; fewer contributions are fewer reasons.
        towards : {"higher", "lower"}
            The side of the output that the decision is on: of the probability of a
            default, a loan is refused on the higher one.
        groups : mapping of a name to the features it stands for, optional
            Features that are one reason, by the sum of their contributions; a feature
            in no group is one by itself.
        least_share : float
            A contribution below this share of all those towards the decision in its
            row is no reason. The sheet says how many there are.
        delta : float, optional
            The change of a row that clear reasons survive, in the unit of the output;
            by default 5 % of the root mean square size of a row.
        rows : sequence of labels or ints, optional
            Rows whose reasons are wanted, by name or position; all by default.

        Returns
        -------
        Reasons
            With a table of them, a sheet for each row, and shares of clear ranks.

        Raises
        ------
        InvalidInput
            If attributions are slopes and no contributions, or there is no such row or
            feature.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> W = np.array([[2.0, -1.0, 0.5], [1.5, -0.5, 0.6]])
        >>> parts = po.results.Explanation(
        ...     attributions=W, method="mine", units="output"
        ... )
        >>> print(parts.reasons(k=2).sheet(0))
        Row 0: reasons for a higher output, in units of the output
          1. x0: +2, clear
          2. x2: +0.5, clear
        """
        settings: dict[str, Any] = {"k": k, "towards": towards, "groups": groups}
        settings |= {"least_share": least_share, "delta": delta, "rows": rows}
        return reasons_of(self, **settings)

    def shares(self, objective: Objective | PropertyLoss | None = None) -> Shares:
        """Losses as shares kept and removed, and in units of attributions.

        Parameters
        ----------
        objective : Objective, optional
            What to measure against: needed for baselines, and after loading; by default
            what the explanation was optimized for.

        Returns
        -------
        Shares
            With a table of them.

        Raises
        ------
        InvalidInput
            If no objective is known, or it is of another table.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> G = np.array([[0.0, 1.0], [2.0, 1.0]])
        >>> objective = po.GradientMatching(G) + po.PairwiseRobustness(
        ...     po.graphs.chain_graph(2)
        ... )
        >>> mine = po.results.Explanation(attributions=G + 0.5, method="mine")
        >>> mine.shares(objective)
        Shares(50.0 % of faithfulness retained; 0.0 % of pairwise_robustness ...
        """
        return shares_of(self, *self._asked(objective, "shares"))

    @property
    def problem_arrays(self) -> Mapping[str, NDArray[Any]]:
        """What a file says of the program; of a loaded explanation what its file did.

        Arrays by their names: targets, graphs and totals of the losses.
        """
        program = self.program or self.scaled_program
        if self.problem_data or program is None:
            return self.problem_data
        problem_data, scales = problem_data_of(program, self.shape), self.scales
        if scales is None or self.contributions is None:
            return problem_data
        return in_units_of_w(problem_data, self.contributions, scales)

    @property
    def loss_shares(self) -> dict[str, float]:
        """By name what is kept of each faithfulness loss, and removed of every other.

        Of the losses as they are known, without attributions; see
        :class:`propopt.results.Shares`. After loading those of the saved objective;
        nothing where no objective is known.
        """
        program = self.program or self.scaled_program
        if program is None:
            return dict(self.recorded_shares)
        ends = IdealNadir.of(program, weighted(self, None, program))
        return ends.shares(self.losses)

    def stability(
        self,
        k: int = TOP,
        objective: Objective | PropertyLoss | None = None,
        *,
        solve: Solve | None = None,
    ) -> ConclusionStability:
        """Whether signs, largest features and order survive other settings.

        The weight of each loss beside faithfulness goes from a half to two, in nine
        steps; a graph of nearest neighbours has half and twice as many, at the same
        weight
        times mean degree; a target that was drawn is drawn again, as far as its blocks
        tell.

        Parameters
        ----------
        k : int
            How many of the largest attributions of a row are compared as a set; at most
            one fewer than there are features.
        objective : Objective, optional
            What it was optimized for; needed after loading, when it is not known.
        solve : callable, optional
            Such as :func:`propopt.solve`: for losses that are not squared, and for
            bounds. Squared losses have a closed form, and need none.

        Returns
        -------
        ConclusionStability
            With a table of what varied.

        Raises
        ------
        InvalidInput
            If no objective is known, or nothing varies.
        Refused
            If there is no closed form, and no solver was given.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> X = np.linspace(-1, 1, 12)[:, None] * [1.0, 2.0]
        >>> objective = po.GradientMatching(X**2 - 0.3) + po.PairwiseRobustness(
        ...     po.graphs.knn_graph(X, 2)
        ... )
        >>> [a.varied for a in po.solve(objective).stability().agreements]
        ['weight of pairwise_robustness', 'neighbours in pairwise_robustness']
        """
        own, program = self._asked(objective, "stability")
        known = self if own is None else replace(self, weights=own.weights)
        return stability_of(known, program, k, solve)

    def _asked(
        self, objective: Objective | PropertyLoss | None, question: str
    ) -> tuple[Objective | None, Program]:
        """The caller's objective, and the program: that, or what it was solved for."""
        _ = self.attributions  # losses, weights and certificate are then theirs
        if objective is not None:
            own = Objective.of(objective)
            return own, Program(own.losses, (), self.shape)
        if self.program is None:
            raise InvalidInput(
                "objective: a loaded explanation has none, nor a baseline, nor "
                "contributions whose columns count by a metric; give the objective, as "
                f"in {question}(objective=...)"
            )
        return None, self.program

    @property
    def scales(self) -> Array | None:
        """√ω (D,), where contributions were optimized in a metric."""
        return None if self.scaled_program is None else np.sqrt(self.metric)  # type: ignore[arg-type]

    def document(self) -> Document:
        """The largest features, the proof, rows beside similar ones, every value."""
        from propopt.results.report.explanation_chapters import explanation_chapters

        return explanation_document(self, partial(explanation_chapters, self))

    def __repr__(self) -> str:
        """One line about an explanation."""
        return explanation_text(self)


# ---- Explanations made elsewhere: whatever carries attributions, as an explanation


def explanation_of(
    source: AttributionsLike, method: str, units: Units = "gradient"
) -> Explanation:
    """The explanation itself, or one of the attributions and names of ``source``."""
    label = "shap" if is_shap(source) else method
    found = read_attributions(source, label, saved=Explanation.load)
    if isinstance(found.explanation, Explanation):
        return found.explanation
    return Explanation(
        attributions=found.values,
        method=label,
        labels=found.labels,
        units=found.units or units,
        base_value=found.base,
    )


def explanations_of(
    many: Iterable[AttributionsLike] | Mapping[str, AttributionsLike],
    noun: str,
    units: Units | None = None,
) -> Iterator[Explanation]:
    """One after the other, named by its key or number; plain tables in these units."""
    own = units or "gradient"
    if isinstance(many, Mapping):
        for name, user_explanation in many.items():
            yield replace(explanation_of(user_explanation, name, own), method=name)
        return
    if hasattr(many, "shape") or isinstance(many, Explanation):
        raise InvalidInput(f"{noun}s: expected a list of them, got one: put it in [ ]")
    for place, user_explanation in enumerate(many, start=1):
        yield explanation_of(user_explanation, f"{noun} {place}", own)


def common_quantity(explanations: Iterable[Explanation]) -> Quantity | None:
    """What all of them explain; None where they differ, or where none tells."""
    told = {one.quantity for one in explanations} - {None}
    return told.pop() if len(told) == 1 else None
