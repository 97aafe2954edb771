"""``compare``: two versions of a model at the same rows, or two groups of rows.

A column is flagged if it differs more between versions than refits differ by chance.
The targets of both versions are compared; the prices show what the choice among
near-optimal explanations can account for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import pandas as pd

from propopt.base.arrays import Array, Indices
from propopt.base.checks import errors_of, read_count
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import suggests_arguments
from propopt.base.terminal import progress_bar
from propopt.base.text import QuantityKind
from propopt.explaining.null_models import PooledRefits
from propopt.explaining.problem import (
    CheckedSettings,
    RowsProblem,
    Settings,
    takes,
)
from propopt.explaining.targets import LawChoice, TargetRule, Targets, target_rule
from propopt.functions import Function
from propopt.functions.outputs import (
    METHODS,
    Output,
    Target,
    check_model,
    one_label,
    quantity_of,
    read_output,
)
from propopt.functions.wrapping import wrap_with_table
from propopt.losses.faithfulness import Units
from propopt.results.comparison import (
    MIN_CHANGE,
    Comparison,
    NullLevel,
    column_sizes,
    distances_of,
    mean_changes,
)
from propopt.results.explanation import Explanation, explanation_of
from propopt.structures.fitted_model import FittedModel
from propopt.structures.kinds import TORCH_MODULE, is_a
from propopt.tables.columns import CategoricalColumn
from propopt.tables.frames import (
    as_frame,
    is_frame,
    listed,
    orders_of,
)
from propopt.tables.imported import is_shap, is_tensor
from propopt.tables.schema import TableSchema


# ---- Targets of any model for the same rows, with one background and one base


def _problem_of_versions(
    settings: CheckedSettings, model: Any, data: Any, X: Any
) -> RowsProblem:
    """Rows and settings of the old version; only the model varies between versions."""
    replace(settings, graph=None).refuse_joint_settings()  # versions share a graph
    # one program for both versions: main effects would belong to one of them
    settings = replace(settings, offset=None)
    return RowsProblem.of(settings, model, data, X, None)


def version_of(problem: RowsProblem, model: Any) -> Function:
    """A version of the model as a function of the same columns."""
    settings = problem.settings
    if not isinstance(model, Function):
        table: Any = problem.function.schema
        table = problem.reference.points if table is None else table
        versions = problem.function, model
        kinds = [default_kind(x, settings.target) for x in versions]
        output = shared_output(settings.output, kinds, versions)
        model, _ = wrap_with_table(
            model,
            None,
            settings.target,
            output,
            table,
            None,
            settings.outcome,
        )
    _refuse_other_quantity(problem.function.quantity, model.quantity)
    _refuse_other_codes(problem.function.schema, model.schema)
    return model


def _targets(problem: RowsProblem, model: Any) -> Targets:
    """The targets of a version at the rows."""
    function = version_of(problem, model)
    rule = problem.rule
    if not isinstance(rule, TargetRule):
        rule = replace(rule, function=function)
        return rule.of(problem.points, problem.labels)
    law: LawChoice = problem.settings.law_of_columns
    if law == "auto":  # both versions are averaged in the same way
        law = "none" if rule.function is problem.function else "data"
    slopes = target_rule(
        function,
        problem.reference,
        problem.sizes,
        law=law,
        rng=problem.settings.seed,
    )
    return Targets(estimate=slopes.at(problem.points, problem.labels))


def default_kind(model: Any, target: Target) -> QuantityKind:
    """The kind of output that a version is explained in by default."""
    if isinstance(model, Function):
        return model.quantity.kind
    if is_a(model, TORCH_MODULE):
        return "value"
    fitted = FittedModel.of(model)
    check_model(fitted)
    one, _, _ = one_label(fitted, target)
    return quantity_of(one, read_output(one, "auto"), None).kind


def shared_output(
    output: Output, kinds: Sequence[QuantityKind], versions: Sequence[Any]
) -> Output:
    """The output of versions with some default kinds: a probability if these differ.

    A wrapped version has its output already, and determines that of the other one.
    """
    if output != "auto" or len({*kinds}) == 1:
        return output
    for version in versions:
        if isinstance(version, Function):
            kind: Any = version.quantity.kind
            if version.quantity.words:
                return output
            # the margin of regressors has several kinds
            return kind if kind in METHODS else "margin"
    models = map(FittedModel.of, versions)
    is_shared = all(model.has(METHODS["probability"]) for model in models)
    return "probability" if is_shared else output


Parts: TypeAlias = tuple[Array, Array | None]
"""Targets (N, D), and the base of each row (N,) if there is one."""


Level: TypeAlias = tuple[Sequence[Any], Sequence[Any]] | PooledRefits
"""Refits of the old and of the new version; or pairs of refits of random divisions."""

_MIN_REFITS: Final = 5
_MIN_DIVISIONS: Final = 19


def level_of(
    level: Any,
    versions: tuple[Any, Any],
    targets: Callable[[Any], Parts],
    progress: bool | None,
) -> NullLevel | None:
    """The level from refits, given the targets of each model; None without refits."""
    if level is None:
        return None
    is_pooled = isinstance(level, PooledRefits)
    least = _MIN_DIVISIONS if is_pooled else _MIN_REFITS
    given = (level.old, level.new) if is_pooled else level
    sides = given if isinstance(given, tuple | list) else ()
    counts = [len(x) if isinstance(x, Sequence) else 0 for x in sides]
    if len(counts) != 2 or min(counts) < least:
        raise InvalidInput(
            f"level: expected at least {least} refits of each version, such as "
            "(old_refits, new_refits), each from "
            "propopt.null_models.bootstrap_refits(learner, X, y, times=20), got "
            f"{level!r:.60}"
        )
    if is_pooled:  # the real division first
        sides = [[one, *x] for one, x in zip(versions, sides, strict=True)]
    parts: list[list[Parts]] = []
    with progress_bar("refits", sum(map(len, sides)), progress) as advance:
        for name, models in zip(("old", "new"), sides, strict=True):
            parts.append([])
            for number, model in enumerate(models, start=0 if is_pooled else 1):
                with errors_of(f"level: {name} refit {number}"):
                    parts[-1].append(targets(model))
                advance()
    old, new = ([phi for phi, _ in side] for side in parts)
    if is_pooled:
        tested, *distances = map(distances_of, old, new)
    else:
        tested = distances_of(np.mean(old, axis=0), np.mean(new, axis=0))
        pairs = (zip(x[::2], x[1::2], strict=False) for x in (old, new))
        distances = [distances_of(*pair) for pair in chain(*pairs)]
    sizes = _sizes([*parts[0], *parts[1]])
    return NullLevel(
        kind="pooled_refits" if is_pooled else "bootstrap_refits",
        least=_least(sizes[:, len(tested)]),
        tested=tested,
        distances=np.stack(distances),
        before=sizes[: len(old)],
        after=sizes[len(old) :],
    )


def _sizes(parts: Sequence[Parts]) -> Array:
    """Mean sizes, their sum, and the base if each model has one, (M, D + 2)."""
    sizes = np.stack([column_sizes(phi) for phi, _ in parts])
    bases = [base[:1] for _, base in parts if base is not None and not np.ptp(base)]
    return np.hstack([sizes, bases]) if len(bases) == len(sizes) else sizes


def _least(totals: Array) -> float:
    """The change below which nothing is flagged, above 0, given sums of mean sizes."""
    return max(MIN_CHANGE * float(np.mean(totals)), np.finfo(float).tiny)


def _common_bases(old: Array | None, new: Array | None) -> tuple[float, float] | None:
    """The bases of both, if each has one for all rows."""
    if old is None or new is None or np.ptp(old) or np.ptp(new):
        return None
    return float(old[0]), float(new[0])


BEFORE: Final = "before (the old version)"
AFTER: Final = "after (the new version)"


def _refuse_other_codes(old: TableSchema | None, new: TableSchema | None) -> None:
    """Refuse a function with other codes for its categories."""
    one, other = (
        {
            x.name: x.categories
            for x in schema.columns
            if isinstance(x, CategoricalColumn)
        }
        if schema is not None
        else {}
        for schema in (old, new)
    )
    for name in (*one, *other):
        if one.get(name) != other.get(name):
            new_codes, old_codes = (
                listed(codes.get(name, ()), 5) or "none" for codes in (other, one)
            )
            raise InvalidInput(
                f"column {name!r} has the categories {new_codes}, and in the old "
                f"version {old_codes}; give the model itself, or wrap both with the "
                "same data="
            )


def _refuse_other_quantity(one: Any, other: Any) -> None:
    """Refuse another class, or log-odds and probabilities; sums have any name."""
    if one is None or other is None or one.words or other.words:
        return
    if (one.kind, one.label, one.position) != (other.kind, other.label, other.position):
        raise InvalidInput(
            f"the new version gives the {other.in_words()}, and the old version the "
            f"{one.in_words()}; choose the same output by target= and output="
        )


# ---- Explanations that were saved, or come from other packages


def _stored_targets(source: Any, method: str) -> tuple[Explanation, Array, str]:
    """An explanation, its targets (or else its attributions), and which these are."""
    units: Units = "output" if is_shap(source) else "gradient"
    explanation = explanation_of(source, method, units)
    for targets in (explanation.contributions, explanation.gradient):
        if targets is not None:
            return explanation, targets, "stored targets"
    source = "attributions, because no target is stored"
    return explanation, explanation.attributions, source


def _aligned(new: Explanation, old: Explanation) -> Any:
    """The indices that put the rows and columns of new in the order of old."""
    if new.shape != old.shape:
        raise InvalidInput(
            f"the new version explains {new.shape[0]} rows of {new.shape[1]} columns, "
            f"and the old version {old.shape[0]} of {old.shape[1]}; explain the same "
            "table by both"
        )
    order = orders_of(new.labels, old.labels, "the new version", "the old version")
    rows, columns = (np.arange(k)[x] for k, x in zip(new.shape, order, strict=True))
    _refuse_other_values(old, new, rows, columns)
    _refuse_other_settings(old, new)
    return np.ix_(rows, columns)


def _refuse_other_settings(old: Explanation, new: Explanation) -> None:
    """Refuse another output, other units, and another background."""
    _refuse_other_quantity(old.quantity, new.quantity)
    if old.units != new.units:
        raise InvalidInput(
            f"the new version is in units {new.units!r}, and the old version in "
            f"{old.units!r}; explain both in the same units"
        )
    if (old.base_value is None) != (new.base_value is None):
        one, other = ("no", "a") if new.base_value is None else ("a", "no")
        raise InvalidInput(
            f"the new version has {one} base value, and the old version has {other}; "
            "explain both by contributions, or neither"
        )
    tables = [x.parameters.get("reference") for x in (old, new)]
    if None not in tables and tables[0] != tables[1]:
        raise InvalidInput(
            f"the new version was explained against {tables[1]}, and the old version "
            f"against {tables[0]}; explain both with the same data="
        )


def _refuse_other_values(
    old: Explanation, new: Explanation, rows: Indices, columns: Indices
) -> None:
    """Refuse rows with other values, if both store them."""
    if old.points is None or new.points is None:
        return
    if dict(old.categories) != dict(new.categories):
        raise InvalidInput(
            "categories of the new version have other codes than in the old version; "
            "explain both with the same data="
        )
    points = new.points[np.ix_(rows, columns)]
    differ = (old.points != points) & ~(np.isnan(old.points) & np.isnan(points))
    for n, j in np.argwhere(differ).tolist()[:1]:
        name = old.features[j]
        raise InvalidInput(
            f"row {old.labels.row(n)!r} has {name} = "
            f"{new.value_of(rows[n], columns[j])}, and in the old version "
            f"{old.value_of(n, j)}; explain the same rows by both"
        )


# ---- What the choice among near-optimal explanations can account for


def _distances_and_prices(
    old: Explanation, new: Explanation, moved: Array, problem: RowsProblem | None
) -> dict[str, Any]:
    """Distances of the optimized explanations, and prices; empty for other losses.

    Explanations with an objective ε above the minimum lie within √ε of the optimum in
    ‖·‖_H. So two of them can agree in column j only from ε = ‖d_j‖²_H/4 each. The gap
    of each certificate is subtracted, as √gap.

    ‖d‖²_H = a‖d‖² + b Σ_{n,n'} S_nn' (d_n − d_n')². Saved explanations do not store
    their graph, and have the first term alone.
    """
    of_rule = all("weight rule" in x.parameters for x in (old, new))
    has_losses = all(
        [*x.weights] == ["gradient_matching", "pairwise_robustness"]
        and x.metric is None
        for x in (old, new)
    )
    if not has_losses or (problem is None and not of_rule):
        return {}
    least = min(next(iter(x.weights.values())) for x in (old, new))
    squares = least * (moved**2).sum(axis=0)
    if problem is not None:
        c = [*old.weights.values()][1]
        robust = problem.robust
        squares += c * np.array([robust.value_at(d[:, None]) for d in moved.T])
    prices = None
    first = old.certificate
    second = new.certificate
    if first is not None and second is not None and first.value > 0.0:
        gaps = [max(x.value - x.lower_bound, 0.0) for x in (first, second)]
        sizes = np.maximum(np.sqrt(squares) - np.sqrt(gaps).sum(), 0.0)
        prices = sizes**2 / 4.0 * len(old.attributions) / first.value
    return {"optimized": np.sqrt((moved**2).mean(axis=0)), "prices": prices}


# ---- The public function


@dataclass(eq=False)
class _Arguments(Settings):
    """The arguments of :func:`compare`: versions, rows, and settings for both."""

    before: Any
    after: Any = None
    X: Any = None
    _: KW_ONLY
    rows: Sequence[Any] | Mapping[str, Any] | None = None
    data: Any = None
    level: Level | None = None
    n_permutations: int = 999
    progress: bool | None = None


@suggests_arguments
@takes(_Arguments)
def compare(passed: _Arguments) -> Comparison:
    """Compare two versions of a model at the same rows, or two groups of rows.

    The targets φ of both versions, Shapley values or slopes, are computed with one
    background. The distance of column j is

    .. math::

        d_j = (Σ_n (φ'_nj − φ_nj)²/N)^½

    What is tested are the means over refits of both versions, each refitted by its own
    learner on bootstrap samples of its own table (:func:`bootstrap_refits`): the
    distance of each column, its mean size Σ_n |φ_nj|/N, the sum of these, and the base,
    up and down. At most 5 % of comparisons without a change have any flag, however many
    columns there are; the formulas are in
    :class:`propopt.results.comparison.NullLevel`. Nothing below 1 % of all mean sizes
    is flagged.

    With :class:`PooledRefits` the versions themselves are tested against pairs of
    models of random divisions of both tables. This level is exact for rows that
    belong to neither table.

    For two groups of rows under one model the distance is the difference of mean φ, and
    mean sizes are tested too. The level comes from random divisions of the same rows,
    95 % of which have nothing beyond it.

    The optimized explanations of both versions, with the weight and the graph of the
    old one, are compared too, with the price of hiding each change.

    Parameters
    ----------
    before, after : model or Explanation
        The old and the new version: models as for :func:`propopt.wrap`, or explanations
        of the same rows, also from other packages. For explanations the stored targets
        are compared, so that other weights of robustness make no difference.
    X : DataFrame or array (N, D), optional
        The rows, for models; by default those of ``data``.
    rows : sequence or mapping of two tables, optional
        Two groups of rows, (n, D) and (m, D), instead of ``after`` and X; a mapping
        gives their names.
    data : DataFrame, array or TableSchema, optional
        The table that the background of both versions is taken from, ideally the
        training data of the old version; X by default.
    level : tuple of two lists, or PooledRefits, optional
        Refits of the old and of the new version, from :func:`bootstrap_refits`; 20 each
        find more than ten. Or pairs of :func:`pooled_refits`. Without refits nothing is
        tested.
    n_permutations : int
        The number of random divisions, for groups.
    progress : bool, optional
        Whether to show a bar on standard error; by default only on a terminal.
    **settings
        Settings of :class:`propopt.Explainer` for both versions, with the same draws.
        Both are optimized with one weight of robustness, by default that at the knee of
        the old version, and without ``offset``.

    Returns
    -------
    Comparison
        Distances, flags and prices.

    Raises
    ------
    InvalidInput
        If rows, columns, units, outputs or bases differ; the message names the version.

    See Also
    --------
    audit : Check attributions from any source.
    propopt.null_models.bootstrap_refits : Refits of one version.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X, noise = rng.normal(size=(400, 3)), rng.normal(size=400)
    >>> y = X @ [1.0, 2.0, 0.5] + noise
    >>> targets = [y, y + X[:, 0]]
    >>> old, new = (LinearRegression().fit(X, target) for target in targets)
    >>> refits = po.null_models.bootstrap_refits
    >>> level = [refits(x, X, z, times=20) for x, z in zip([old, new], targets)]
    >>> comparison = po.compare(old, new, X[:100], data=X, level=level)
    >>> comparison.features, comparison.flagged.tolist()
    (('x0', 'x1', 'x2'), [True, False, False])
    """
    checked = CheckedSettings.of(passed)
    before = passed.before
    after = passed.after
    X = passed.X
    rows = passed.rows
    data = passed.data
    level = passed.level
    progress = passed.progress
    if rows is not None:
        fixed = {name: getattr(passed, name) for name in ("graph", "robustness")}
        _refuse_given("rows", after=after, X=X, level=level, **fixed)
        return _compare_groups(checked, before, rows, data, passed.n_permutations)
    if after is None:
        raise InvalidInput(
            "after: expected the new version, or two groups of rows, rows=[a, b]"
        )
    explained = [_is_explanation(version) for version in (before, after)]
    if explained[0] != explained[1]:
        name = ("before", "after")[explained[0]]
        raise InvalidInput(
            f"{name}: it is a model, and the other version is an explanation; give "
            "two models, or explain both"
        )
    if explained[0]:
        given = {x.name: getattr(passed, x.name) for x in fields(Settings)}
        chosen = {k: x for k, x in given.items() if x is not getattr(Settings, k)}
        _refuse_given("explanations", X=X, data=data, **chosen)
        return _compare_explanations(before, after, level, progress)
    kinds = []
    for name, version in ((BEFORE, before), (AFTER, after)):
        with errors_of(name):
            kinds.append(default_kind(version, checked.target))
    if not isinstance(before, Function):
        output = shared_output(checked.output, kinds, (before, after))
        checked = replace(checked, output=output)
    with errors_of(BEFORE):
        problem = _problem_of_versions(checked, before, data, X)
        old = _targets(problem, before)
        best = problem.nearest(old, problem.metric_of(old))
    with errors_of(AFTER):
        new = _targets(problem, after)
        c = [*best.weights.values()][1]
        again = replace(problem, settings=replace(problem.settings, robustness=c))
        other = again.nearest(new, again.metric_of(new))

    def parts(model: Any) -> Parts:
        targets = _targets(problem, model)
        return targets.estimate.values, targets.base

    moved = other.attributions - best.attributions
    quantities = [x.estimate.quantity for x in (old, new) if x.estimate.quantity]
    return Comparison(
        kind="versions",
        names=("before", "after"),
        before=old.estimate.values,
        after=new.estimate.values,
        labels=old.estimate.labels,
        sources=(old.estimate.source, new.estimate.source),
        level=level_of(level, (before, after), parts, progress),
        base_values=_common_bases(old.base, new.base),
        units=best.units,
        quantity=problem.function.quantity,
        parameters={
            # the other unit is named if both versions have it
            "output": min(quantities, key=lambda x: x.alternative or "").choice,
            "robustness": c,
            "graph": repr(problem.graph),
            "rows": len(problem.points),
            "reference": problem.reference.in_words(),
        },
        **_distances_and_prices(best, other, moved, problem),
    )


def _is_explanation(version: Any) -> bool:
    """True for explanations and tables of attributions, False for models."""
    is_table = isinstance(version, np.ndarray | list | str | Path)
    is_table = is_table or is_tensor(version) or is_frame(version, "version")
    return is_table or isinstance(version, Explanation) or is_shap(version)


def _refuse_given(where: str, **given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise InvalidInput(f"{name}: has no effect with {where}; leave it out")


def _compare_explanations(
    before: Any, after: Any, level: Level | None, progress: bool | None
) -> Comparison:
    """The comparison of two explanations by their targets."""
    with errors_of(BEFORE):
        old, old_targets, old_source = _stored_targets(before, "before")
    with errors_of(AFTER):
        new, new_targets, new_source = _stored_targets(after, "after")
        indices = _aligned(new, old)

    def parts(refit: Any) -> Parts:
        explanation, targets, _ = _stored_targets(refit, "refit")
        return targets[_aligned(explanation, old)], explanation.base_value

    moved = new.attributions[indices] - old.attributions
    return Comparison(
        kind="versions",
        names=("before", "after"),
        before=old_targets,
        after=new_targets[indices],
        labels=old.labels,
        sources=(old_source, new_source),
        level=level_of(level, (before, after), parts, progress),
        base_values=_common_bases(old.base_value, new.base_value),
        units=old.units,
        quantity=old.quantity,
        parameters={"weights": f"{dict(old.weights)} and {dict(new.weights)}"},
        **_distances_and_prices(old, new, moved, None),
    )


def _compare_groups(
    settings: CheckedSettings,
    model: Any,
    groups: Sequence[Any] | Mapping[str, Any],
    data: Any,
    n_permutations: int,
) -> Comparison:
    """The comparison of two groups of rows, with random divisions as level."""
    if len(groups) != 2:
        raise InvalidInput(f"rows: expected two groups of rows, got {len(groups)}")
    names = ("the first group", "the second group")
    tables = [*groups]
    if isinstance(groups, Mapping):
        first, second = map(str, groups)
        names = (first, second)
        tables = [*groups.values()]
    times = read_count(n_permutations, "n_permutations")
    if times < _MIN_DIVISIONS:
        raise InvalidInput(
            f"n_permutations: expected at least {_MIN_DIVISIONS}, got {times}; these "
            "random divisions of the rows show which differences are due to chance"
        )
    sizes = [len(table) for table in tables]
    if min(sizes) < 2:
        raise InvalidInput(
            f"rows: expected two rows or more in each group, got {sizes}"
        )
    problem = _problem_of_versions(settings, model, data, _joined(names, tables))
    targets = _targets(problem, problem.function)
    phi = targets.estimate.values
    n = sizes[0]
    source = targets.estimate.source
    generator = np.random.default_rng(settings.seed)
    orders = [np.arange(len(phi))]  # the real division first
    orders += [generator.permutation(len(phi)) for _ in range(times)]
    sides = [(phi[order[:n]], phi[order[n:]]) for order in orders]
    tested, *distances = (np.abs(mean_changes(*pair)) for pair in sides)
    totals = np.array([[column_sizes(side) for side in pair] for pair in sides])
    return Comparison(
        kind="groups",
        names=names,
        before=phi[:n],
        after=phi[n:],
        labels=targets.estimate.labels.of_positions(slice(0, n)),
        sources=(source, source),
        level=NullLevel(
            kind="permutations",
            least=_least(totals[..., -1]),
            tested=tested,
            distances=np.stack(distances),
            before=totals[:, 0],
            after=totals[:, 1],
        ),
        base_values=_common_bases(targets.base, targets.base),
        units="output" if targets.base is not None else "scaled",
        quantity=problem.function.quantity,
        parameters={"rows": f"{n} and {sizes[1]}"},
    )


def _joined(names: tuple[str, str], tables: Sequence[Any]) -> Any:
    """The rows of both groups in one table."""
    frames = [as_frame(table, name) for name, table in zip(names, tables, strict=True)]
    first, second = (None if frame is None else frame.table for frame in frames)
    if first is None or second is None:
        if first is not second:
            raise InvalidInput(
                "rows: one group has names of columns, the other has none"
            )
        return np.concatenate([np.asarray(table) for table in tables])
    for name in (*first, *second):
        if name not in first or name not in second:
            raise InvalidInput(f"rows: column {name!r} is in one group only")
    return pd.concat([first, second[list(first)]])
