"""Evidence of an audit: the audited values, their model, and values to compare with.

Interventional Shapley values are computed exactly for every sum of products of
functions of one column (trees, kernel machines, additive models), so that values from
other packages are compared with the truth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import tee
from typing import Any, Final, NoReturn, TypeAlias, final

import numpy as np
from scipy.special import expit, logit

from propopt.base.arrays import Array, Attributions, Mask, Points, Values
from propopt.base.checks import largest_entry
from propopt.base.errors import InvalidInput, PropoptError
from propopt.base.text import Outcome, QuantityKind, Reason, plural
from propopt.explaining.contributions import ContributionRule
from propopt.explaining.explainers.main_effects import (
    DifferenceShares,
    MainEffects,
    main_effects_of,
)
from propopt.explaining.sources import (
    ReferenceHypothesis,
    ReferenceSources,
    adds_up_to,
)
from propopt.explaining.targets import Targets, coordinates_of, sizes_of
from propopt.functions import Function
from propopt.functions.means import CheckedStructure
from propopt.functions.models import NumericalModel, structure_of
from propopt.functions.outputs import Target, outputs_of
from propopt.functions.wrapping import ReferenceTable, wrap_with_table
from propopt.laws.background import N_BACKGROUND, Background, Reference
from propopt.losses.graphs.points import Graph, knn_graph
from propopt.results.audit import LARGE_SHARE
from propopt.results.explanation import Explanation
from propopt.structures.fitted_model import FittedModel
from propopt.structures.products.sums import SumOfProducts
from propopt.tables.frames import Labels, listed
from propopt.tables.imported import (
    AttributionsLike,
    ImportedAttributions,
    read_attributions,
)


# ---- Which output of the model the values are parts of


_OUTPUTS: Final[Mapping[str, tuple[Any, ...]]] = {
    "log_odds": ("log_odds", "margin"),
    "probability": ("probability", "value"),
    "margin": ("margin",),
    "value": ("value",),
}
"""Outputs to try for each argument: native boosters, for one, have no probabilities."""

_KINDS: Final[Mapping[str, tuple[QuantityKind, ...]]] = {
    "log_odds": ("log_odds", "logit"),
    "probability": ("probability",),
    "margin": ("margin", "log_odds", "log", "logit", "score", "value"),
    "value": ("value",),
}
"""The kinds of quantity that each argument may mean."""


AuditedOutput: TypeAlias = tuple[Function, ReferenceTable, str]
"""An output that values may be parts of, its reader of tables, and its unit."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class AuditedModel:
    """The model of audited values, with its tables, class and names."""

    model: Any
    X: Any
    data: Any
    target: Target
    outcome: Outcome | None

    def outputs(self, output: str | None) -> list[AuditedOutput]:
        """The outputs that values may be parts of: one, unless sums must show it."""
        if isinstance(self.model, Function) or output is not None:
            return [self.output(output)]
        fitted = FittedModel.of(self.model)
        names = outputs_of(fitted) or ["value"]  # which is refused
        if fitted.has("predict_proba") or fitted.has_custom_objective:
            _refuse_open_output(fitted, names, self.target)
        of_names = {name: self.output(name) for name in names}
        kinds = {name: made.quantity.kind for name, (made, _, _) in of_names.items()}
        if "value" in names and kinds.get("margin") == "value":
            del of_names["margin"]  # the prediction itself
        return [*of_names.values()]

    def output(self, name: str | None) -> AuditedOutput:
        """The function of an output that was stated, or a function itself."""
        if name is not None and name not in _OUTPUTS:
            raise InvalidInput(
                f"output: expected one of {listed([*_OUTPUTS])}, got {name!r}"
            )
        is_function = isinstance(self.model, Function)
        errors: list[str] = []
        for kind in ("auto",) if is_function else _OUTPUTS[name or "value"]:
            try:
                function, table = self._wrapped(self.model, self.target, kind)
            except InvalidInput as error:
                errors.append(str(error))
                continue
            quantity = function.quantity
            unit = quantity.unit
            if (name, quantity.kind) == ("probability", "value"):
                unit = "probability"
            elif name is not None and quantity.kind not in _KINDS[name]:
                errors.append(
                    f"output: expected parts of {name!r}, but the function is the "
                    f"{quantity}; wrap the model with output={name!r}; the file of a "
                    "booster has probabilities with output: value"
                )
                continue
            return function.with_categories_of(self.X), table, unit
        raise InvalidInput(errors[0])

    def others(self, function: Function) -> Iterator[tuple[str, Function]]:
        """The other outputs and classes of the model, each with its name."""
        model = self.model
        if isinstance(model, Function):
            structure = structure_of(function)
            if structure is None:
                return
            model = structure.model
        label = function.quantity.label
        kind = function.quantity.kind
        labels = FittedModel.of(model).classes
        targets: list[Any] = [
            label if labels is not None else function.quantity.position
        ]
        if labels is not None and np.ndim(labels) == 1:
            targets += [x for x in np.asarray(labels).tolist() if x != label]
        elif targets[0] is not None:
            targets += [x for x in range(_MAX_OUTPUTS) if x != targets[0]]
        for n, target in enumerate(targets[: _MAX_OUTPUTS + 1]):
            for other in _OUTPUTS:
                if n == 0 and other == kind:
                    continue  # the function itself
                try:
                    made, _ = self._wrapped(model, target, other)
                except PropoptError:
                    continue
                words = other.replace("_", "-")
                if n:
                    words = f"class {target}" + ("" if other == kind else f", {words}")
                yield words, made

    def _wrapped(
        self, model: Any, target: Target, output: Any
    ) -> tuple[Function, ReferenceTable]:
        return wrap_with_table(
            model, self.X, target, output, self.data, None, self.outcome
        )


def _refuse_open_output(
    fitted: FittedModel, names: Sequence[str], target: Target
) -> NoReturn:
    """Ask for the output of a classifier, and for the class of several."""
    classes = fitted.classes
    several = target is None and classes is not None and len(classes) > 2
    words = listed([*names])
    raise InvalidInput(
        "output: required, because the model has several outputs and the values do "
        f"not show which of them they explain; give output= one of {words}"
        + (f", and target= one of {listed([*classes])}" if several else "")
        + "; shap.TreeExplainer gives log-odds for boosted classifiers of two classes, "
        "margins for those of several, and probabilities for forests"
    )


def predictions_of(
    candidates: Sequence[AuditedOutput], points: Points, labels: Labels, rows: Points
) -> list[Values]:
    """The predictions of several candidates, or a question for output and target."""
    predictions: list[Values] = []
    for function, _, _ in candidates if len(candidates) > 1 else ():
        try:
            # the background first: until a model has answered, its errors are named
            function.value_at(rows, labels.of_columns())
            predictions.append(function.value_at(points, labels))
        except InvalidInput as error:
            if not str(error).startswith("target:"):
                raise
            raise InvalidInput(f"{error}; and {_question(candidates)}") from None
    return predictions


def output_of_sums(
    candidates: Sequence[AuditedOutput], predictions: Sequence[Values], W: Attributions
) -> AuditedOutput:
    """The only output that the rows of W add up to, up to a base; else it is asked."""
    if len(candidates) == 1:
        return candidates[0]
    sums = W.sum(axis=1)
    fits = [adds_up_to(sums, predicted) for predicted in predictions]
    if sum(fits) == 1:
        return candidates[fits.index(True)]
    raise InvalidInput(
        "output: required, because the model has several outputs and the rows of "
        f"attributions add up to {'both' if any(fits) else 'neither'}; "
        f"{_question(candidates)}"
    )


def _question(candidates: Sequence[AuditedOutput]) -> str:
    value, margin = (unit for _, _, unit in candidates)
    return f"give output='value' ({value}) or output='margin' ({margin})"


def class_position(
    model: Any, function: Function, points: Points, labels: Labels
) -> tuple[int | None, int | None]:
    """The position of the explained output, and the number of outputs, if known."""
    structure = structure_of(function)
    classes = FittedModel.of(model if structure is None else structure.model).classes
    quantity = function.quantity
    if classes is None:
        if quantity.position is None or not isinstance(function, NumericalModel):
            return quantity.position, None
        row = function.readout.table(points[:1], labels.of_positions(slice(1)))
        return quantity.position, np.asarray(function.readout.method(row)).size
    names = np.asarray(classes).tolist()
    position = names.index(quantity.label) if quantity.label in names else None
    return position, len(names)


def read_parts(
    source: AttributionsLike,
    labels: Labels,
    shape: tuple[int, int],
    position: int | None = None,
    n_outputs: int | None = None,
) -> ImportedAttributions:
    """The audited values in the order of the table, for the explained class."""
    try:
        imported = read_attributions(
            source,
            "attributions",
            labels,
            shape,
            position=position,
            n_outputs=n_outputs,
            saved=Explanation.load,
        )
    except InvalidInput as error:
        if "first is nan" not in str(error):
            raise
        raise InvalidInput(
            f"{error}; if an export left values blank, replace these by 0, with "
            "attributions.fillna(0): the others are checked"
        ) from None
    if imported.explanation is not None and imported.units != "output":
        raise InvalidInput(
            "attributions: expected contributions, which add up to the output, got "
            f"{imported.explanation.units_in_words}; po.explain(model, X, "
            "kind='contributions') computes contributions"
        )
    if imported.values.shape != shape:
        raise InvalidInput(
            f"attributions: expected {shape[0]} rows × {shape[1]} columns, as X has, "
            f"got {' × '.join(map(str, imported.values.shape))}"
        )
    return imported


# ---- Audited values, model and background; everything else is computed when needed


_MAX_OUTPUTS: Final = 20
MAJORITY: Final = 0.5  # share of rows or values above which a pattern is the rule
# relative to the range of predictions, or to the largest value
_RELATIVE_TOLERANCE: Final = 1e-5
# error of sums in single precision, relative to the size of predictions
_SINGLE_PRECISION: Final = 5e-7


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditEvidence:
    """The audited values with their model, rows and background."""

    imported: ImportedAttributions  # W (N, D), and the base that came with it
    function: Function  # f
    unit: str
    points: Points  # (N, D)
    background: Background
    is_given: bool  # the background; otherwise it is the audited rows
    labels: Labels
    graph: Graph | None  # the similar rows, if given
    n_neighbors: int
    seed: int
    model: AuditedModel

    @property
    def W(self) -> Attributions:
        """The audited values, (N, D)."""
        return self.imported.values

    @property
    def E(self) -> Attributions:
        """The exact Shapley values, or sampled ones, (N, D)."""
        return self.targets.estimate.values

    @property
    def is_exact(self) -> bool:
        """True if the Shapley values to compare with are exact, not sampled."""
        return self.targets.estimate.exact

    @cached_property
    def targets(self) -> Targets:
        """Shapley values for the background: exact, or sampled."""
        return self._rule.of(self.points, self.labels)

    @cached_property
    def _rule(self) -> ContributionRule:
        return ContributionRule(
            function=self.function,
            reference=self._reference,
            given_background=self.background,
            rng=self.seed,
        )

    @cached_property
    def _reference(self) -> Reference:
        names = self.labels.of_columns()
        return Reference.of_points(self.background.points, names, self.function.schema)

    @cached_property
    def structure(self) -> SumOfProducts | None:
        """The model as a sum of products, if it is one; it is compared with f."""
        checked = CheckedStructure.of(self.function, self.points.shape[1])
        computed = checked.at(self.points, self.labels)
        return None if isinstance(computed, Reason) or not self.is_exact else computed

    @cached_property
    def prediction(self) -> Values:
        """f(x) for each row, (N,); for the background first.

        Until a model has answered, its errors are named with the table that it refused.
        """
        _ = self._rule.of_background
        return self.function.value_at(self.points, self.labels)

    @cached_property
    def used(self) -> Mask:
        """The columns that the model uses, (D,); all that may be, of a black box."""
        if (structure := self.structure) is None:
            return np.ones(self.points.shape[1], bool)
        paths = structure.paths[structure.values != 0.0]
        used = np.zeros(structure.n_columns, bool)
        used[replace(structure, paths=paths).columns] = True
        return used

    # ---- precision: differences that are rounding

    @cached_property
    def _rounding(self) -> tuple[Array, str]:
        W = self.W
        size = max(largest_entry(self.W), 1e-300)
        for digits in range(-6, 7):
            half = 0.5 * 10.0**-digits
            if half <= size and largest_entry(W - W.round(digits)) <= 1e-12 * size:
                return np.full(W.shape, half), plural(digits, "decimal")
        with np.errstate(divide="ignore"):
            power = np.floor(np.log10(np.abs(W), where=W != 0.0, out=np.zeros(W.shape)))
        for digits in range(1, 7):
            unit = 10.0 ** (power - digits + 1)
            if (np.abs(W - np.round(W / unit) * unit) <= 1e-9 * unit).all():
                return 0.5 * unit * (W != 0.0), plural(digits, "significant digit")
        return np.zeros(W.shape), ""

    @property
    def half_digit(self) -> Array:
        """Half of the last digit of each value, (N, D); 0 if values have all digits."""
        return self._rounding[0]

    @property
    def digits(self) -> str:
        """The digits that values were rounded to, in words."""
        return self._rounding[1]

    @cached_property
    def tolerance(self) -> float:
        """The difference below which two unrounded values are the same."""
        f = self.prediction
        scale = max(float(np.ptp(f)), largest_entry(self.W), 1e-12)
        return _RELATIVE_TOLERANCE * scale + _SINGLE_PRECISION * largest_entry(f)

    @property
    def row_tolerance(self) -> Values:
        """The difference below which a row adds up, (N,)."""
        return self.tolerance + self.half_digit.sum(axis=1)

    @cached_property
    def min_size(self) -> float:
        """The |value| above which a value is large."""
        return LARGE_SHARE * float(np.abs(self.W).max(axis=1).mean())

    def changed_signs(self, V: Attributions, W: Attributions) -> float:
        """The share of values, large in either table, with different signs."""
        is_large = np.maximum(np.abs(V), np.abs(W)) > self.min_size
        changed = is_large & (np.sign(V) != np.sign(W))
        return float(changed.sum()) / max(int(is_large.sum()), 1)

    # ---- sums of rows

    @cached_property
    def _excess(self) -> Array:
        """Σ w − f for each row, minus the base where a row adds up, (N,)."""
        return self.W.sum(axis=1) - self.prediction

    @cached_property
    def base(self) -> Array:
        """The base that was given, or else that of most rows, (N,)."""
        if self.imported.base is not None:
            return self.imported.base
        return np.full(len(self.W), -np.median(self._excess))

    @cached_property
    def missed(self) -> Array:
        """Σ w − (f − base) for each row, (N,)."""
        return self._excess + self.base

    @cached_property
    def implied_base(self) -> Array:
        """The base to which most rows add up, (N,): the given one, or another."""
        base = self.imported.base
        if base is not None and (
            (np.abs(self._excess + base) <= self.row_tolerance).mean() > MAJORITY
        ):
            return base
        return np.full(len(self.W), -np.median(self._excess))

    @cached_property
    def adds_up(self) -> Mask:
        """The rows that add up to the prediction minus the implied base, (N,)."""
        return np.abs(self._excess + self.implied_base) <= self.row_tolerance

    @cached_property
    def other_outputs(self) -> list[tuple[str, Values]]:
        """The predictions of other outputs and classes at the rows, by name."""
        outputs = []
        for words, function in self.model.others(self.function):
            try:
                outputs.append((words, function.value_at(self.points, self.labels)))
            except PropoptError:  # such as infinite log-odds
                continue
        return outputs

    def refuse_other_outputs(self) -> None:
        """Refuse values that add up to another output than the one stated."""
        f = self.prediction
        sums = self.W.sum(axis=1)
        if self.adds_up.mean() > MAJORITY or adds_up_to(sums, f):
            return
        outputs = [
            (words, values, f"give output={words.replace('-', '_')!r}")
            for words, values in self.other_outputs
            if not words.startswith("class")
        ]
        if self.unit == "probability" or self.function.quantity.kind == "probability":
            with np.errstate(divide="ignore"):
                odds = logit(np.clip(f, 0.0, 1.0))
            advice = "divide attributions and base by 100"
            outputs[:0] = [("log-odds", odds, "give output='log_odds'")]
            outputs.append(("percentage", 100.0 * f, advice))
        elif self.function.quantity.kind == "log_odds":
            outputs[:0] = [("probability", expit(f), "give output='probability'")]
        outputs += [
            ("percentage", 100.0 * values, f"{advice}, and divide by 100")
            for words, values, advice in outputs
            if words == "probability"
        ]
        for words, values, advice in outputs:
            if np.isfinite(values).all() and adds_up_to(sums, values):
                raise InvalidInput(
                    f"output: rows of attributions add up to the {words}, not to the "
                    f"{self.unit}; {advice}"
                )

    # ---- values to compare with

    @property
    def base_tolerance(self) -> float:
        """The largest error of a base to which rows add up."""
        return 2.0 * float(self.row_tolerance.max())

    @cached_property
    def base_of_rows(self) -> float | None:
        """The base to which most rows add up; None if they do not."""
        base = float(np.median(self.implied_base))
        return base if self.adds_up.mean() > MAJORITY else None

    @property
    def hypotheses(self) -> Iterator[ReferenceHypothesis]:
        """The sources that values and bases may have, the given background first."""
        return copy(self._sources)

    @cached_property
    def _sources(self) -> Iterator[ReferenceHypothesis]:
        """The start of the sources; each is made once, when it is needed."""
        tolerance = self.tolerance + self.half_digit
        sources = ReferenceSources(
            function=self.function,
            structure=self.structure,
            points=self.points,
            background=self.background,
            labels=self.labels,
            exact=self.E,
            is_given=self.is_given,
            base=self.base_of_rows,
            tolerance=self.base_tolerance,
        )
        return tee((replace(one, tolerance=tolerance) for one in sources), 1)[0]

    # ---- similar rows

    @cached_property
    def main_effects(self) -> MainEffects:
        """G: what each column contributes by its own value alone."""
        rows = self.background
        if self.structure is None:  # the model is evaluated
            rows = rows.ordered(self.function.schema).thinned(N_BACKGROUND)
        return main_effects_of(self.function, self.points, self.labels, rows)

    @cached_property
    def similar(self) -> Graph:
        """The similar rows: nearest in columns over their deviations, if not given."""
        if self.graph is not None:
            return self.graph
        deviations = sizes_of(self.function, self._reference, "std")
        positions = coordinates_of(self.function, self.points, deviations)
        return knn_graph(positions, min(self.n_neighbors, len(positions) - 1))

    @cached_property
    def shares(self) -> DifferenceShares:
        """The differences of similar rows by their cause."""
        return DifferenceShares.of(self.W, self.main_effects, self.similar, self.used)

    @property
    def has_similar_rows(self) -> bool:
        """True if there are similar rows with different values."""
        return len(self.W) > 2 and self.similar.differences.energy(self.W) > 0.0
