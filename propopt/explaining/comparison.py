"""Two versions of a model at the same rows, or two groups of rows under one model.

A column is flagged where the two versions differ more in it than any column does
between models that differ by chance alone. What is compared is what the versions say,
their targets; what a choice among explanations can account for stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Unpack, final

import numpy as np
import pandas as pd

from propopt.base.arrays import Array, Indices, Values
from propopt.base.checks import read_count
from propopt.base.errors import InvalidInput, Refused
from propopt.base.suggestions import suggests_arguments
from propopt.base.terminal import progress_bar
from propopt.explaining.contributions import AnyRule
from propopt.explaining.explainer import Explainer
from propopt.explaining.null_models import NullModels
from propopt.explaining.out_of_sample import FittedRows
from propopt.explaining.problem import (
    CheckedSettings,
    RowsProblem,
    Settings,
    SettingsByName,
    takes_settings,
)
from propopt.explaining.targets import LawChoice, TargetRule, Targets, target_rule
from propopt.functions import Function
from propopt.functions.wrapping import wrap_with_table
from propopt.losses.faithfulness import Units
from propopt.results.comparison import (
    LEAST_SIZE,
    Comparison,
    NullLevel,
    column_sizes,
    distances_of,
    group_distances,
    unfolded_changes,
)
from propopt.results.explanation import Explanation, explanation_of
from propopt.structures.kinds import fitted_value
from propopt.tables.columns import CategoricalColumn
from propopt.tables.frames import (
    Labels,
    as_frame,
    column_names,
    is_frame,
    listed,
    orders_of,
)
from propopt.tables.imported import is_shap, is_tensor
from propopt.tables.schema import TableSchema


# ---- One background, one base and the same rows: what any model says of them


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class _Ruler:
    """Rows and all that a target depends on, but for the model."""

    problem: RowsProblem
    rule: AnyRule  # of the old version, settled

    @classmethod
    def of(cls, settings: CheckedSettings, model: Any, data: Any, X: Any) -> _Ruler:
        """Of a model and its table; or of a fitted explainer, and its rows."""
        if isinstance(model, Explainer):
            fitted = model.fitted_
            if not isinstance(fitted, FittedRows):
                raise InvalidInput("documents have no rows of columns to compare")
            problem, rule = fitted.problem, fitted.rule
            b = replace(problem.settings, robustness=fitted.weights[1], offset=None)
            if X is not None:
                points, labels = problem.function.read(X)
                count = min(b.nearest.n_neighbors, len(points) - 1)
                b = replace(b, graph=replace(b.nearest, n_neighbors=count))
                problem = replace(problem, points=points, labels=labels)
            return cls(problem=replace(problem, settings=b), rule=rule)
        # both versions are optimized alike: main effects would be those of one of them
        settings = replace(settings, offset=None)
        problem = RowsProblem.of(settings, model, data, X, None)
        return cls(
            problem=problem, rule=problem.rule.settled(problem.points, settings.seed)
        )

    def function(self, model: Any) -> Function:
        """A version as a function of the same columns."""
        if isinstance(model, Explainer):
            model = model.fitted_.function
        problem = self.problem
        if not isinstance(model, Function):
            asked = problem.settings
            known: Any = problem.function.schema
            known = problem.reference.points if known is None else known
            how = asked.target, asked.output, known, None, asked.outcome
            model = wrap_with_table(model, None, *how)[0]
        _refuse_other_quantity(problem.function.quantity, model.quantity)
        _refuse_other_codes(problem.function.schema, model.schema)
        return model

    def targets(self, model: Any) -> Targets:
        """What a version says of the rows."""
        function, problem = self.function(model), self.problem
        if not isinstance(self.rule, TargetRule):
            own = replace(self.rule, function=function)
            return own.of(problem.points, problem.labels)
        law: LawChoice = problem.settings.law_of_columns
        if law == "auto":  # the versions are averaged alike
            law = "none" if self.rule.function is problem.function else "data"
        rule = target_rule(
            function,
            problem.reference,
            problem.sizes,
            law=law,
            rng=problem.settings.seed,
        )
        return Targets(estimate=rule.at(problem.points, problem.labels))

    def level(self, refits: NullModels, progress: bool | None) -> NullLevel:
        """How far columns move between refits."""

        def phi(model: Any) -> tuple[Array, Array | None]:
            known = self.targets(model)
            return known.estimate.values, known.base

        return level_of(refits, phi, progress)


def level_of(
    refits: NullModels,
    phi: Callable[[Any], tuple[Array, Array | None]],
    progress: bool | None,
) -> NullLevel:
    """The level of refits, by what each says of the rows, (N, D), and its base."""
    if not isinstance(refits, NullModels):
        raise InvalidInput(
            "level: expected models that differ by chance, such as "
            "propopt.null_models.split_half_refits(learner, X, y), got "
            f"{type(refits).__name__}"
        )
    values = []
    with progress_bar("refits", len(refits.models), progress) as bar:
        for number, model in enumerate(refits.models, start=1):
            with _of_version(f"level: model {number} of the {refits.kind}"):
                values.append(phi(model))
            bar.advance(bar.task_ids[0])
    said, bases = [x for x, _ in values], [x for _, x in values]
    pairs = [(said[k], said[m]) for k, m in refits.pairs]
    least = LEAST_SIZE * float(np.mean([column_sizes(x)[-1] for x in said]))
    moved = [_one_each(bases[k], bases[m]) for k, m in refits.pairs]
    known = [x[1] - x[0] for x in moved if x is not None]
    level = NullLevel(
        kind=refits.kind,
        n_models=len(
            refits.pairs if refits.kind == "split_half_refits" else refits.models
        ),
        distances=np.stack([distances_of(*pair) for pair in pairs]),
        sizes=np.stack([unfolded_changes(*pair) for pair in pairs]),
        least=least,
        bases=np.array(known) if len(known) == len(pairs) else None,
        cells=np.array([np.abs(one - other).max() for one, other in pairs]),
    )
    if not level.limit > 0.0:
        raise InvalidInput(
            f"level: the {refits.kind} say the same of all rows, so that any "
            "difference is beyond them; propopt.null_models.split_half_refits makes a level"
        )
    return level


@contextmanager
def _of_version(whose: str, model: Any = None, table: Any = None) -> Iterator[None]:
    """Errors raised inside say whose they are, and which columns a model lacks."""
    try:
        yield
    except (InvalidInput, Refused) as error:
        lost = _lost_by(model, column_names(table) or ())
        raise type(error)("; ".join([f"{whose}: {error}", *lost])) from None


def _lost_by(model: Any, have: Sequence[Hashable]) -> list[str]:
    """What a model's columns lack, or have beside those of the rows."""
    own = fitted_value(model, "feature_names_in_")
    if own is None or not have:
        return []
    needed = list(own)
    told = [f"it was fitted without {x!r}" for x in have if x not in needed]
    told += [f"X has no {str(x)!r}, which it needs" for x in needed if x not in have]
    more = "a callable that leaves columns out can be compared"
    return [*told[:3], more] if told else []


BEFORE: Final = "before (the old version)"
AFTER: Final = "after (the new version)"


def _refuse_other_codes(old: TableSchema | None, new: TableSchema | None) -> None:
    """Refuse a function that takes other codes for its categories."""
    one, other = (
        {}
        if x is None
        else {
            c.name: c.categories for c in x.columns if isinstance(c, CategoricalColumn)
        }
        for x in (old, new)
    )
    for name in (*one, *other):
        if one.get(name) != other.get(name):
            said = [listed(codes.get(name, ()), 5) or "none" for codes in (other, one)]
            raise InvalidInput(
                f"column {name!r} has the categories {said[0]}, and in the old version "
                f"{said[1]}; give the model itself, or wrap both with the same data="
            )


def _refuse_other_quantity(one: Any, other: Any) -> None:
    """Refuse another class, or log-odds beside probabilities; sums are as told."""
    if one is None or other is None or one.words or other.words:
        return
    told = [(x.kind, x.label, x.position) for x in (one, other)]
    if told[0] != told[1]:
        raise InvalidInput(
            f"it gives the {other.in_words()}, and the old version the "
            f"{one.in_words()}; choose the same by target= and output="
        )


# ---- Explanations that were saved, or made elsewhere


def _said(source: Any, method: str) -> tuple[Explanation, Array, str]:
    """An explanation, what it says of each row, and how that is known."""
    units: Units = "output" if is_shap(source) else "gradient"
    own = explanation_of(source, method, units)
    for known in (own.contributions, own.gradient):
        if known is not None:
            return own, known, "stored targets"
    return own, own.attributions, "attributions, for no target is stored"


def _places(own: Explanation, other: Explanation) -> Any:
    """Where the rows and columns of another stand, which have to be its own."""
    if own.shape != other.shape:
        raise InvalidInput(
            f"it explains {own.shape[0]} rows of {own.shape[1]} columns, and the "
            f"old version {other.shape[0]} of {other.shape[1]}"
            f"{_lost(own.labels, other.labels)}; explain the same table by both"
        )
    order = orders_of(own.labels, other.labels, "it", "the old version", counted=True)
    rows, columns = (np.arange(k)[x] for k, x in zip(own.shape, order, strict=True))
    _refuse_other_values(other, own, rows, columns)
    _refuse_other_explanation(other, own)
    return np.ix_(rows, columns)


def _lost(own: Labels, other: Labels) -> str:
    """The columns that one has and the other has not."""
    if own.features is None or other.features is None:
        return ""
    lost = [repr(x) for x in other.features if x not in own.features]
    more = [repr(x) for x in own.features if x not in other.features]
    said = [f"it lacks {', '.join(lost[:3])}"] if lost else []
    said += [f"the old version lacks {', '.join(more[:3])}"] if more else []
    return f" ({'; '.join(said)})" if said else ""


def _refuse_other_explanation(old: Explanation, new: Explanation) -> None:
    """Refuse other units, another output, other rows, and another background."""
    _refuse_other_quantity(old.quantity, new.quantity)
    if old.units != new.units:
        raise InvalidInput(
            f"it is in units {new.units!r}, and the old version in {old.units!r}; "
            "explain both in the same units"
        )
    if (old.base_value is None) != (new.base_value is None):
        one, other = ("no", "a") if new.base_value is None else ("a", "no")
        raise InvalidInput(
            f"it has {one} base value, and the old version has {other}; explain both "
            "in parts that add up, or neither"
        )
    told = [x.parameters.get("reference") for x in (old, new)]
    if None not in told and told[0] != told[1]:
        raise InvalidInput(
            f"its base is another one: it was explained against {told[1]}, and the old "
            f"version against {told[0]}; explain both with the same data="
        )


def _refuse_other_values(
    old: Explanation, new: Explanation, rows: Indices, columns: Indices
) -> None:
    """Refuse rows of other values, where both know them."""
    if old.points is None or new.points is None:
        return
    if dict(old.categories) != dict(new.categories):
        raise InvalidInput(
            "its categories have other codes than those of the old version; explain "
            "both with the same data="
        )
    points = new.points[np.ix_(rows, columns)]
    differ = (old.points != points) & ~(np.isnan(old.points) & np.isnan(points))
    for n, j in np.argwhere(differ).tolist()[:1]:
        name = old.labels.feature_names(old.shape[1])[j]
        raise InvalidInput(
            f"row {old.labels.row(n)!r} has {name} = "
            f"{new.value_of(rows[n], columns[j])}, and in the old version "
            f"{old.value_of(n, j)}; explain the same rows by both"
        )


# ---- What a choice among explanations can account for


def _prices(old: Explanation, new: Explanation, squares: Values) -> Values | None:
    """What hiding each column's change costs, in mean rows: ‖d_j‖²_H/4 and more.

    Explanations whose objectives are ε above their least lie within √ε of the optimum
    in ‖·‖_H, so that two of them agree in column j at ε = ‖d_j‖²_H/4 each at the
    earliest. What certificates leave open is taken off, √gap of each.
    """
    one, other = old.certificate, new.certificate
    if one is None or other is None or not one.value > 0.0:
        return None
    gaps = [max(x.value - x.lower_bound, 0.0) for x in (one, other)]
    sizes = np.maximum(np.sqrt(squares) - np.sqrt(gaps).sum(), 0.0)
    return np.asarray(sizes**2 / 4.0 * len(old.attributions) / one.value)


def _of_optima(
    old: Explanation, new: Explanation, moved: Array, problem: RowsProblem | None
) -> dict[str, Any]:
    """Distances of the optimized explanations, and prices; nothing of others.

    ‖d‖²_H = a‖d‖² + b Σ_{n,n'} S_nn' (d_n − d_n')², of which saved explanations, whose
    graph is not known, have the first term.
    """
    known = problem is not None or all(
        "weight rule" in x.parameters for x in (old, new)
    )
    if not (known and _is_plain(old) and _is_plain(new)):
        return {}  # of other losses, or not known to be of these
    least = min(next(iter(x.weights.values())) for x in (old, new))
    squares = least * (moved**2).sum(axis=0)
    if problem is not None:
        c, robust = [*old.weights.values()][1], problem.robust
        squares += c * np.array([robust.value_at(d[:, None]) for d in moved.T])
    distances = np.sqrt((moved**2).mean(axis=0))
    return {"optimized": distances, "prices": _prices(old, new, squares)}


def _is_plain(one: Explanation) -> bool:
    """Whether it minimised two squared losses in the units that it has."""
    names = [*one.weights] == ["gradient_matching", "pairwise_robustness"]
    return names and one.metric is None


# ---- The front door


@suggests_arguments
@takes_settings
def compare(
    before: Any,
    after: Any = None,
    X: Any = None,
    *,
    rows: Sequence[Any] | Mapping[str, Any] | None = None,
    data: Any = None,
    level: NullModels | None = None,
    n_permutations: int = 999,
    progress: bool | None = None,
    **settings: Unpack[SettingsByName],
) -> Comparison:
    """Compare two versions of a model at the same rows, or two groups of rows.

    What each version says of a row, φ, is made with one background: Shapley values, or
    slopes. Column j of the versions is apart by

    .. math::

        d_j = (Σ_n (φ'_nj − φ_nj)²/N)^½

    and is flagged if that exceeds the distance of *any* column between models that
    differ by chance alone: those trained on two halves of the old table, ten times
    (:func:`split_half_refits`). Such a level is of the largest column, so that one limit holds
    for all columns together; a change of a small column is not seen.

    The mean size of each column, Σ_n |φ_nj|/N, their sum over all columns, and the base
    have a level each: the root mean square of their changes between halves, times a
    quantile of Student's t that makes one rate for all of them. With ten split_half_refits, and
    a new table of as many rows, at most 5 % of comparisons without a change have any
    flag: 2.6 % by distances and 2.4 % by sizes and the base.

    For two groups of rows under one model the distance is how far means of φ or of |φ|
    are apart, whichever is more; the table names it. The level is then that of
    divisions of the same rows by chance, 95 % of which have no column farther apart.

    The optimized explanations of both versions, with the weight and the graph of the
    old one, stand beside it, with the price of hiding each change.

    Parameters
    ----------
    before, after : model, Explainer or Explanation
        The old and the new version: models as :func:`propopt.wrap` takes them, fitted
        explainers, or explanations of the same rows, also of other packages. Of
        explanations their stored targets are compared, so that other weights of
        robustness make no difference.
    X : DataFrame or array (N, D), optional
        The rows, of models and explainers. By default those of the old explainer, or of
        ``data``.
    rows : sequence or mapping of two tables, optional
        Two groups of rows, (n, D) and (m, D), in place of ``after`` and X; a mapping
        has their names.
    data : DataFrame, array or TableSchema, optional
        The table that the background of both versions is drawn from, best the one that
        the old version was trained on; X by default.
    level : NullModels, optional
        Of :func:`split_half_refits`, :func:`bootstrap_refits` or :func:`seed_refits`. Without refits
        columns are ranked, and none is flagged.
    n_permutations : int
        Divisions by chance, of groups.
    progress : bool, optional
        Show a bar on standard error; by default only on a terminal.
    **settings
        Of both versions, those of :class:`propopt.Explainer`, and the same draws. Both
        are optimized with one weight of robustness, by default that at the knee of the
        old version, and without ``offset``.

    Returns
    -------
    Comparison
        Distances, flags, prices, with a table and sentences of them.

    Raises
    ------
    InvalidInput
        If rows, columns, units, outputs or bases are not the same; the message says of
        which version.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X, noise = rng.normal(size=(400, 3)), rng.normal(size=400)
    >>> old = LinearRegression().fit(X, X @ [1.0, 2.0, 0.5] + noise)
    >>> new = LinearRegression().fit(X, X @ [2.0, 2.0, 0.5] + noise)
    >>> level = po.null_models.split_half_refits(
    ...     LinearRegression(), X, X @ [1.0, 2.0, 0.5] + noise
    ... )
    >>> found = po.compare(old, new, X[:100], data=X, level=level)
    >>> found.features, found.beyond.tolist()
    (('x0', 'x1', 'x2'), [True, False, False])
    """
    asked = CheckedSettings.of(Settings(**settings))
    given = {name: value for name, value in settings.items() if value is not None}
    if rows is not None:
        of_models = {name: given.get(name) for name in ("graph", "robustness")}
        _refuse_given("rows", after=after, X=X, level=level, **of_models)
        return _of_groups(asked, before, rows, data, n_permutations)
    if after is None:
        raise InvalidInput(
            "after: expected the new version, or two groups of rows, rows=[a, b]"
        )
    said = [_is_said(version) for version in (before, after)]
    if said[0] != said[1]:
        one = ("before", "after")[said[0]]
        raise InvalidInput(
            f"{one}: it is a model, and the other version is explained already; give "
            "two models, or explain both"
        )
    if said[0]:
        _refuse_given("explanations", X=X, data=data, **given)
        return _of_explanations(before, after, level, progress)
    if isinstance(before, Explainer):
        _refuse_given("an Explainer", **given)
    table = data if X is None else X
    with _of_version(BEFORE, before, table):
        _refuse_unfit(asked)
        ruler = _Ruler.of(asked, before, data, X)
        old = ruler.targets(before)
        best = ruler.problem.nearest(old)
    with _of_version(AFTER, after, table):
        new = ruler.targets(after)
        c = [*best.weights.values()][1]
        problem = replace(
            ruler.problem, settings=replace(ruler.problem.settings, robustness=c)
        )
        other = problem.nearest(new)
    bases = [x.base for x in (old, new)]
    return Comparison(
        kind="versions",
        names=("before", "after"),
        before=old.estimate.values,
        after=new.estimate.values,
        labels=old.estimate.labels,
        sources=(old.estimate.source, new.estimate.source),
        level=None if level is None else ruler.level(level, progress),
        base_values=_one_each(*bases),
        units=best.units,
        quantity=problem.function.quantity,
        parameters={
            "robustness": c,
            "graph": repr(problem.graph),
            "rows": len(problem.points),
            "reference": problem.reference.in_words(),
        },
        **_of_optima(best, other, other.attributions - best.attributions, problem),
    )


def _refuse_unfit(settings: CheckedSettings) -> None:
    """Refuse what versions of a model cannot be made with; both take one graph."""
    settings.refuse_what_kinds_lack()
    replace(settings, graph=None).refuse_what_is_joint()


def _is_said(version: Any) -> bool:
    """Whether a version is an explanation already: attributions, and no model."""
    table = isinstance(version, np.ndarray | list | str | Path) or is_tensor(version)
    table = table or is_frame(version, "version")
    return table or isinstance(version, Explanation) or is_shap(version)


def _refuse_given(where: str, **given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise InvalidInput(f"{name}: has no effect with {where}; leave it out")


def _one_each(old: Array | None, new: Array | None) -> tuple[float, float] | None:
    """The bases of both, where each has one for all rows."""
    if old is None or new is None or np.ptp(old) or np.ptp(new):
        return None
    return float(old[0]), float(new[0])


def _of_explanations(
    before: Any, after: Any, level: NullModels | None, progress: bool | None
) -> Comparison:
    """Two explanations that were made before, by their targets."""
    with _of_version(BEFORE):
        one, old, old_source = _said(before, "before")
    with _of_version(AFTER):
        other, new, new_source = _said(after, "after")
        places = _places(other, one)

    def phi(refit: Any) -> tuple[Array, Array | None]:
        own, values, _ = _said(refit, "refit")
        return values[_places(own, one)], own.base_value

    return Comparison(
        kind="versions",
        names=("before", "after"),
        before=old,
        after=new[places],
        labels=one.labels,
        sources=(old_source, new_source),
        level=None if level is None else level_of(level, phi, progress),
        base_values=_one_each(one.base_value, other.base_value),
        units=one.units,
        quantity=one.quantity,
        parameters={"weights": f"{dict(one.weights)} and {dict(other.weights)}"},
        **_of_optima(one, other, other.attributions[places] - one.attributions, None),
    )


_LEAST_DIVISIONS: Final = 19


def _of_groups(
    settings: CheckedSettings,
    model: Any,
    groups: Sequence[Any] | Mapping[str, Any],
    data: Any,
    n_permutations: int,
) -> Comparison:
    """Two groups of rows under one model, beside divisions of them by chance."""
    if len(groups) != 2:
        raise InvalidInput(f"rows: expected two groups of rows, got {len(groups)}")
    names, tables = ("the first group", "the second group"), [*groups]
    if isinstance(groups, Mapping):
        one, other = map(str, groups)
        names, tables = (one, other), [*groups.values()]
    times = read_count(n_permutations, "n_permutations")
    if times < _LEAST_DIVISIONS:
        raise InvalidInput(
            f"n_permutations: expected {_LEAST_DIVISIONS} or more, of which one is a "
            f"twentieth, got {times}"
        )
    sizes = [len(table) for table in tables]
    if min(sizes) < 2:
        raise InvalidInput(f"rows: expected two rows or more of each, got {sizes}")
    frames = [as_frame(own, name) for name, own in zip(names, tables, strict=True)]
    first, second = (None if own is None else own.table for own in frames)
    if first is None or second is None:
        if first is not second:
            raise InvalidInput("rows: one group has names of columns, and one has none")
        table: Any = np.concatenate([np.asarray(own) for own in tables])
    else:
        both = (*first, *second)
        lost = [repr(x) for x in both if x not in first or x not in second]
        if lost:
            raise InvalidInput(f"rows: column {lost[0]} is in one group alone")
        table = pd.concat([first, second[list(first)]])
    _refuse_unfit(settings)
    ruler = _Ruler.of(settings, model, data, table)
    known = ruler.targets(ruler.problem.function)
    phi, n = known.estimate.values, sizes[0]
    return Comparison(
        kind="groups",
        names=names,
        before=phi[:n],
        after=phi[n:],
        labels=known.estimate.labels.of_positions(slice(0, n)),
        sources=(known.estimate.source, known.estimate.source),
        level=_permuted(phi, n, times, settings.seed),
        base_values=_one_each(known.base, known.base),
        units="output" if known.base is not None else "scaled",
        quantity=ruler.problem.function.quantity,
        parameters={"rows": f"{n} and {sizes[1]}"},
    )


def _permuted(phi: Array, n: int, times: int, seed: int) -> NullLevel:
    """Distances of divisions of all rows by chance, n of them in the first group."""
    generator, distances = np.random.default_rng(seed), []
    for _ in range(times):
        order = generator.permutation(len(phi))
        distances.append(group_distances(phi[order[:n]], phi[order[n:]]))
    return NullLevel(kind="permutations", n_models=times, distances=np.stack(distances))
