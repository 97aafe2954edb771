"""``audit``: are attributions from anywhere right, alike, and what would do."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd

from propopt.base.arrays import Array, Attributions
from propopt.base.document import Basis
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import in_percent, percent, plural
from propopt.explaining.evidence import AuditEvidence
from propopt.explaining.fidelity_front import FidelityRoughnessFront
from propopt.explaining.front_chapters import trail_of
from propopt.explaining.hypotheses import LIME, Diagnosis, diagnosed
from propopt.explaining.problem import RowNumbers
from propopt.explaining.sources import PATHS
from propopt.explaining.sweeping import sweep
from propopt.functions.outputs import Target
from propopt.losses import GradientMatching
from propopt.losses.graphs.points import Graph
from propopt.results.audit import Audit, AuditFinding, Verdict, causes_of
from propopt.results.explanation import Explanation
from propopt.results.record import Record
from propopt.results.report.explorer import FrontPath
from propopt.results.stability import largest_of_rows
from propopt.structures.boxes.shapley import shapley_against
from propopt.structures.products.sums import Game
from propopt.tables.frames import Labels
from propopt.tables.imported import AttributionsLike


# ---- The questions: each an answer with its number


_NAMED: Final = 5
"""Rows that a sentence names."""

_TOP: Final = 3
"""First reasons of a row that are compared."""


def _additivity(e: AuditEvidence, found: Diagnosis) -> AuditFinding:
    """Σ_d w_nd = f(x_n) − base in every row."""
    size = float(np.abs(e.missed).max())
    wrong, N = int((np.abs(e.missed) > e.room).sum()), len(e.W)
    verdict: Verdict = "undetermined" if found.cause == LIME else "wrong"
    advice = "Compute these rows again, with the same model, rows and base."
    if not wrong:
        sentence = f"All {N:,} rows add up to the prediction minus the base."
        verdict, advice = "right", ""
    elif e.adds_up.all():
        sentence = (
            f"All rows miss the prediction minus the base by the same number, "
            f"{float(np.median(e.missed)):+.3g} {e.unit}."
        )
        advice = ""  # it is the base
    else:
        n = int(np.abs(e.missed).argmax())
        verb = "misses" if wrong == 1 else "miss"
        sentence = (
            f"{wrong:,} of {N:,} rows {verb} the prediction minus the base; row "
            f"{e.row(n)} by {e.missed[n]:+.3g} {e.unit}."
        )
    if found.is_wrong or found.cause == LIME:
        advice = ""  # the cause says what to do
    return AuditFinding("additivity", sentence, size, e.unit, verdict, advice=advice)


def _base(e: AuditEvidence, found: Diagnosis) -> AuditFinding:
    """Whose mean the base is."""
    own, given = float(np.median(e.base)), e.owners[0]
    assert given.base is not None, "it is that of the background"
    came = "The base" if e.came.base is not None else "The base that rows imply"
    near = [one for one in e.owners if abs(float(one.base or 0.0) - own) <= e.room[0]]
    apart = float(np.median(e.implied)) - own
    where = "background" if e.is_given else "audited rows"
    told = f"{came}, {own:.4g}, is {own - given.base:+.3g} {e.unit} from the mean "
    told += f"prediction over the {where}, {given.base:.4g}."
    verdict: Verdict = "undetermined"
    advice = "" if e.is_given and found.is_wrong else _GIVE_IT
    if e.is_exact and e.adds_up.all() and not (np.abs(e.missed) <= e.room).any():
        verdict = "wrong"
        advice = f"Add them to {own + apart:.4g}, the base of these values."
    elif near and near[0] is given:
        verdict, advice = "right", ""
        told = f"{came}, {own:.4g}, is the mean prediction over the background."
    elif near:
        verdict, advice = "depends on settings", ""
        told = f"{came}, {own:.4g}, is that of {near[0].words}; the background's is "
        told += f"{given.base:.4g}."
    elif found.is_owned and abs(apart) <= e.room[0]:
        verdict, advice = "depends on settings", ""
        told += " It is that of their own background."
    unit = f"{e.unit} above the mean prediction over the background"
    return AuditFinding("base", told, own - given.base, unit, verdict, advice=advice)


_GIVE_IT: Final = (
    "Give the background that they were made with: data=, here and in a file."
)


def _exactness(e: AuditEvidence, found: Diagnosis) -> AuditFinding:
    """The diagnosis: whose exact values they are, or what happened to them."""
    apart = np.abs(e.W - e.E)
    sentence = f"{found.headline}. {found.evidence}".rstrip()
    number, unit = float(apart.max()), f"{e.unit}, the largest difference from exact"
    if not e.is_exact:  # against drawn values and their errors
        errors, number = e.known.estimate.standard_errors, math.nan
        sentence = "The model can only be called, so exact values are not known."
        unit = "share of values far from sampled ones"
        if errors is not None:
            number = float((apart > _FAR * errors + e.tolerance).mean())
            sentence += f" {_part(number)} of the values are over {_FAR:g} standard "
            sentence += "errors from sampled ones."
    return AuditFinding(
        *("exactness", sentence, number, unit, found.verdict),
        advice=found.next_step,
        cause=found.cause,
        headline=found.headline,
        standing="checked" if e.is_exact else "estimated",
    )


_FAR: Final = 5.0
"""Standard errors, with nine degrees of freedom."""


def _of_exact(e: AuditEvidence, found: Diagnosis) -> str:
    """What values are compared with, and for which rows, where others could be."""
    if not e.is_exact:
        return "drawn values"
    if not e.is_given:
        return "exact values for the audited rows"
    is_plain = found.verdict == "right"
    return "exact values" if is_plain else "exact values for the background"


def _signs_and_reasons(e: AuditEvidence, found: Diagnosis) -> Iterator[AuditFinding]:
    """Sizeable values whose sign is another, and rows whose three largest are.

    Of slips they are compared with those of whose values they are.
    """
    aim, words = e.E, _of_exact(e, found)
    if found.is_wrong and found.values is not None:
        aim, words = found.values, "exact values"
    share = e.changed_signs(e.W, aim)
    told = f"{_part(share)} of the large values, beyond ±{e.cut:.2g} {e.unit}, differ "
    told += f"in sign from {words}."
    advice, unit = "Do not derive reasons from these signs.", "share of large values"
    signs = AuditFinding("signs", told, share, unit, "wrong", advice)
    yield _against_exact(e, found, signs)
    own, true = (largest_of_rows(V, _TOP) for V in (e.W, aim))
    size = np.sort(np.abs(aim), axis=1)[:, ::-1]
    # of equal sizes any may be first
    last = size[:, min(_TOP, size.shape[1]) - 1][:, None]
    room = e.tolerance + e.step.max(axis=1, keepdims=True)
    clear = np.abs(np.abs(aim) - last) > 2.0 * room
    others = np.flatnonzero(((own != true) & clear).any(axis=1))
    share = len(others) / len(own)
    rows = ", ".join(e.row(n) for n in others[:_NAMED])
    where = f"{_part(share).lower()} of the rows"
    where += f": {rows}" if len(others) else ""
    where += ", …" if len(others) > _NAMED else ""
    told = f"The three largest columns differ from those of {words} in {where}."
    advice = "Do not send the first three reasons of these rows."
    reasons = AuditFinding("reasons", told, share, "share of rows", "wrong", advice)
    yield _against_exact(e, found, reasons)


def _part(share: float) -> str:
    """A share at the beginning of a sentence; zero is none."""
    told = percent(share)
    return "None" if told == "0" else f"{told} %"


def _against_exact(
    e: AuditEvidence, found: Diagnosis, one: AuditFinding
) -> AuditFinding:
    """With the verdict on a share of what differs from the exact values."""
    if not e.is_exact:
        return replace(one, verdict="undetermined", advice="", standing="estimated")
    if one.number == 0.0:
        return replace(one, verdict="right", advice="")
    if found.is_wrong:
        return one
    is_owned = found.is_owned
    verdict: Verdict = "depends on settings" if is_owned else "undetermined"
    return replace(one, verdict=verdict, advice="")


def _unused(e: AuditEvidence, found: Diagnosis) -> AuditFinding:
    """The values of columns that the model never uses."""
    if e.read is None:
        told = "The model can only be called, so its columns are not known."
        return AuditFinding("unused", told, math.nan, e.unit, "undetermined")
    unused = np.flatnonzero(~e.used)
    sizes = np.abs(e.W[:, unused]).max(axis=0)
    size = float(sizes.max(initial=0.0))
    count = plural(len(unused), "column")
    verb = "it gets" if len(unused) == 1 else "they get"
    sentence = f"The model does not use {count}; {verb} nothing."
    if not len(unused):
        sentence = "The model uses every column."
    verdict: Verdict = "right"
    advice = ""
    if size > e.tolerance + e.step[:, unused].max(initial=0.0):
        name = e.labels.feature_names(e.W.shape[1])[unused[sizes.argmax()]]
        sentence = f"The model does not use {count}; {name} gets up to {size:.3g} "
        sentence += f"{e.unit}."
        verdict = "depends on settings" if found.cause in _SPREAD else "wrong"
        if verdict == "wrong" and not found.is_wrong:
            advice = "Leave unused columns at zero; check the order of columns."
    return AuditFinding("unused", sentence, size, e.unit, verdict, advice=advice)


_SPREAD: Final = ("optimized contributions", "draws", LIME, "undetermined")
"""Causes by which unused columns may get something."""


def _own_value(e: AuditEvidence) -> Iterator[AuditFinding]:
    """What of the differences follows from main effects, and what predictions need."""
    front, counts = e.own, () if e.graph is not None else _OTHER_NEIGHBORS
    others = [e.front(e.W, count) for count in counts]
    share = 1.0 - front.roughness / front.plain
    ends = sorted(1.0 - one.roughness / one.plain for one in others if one.plain > 0.0)
    told = f"{_whole(share)} of the differences between similar rows follow from their "
    told += "main effects"
    if share < 0.0:
        told = "None of the differences between similar rows follow from their own "
        told += "values: beside these they differ more"
    elif ends:
        told += f" ({_whole(ends[0])} to {_whole(ends[-1])} with 4 to 16 neighbours)"
    unit = "share of the squared differences of similar rows"
    yield AuditFinding("main_effects", f"{told}.", share, unit, "depends on settings")
    needed, could = front.least / front.plain, front.could_go / front.plain
    words = f"Adding up to the predictions needs {_whole(needed)} of them; "
    words += f"{_whole(could)} could go."
    if share < 0.0:  # of the differences these are over 100 %
        rest = front.least / front.roughness
        words = f"Adding up to the predictions needs {_whole(rest)} of the roughness; "
        words += f"{_whole(1.0 - rest)} could go."
    yield AuditFinding("predictions", words, needed, unit, "depends on settings")


_OTHER_NEIGHBORS: Final = (4, 16)
"""How many are tried besides."""


def _whole(share: float) -> str:
    """A share in whole per cent, which may be negative; less than one in full."""
    return f"{100.0 * share:.0f} %" if abs(share) >= _WHOLE else in_percent(share)


_WHOLE: Final = 0.0095
"""A share from which it is told in whole per cent."""


def _directions(e: AuditEvidence, found: Diagnosis) -> Iterator[AuditFinding]:
    """Both directions of the exact front, from what came."""
    front, W = e.true, e.true.completed(e.W)
    distance, rough = float(((W - e.E) ** 2).sum()), e.own.robust.value(W)
    words, times, nearer, near = _of_exact(e, found), 0.0, 0.0, 0.0
    if (np.abs(W - e.E) <= e.tolerance).all():
        alike = "No other values are as near to the exact ones: these are the exact "
        alike += "ones."
        closer = "Nearer is not possible: these are the exact values."
    else:
        least = e.own.robust.value(front.smoothest_within(distance))
        times = rough / least if least > 1e-9 * rough else math.nan
        near = float(((front.nearest(rough) - e.E) ** 2).sum())
        nearer = 1.0 - near / distance
        alike = f"At the same distance from {words}, similar rows could be "
        alike += f"{f'{times:.3g} times more' if times > 0.0 else 'fully'} alike."
        closer = f"The {words} are more alike than these."
        if near > 1e-12 * distance:
            closer = f"As alike as these, others are {percent(nearer)} % nearer to "
            closer += f"{words}."
    verdicts = [_of_front(e, found, x) for x in (times <= _WORTH, nearer <= _NEAR)]
    advice = ""
    if verdicts[0] == "wrong" and not found.is_wrong and near > 1e-12 * distance:
        advice = (
            "po.explain(model, X, data=data) has values that are nearer, or more alike."
        )
    elif verdicts[0] == "depends on settings":
        meant = words.removeprefix("exact ")
        meant = "interventional values" if found.whose == PATHS else meant
        advice = f"Where {meant} are meant, take the exact ones: audit.exact, or the "
        advice += "file _exact.csv."
    proof: Basis = "proved" if e.is_exact else "estimated"
    unit = "times less squared difference of similar rows"
    yield AuditFinding(
        *("more_alike", alike, times or 1.0, unit, verdicts[0], advice), standing=proof
    )
    unit = "share of the squared distance from exact values"
    yield AuditFinding("nearer", closer, nearer, unit, verdicts[1], standing=proof)


_WORTH: Final = 1.05
"""Times: what could be so little more alike is as good as it can be."""

_NEAR: Final = 0.05
"""Of the squared distance: what could be so little nearer is as good as it can be."""


def _of_front(e: AuditEvidence, found: Diagnosis, is_best: bool) -> Verdict:
    """Whether values on the front would be better, and whose fault that is."""
    if is_best:
        return "right"
    if not e.is_exact:
        return "undetermined"  # sampled values are themselves apart from exact ones
    if found.is_wrong:
        return "wrong"
    return "depends on settings" if found.is_owned else "undetermined"


def _prices(e: AuditEvidence, found: Diagnosis) -> Iterator[AuditFinding]:
    """What it costs to remove 10, 50 and 90 % of the roughness that could go."""
    size = float((e.W**2).sum())
    for share in (10, 50, 90):
        V = e.own.without(share / 100.0)
        price = float(((V - e.W) ** 2).sum()) / size
        signs, moved = e.changed_signs(V, e.W), percent(math.sqrt(price))
        advice = ""
        if share == 50 and price <= _CHEAP and not found.is_wrong:
            advice = (
                "Look at the ten pairs: differences may be meant. Halving the rest is "
                "cheap: po.explain(model, X, data=data, contributions=attributions)."
            )
        yield AuditFinding(
            f"price_of_{share}",
            f"Removing {share} % of the avoidable differences changes the values by "
            f"{moved} % on average; {_part(signs).lower()} of the large signs turn.",
            price,
            "share of the squared sum",
            "depends on settings",
            advice=advice,
            standing="proved",
        )


_CHEAP: Final = 0.02
"""Of the squared sum: what costs less to halve is told."""


def _causes(e: AuditEvidence) -> tuple[AuditFinding, dict[str, Any]]:
    """The pairs and rows that cause most of what could go."""
    graph, V = e.own.robust.graph, e.W - e.own.smoothest
    pairs, rows, shares = causes_of(graph.edges, graph.strengths, V)
    first = pairs[0]
    top = float(np.sort(shares)[::-1][: max(len(shares) // 100, 1)].sum())
    ends = " and ".join(e.row(n) for n in first.ends)
    name = e.labels.feature_names(e.W.shape[1])[first.feature]
    finding = AuditFinding(
        "pairs",
        f"Rows {ends} carry {percent(first.share)} % of what could go, most in {name}. "
        f"One pair in a hundred carries {percent(top)} %, and "
        f"{plural(len(rows), 'row')} of {len(V):,} "
        f"{percent(sum(row.share for row in rows))} %.",
        first.share,
        "share of the roughness that could go",
        "depends on settings",
    )
    return finding, {"pairs": pairs, "rows": rows}


def _background(e: AuditEvidence, found: Diagnosis) -> AuditFinding:
    """What halves of the background change."""
    B, unit = len(e.background), "share of the squared sum"
    if e.read is None or B < 4:
        told = "Other backgrounds were not tried."
        return AuditFinding("background", told, math.nan, unit, "undetermined")
    order = np.random.default_rng(e.seed).permutation(B)
    tried = []
    for half in (order[: B // 2], order[B // 2 :]):
        rows, weights = e.background[np.sort(half)], None
        if e.weights is not None:
            weights = e.weights[np.sort(half)] / e.weights[half].sum()
        exact = shapley_against(e.read, Game(rows, weights=weights))
        tried.append(exact.values(e.points))
    signs = max(e.changed_signs(V, e.E) for V in tried)
    size = float((e.E**2).sum()) or 1.0
    share = max(float(((V - e.E) ** 2).sum()) / size for V in tried)
    told = f"One half of the {B:,} background rows changes {percent(share)} % of the "
    told += f"squared sum; {_part(signs).lower()} of the large signs turn."
    advice = "Keep the background with the numbers, and name it."
    return AuditFinding(
        *("background", told, share, unit, "depends on settings"),
        advice="" if found.whose == PATHS else advice,
        standing="estimated",
    )


# ---- All of them, in the order of an audit


def _front(
    own: FidelityRoughnessFront, zero: str, labels: Labels, W: Attributions
) -> FrontPath:
    """What more alike attributions cost, from exact values, and what came beside it."""
    c = own.half_weight
    aim = GradientMatching(labels.frame(own.aim))
    weights = np.geomspace(c / _REACH, c * _REACH, _N_WEIGHTS)
    came = {"the audited numbers": labels.frame(own.completed(W))}
    found = sweep(
        aim + own.robust,
        {own.robust.name: weights},
        came,
        subject_to=[own.totals],
        progress=False,
    )
    # it is shown even if a column that is not used gets something
    trail = trail_of(found, found.knee())
    labels = {**trail.labels, aim.name: f"faithfulness to {zero} values"}
    return replace(trail, baselines=found.baselines, labels=labels)


_REACH: Final = 1e3
"""How far weights go from that which removes half of what could go."""

_N_WEIGHTS: Final = 25


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
    outcome: str | None = None,
    graph: Graph | None = None,
    n_neighbors: int = 8,
    rng: int | None = None,
) -> Audit:
    """Check attributions from anywhere: are they right, and what makes them better.

    Questions are asked in the order in which somebody has to sign for the answers. Do
    rows add up, and to whose base? Are they exact Shapley values: ours, path-dependent
    ones, or those of another background? Do unused columns get something? What would
    more alike values of similar rows cost, and which pairs and rows cause that? What
    depends on background, seed and neighbours? The distance from the best possible
    comes last: of exact values it says nothing.

    Parameters
    ----------
    attributions : array, table, path, ``shap.Explanation``, tensor or list
        Contributions W (N, D): a table, of several classes (N, D, K); an explanation of
        ours or of ``shap``; a tensor of torch or captum; a path of ``.csv`` or
        ``.npz``; N explanations of LIME, or their lists of pairs. Rows and columns are
        put in the order of X by their names.
    model : estimator, native booster, callable or Function
        What they are of; see :func:`propopt.wrap`.
    X : DataFrame or array (N, D)
        The rows that are explained.
    data : DataFrame or array (B, D), optional
        The background, best the one that they were made with; X by default.
    sample_weight : Series or array (B,), optional
        Weights of the background rows, as for :func:`propopt.explain`.
    output : {"log_odds", "probability", "margin", "value"}, optional
        The output whose parts W are, as in :func:`propopt.wrap`; required for
        classifiers, which have several. Numbers of another output are refused.
    base : float or array (N,), optional
        What W are added to, where the carrier does not say; else the median of what
        rows leave.
    target : class label or int, optional
        The class, as in :func:`propopt.wrap`.
    outcome : str, optional
        The name of the column that the model predicts.
    graph : Graph, optional
        Who is similar; by default nearest neighbours in columns over their deviations.
    n_neighbors : int
        How many.
    rng : int, optional
        For halves of the background, and draws where the model is not read.

    Returns
    -------
    Audit
        Findings with their verdicts, the pairs and rows that cause most, a card.

    Raises
    ------
    InvalidInput
        If names or sizes are not those of X, the output is not known, or the numbers
        are parts of another.

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
    >>> po.audit(shap, forest, X)["exactness"].sentence
    'All 180 values are exact Shapley values for the background of the audited rows.'
    """
    e = AuditEvidence.of(
        *(attributions, model, X, data, sample_weight, output, base),
        *(target, outcome, graph, n_neighbors, rng),
    )
    found = diagnosed(e)
    findings = [_additivity(e, found), _base(e, found), _exactness(e, found)]
    findings += [*_signs_and_reasons(e, found), _unused(e, found)]
    causes: dict[str, Any] = {}
    front = None
    if e.has_neighbours:
        findings += _own_value(e)
    if e.is_compared:
        findings += [*_directions(e, found), *_prices(e, found)]
        cause, causes = _causes(e)
        findings.append(cause)
        is_true = e.is_exact and e.true.is_rough
        start = (e.true, "exact") if is_true else (e.own, "these")
        front = partial(_front, *start, e.labels, e.W)
    findings.append(_background(e, found))
    several = len(e.W) > 1
    near = f"{min(e.n_neighbors, len(e.W) - 1)} nearest of each"
    if graph is not None:
        near = repr(graph)
    similar = {"similar rows": near} if several else {}
    if e.counts_rows:
        similar = {"rows": "counted from 0", **similar}
    if e.has_neighbours:
        own = e.main_effects
        similar["main effects"] = f"{own.explanation.method}, over {own.background}"
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
        settings={
            "attributions": e.came.source,
            "unit": e.unit,
            "background": f"{plural(len(e.background), 'row')}"
            f"{'' if e.weights is None else ' with weights'}"
            f"{'' if data is not None else ', those that are audited'}",
            "exact values": e.known.estimate.source,
            **similar,
            "seed": str(e.seed),
        },
        front=front,
        record=Record.of(model, X=X, data=data),
    )
