"""Explanations: attributions with losses, certificate and everything measured of them.

Attributions may be computed on first access. An exact curve gives the losses of
hundreds of optima without attributions; each such explanation has
:class:`LazyAttributions` until then.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from propopt.base.arrays import Array, Attributions, Indices, largest_first
from propopt.base.checks import largest_entry, read_count, read_level, read_only
from propopt.base.declared import Lazy
from propopt.base.document import Chapter, Document
from propopt.base.errors import InvalidInput, UncertifiedWarning
from propopt.base.extras import require
from propopt.base.suggestions import NameKind
from propopt.losses import Objective, Program, PropertyLoss
from propopt.losses.algebra import aligned_attributions
from propopt.losses.completeness import Constraint, bounds_of
from propopt.losses.faithfulness import Units
from propopt.proofs.certificate import Certificate
from propopt.proofs.certifying import certify
from propopt.proofs.ideal_nadir import IdealNadir, weighted
from propopt.proofs.near_optimal import OrderBy, with_certificate
from propopt.proofs.optimum import (
    SATISFIED,
    Optimum,
    of_rows,
    refuse_contradiction,
)
from propopt.proofs.problem_data import in_units_of_w
from propopt.proofs.sampling_error import TargetErrorOperator
from propopt.results.certain import NearOptimalConclusions, certain_of
from propopt.results.clear import Clear, clear_of, half_widths, is_exact
from propopt.results.explanation_document import (
    explanation_document,
    explanation_text,
)
from propopt.results.explanation_plots import ExplanationPlots
from propopt.results.interactions import Interactions, interactions_of
from propopt.results.reasons import LEAST_SHARE, Reasons
from propopt.results.selection import Selectable
from propopt.results.shares import Shares, shares_of
from propopt.results.stable import N_REASONS, Stable
from propopt.tables.frames import (
    Labels,
    aligned_vector,
    group_sums,
    name_of_group,
)
from propopt.tables.imported import (
    AttributionsLike,
    NoBaseValue,
    is_shap,
    read_attributions,
)


# ---- Attributions that are computed on first access


_FIELD_NAMES: Final = (
    "gradient",
    "contributions",
    "base_value",
    "prediction",
    "effects",
)
"""Names of fields that ``details`` must not use."""

_ALIKE: Final = 1e-9
"""Relative rounding of a loss that is summed in another order."""

_ROUNDING: Final = 1e-14
"""Relative rounding of differences of squares."""

_PROVED = ("attributions", "losses", "certificate", "details", "target")
"""Fields that follow from attributions once they are computed."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LazyAttributions(Lazy["Explanation"]):
    """Attributions (N, D) that are computed on first access, and a tolerance."""

    shape: tuple[int, int]  # N and D
    tolerance: float  # relative error of the claimed losses that causes no warning

    is_pickled: ClassVar[bool] = True

    def proved(self, best: Explanation, claim: Certificate | None) -> dict[str, Any]:
        """The fields that follow from W; warns if they contradict the claim."""
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
        return {name: best.unread(name) for name in _PROVED}


class Explanation(
    Optimum,
    Selectable,
    kind="propopt explanation",
    noun="a saved explanation",
    version=8,
):
    """One attribution for each row and column, with losses and certificate.

    Print it for a summary. :meth:`to_frame` is the table of attributions, and
    :meth:`top` the columns that matter most. Rows and columns are selected as those of
    a DataFrame: ``best[3]`` is a Series, ``best[3:7]`` an explanation. ``gap`` is the
    proved share by which any explanation could still be better. :meth:`clear` has the
    signs and ranks that no small change of a row's attributions turns, :meth:`certain`
    those of every near-optimal explanation, :meth:`reasons` the reasons of each row.
    :meth:`save` writes a file.

    >>> import numpy as np, propopt as po
    >>> X = np.linspace(-1, 1, 9)[:, None]
    >>> robust = po.PairwiseRobustness(po.graphs.chain_graph(9))
    >>> best = po.solve(po.GradientMatching(3 * X**2) + robust)
    >>> best.to_frame().shape, best.gap < 1e-12
    ((9, 1), True)

    Parameters
    ----------
    attributions : array (N, D) or LazyAttributions
        Row n explains point n. Arrays are read-only; writable ones are copied. Those of
        a point on an exact curve are computed on first access. Until then losses and
        certificate are those of the curve, afterwards those of the attributions; a
        warning reports a difference beyond the tolerance.
    method : str
        ``"optimized"``, or the name of the baseline that made it.
    labels : Labels
        Names of points and features, if the inputs had names.
    parameters : mapping
        The settings of the method.
    weights, losses : mapping
        The weight of each loss in the minimised objective, and its unweighted value.
    certificate : Certificate or None
        The proof of optimality; a baseline has none.
    multipliers : mapping
        For each bound, the weight with which its loss would have the same optimum.
    standard_errors : array (N, D) or None
        Standard errors of attributions that were estimated from samples; None if they
        were not, or if errors are unknown. For optimized attributions they follow from
        the optima for blocks of the target's draws, with ``target.n_blocks − 1``
        degrees of freedom. They do not include the sampling of the data, nor the
        uncertainty of a model of gradients (see :mod:`propopt.inductive`).
    points : array (N, D) or None
        The explained rows: numbers, and codes of categories; NaN is missing.
    categories : mapping
        For each categorical feature, the categories of its codes.
    gradient, contributions : array (N, D) or None
        The target of an optimum: slopes in its units, or parts of the output.
    base_value, prediction : array (N,) or None
        The base of contributions, and their total f(x).
    effects : array (N, D) of bool or None
        Which attributions are effects on the output while others are slopes.
    details : mapping of arrays
        Further arrays of a method: local R², intercepts; for max-differences in l2
        ``edge_weights.<loss>``, one number per edge of the graph.
    solver, seconds : str or None, float
        The solver that was used, and wall-clock time.
    units : {"gradient", "output", "scaled"}
        The units of attributions of numeric features: slopes, output per unit of the
        feature; parts of the output; or slopes times a scale. Attributions of
        categories are always parts of the output.
    evaluations : int
        Rows that the model evaluated for it and for the fit before it; 0 if they were
        not counted.
    model_seconds : float
        Seconds that the model took for them; 0 if unknown, as for sums of functions and
        in jobs, which can be resumed.
    target : TargetError or None
        The cost of the error of an estimated target; None if nothing was optimized.
    quantity : Quantity or None
        The explained quantity; None if unknown, as for imported attributions.
    background : str or None
        SHA-256 of the background rows of contributions.
    together : tuple of tuples of str
        The features of each group whose mixtures data never has, see :meth:`groups`.
    row_size : float or None
        Root mean square of ‖w_n‖ over the reference rows; None: over these rows.
    metric : array (D,) or None
        The weights ω of columns for contributions, 0 for columns that retain their
        contribution; None for equal weights.
    problem_data : mapping of arrays
        Targets, graphs and totals of the losses, written by :meth:`save` so that a file
        can be verified without this package.
    program : Program or None
        The losses and bounds of the optimum. Files leave it out; copies and pickles
        retain it.
    scaled_program : Program or None
        With a ``metric``, the program of Z in its place, where W = Φ + Z diag(√ω).
    """

    rows_are_named: ClassVar[bool] = True
    _words: ClassVar[NameKind | None] = "explanation"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.labels.check(self.unread("attributions").shape, "labels")
        for name in self.details:
            if name in _FIELD_NAMES:
                raise InvalidInput(f"details: {name!r} is a field: give {name}=...")

    def resolve(self, name: str, value: Any) -> None:
        """Store the value of a field that is computed on first access.

        Fields that depend on it are stored too.

        Parameters
        ----------
        name : str
            The name of the field.
        value : object
            The result of its computation. For the attributions of a curve it is the
            whole explanation, with losses and certificate.

        Returns
        -------
        None
            The explanation holds the value.

        Raises
        ------
        InvalidInput
            If the value is not valid, or its shape contradicts another field.

        Warns
        -----
        UncertifiedWarning
            If attributions have other losses than the curve claims.
        """
        lazy = self.unread(name)
        if not isinstance(lazy, LazyAttributions):
            super().resolve(name, value)
            return
        for key, result in lazy.proved(value, self.certificate).items():
            self.store(key, result)

    def measured(self, losses: Objective | PropertyLoss) -> Explanation:
        """A copy of this explanation with the values of additional losses.

        If one of its losses has another value under the same name, its weights and
        certificate are left out.

        Parameters
        ----------
        losses : Objective or PropertyLoss
            The losses to evaluate; weights do not matter.

        Returns
        -------
        Explanation
            With these losses added.
        """
        values = self._values(Objective.of(losses).losses)
        current = self.losses
        both = current.keys() & values.keys()
        agrees = all(math.isclose(values[k], current[k], rel_tol=1e-9) for k in both)
        explanation = self if agrees else self._unclaimed()
        return replace(explanation, losses={**current, **values})

    def _values(self, losses: Sequence[PropertyLoss]) -> dict[str, float]:
        array = aligned_attributions(losses, self, f"{self.method}: attributions")
        return {loss.name: loss.value_at(array) for loss in losses}

    def scaled(self, scale: ArrayLike) -> Explanation:
        """Multiply slopes by a factor for each feature, such as standard deviations.

        Parameters
        ----------
        scale : array or Series (D,)
            Such as standard deviations, from ``schema.scales("std")``, so that features
            of different units can be compared. A Series is aligned by feature names.

        Returns
        -------
        Explanation
            With units ``"scaled"`` and scaled standard errors; ``effects`` do not
            change. Losses, weights, certificate, target and details belong to the old
            units and are left out.

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
        D = self.shape[1]
        sizes = aligned_vector(scale, self.labels.features, "scale", "the explanation")
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
        """Sum the attributions of the features of each group.

        Parameters
        ----------
        groups : mapping of a name to the features it stands for
            Features in no group do not change. A group has the position of its first
            feature.

        Returns
        -------
        Explanation
            Losses, weights, certificate and details belong to the old features and are
            left out. So are standard errors, because correlations of the errors are
            unknown.

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
        W = self.attributions
        labels = self.labels
        sums, names = group_sums(groups, self.features)
        return replace(
            self._elsewhere(W @ sums.T, Labels(labels.points, names)),
            base_value=self.base_value,
            prediction=self.prediction,
            together=self.together_of(groups),
        )

    def groups(self) -> dict[str, tuple[str, ...]]:
        """The features that belong together, by the name of their group.

        Data never has many of the mixtures that separate them
        (``parameters["mixtures never seen"]``), so that only the sum of their
        contributions is backed by data. A contribution is not clear if the sum of its
        group has the other sign, and no order within a group is clear.

        Returns
        -------
        dict
            Two features or more in each group; also an argument of :meth:`grouped`,
            :meth:`reasons` and :func:`propopt.explain`. Empty if none were found, or
            were not looked for: only Shapley values of tables of 100 rows or more have
            them.

        Examples
        --------
        >>> import numpy as np, pandas as pd, propopt as po
        >>> limit, age, noise = np.random.default_rng(0).normal(size=(3, 400))
        >>> X = pd.DataFrame({"limit": limit, "age": age, "used": limit + 0.1 * noise})
        >>> best = po.explain(lambda X: X.limit * 6 - X.used * 5 + X.age, X[:5], data=X)
        >>> best.groups()
        {'limit and used': ('limit', 'used')}
        """
        return {name_of_group(members): members for members in self.together}

    def _elsewhere(
        self, attributions: Attributions, labels: Labels | None = None
    ) -> Explanation:
        """Other attributions of the same rows, without measured values."""
        of_rows = self._fields_of("rows") if labels is None else {}
        return Explanation(
            attributions=read_only(attributions),
            labels=labels or self.labels,
            **self._fields_of("method"),
            **of_rows,
        )

    def _unclaimed(self) -> Explanation:
        """The same attributions without weights, certificate and program."""
        return replace(
            self,
            weights={},
            multipliers={},
            target=None,
            recorded_shares={},
            problem_data={},
            certificate=None,
            program=None,
            scaled_program=None,
        )

    def to_frame(self) -> pd.DataFrame:
        """The attributions as a DataFrame (N, D), with the names of the input."""
        return self.labels.frame(self.attributions)

    def intervals(self, level: float = 0.95) -> Array:
        """The lower and upper ends of intervals for sampling, by Student's t.

        They are for the attributions without sampling error. Each holds in this share
        of the seeds, so that this share of the intervals of a table holds on average.
        The errors of the model and of its data are not in them.

        Parameters
        ----------
        level : float
            Between 0 and 1: the share of intervals that hold.

        Returns
        -------
        array (N, D, 2)
            Both ends are the attribution if it is exact.

        Raises
        ------
        InvalidInput
            If standard errors are unknown, as for imported attributions, or the level
            is not between 0 and 1.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> X = np.random.default_rng(0).normal(size=(200, 12))
        >>> f = lambda rows: np.exp(rows[:, 0] * rows[:, 1])
        >>> best = po.explain(f, X[:2], data=X)
        >>> best.intervals()[1, :3].round(2)
        array([[ 1.63,  3.02],
               [-3.02, -1.63],
               [ 0.  ,  0.  ]])
        """
        if self.standard_errors is None and not is_exact(self):
            raise InvalidInput(
                "intervals: standard errors of these attributions are unknown; "
                "expected those of po.explain(model, X, data)"
            )
        W = self.attributions
        reach = half_widths(self, read_level(level))
        return np.stack([W - reach, W + reach], axis=-1)

    def _table_of(self, rows: Indices) -> pd.DataFrame:
        return self.labels.of_columns().frame(self.attributions[rows])

    def _of_rows(self, rows: Indices) -> Explanation:
        return of_rows(replace(self, problem_data=self.problem_arrays), rows)

    def certified(
        self,
        objective: Objective | PropertyLoss,
        *,
        subject_to: Sequence[Constraint] = (),
    ) -> Explanation:
        """This explanation with the losses and the certificate of an objective.

        :func:`propopt.proofs.certify` uses only the attributions and the multipliers of
        bounds. For max-differences a solver with dual variables may give a smaller gap.

        Parameters
        ----------
        objective : Objective or PropertyLoss
            The objective to certify for.
        subject_to : sequence of bounds and constraints
            As for :func:`propopt.solve`.

        Returns
        -------
        Explanation
            With weights, losses, multipliers and certificate.

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
        """The k features with the largest mean |w| over the rows.

        Parameters
        ----------
        k : int
            The number of features; all if there are fewer.

        Returns
        -------
        DataFrame
            For each feature ``mean`` and ``mean_size``, of w and |w| over rows, and
            ``raises`` and ``lowers``, the shares of rows with w > 0 and w < 0.

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
            index=pd.Index(self.features, name="feature"),
        )
        order = largest_first(table["mean_size"].to_numpy())
        return table.iloc[order[: read_count(k, "k")]]

    def save(self, path: str | Path) -> None:
        """Write the explanation to an ``.npz`` file: arrays and a JSON header.

        Raises
        ------
        InvalidInput
            If the folder does not exist, or a field could not be loaded again.

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
        complete = replace(
            self,
            recorded_shares=self.loss_shares,
            problem_data=self.problem_arrays,
        )
        super(Explanation, complete).save(path)

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        objective: Objective | PropertyLoss | None = None,
        subject_to: Sequence[Constraint] = (),
    ) -> Explanation:
        """Read an explanation that :meth:`save` wrote.

        Parameters
        ----------
        path : path
            The file.
        objective, subject_to
            If given, losses and certificate are computed again by :meth:`certified`.
            Else a certificate that contradicts the stored losses is refused.

        Returns
        -------
        Explanation
            The explanation, without its program.

        Raises
        ------
        InvalidInput
            If the file holds something else, or contradicts itself.
        FileNotFoundError
            If there is no file.
        """
        if objective is None:
            return super().load(path)
        return cls.load_unvalidated(path).certified(objective, subject_to=subject_to)

    def validate(self) -> None:
        """Raise an error for wrong losses, category codes and sums of rows."""
        refuse_contradiction(self)
        names = self.features
        members = [name for group in self.together for name in group]
        if len({*members} & {*names}) < len(members):
            raise InvalidInput("together: expected features, each in one group")
        for name, words in self.categories.items():
            if self.points is None or name not in names:
                raise InvalidInput(f"categories: {name!r} is no feature with values")
            codes = self.points[:, names.index(name)]
            if not np.isin(codes, np.arange(len(words))).all():
                raise InvalidInput(
                    f"points: {name}: expected codes below {len(words)}, the number of "
                    "categories"
                )
        self._refuse_other_loss()
        base = self.base_value
        total = self.prediction
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
        """Refuse a loss of gradient matching that differs from ‖W − G‖²."""
        stated = self.losses.get("gradient_matching")
        target = self.gradient
        omega = np.ones(self.shape[1]) if self.metric is None else self.metric
        if target is None and (
            self.metric is not None or self.parameters.get("metric") == "uniform"
        ):
            target = self.contributions
        if stated is None or target is None:
            return
        moves = omega > 0.0  # others retain their contributions
        change_of_fixed = np.abs(self.attributions - target)[:, ~moves].max(initial=0.0)
        size = largest_entry(self.attributions)
        W = self.attributions[:, moves]
        target = target[:, moves]
        omega = omega[moves]
        loss = float(((W - target) ** 2 / omega).sum())
        lost = change_of_fixed > SATISFIED * size
        rounding = _ROUNDING * float(((W**2 + target**2) / omega).sum())
        if lost or not abs(loss - stated) <= _ALIKE * max(loss, stated) + rounding:
            raise InvalidInput(
                f"losses: gradient_matching is {stated:.9g}, but it is "
                f"{np.inf if lost else loss:.9g} for this target and these attributions"
            )

    def to_shap(self) -> Any:
        """Convert to a ``shap.Explanation``, for the plots of ``shap``.

        Needs ``pip install "propopt[baselines]"``. Contributions (units ``"output"``)
        have their base values if known. Slopes do not add up and have none: plots of
        sums (waterfall, decision, force) are refused and need contributions.

        Returns
        -------
        shap.Explanation
            With ``values``, ``feature_names``, ``output_names``, the quantity and unit
            of the values, and if known ``base_values`` and ``data``, the values of the
            features, by which plots colour points: categories by their codes, and by
            name in ``display_data``. Axes of ``shap`` say "SHAP value" for any values:
            give them this name.

        Raises
        ------
        MissingExtra
            If ``shap`` is not installed.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> W = np.array([[1.0, 2.0], [3.0, 5.0]])
        >>> best = po.solve(1.0 * po.GradientMatching(W))
        >>> best.to_shap().values  # doctest: +SKIP
        array([[1., 2.],
               [3., 5.]])
        """
        package = require("shap")
        N, D = self.shape
        base = self.base_value if self.units == "output" else None
        shown = None
        if self.categories:
            cells = [[self.value_of(n, j) for j in range(D)] for n in range(N)]
            shown = np.array(cells, dtype=object)
        return package.Explanation(
            values=np.array(self.attributions),
            base_values=NoBaseValue() if base is None else np.array(base, float),
            data=self.points,
            display_data=shown,
            feature_names=list(self.features),
            output_names=self.units_in_words,
            compute_time=self.seconds,
        )

    @classmethod
    def from_shap(cls, explanation: Any) -> Explanation:
        """Convert a ``shap.Explanation`` (N, D), with its names and base values.

        Parameters
        ----------
        explanation : shap.Explanation (N, D)
            For one output.

        Returns
        -------
        Explanation
            In units ``"output"``, with ``base_value`` (N,) if there is one.

        Raises
        ------
        InvalidInput
            If it is something else, has several outputs, or values that are not finite.
        """
        if not is_shap(explanation):
            raise InvalidInput(
                "explanation: expected a shap.Explanation, got "
                f"{type(explanation).__name__}; for other attributions write "
                "po.results.Explanation(attributions=W, method=...)"
            )
        return explanation_of(explanation, "shap")

    def clear(
        self,
        small_change: float | None = None,
        *,
        order: OrderBy = "size",
        groups: Mapping[str, Sequence[str]] | None = None,
    ) -> Clear:
        """Find signs and ranks that no small change of the row's attributions flips.

        A sign or a rank is clear if it survives all changes of its row's attributions
        by ``small_change`` that preserve their sum. It must also be the same in the
        contributions before optimization, and at twice the move away from them. For
        slopes, these are the slopes before optimization, and there is no sum. If
        neither is known, only changes by ``small_change`` are considered.

        Parameters
        ----------
        small_change : float, optional
            The length of the change, Euclidean, in the unit of the attributions; by
            default 5 % of the root mean square size of a row.
        order : {"size", "value"}
            Ranks of |w|, or of w.
        groups : mapping of a name to the features it stands for, optional
            Replace features by the sums over groups.

        Returns
        -------
        Clear
            With ``sign`` and ``order`` (N, D), whether each is clear, and a table.

        Raises
        ------
        InvalidInput
            If ``small_change`` is negative, or a group has an unknown feature.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> W = np.array([[2.0, -1.0, 0.05]])
        >>> parts = po.results.Explanation(
        ...     attributions=W, method="mine", units="output"
        ... )
        >>> clear = parts.clear()
        >>> round(clear.small_change, 3), clear.sign.tolist()
        (0.112, [[True, True, False]])
        """
        return clear_of(self, small_change=small_change, by=order, groups=groups)

    def certain(
        self,
        small_change: float | None = None,
        objective: Objective | PropertyLoss | None = None,
        *,
        rows: Sequence[Hashable] | None = None,
        order: OrderBy = "size",
        groups: Mapping[str, Sequence[str]] | None = None,
    ) -> NearOptimalConclusions:
        """Find the signs and ranks that all near-optimal explanations share.

        All V with F(V) ≤ F(W) + β lie within √(β [H⁻¹]_nd,nd) of an optimal w_nd, where
        H is half the Hessian of the squared losses; other convex losses only narrow
        this. The price of a sign is w²/[H⁻¹]: the least increase of the objective at
        which an explanation has the other sign.

        Parameters
        ----------
        small_change : float, optional
            δ for each statement, in the unit of the attributions: β = aδ², with a the
            weight of faithfulness, is the cost in faithfulness of moving one row by δ.
            By default 5 % of the root mean square size of a row. Every explanation
            within the budget is at most δ from the optimum.
        objective : Objective, optional
            The minimised objective; required after loading.
        rows : sequence of labels or ints, optional
            Rows for which ranks are computed, by name or position. All by default, if
            their blocks of H⁻¹ are affordable. For many points, only rows named here
            have the narrowest half-widths, by conjugate gradients. Ranks of other rows
            follow from their half-widths.
        order : {"size", "value"}
            Ranks of |w|, or of w.
        groups : mapping of a name to the features it stands for, optional
            Replace features by the sums over groups, as in :meth:`grouped`: ⟨ℓ, W⟩ for
            ℓ of ones on a group varies by at most √(β ⟨ℓ, H⁻¹ℓ⟩).

        Returns
        -------
        Certain
            With signs, ranks, half-widths and prices, and a table of them.

        Raises
        ------
        InvalidInput
            If objective or certificate are unknown, or a row does not exist.
        Refused
            If there is no squared gradient-matching loss, or a limit is zero.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> objective = po.GradientMatching(np.array([[3.0, 0.01], [2.0, -0.02]]))
        >>> best = po.solve(objective + po.PairwiseRobustness(po.graphs.chain_graph(2)))
        >>> best.certain().to_frame()[["certain_rows", "certainly_positive"]]
                 certain_rows  certainly_positive
        feature
        x0                1.0                 1.0
        x1                0.0                 0.0
        """
        given = None
        program = self.scaled_program
        if objective is not None or program is None:
            given, program = self._program_of(objective, "certain")
        explanation = self if given is None else with_certificate(self, given)
        return certain_of(
            explanation,
            program,
            small_change=small_change,
            rows=rows,
            order=order,
            groups=groups,
        )

    def reasons(
        self,
        k: int = N_REASONS,
        towards: str = "higher",
        groups: Mapping[str, Sequence[str]] | None = None,
        *,
        least_share: float = LEAST_SHARE,
        small_change: float | None = None,
        rows: Sequence[Hashable] | None = None,
        models: Sequence[Any] | None = None,
    ) -> Reasons:
        """List the k largest contributions of each row towards a decision.

        Reasons are ranked by the contributions before optimization if these are known;
        they are exact for a model that is computed exactly. The optimized contribution
        stands next to each, with whether direction and rank are clear (:meth:`clear`).
        No larger contribution is left out.

        Parameters
        ----------
        k : int
            The largest number of reasons of a row.
        towards : {"higher", "lower"} or str
            The output that the decision is for: a loan is refused for a higher
            probability of default. Or one of two classes, by its name of ``outcome=``.
        groups : mapping of a name to the features it stands for, optional
            Features that are one reason, by the sum of their contributions; other
            features are separate.
        least_share : float
            A contribution below this share of all those towards the decision in its
            row is no reason.
        small_change : float, optional
            The change of a row that clear reasons survive, in the unit of the output;
            by default 5 % of the root mean square size of a row.
        rows : sequence of labels or ints, optional
            Rows to list reasons for, by name or position; all by default. For more than
            100,000 rows the default is a sample of 2,000, and shares of clear reasons
            have 95 % intervals.
        models : sequence, optional
            Retrained models, as for :meth:`stable`. Each reason then has the number of
            models with it among the first k, and whether it is stable.

        Returns
        -------
        Reasons
            With a table, a sheet for each row, and shares of clear ranks.

        Raises
        ------
        InvalidInput
            If attributions are slopes, or a row or a feature does not exist.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> W = np.array([[2.0, -1.0, 0.5], [1.5, -0.5, 0.6]])
        >>> parts = po.results.Explanation(
        ...     attributions=W, method="mine", units="output"
        ... )
        >>> print(parts.reasons(k=2).sheet(0))
        Row 0
        for a higher output, in units of the output
          feature  contribution  clear
          x0               2.00  yes
          x2               0.50  yes
        <BLANKLINE>
          stable          not tested by refits
          sampling error  unknown
        """
        N = self.shape[0]
        positions = None
        if rows is not None:
            positions = [self.labels.position(row, N) for row in rows]
        return Reasons.of(
            self,
            k=k,
            towards=towards,
            groups=groups,
            rows=positions,
            least_share=least_share,
            small_change=small_change,
            models=models,
        )

    def stable(
        self,
        models: Sequence[Any],
        k: int = N_REASONS,
        towards: str = "higher",
        groups: Mapping[str, Sequence[str]] | None = None,
        *,
        progress: bool | None = None,
    ) -> Stable:
        """Find reasons that models of other training samples share.

        The contributions of each model are computed for the same rows, background,
        groups and output. A reason is stable if it stays among the k largest towards
        the decision, in the same direction, by a rule of which at least 95 % of the
        statements held in models that were trained on fresh samples. For fewer than
        500 rows of data no reason is called stable as the first.

        Parameters
        ----------
        models : sequence
            At least five retrained models, best ten of
            :func:`propopt.null_models.bootstrap_refits`.
        k, towards, groups
            As for :meth:`reasons`.
        progress : bool, optional
            Whether to show a progress bar; by default only on a terminal.

        Returns
        -------
        Stable
            With masks of stable directions and reasons, votes, and a table by feature.

        Raises
        ------
        InvalidInput
            If a model has another output or other columns, or if contributions of
            models cannot be computed, as the explanation was loaded, for example.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> from sklearn.linear_model import LinearRegression
        >>> rng = np.random.default_rng(0)
        >>> X, noise = rng.normal(size=(600, 3)), rng.normal(size=600)
        >>> y = X @ [3.0, 1.0, 0.0] + noise
        >>> model = LinearRegression().fit(X, y)
        >>> refits = po.null_models.bootstrap_refits(model, X, y)
        >>> stable = po.explain(model, X[:100], data=X).stable(refits, k=1)
        >>> round(stable.stable_reasons, 2)
        0.79
        """
        return Stable.of(
            self, models, k=k, towards=towards, groups=groups, progress=progress
        )

    def interactions(self) -> Interactions:
        """Split the contributions before optimization into features and pairs of them.

        They are the exact Shapley interaction values of
        :class:`propopt.explainers.TreeInteractions`, for the rows, background, groups
        and output of this explanation.

        Returns
        -------
        Interactions
            With ``from_pairs``, the share of each feature that comes from pairs.

        Raises
        ------
        InvalidInput
            If the model is not read as a sum of trees, or the explanation does not know
            it, as it was loaded, for example.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> model = DecisionTreeRegressor(max_depth=6, random_state=0)
        >>> best = po.explain(model.fit(X, X[:, 0] * X[:, 1]), X[:50], data=X)
        >>> best.interactions().from_pairs.round(1)
        array([0.7, 0.8])
        """
        if self.retrained is None:
            raise InvalidInput(
                "interactions: this explanation does not know its model, as it was "
                "loaded, is of documents or slopes, or was made elsewhere; expected "
                "one of po.explain(model, X, data), or use "
                "po.explainers.TreeInteractions"
            )
        assert self.contributions is not None, "with rows that can be explained again"
        return interactions_of(self, self.contributions, *self.retrained.pairs())

    @property
    def plot(self) -> ExplanationPlots:
        """Plots: ``best.plot()``, or a method such as ``best.plot.scatter("bmi")``."""
        return ExplanationPlots(self)

    def shares(self, objective: Objective | PropertyLoss | None = None) -> Shares:
        """How much faithfulness is kept, and how much of other losses is removed.

        Parameters
        ----------
        objective : Objective, optional
            The losses to measure; by default those of the optimum. Required for
            baselines and after loading.

        Returns
        -------
        Shares
            With a table of shares, losses and sizes.

        Raises
        ------
        InvalidInput
            If no objective is known, or it belongs to another table.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> G = np.array([[0.0, 1.0], [2.0, 1.0]])
        >>> objective = po.GradientMatching(G) + po.PairwiseRobustness(
        ...     po.graphs.chain_graph(2)
        ... )
        >>> mine = po.results.Explanation(attributions=G + 0.5, method="mine")
        >>> mine.shares(objective).faithfulness_kept
        {'gradient_matching': 0.5}
        """
        given, program = self._program_of(objective, "shares")
        return shares_of(self, given, program, self._values(program.all_losses))

    @property
    def problem_arrays(self) -> Mapping[str, NDArray[Any]]:
        """The arrays of the problem to save, by name: targets, graphs and totals."""
        program = self.program or self.scaled_program
        if self.problem_data or program is None:
            return self.problem_data
        problem_data = program.problem_data(self.shape)
        scales = self.scales
        if scales is None or self.contributions is None:
            return problem_data
        return in_units_of_w(problem_data, self.contributions, scales)

    @property
    def loss_shares(self) -> dict[str, float]:
        """The kept share of faithfulness and the removed share of each other loss.

        They follow from the losses without attributions, see
        :class:`propopt.results.Shares`. After loading they are those of the saved
        objective; empty without an objective.
        """
        if self._ends is None:
            return dict(self.recorded_shares)
        return self._ends.shares(self.losses)

    @cached_property
    def _ends(self) -> IdealNadir | None:
        """The losses at both ends of the trade-off; None without a program."""
        program = self.program or self.scaled_program
        if program is None:
            return None
        return IdealNadir.of(program, weighted(self, None, program))

    def _program_of(
        self, objective: Objective | PropertyLoss | None, question: str
    ) -> tuple[Objective | None, Program]:
        """The given objective and its program, or the program of the optimum."""
        _ = self.attributions  # losses, weights and certificate follow from them
        if objective is not None:
            given = Objective.of(objective)
            return given, Program(given.losses, (), self.shape)
        if self.program is None:
            raise InvalidInput(
                "objective: this explanation has none, as it was loaded, has some rows "
                "of another, is a baseline or was computed with a metric; give the "
                f"objective, as in {question}(objective=...)"
            )
        return None, self.program

    def document(self) -> Document:
        """Summarise the largest features, the certificate and similar rows."""
        return explanation_document(self, self._chapters)

    def _chapters(self) -> list[Chapter]:
        from propopt.results.report.explanation_chapters import explanation_chapters

        return explanation_chapters(self)

    def __repr__(self) -> str:
        return explanation_text(self)


class ExplanationsByClass(dict[Any, Explanation]):
    """The explanations of several classes of a model, by class.

    >>> import propopt as po
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = DecisionTreeClassifier(max_depth=2).fit(X, y)
    >>> by_class = po.explain(model, X.iloc[::5], data=X)
    >>> list(by_class), by_class.to_frame()[2].shape
    ([0, 1, 2], (30, 4))
    """

    def to_frame(self) -> pd.DataFrame:
        """The attributions (N, K D) of K classes, by class and feature."""
        tables = {label: best.to_frame() for label, best in self.items()}
        return pd.concat(tables, axis=1, names=["class", "feature"])


# ---- Attributions of other packages as explanations


def explanation_of(
    source: AttributionsLike, method: str, units: Units = "gradient"
) -> Explanation:
    """Convert attributions of any kind to an explanation."""
    label = "shap" if is_shap(source) else method
    imported = read_attributions(source, label, saved=Explanation.load)
    if isinstance(imported.explanation, Explanation):
        return imported.explanation
    return Explanation(
        attributions=imported.values,
        method=label,
        labels=imported.labels,
        units=imported.units or units,
        base_value=imported.base,
    )


def explanations_of(
    many: Iterable[AttributionsLike] | Mapping[str, AttributionsLike],
    noun: str,
    units: Units | None = None,
) -> Iterator[Explanation]:
    """Convert several attributions to explanations, named by their key or number."""
    default_units = units or "gradient"
    if isinstance(many, Mapping):
        for name, user_explanation in many.items():
            yield replace(
                explanation_of(user_explanation, name, default_units), method=name
            )
        return
    if hasattr(many, "shape") or isinstance(many, Explanation):
        raise InvalidInput(f"{noun}s: expected a list of them, got one: put it in [ ]")
    for number, user_explanation in enumerate(many, start=1):
        yield explanation_of(user_explanation, f"{noun} {number}", default_units)
