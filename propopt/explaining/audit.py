"""``audit``: check attributions from any source, and suggest improvements."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.stats import t

from propopt.base.arrays import Array, Attributions, Mask, largest_first
from propopt.base.checks import read_count, read_seed
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import Outcome, plural
from propopt.base.vocabulary import TERMS, Basis
from propopt.explaining.evidence import (
    AuditedModel,
    AuditEvidence,
    class_position,
    output_of_sums,
    predictions_of,
    read_parts,
)
from propopt.explaining.hypotheses import LIME, Diagnosis, diagnose
from propopt.explaining.problem import RowNumbers
from propopt.explaining.targets import graph_of_rows
from propopt.functions.outputs import Target
from propopt.laws.background import Background
from propopt.losses.graphs.points import Graph
from propopt.results.audit import (
    MAX_DF,
    Audit,
    AuditFinding,
    Cause,
    Verdict,
    largest_causes,
)
from propopt.results.explanation import Explanation
from propopt.results.record import Record
from propopt.structures.boxes.shapley import shapley_against
from propopt.structures.products.sums import Game
from propopt.tables.imported import AttributionsLike, base_values_of


# ---- One function for each check: its error and a verdict


_MAX_NAMED: Final = 5  # number of rows that a check names
_N_FIRST: Final = 3  # number of first features that are compared


def _row_sums(e: AuditEvidence, diagnosis: Diagnosis) -> AuditFinding:
    """The check that Σ_d w_nd = f(x_n) − base in every row."""
    errors = np.abs(e.missed)
    wrong = errors > e.row_tolerance
    count = int(wrong.sum())
    worst = largest_first(np.where(wrong, errors, -1.0))
    is_lime = diagnosis.finding.cause == LIME
    verdict: Verdict = "not reproduced" if is_lime else "wrong"
    # else the diagnosis, or the base, has the cause
    is_cause = count and not (diagnosis.is_wrong or is_lime or e.adds_up.all())
    return AuditFinding(
        "row sums",
        float(errors.max()),
        e.unit,
        verdict if count else "exact",
        cause="wrong sums" if is_cause else "",
        count=count,
        rows=tuple(worst[: min(count, _MAX_NAMED)].tolist()),
    )


def _base(e: AuditEvidence, diagnosis: Diagnosis) -> AuditFinding:
    """Which mean prediction the base is."""
    base = float(np.median(e.base))
    given = next(e.hypotheses)
    implied = float(np.median(e.implied_base))
    finding = AuditFinding(
        "base",
        base - given.base,
        e.unit,
        "exact",
        value=base,
        expected=given.base,
    )
    no_row_adds_up = not (np.abs(e.missed) <= e.row_tolerance).any()
    if e.is_exact and e.adds_up.all() and no_row_adds_up:
        return replace(finding, verdict="wrong", cause="another base", expected=implied)
    tolerance = e.row_tolerance[0]
    if diagnosis.is_exact and abs(implied - base) <= tolerance:
        is_given = abs(base - given.base) <= tolerance
        source = "" if is_given else diagnosis.finding.source
        return replace(finding, number=base - implied, source=source, expected=implied)
    for one in e.hypotheses:
        if abs(one.base - base) <= tolerance:
            source = "" if one is given else one.words
            number = base - one.base
            return replace(finding, number=number, source=source, expected=one.base)
    is_cause = not (e.is_given and diagnosis.is_wrong)
    return replace(
        finding,
        verdict="not reproduced",
        cause="unknown background" if is_cause else "",
    )


def _values(e: AuditEvidence, diagnosis: Diagnosis) -> Iterator[AuditFinding]:
    """What the values are; next to exact or sampled ones, if that is unknown."""
    difference = np.abs(e.W - e.E)
    finding = replace(diagnosis.finding, number=float(difference.max()), unit=e.unit)
    errors = e.targets.estimate.standard_errors
    if e.is_exact or errors is None:
        yield finding
    else:
        # intervals of all values together, in blocks of draws
        limit = float(t.isf(0.5 * _FALSE / difference.size, MAX_DF)) * errors
        limit += e.tolerance + e.half_digit
        beyond = difference > limit
        share = float(beyond.mean())
        rows = np.flatnonzero(beyond.any(axis=1))
        yield replace(
            finding,
            number=share,
            unit="%",
            basis="estimated",
            count=len(rows),
            rows=(*rows[:_MAX_NAMED].tolist(),),
        )
        power = float((2.0 * np.abs(e.E) > limit).mean())
        yield AuditFinding("power", power, "%", basis="estimated")
    if finding.verdict == "not reproduced" and e.W.any() and e.E.any():
        W = e.W.ravel()
        E = e.E.ravel()
        basis: Basis = "computed" if e.is_exact else "estimated"
        r2 = float(np.vdot(W, E) ** 2 / (np.vdot(W, W) * np.vdot(E, E)))
        yield AuditFinding("R² with exact", r2, "", basis=basis)
        slope = float(np.vdot(W, E) / np.vdot(E, E))
        yield AuditFinding("slope with exact", slope, "", basis=basis)


_NOTHING: Final = 1e-9
"""Removable differences below this share of all are rounding error."""

_FALSE: Final = 0.01
"""The chance that any right value of a table is beyond its interval."""


def _signs_and_first(e: AuditEvidence, diagnosis: Diagnosis) -> Iterator[AuditFinding]:
    """Large values with another sign, and rows with other first features.

    Wrong values are compared with what they should be.
    """
    aim = e.E
    if diagnosis.is_wrong and diagnosis.values is not None:
        aim = diagnosis.values
    basis: Basis = "computed" if e.is_exact else "estimated"
    yield AuditFinding("large signs", e.changed_signs(e.W, aim), "%", basis=basis)
    largest, expected = map(_first_of_rows, (e.W, aim))
    sizes = np.sort(np.abs(aim), axis=1)[:, ::-1]
    last = sizes[:, min(_N_FIRST, sizes.shape[1]) - 1][:, None]
    tolerance = e.tolerance + e.half_digit.max(axis=1, keepdims=True)
    is_clear = np.abs(np.abs(aim) - last) > 2.0 * tolerance  # else any may be first
    others = ((largest != expected) & is_clear).any(axis=1)
    yield AuditFinding("top 3 features", float(others.mean()), "%", basis=basis)


def _first_of_rows(W: Attributions) -> Mask:
    """Which entries are the first of their row by |w|; ties go to the first column."""
    indices = np.argsort(-np.abs(W), axis=1, kind="stable")[:, :_N_FIRST]
    chosen = np.zeros(W.shape, dtype=bool)
    np.put_along_axis(chosen, indices, True, axis=1)
    return chosen


def _unused(e: AuditEvidence) -> Iterator[AuditFinding]:
    """The largest value of a column that the model does not use, if that is known."""
    if e.structure is None:
        return
    unused = np.flatnonzero(~e.used)
    sizes = np.abs(e.W[:, unused]).max(axis=0)
    number = float(sizes.max(initial=0.0))
    is_large = number > e.tolerance + e.half_digit[:, unused].max(initial=0.0)
    features = (int(unused[sizes.argmax()]),) if is_large else ()
    yield AuditFinding("unused features", number, e.unit, features=features)


# ---- Numbers on similar rows and the background, which have no verdict


def _background(e: AuditEvidence) -> Iterator[AuditFinding]:
    """How much values change with half of the background."""
    rows = e.background.points
    weights = e.background.weights
    B = len(rows)
    if e.structure is None or B < 4:
        return
    order = np.random.default_rng(e.seed).permutation(B)
    tables = []
    for half in (np.sort(order[: B // 2]), np.sort(order[B // 2 :])):
        part = None if weights is None else weights[half] / weights[half].sum()
        exact = shapley_against(e.structure, Game(rows[half], weights=part))
        tables.append(exact.values(e.points))
    size = float((e.E**2).sum()) or 1.0
    change = math.sqrt(max(float(((V - e.E) ** 2).sum()) / size for V in tables))
    yield AuditFinding(
        "change with half background",
        change,
        "%",
        basis="estimated",
        turned=max(e.changed_signs(V, e.E) for V in tables),
    )


# ---- The audit


@suggests_arguments
def audit(
    attributions: AttributionsLike,
    model: Any,
    X: Any,
    *,
    data: pd.DataFrame | Array | None = None,
    sample_weight: RowNumbers = None,
    output: str | None = None,
    base: float | Array | None = None,
    target: Target = None,
    outcome: Outcome | None = None,
    graph: Graph | None = None,
    n_neighbors: int = 8,
    rng: int | None = None,
) -> Audit:
    """Check attributions from any source: are they right, and how to improve them.

    Three checks have a verdict: the sums of rows, the base, and the values. These are
    *exact* if a known game gives every number, *wrong* if a named change of one does,
    and *not reproduced* otherwise. Numbers have none: large signs, how much of the
    differences between similar rows is removable, what half of the background changes.

    Parameters
    ----------
    attributions : array, table, path, ``shap.Explanation``, tensor or list
        Contributions W (N, D): a table, for several classes (N, D, K); an explanation
        of propopt or ``shap``; a tensor of torch or captum; a path of ``.csv``,
        ``.npz`` or ``.parquet``; N explanations of LIME, or their lists of pairs. Rows
        and columns are put in the order of X by their names.
    model : estimator, native booster, callable or Function
        The explained model; see :func:`propopt.wrap`.
    X : DataFrame or array (N, D)
        The explained rows.
    data : DataFrame or array (B, D), optional
        The background, ideally the one that W was made with; X by default.
    sample_weight : Series or array (B,), optional
        Weights of the background rows, as for :func:`propopt.explain`.
    output : {"log_odds", "probability", "margin", "value"}, optional
        The output that W are parts of, as in :func:`propopt.wrap`; required for
        classifiers, which have several. For regressors with a link, such as Poisson,
        the sums of rows show whether W are parts of the prediction or of its log.
        Numbers of another output are refused.
    base : float or array (N,), optional
        The base value, in the unit of the output, if ``attributions`` has none; by
        default the median of prediction minus row sum.
    target : class label or int, optional
        The explained class, as in :func:`propopt.wrap`.
    outcome : str or mapping of a class to its name, optional
        The name of the column that the model predicts, or of its classes.
    graph : Graph, optional
        The similar rows; by default nearest neighbours, with each column divided by its
        standard deviation.
    n_neighbors : int
        The number of neighbours of each row.
    rng : int, optional
        Seed for halves of the background, and for sampling if the model can only be
        called.

    Returns
    -------
    Audit
        Checks with their verdicts, numbers, and the similar rows that differ most.

    Raises
    ------
    InvalidInput
        If names or sizes differ from those of X, the output is not stated, or the
        numbers are parts of another output.

    See Also
    --------
    explain : Explain a model with the certified optimum.
    compare : Compare two versions of a model.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> forest = RandomForestRegressor(20, random_state=0).fit(X, X[:, 0] * X[:, 1])
    >>> shap = po.explainers.ExactShap(data=X).explain(po.wrap(forest, data=X), X)
    >>> wrong = shap.attributions.copy()
    >>> wrong[3] *= 1.001
    >>> po.audit(wrong, forest, X).verdict
    'wrong'
    >>> po.audit(shap, forest, X)["values"].source
    'exact Shapley values with the audited rows as background'
    """
    audited = AuditedModel(model=model, X=X, data=data, target=target, outcome=outcome)
    candidates = audited.outputs(output)
    function, table, _ = candidates[0]
    points, labels = table.read(function, X, "X")
    rows = points if data is None else table.read(function, data, "data")[0]
    weighted = X if data is None else data
    background = Background.weighed(sample_weight, weighted, rows)
    if graph is not None:
        graph_of_rows(graph, len(points))
    predictions = predictions_of(candidates, points, labels, rows)
    position = class_position(model, function, points, labels)
    imported = read_parts(attributions, labels, points.shape, *position)
    if base is not None:
        imported = replace(imported, base=base_values_of(base, len(points)))
    function, _, unit = output_of_sums(candidates, predictions, imported.values)
    e = AuditEvidence(
        imported=imported,
        function=function,
        unit=unit,
        points=points,
        background=background or Background.of_points(rows),
        is_given=data is not None,
        labels=labels,
        graph=graph,
        n_neighbors=read_count(n_neighbors, "n_neighbors"),
        seed=read_seed(rng),
        model=audited,
    )
    e.refuse_other_outputs()
    diagnosis = diagnose(e)
    findings = [_row_sums(e, diagnosis), _base(e, diagnosis), *_values(e, diagnosis)]
    findings += [*_signs_and_first(e, diagnosis), *_unused(e)]
    pairs: tuple[Cause, ...] = ()
    if e.has_similar_rows:
        findings += [
            AuditFinding(name, number, "%", basis=TERMS[name].basis)
            for name, number in e.shares.numbers.items()
        ]
        if e.shares.removable > _NOTHING:
            pairs = largest_causes(e.similar.edges, e.similar.strengths, e.shares.rest)
    findings += _background(e)
    return Audit(
        findings=tuple(findings),
        explanation=Explanation(
            attributions=e.W,
            method="given",
            labels=e.labels,
            units="output",
            base_value=e.base,
            prediction=e.prediction,
            quantity=e.function.quantity,
            **e.function.metadata(e.points),
        ),
        exact=e.E if e.is_exact else None,
        pairs=pairs,
        settings=_settings(e),
        record=Record.of(model, X=X, data=data),
    )


def _settings(e: AuditEvidence) -> dict[str, str]:
    """How the audit was made, in words."""
    background = plural(len(e.background.points), "row")
    background += "" if e.background.weights is None else " with weights"
    settings = {
        "attributions": e.imported.source,
        "unit": e.unit,
        "background": background + ("" if e.is_given else ", the audited ones"),
        "exact values": e.targets.estimate.source,
    }
    names = e.labels.points
    if names is None or list(names) == list(range(len(e.W))):
        settings["rows"] = "counted from 0"
    if len(e.W) > 1:
        nearest = f"{min(e.n_neighbors, len(e.W) - 1)} nearest of each"
        settings["similar rows"] = nearest if e.graph is None else repr(e.graph)
    if e.has_similar_rows:
        effects = e.main_effects
        settings["main effects"] = effects.explanation.method
        settings["main effects"] += f", over {effects.background}"
    return {**settings, "seed": str(e.seed)}
