"""``audit``: check attributions from any source, and suggest improvements."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd

from propopt.base.arrays import Array, Attributions, Mask
from propopt.base.checks import read_count, read_seed
from propopt.base.document import minus
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import Outcome, in_percent, percent, plural
from propopt.base.vocabulary import Basis
from propopt.explaining.evidence import (
    AuditedModel,
    AuditEvidence,
    class_position,
    output_of_sums,
    predictions_of,
    read_parts,
)
from propopt.explaining.fidelity_front import FidelityRoughnessFront
from propopt.explaining.front_chapters import front_path_of
from propopt.explaining.hypotheses import LIME, Diagnosis, diagnose
from propopt.explaining.problem import RowNumbers
from propopt.explaining.sources import PATHS
from propopt.explaining.sweeping import sweep
from propopt.explaining.targets import graph_of_rows
from propopt.functions.outputs import Target
from propopt.laws.background import Background
from propopt.losses import GradientMatching
from propopt.losses.graphs.points import Graph
from propopt.results.audit import Audit, AuditFinding, Verdict, largest_causes
from propopt.results.explanation import Explanation
from propopt.results.record import Record
from propopt.results.report.explorer import FrontPath
from propopt.structures.boxes.shapley import shapley_against
from propopt.structures.products.sums import Game
from propopt.tables.frames import Labels
from propopt.tables.imported import AttributionsLike, base_values_of


# ---- One function for each question: its answer with a number and a verdict


_MAX_NAMED: Final = 5  # number of rows that a sentence names
_N_REASONS: Final = 3  # number of first reasons that are compared
# standard errors (nine degrees of freedom) beyond which values are far apart
_MAX_Z: Final = 5.0
# factor on similarity below which values are as similar as possible
_MIN_FACTOR: Final = 1.05
# share of the squared distance below which values are as close as possible
_MIN_GAIN: Final = 0.05
_CHEAP: Final = 0.02  # share of the squared sum below which halving is advised
# ratio of the extreme weights to the one that halves the removable differences
_MAX_RATIO: Final = 1e3
_N_WEIGHTS: Final = 25


def _additivity(e: AuditEvidence, diagnosis: Diagnosis) -> AuditFinding:
    """The check that Σ_d w_nd = f(x_n) − base in every row."""
    largest = float(np.abs(e.missed).max())
    wrong = int((np.abs(e.missed) > e.row_tolerance).sum())
    N = len(e.W)
    verdict: Verdict = "undetermined" if diagnosis.cause == LIME else "wrong"
    advice = "Compute these rows again, with the same model, rows and base."
    if not wrong:
        sentence = f"All {N:,} rows add up to the prediction minus the base."
        verdict = "right"
        advice = ""
    elif e.adds_up.all():
        miss = minus(f"{float(np.median(e.missed)):+.3g}")
        sentence = "All rows miss the prediction minus the base by the same number, "
        sentence += f"{miss} {e.unit}."
        advice = ""  # the base is wrong
    else:
        n = int(np.abs(e.missed).argmax())
        verb = "does" if wrong == 1 else "do"
        miss = minus(f"{e.missed[n]:+.3g}")
        sentence = f"{wrong:,} of {N:,} rows {verb} not add up to the prediction minus "
        sentence += f"the base; row {e.row(n)} misses it by {miss} {e.unit}."
    if diagnosis.is_wrong or diagnosis.cause == LIME:
        advice = ""  # the diagnosis has it
    return AuditFinding("additivity", sentence, largest, e.unit, verdict, advice=advice)


def _base(e: AuditEvidence, diagnosis: Diagnosis) -> AuditFinding:
    """Which mean prediction the base is."""
    base = float(np.median(e.base))
    given = e.hypotheses[0]
    assert given.base is not None, "a background has a base"
    number = base - given.base
    implied = float(np.median(e.implied_base))
    matches = [
        one
        for one in e.hypotheses
        if abs((one.base or 0.0) - base) <= e.row_tolerance[0]
    ]
    start = (
        "The base" if e.imported.base is not None else "The base implied by the rows"
    )
    start += f", {base:.4g}, is"
    where = "background" if e.is_given else "audited rows"
    sentence = f"{start} {number:+.3g} {e.unit} from the mean prediction over the "
    sentence += f"{where}, {given.base:.4g}."
    verdict: Verdict = "undetermined"
    advice = "Give the background that they were made with: data=, here and in a file."
    if e.is_given and diagnosis.is_wrong:
        advice = ""
    no_row_adds_up = not (np.abs(e.missed) <= e.row_tolerance).any()
    if e.is_exact and e.adds_up.all() and no_row_adds_up:
        verdict = "wrong"
        advice = f"Replace the base by {implied:.4g}, to which these values add up."
    elif matches and matches[0] is given:
        verdict = "right"
        advice = ""
        sentence = f"{start} the mean prediction over the background."
    elif matches:
        verdict = "depends on settings"
        advice = ""
        sentence = f"{start} that of {matches[0].words}; the background's is "
        sentence += f"{given.base:.4g}."
    elif diagnosis.has_source and abs(implied - base) <= e.row_tolerance[0]:
        verdict = "depends on settings"
        advice = ""
        sentence += " It is that of their background."
    unit = f"{e.unit} above the mean prediction over the background"
    return AuditFinding("base", minus(sentence), number, unit, verdict, advice=advice)


def _exactness(e: AuditEvidence, diagnosis: Diagnosis) -> AuditFinding:
    """Where the values come from, or what happened to them."""
    difference = np.abs(e.W - e.E)
    sentence = f"{diagnosis.headline}. {diagnosis.evidence}".rstrip()
    number = float(difference.max())
    unit = f"{e.unit}, the largest difference from exact"
    if not e.is_exact:  # compared with sampled values and their errors
        errors = e.targets.estimate.standard_errors
        number = math.nan
        sentence = f"{diagnosis.headline}."
        unit = "share of values far from sampled ones"
        if errors is not None:
            number = float((difference > _MAX_Z * errors + e.tolerance).mean())
            part = (
                "No value is" if number == 0.0 else f"{percent(number)} % of them are"
            )
            sentence += f" {part} over {_MAX_Z:g} standard errors from sampled values."
    return AuditFinding(
        *("exactness", sentence, number, unit, diagnosis.verdict),
        advice=diagnosis.next_step,
        cause=diagnosis.cause,
        headline=diagnosis.headline,
        basis="computed" if e.is_exact else "estimated",
    )


def _compared_with(e: AuditEvidence, diagnosis: Diagnosis) -> str:
    """The values to compare with, in words, and their rows if others are possible."""
    if not e.is_exact:
        return "sampled values"
    if not e.is_given:
        return "exact values for the audited rows"
    is_right = diagnosis.verdict == "right"
    return "exact values" if is_right else "exact values for the background"


def _signs_and_reasons(
    e: AuditEvidence, diagnosis: Diagnosis
) -> Iterator[AuditFinding]:
    """Large values with another sign, and rows with other first reasons.

    Wrong values are compared with what they should be.
    """
    aim = e.E
    words = _compared_with(e, diagnosis)
    if diagnosis.is_wrong and diagnosis.values is not None:
        aim = diagnosis.values
        words = "exact values"
    share = e.changed_signs(e.W, aim)
    size = f"beyond ±{e.min_size:.2g} {e.unit}"
    sentence = f"No large value, {size}, differs in sign from {words}."
    if share > 0.0:
        sentence = f"{percent(share)} % of the large values, {size}, differ in sign "
        sentence += f"from {words}."
    unit = "share of large values"
    advice = "Do not derive reasons from these signs."
    signs = AuditFinding("signs", sentence, share, unit, "wrong", advice)
    yield _judged(e, diagnosis, signs)
    largest, expected = (_largest_of_rows(V, _N_REASONS) for V in (e.W, aim))
    sizes = np.sort(np.abs(aim), axis=1)[:, ::-1]
    last = sizes[:, min(_N_REASONS, sizes.shape[1]) - 1][:, None]
    tolerance = e.tolerance + e.half_digit.max(axis=1, keepdims=True)
    is_clear = np.abs(np.abs(aim) - last) > 2.0 * tolerance  # else any may be first
    others = np.flatnonzero(((largest != expected) & is_clear).any(axis=1))
    share = len(others) / len(largest)
    sentence = f"In every row the three largest columns match those of {words}."
    if len(others):
        rows = ", ".join(e.row(n) for n in others[:_MAX_NAMED])
        start = ", such as" if len(others) > _MAX_NAMED else ":"
        sentence = f"The three largest columns differ from those of {words} in "
        sentence += f"{percent(share)} % of the rows{start} {rows}."
    advice = "Do not send the first three reasons of these rows."
    reasons = AuditFinding("reasons", sentence, share, "share of rows", "wrong", advice)
    yield _judged(e, diagnosis, reasons)


def _largest_of_rows(W: Attributions, k: int) -> Mask:
    """Which entries are the k largest |w| of their row; ties go to the first."""
    indices = np.argsort(-np.abs(W), axis=1, kind="stable")[:, :k]
    chosen = np.zeros(W.shape, dtype=bool)
    np.put_along_axis(chosen, indices, True, axis=1)
    return chosen


def _share(share: float) -> str:
    """A share in per cent, or "none"."""
    return f"{percent(share)} %" if share > 0.0 else "none"


def _judged(e: AuditEvidence, diagnosis: Diagnosis, x: AuditFinding) -> AuditFinding:
    """A share of differences from exact values, with the verdict on it."""
    if not e.is_exact:
        return replace(x, verdict="undetermined", advice="", basis="estimated")
    verdict = _verdict(e, diagnosis, x.number == 0.0)
    return replace(x, verdict=verdict, advice=x.advice if verdict == "wrong" else "")


def _verdict(e: AuditEvidence, diagnosis: Diagnosis, is_right: bool) -> Verdict:
    """The verdict on values that are, or are not, the exact or the best possible."""
    if is_right:
        return "right"
    if not e.is_exact:
        return "undetermined"  # sampled values are at a distance from exact ones too
    if diagnosis.is_wrong:
        return "wrong"
    return "depends on settings" if diagnosis.has_source else "undetermined"


def _unused(e: AuditEvidence, diagnosis: Diagnosis) -> AuditFinding:
    """The check that columns are zero if the model does not use them."""
    if e.structure is None:
        sentence = "The model can only be called, so unused columns are unknown."
        return AuditFinding("unused", sentence, math.nan, e.unit, "undetermined")
    unused = np.flatnonzero(~e.used)
    sizes = np.abs(e.W[:, unused]).max(axis=0)
    size = float(sizes.max(initial=0.0))
    verdict: Verdict = "right"
    advice = ""
    count = plural(len(unused), "column")
    sentence = f"The model does not use {count}; all values there are zero."
    if not len(unused):
        sentence = "The model uses every column."
    if size > e.tolerance + e.half_digit[:, unused].max(initial=0.0):
        name = e.labels.feature_names(e.W.shape[1])[unused[sizes.argmax()]]
        sentence = f"The model does not use {count}, but {name} has values up to "
        sentence += f"{size:.3g} {e.unit}."
        verdict = "depends on settings" if diagnosis.cause in _SPREAD else "wrong"
        if verdict == "wrong" and not diagnosis.is_wrong:
            advice = "Leave unused columns at zero; check the order of columns."
    return AuditFinding("unused", sentence, size, e.unit, verdict, advice=advice)


_SPREAD: Final = ("optimized contributions", LIME, "undetermined")
"""Causes with which unused columns may have values."""


def _explained_differences(e: AuditEvidence) -> Iterator[AuditFinding]:
    """How much of the differences main effects explain, and predictions require."""
    front = e.audited_front
    counts = () if e.graph is not None else _OTHER_NEIGHBORS
    share = 1.0 - front.roughness / front.plain
    others = [e.front(e.W, count) for count in counts]
    ends = sorted(1.0 - one.roughness / one.plain for one in others if one.plain > 0.0)
    sentence = f"Main effects explain {_rounded(share)} of the differences between "
    sentence += "similar rows"
    if share < 0.0:
        sentence = "Main effects explain none of the differences between similar rows: "
        sentence += "without them rows differ more"
    elif ends:
        between = f"{_rounded(ends[0])} to {_rounded(ends[-1])}"
        sentence += f" ({between} with 4 to 16 neighbours)"
    unit = "share of the squared differences of similar rows"
    verdict: Verdict = "depends on settings"
    yield AuditFinding("main_effects", f"{sentence}.", share, unit, verdict)
    required = front.least / front.plain
    removable = max(front.roughness - front.least, 0.0) / front.plain
    noun = "these differences"
    parts = (required, removable)
    if share < 0.0:  # these would be over 100 % of the differences
        rest = front.least / front.roughness
        noun = "the differences without main effects"
        parts = (rest, 1.0 - rest)
    sentence = "Rows must add up to their predictions: this requires "
    sentence += f"{_rounded(parts[0])} of {noun}; {_rounded(parts[1])} are removable."
    yield AuditFinding("predictions", sentence, required, unit, verdict)


_OTHER_NEIGHBORS: Final = (4, 16)
"""Numbers of neighbours that are tried in addition to the default."""


def _rounded(share: float) -> str:
    """A share, which may be negative, in whole per cent; small ones in full."""
    return f"{100.0 * share:.0f} %" if abs(share) >= 0.0095 else in_percent(share)


def _directions(e: AuditEvidence, diagnosis: Diagnosis) -> Iterator[AuditFinding]:
    """How much better values on the front of exact ones are, in both directions."""
    front = e.exact_front
    W = e.exact_front.completed(e.W)
    distance = float(((W - e.E) ** 2).sum())
    roughness = e.audited_front.robust.value(W)
    words = _compared_with(e, diagnosis)
    times = 0.0
    gain = 0.0
    closest = 0.0
    if (np.abs(W - e.E) <= e.tolerance).all():
        similar = closer = "These are the exact values; no others are as close to them."
    else:
        least = e.audited_front.robust.value(front.smoothest_within(distance))
        times = roughness / least if least > 1e-9 * roughness else math.nan
        closest = float(((front.nearest(roughness) - e.E) ** 2).sum())
        gain = 1.0 - closest / distance
        factor = f"{times:.3g} times more" if times > 0.0 else "completely"
        similar = f"At the same distance from {words}, similar rows could be {factor} "
        similar += "alike."
        closer = f"The {words} are more alike than these."
        if closest > 1e-12 * distance:
            closer = (
                f"Equally similar values exist that are {percent(gain)} % closer to "
            )
            closer += f"{words}."
    best = times <= _MIN_FACTOR, gain <= _MIN_GAIN
    verdicts = [_verdict(e, diagnosis, x) for x in best]
    advice = ""
    if verdicts[0] == "depends on settings":
        meant = words.removeprefix("exact ")
        meant = "interventional values" if diagnosis.source == PATHS else meant
        advice = f"If you need {meant}, take the exact ones: audit.exact, or the file "
        advice += "_exact.csv."
    basis: Basis = "proved" if e.is_exact else "estimated"
    unit = "times less squared difference of similar rows"
    yield AuditFinding(
        *("more_robust", similar, times or 1.0, unit, verdicts[0], advice), basis=basis
    )
    unit = "share of the squared distance from exact values"
    yield AuditFinding(*("more_faithful", closer, gain, unit, verdicts[1]), basis=basis)


def _prices(e: AuditEvidence, diagnosis: Diagnosis) -> Iterator[AuditFinding]:
    """How much removing 10, 50 and 90 % of the removable differences changes."""
    size = float((e.W**2).sum())
    for share in (10, 50, 90):
        V = e.audited_front.without(share / 100.0)
        price = float(((V - e.W) ** 2).sum()) / size
        signs = e.changed_signs(V, e.W)
        change = percent(math.sqrt(price))
        advice = ""
        if share == 50 and price <= _CHEAP and not diagnosis.is_wrong:
            advice = (
                "Look at the ten pairs: some differences may be intended. To halve "
            )
            advice += "the others: po.explain(model, X, data=data, "
            advice += "contributions=attributions)."
        start = "Halving" if share == 50 else f"Removing {share} % of"
        yield AuditFinding(
            f"price_of_{share}",
            f"{start} the removable differences changes the values by {change} % on "
            f"average, and the signs of {_share(signs)} of the large values.",
            *(price, "share of the squared sum", "depends on settings"),
            advice=advice,
            basis="proved",
        )


def _causes(e: AuditEvidence) -> tuple[AuditFinding, dict[str, Any]]:
    """The pairs and rows with most of the removable differences."""
    graph = e.audited_front.robust.graph
    V = e.W - e.audited_front.smoothest
    pairs, rows, shares = largest_causes(graph.edges, graph.strengths, V)
    first = pairs[0]
    top = float(np.sort(shares)[::-1][: max(len(shares) // 100, 1)].sum())
    ends = " and ".join(e.row(n) for n in first.rows)
    name = e.labels.feature_names(e.W.shape[1])[first.feature]
    finding = AuditFinding(
        "pairs",
        f"Rows {ends} have {percent(first.share)} % of the removable differences, "
        f"mostly in {name}. The top 1 % of pairs have {percent(top)} %, and "
        f"{len(rows)} of {len(V):,} rows {percent(sum(x.share for x in rows))} %.",
        *(first.share, "share of the removable differences", "depends on settings"),
    )
    return finding, {"pairs": pairs, "rows": rows}


def _background(e: AuditEvidence, diagnosis: Diagnosis) -> AuditFinding:
    """How much values change with half of the background."""
    rows = e.background.points
    weights = e.background.weights
    B = len(rows)
    unit = "share of the squared sum"
    if e.structure is None or B < 4:
        sentence = "Other backgrounds were not tried."
        return AuditFinding("background", sentence, math.nan, unit, "undetermined")
    order = np.random.default_rng(e.seed).permutation(B)
    tables = []
    for half in (np.sort(order[: B // 2]), np.sort(order[B // 2 :])):
        part = None if weights is None else weights[half] / weights[half].sum()
        exact = shapley_against(e.structure, Game(rows[half], weights=part))
        tables.append(exact.values(e.points))
    signs = max(e.changed_signs(V, e.E) for V in tables)
    size = float((e.E**2).sum()) or 1.0
    share = max(float(((V - e.E) ** 2).sum()) / size for V in tables)
    return AuditFinding(
        "background",
        f"With half of the {B:,} background rows, the values change by "
        f"{percent(math.sqrt(share))} % on average, and {_share(signs)} of the "
        "signs of large values change.",
        *(share, unit, "depends on settings"),
        advice=""
        if diagnosis.source == PATHS
        else "Report the background with the numbers.",
        basis="estimated",
    )


# ---- The curve of the page, and the audit


def _front(
    front: FidelityRoughnessFront, values: str, labels: Labels, W: Attributions
) -> FrontPath:
    """The curve from exact values to similar ones, with the audited ones next to it."""
    c = front.half_weight
    aim = GradientMatching(labels.frame(front.aim))
    curve = sweep(
        aim + front.robust,
        {front.robust.name: np.geomspace(c / _MAX_RATIO, c * _MAX_RATIO, _N_WEIGHTS)},
        {"the audited numbers": labels.frame(front.completed(W))},
        subject_to=[front.totals],
        progress=False,
    )
    path = front_path_of(curve, curve.knee())
    names = {**path.labels, aim.name: f"faithfulness to {values} values"}
    # audited values are shown even if an unused column is not zero
    return replace(path, baselines=curve.baselines, labels=names)


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

    It asks the questions in the order a reviewer would. Do rows add up, and to which
    base? Are they exact Shapley values: interventional, path-dependent, or for another
    background? Are unused columns zero? What would more similar values for similar rows
    change, and which pairs of rows differ most? What depends on the background and the
    neighbours? The distance from the best possible values comes last: exact values are
    not wrong because smoother ones exist.

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
        Findings with their verdicts, and the pairs and rows that differ most.

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
    >>> po.audit(wrong, forest, X)["additivity"].verdict
    'wrong'
    >>> po.audit(shap, forest, X)["exactness"].headline
    'All 180 values are exact Shapley values with the audited rows as background'
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
    findings = [f(e, diagnosis) for f in (_additivity, _base, _exactness)]
    findings += [*_signs_and_reasons(e, diagnosis), _unused(e, diagnosis)]
    causes: dict[str, Any] = {}
    front = None
    if e.has_similar_rows:
        findings += _explained_differences(e)
        if e.audited_front.is_rough:  # some of these differences are removable
            findings += [*_directions(e, diagnosis), *_prices(e, diagnosis)]
            finding, causes = _causes(e)
            findings.append(finding)
            of_exact = e.is_exact and e.exact_front.is_rough
            start = (e.exact_front, "exact") if of_exact else (e.audited_front, "these")
            front = partial(_front, *start, e.labels, e.W)
    findings.append(_background(e, diagnosis))
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
        **causes,
        settings=_settings(e),
        front=front,
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
