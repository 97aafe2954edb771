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
from propopt.base.text import in_percent, percent, plural
from propopt.base.words_of_others import knows_other_words
from propopt.explaining.audited import Audited
from propopt.explaining.front_chapters import trail_of
from propopt.explaining.nearest_front import NearestFront
from propopt.explaining.problem import RowNumbers
from propopt.explaining.sweeping import sweep
from propopt.functions.outputs import Target
from propopt.losses import GradientMatching
from propopt.losses.graphs.points import Graph
from propopt.results.audit import Audit, AuditFinding, Verdict, causes_of
from propopt.results.explanation import Explanation
from propopt.results.record import Record
from propopt.results.report.explorer import Trail
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


def _additivity(e: Audited) -> AuditFinding:
    """Σ_d w_nd = f(x_n) − base in every row."""
    size = float(np.abs(e.missed).max())
    far = np.abs(e.missed) > e.room
    wrong, N = int(far.sum()), len(e.W)
    verdict: Verdict = "wrong"
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
    if e.is_wrong or e.is_of_lime:
        advice = ""  # the cause says what to do
    if verdict == "wrong" and e.is_of_lime:
        verdict = "undetermined"  # which need not add up
    return AuditFinding("additivity", sentence, size, e.unit, verdict, advice=advice)


def _base(e: Audited) -> AuditFinding:
    """Whose mean the base is."""
    own = float(np.median(e.base))
    came = "The base" if e.came.base is not None else "The base that rows imply"
    ours = e.owners[0].base
    assert ours is not None, "it is that of the background"
    near = [one for one in e.owners if abs(float(one.base or 0.0) - own) <= e.room[0]]
    verdict: Verdict = "undetermined"
    advice = "" if e.is_given and e.is_wrong else _GIVE_IT
    where = "background" if e.is_given else "audited rows"
    told = f"{came}, {own:.4g}, is {own - ours:+.3g} {e.unit} from the mean prediction "
    told += f"over the {where}, {ours:.4g}."
    apart = float(np.median(e.implied)) - own
    if e.is_exact and e.adds_up.all() and not (np.abs(e.missed) <= e.room).any():
        theirs = own + apart
        verdict = "wrong"
        advice = f"Add them to {theirs:.4g}, the base of these values."
    elif near and near[0] is e.owners[0]:
        verdict, advice = "right", ""
        told = f"{came}, {own:.4g}, is the mean prediction over the background."
    elif near:
        verdict, advice = "depends on settings", ""
        told = f"{came}, {own:.4g}, is that of {near[0].words}; the background's is "
        told += f"{ours:.4g}."
    elif e.is_exact and e.is_owned and abs(apart) <= e.room[0]:
        verdict, advice = "depends on settings", ""
        told += " It is that of their own background."
    return AuditFinding(
        "base",
        told,
        own - ours,
        f"{e.unit} above the mean prediction over the background",
        verdict,
        advice=advice,
    )


_GIVE_IT: Final = (
    "Give the background that they were made with: data=, here and in a file."
)


def _exactness(e: Audited) -> AuditFinding:
    """The diagnosis: whose exact values they are, or what happened to them."""
    if not e.is_exact:
        return _drawn(e)
    found = e.diagnosis
    return AuditFinding(
        "exactness",
        f"{found.headline}. {found.evidence}".rstrip(),
        float(np.abs(e.W - e.E).max()),
        f"{e.unit}, the largest difference from exact",
        found.verdict,
        advice=found.next_step,
        cause=found.cause,
        headline=found.headline,
    )


def _drawn(e: Audited) -> AuditFinding:
    """Where the model is not read: against drawn values and their errors."""
    errors = e.known.estimate.standard_errors
    apart = np.abs(e.W - e.E)
    beyond = math.nan
    words = "The model can only be called, so exact values are not known."
    if errors is not None:
        far = apart > _FAR * errors + e.tolerance
        beyond = float(far.mean())
        words += (
            f" {_part(beyond)} of the values are over {_FAR:g} standard errors from "
            "sampled ones."
        )
    return AuditFinding(
        "exactness",
        words,
        beyond,
        "share of values far from sampled ones",
        "undetermined",
        advice="Exact values are known for sums of products, such as the log-odds of "
        "trees, not for their probabilities.",
        cause="undetermined",
        headline="Undetermined, because the model can only be called",
        standing="estimated",
    )


_FAR: Final = 5.0
"""Standard errors, with nine degrees of freedom."""


def _signs(e: Audited) -> AuditFinding:
    """Sizeable values whose sign is another than of the exact ones."""
    share = e.changed_signs(e.W, e.aim)
    return AuditFinding(
        "signs",
        f"{_part(share)} of the large values, beyond ±{e.cut:.2g} {e.unit}, differ in "
        f"sign from {e.compared} ones{e.whose if e.aim is e.E else ''}.",
        share,
        "share of large values",
        **_against_exact(
            e, share, "Do not derive reasons from values with these signs."
        ),
    )


def _part(share: float) -> str:
    """A share at the beginning of a sentence; zero is none."""
    told = percent(share)
    return "None" if told == "0" else f"{told} %"


def _reasons(e: Audited) -> AuditFinding:
    """Rows whose three largest are others."""
    own, true = (largest_of_rows(V, _TOP) for V in (e.W, e.aim))
    size = np.sort(np.abs(e.aim), axis=1)[:, ::-1]
    # of equal sizes any may be first
    last = size[:, min(_TOP, size.shape[1]) - 1][:, None]
    room = e.tolerance + e.step.max(axis=1, keepdims=True)
    clear = np.abs(np.abs(e.aim) - last) > 2.0 * room
    others = np.flatnonzero(((own != true) & clear).any(axis=1))
    share = len(others) / len(own)
    rows = ", ".join(e.row(n) for n in others[:_NAMED])
    where = f"{_part(share).lower()} of the rows"
    where += f": {rows}" if len(others) else ""
    where += ", …" if len(others) > _NAMED else ""
    return AuditFinding(
        "reasons",
        f"The three largest columns differ from those of the {e.compared} values"
        f"{e.whose if e.aim is e.E else ''} in {where}.",
        share,
        "share of rows",
        **_against_exact(
            e, share, "Do not send the first three reasons of these rows."
        ),
    )


def _against_exact(e: Audited, share: float, advice: str) -> dict[str, Any]:
    """The verdict on a share of what differs from the exact values."""
    if not e.is_exact:
        return {"verdict": "undetermined", "advice": "", "standing": "estimated"}
    if share == 0.0:
        return {"verdict": "right", "advice": ""}
    if e.is_wrong:
        return {"verdict": "wrong", "advice": advice}
    if e.is_owned:
        return {"verdict": "depends on settings", "advice": ""}
    return {"verdict": "undetermined", "advice": ""}


def _unused(e: Audited) -> AuditFinding:
    """The values of columns that the model never uses."""
    if e.read is None:
        return AuditFinding(
            "unused",
            "The model can only be called, so its columns are not known.",
            math.nan,
            e.unit,
            "undetermined",
        )
    names = e.labels.feature_names(e.W.shape[1])
    unused = np.flatnonzero(~e.used)
    sizes = np.abs(e.W[:, unused]).max(axis=0)
    room = e.tolerance + e.step[:, unused].max(initial=0.0)
    wrong = [names[j] for j in unused[sizes > room]]
    is_slip = bool(wrong) and e.diagnosis.cause not in _SPREAD
    size = float(sizes.max(initial=0.0))
    count = plural(len(unused), "column")
    verb = "it gets" if len(unused) == 1 else "they get"
    sentence = f"The model does not use {count}; {verb} nothing."
    if not len(unused):
        sentence = "The model uses every column."
    if wrong:
        j = int(unused[sizes.argmax()])
        most = f"{names[j]} gets up to {size:.3g} {e.unit}"
        sentence = f"The model does not use {count}; {most}."
    return AuditFinding(
        "unused",
        sentence,
        size,
        e.unit,
        ("wrong" if is_slip else "depends on settings") if wrong else "right",
        advice="Leave unused columns at zero; check the order of columns."
        if is_slip and not e.is_wrong
        else "",
    )


_SPREAD: Final = ("optimized contributions", "draws", "LIME weights", "undetermined")
"""Causes by which unused columns may get something."""


def _own_value(e: Audited) -> Iterator[AuditFinding]:
    """What of the differences follows from own values, and what predictions need."""
    front, others = e.own, e.others.values()
    share = 1.0 - front.roughness / front.plain
    told = f"{_whole(share)} of the differences between similar rows follow from their "
    told += "own values"
    if share < 0.0:
        told = "None of the differences between similar rows follow from their own "
        told += "values: beside these they differ more"
    elif others:
        ends = sorted(1.0 - one.roughness / one.plain for one in others)
        told += f" ({_whole(ends[0])} to {_whole(ends[-1])} with 4 to 16 neighbours)"
    unit = "share of the squared differences of similar rows"
    yield AuditFinding("own_value", f"{told}.", share, unit, "depends on settings")
    needed, could = front.least / front.plain, front.could_go / front.plain
    words = f"Adding up to the predictions needs {_whole(needed)} of them; "
    words += f"{_whole(could)} could go."
    if share < 0.0:  # of the differences these are over 100 %
        rest = front.least / front.roughness
        words = f"Adding up to the predictions needs {_whole(rest)} of the roughness; "
        words += f"{_whole(1.0 - rest)} could go."
    yield AuditFinding("predictions", words, needed, unit, "depends on settings")


def _whole(share: float) -> str:
    """A share in whole per cent, which may be negative; less than one in full."""
    return f"{100.0 * share:.0f} %" if abs(share) >= _WHOLE else in_percent(share)


_WHOLE: Final = 0.0095
"""A share from which it is told in whole per cent."""


def _directions(e: Audited) -> Iterator[AuditFinding]:
    """Both directions of the exact front, from what came."""
    front, W = e.true, e.true.completed(e.W)
    distance, rough = float(((W - e.E) ** 2).sum()), e.own.robust.value(W)
    if e.is_ours:
        told = (
            "No other values are as near to the exact ones: these are the exact ones.",
            "Nearer is not possible: these are the exact values.",
        )
        times = nearer = near = 0.0
    else:
        least = e.own.robust.value(front.most_alike(distance))
        times = rough / least if least > 1e-9 * rough else math.nan
        near = float(((front.nearest(rough) - e.E) ** 2).sum())
        nearer = 1.0 - near / distance
        words, closer = f"{e.compared} values{e.whose}", f"{percent(nearer)} %"
        told = (
            f"At the same distance from {words}, similar rows could be "
            f"{f'{times:.3g} times more' if times > 0.0 else 'fully'} alike.",
            f"As alike as these, others are {closer} nearer to {words}."
            if near > 1e-12 * distance
            else f"The {words} are more alike than these.",
        )
    verdicts = [_of_front(e, times <= _WORTH), _of_front(e, nearer <= _NEAR)]
    advice = ""
    if verdicts[0] == "wrong" and not e.is_wrong and near > 1e-12 * distance:
        advice = (
            "po.explain(model, X, data=data) has values that are nearer, or more alike."
        )
    elif verdicts[0] == "depends on settings":
        meant = "interventional values" if e.is_of_paths else f"values{e.whose}"
        advice = f"Where {meant} are meant, take the exact ones: audit.exact, or the "
        advice += "file _exact.csv."
    proof: Basis = "proved" if e.is_exact else "estimated"
    yield AuditFinding(
        "more_alike",
        told[0],
        times if times else 1.0,
        "times less squared difference of similar rows",
        verdicts[0],
        advice=advice,
        standing=proof,
    )
    yield AuditFinding(
        "nearer",
        told[1],
        nearer,
        "share of the squared distance from exact values",
        verdicts[1],
        standing=proof,
    )


_WORTH: Final = 1.05
"""Times: what could be so little more alike is as good as it can be."""

_NEAR: Final = 0.05
"""Of the squared distance: what could be so little nearer is as good as it can be."""


def _of_front(e: Audited, is_best: bool) -> Verdict:
    """Whether values on the front would be better, and whose fault that is."""
    if is_best:
        return "right"
    if not e.is_exact:
        return "undetermined"  # sampled values are themselves apart from exact ones
    if e.is_wrong:
        return "wrong"
    return "depends on settings" if e.is_owned else "undetermined"


def _prices(e: Audited) -> Iterator[AuditFinding]:
    """What it costs to remove 10, 50 and 90 % of the roughness that could go."""
    size = float((e.W**2).sum())
    for share in (10, 50, 90):
        V = e.own.without(share / 100.0)
        price = float(((V - e.W) ** 2).sum()) / size
        signs, moved = e.changed_signs(V, e.W), percent(math.sqrt(price))
        advice = ""
        if share == 50 and price <= _CHEAP and not e.is_wrong:
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


def _causes(e: Audited) -> tuple[list[AuditFinding], dict[str, Any]]:
    """The pairs and rows that cause most of what could go."""
    graph, V = e.own.robust.graph, e.W - e.own.flattest
    pairs, rows, shares = causes_of(graph.edges, graph.strengths, V)
    first, worst = pairs[0], rows[0]
    top = float(np.sort(shares)[::-1][: max(len(shares) // 100, 1)].sum())
    assert first.second is not None, "it is of a pair"
    names = e.labels.feature_names(e.W.shape[1])
    findings = [
        AuditFinding(
            "pairs",
            f"Rows {e.row(first.first)} and {e.row(first.second)} carry "
            f"{percent(first.share)} % of what could go, most in "
            f"{names[first.feature]}; one pair in a hundred carries {percent(top)} %.",
            first.share,
            "share of the roughness that could go",
            "depends on settings",
        ),
        AuditFinding(
            "rows",
            f"{plural(len(rows), 'row')} of {len(V):,} carry "
            f"{percent(sum(r.share for r in rows))} % of what could go; row "
            f"{e.row(worst.first)} alone {percent(worst.share)} %.",
            float(sum(row.share for row in rows)),
            "share of the roughness that could go",
            "depends on settings",
        ),
    ]
    return findings, {"pairs": pairs, "rows": rows}


def _background(e: Audited) -> AuditFinding:
    """What halves of the background change."""
    B = len(e.background)
    if e.read is None or B < 4:
        return AuditFinding(
            "background",
            "Other backgrounds were not tried.",
            math.nan,
            "share of the squared sum",
            "undetermined",
        )
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
    return AuditFinding(
        "background",
        f"One half of the {B:,} background rows changes {percent(share)} % "
        f"of the squared sum; {_part(signs).lower()} of the large signs turn.",
        share,
        "share of the squared sum",
        "depends on settings",
        advice=""
        if e.is_of_paths
        else "Keep the background with the numbers, and name it.",
        standing="estimated",
    )


def _seed(e: Audited) -> AuditFinding:
    """What another seed changes."""
    errors = e.known.estimate.standard_errors
    share, sentence = 0.0, "Nothing of exact values is drawn: seeds change nothing."
    if not e.is_exact:
        assert errors is not None, "they are drawn"
        share = float(np.linalg.norm(errors) / max(float(np.linalg.norm(e.E)), 1e-300))
        sentence = (
            f"Another seed moves drawn values by {in_percent(share)} of their size."
        )
    return AuditFinding(
        "seed",
        sentence,
        share,
        "share of the size of the values",
        "right" if e.is_exact else "depends on settings",
        standing="checked" if e.is_exact else "estimated",
    )


def _neighbours(e: Audited) -> AuditFinding:
    """The price of half the roughness among fewer and more neighbours."""
    prices = [
        float(((front.without(0.5) - e.W) ** 2).sum() / (e.W**2).sum())
        for front in e.others.values()
    ]
    low, high = min(prices), max(prices)
    return AuditFinding(
        "neighbours",
        f"With 4 to 16 neighbours half the roughness costs "
        f"{percent(low)} to {percent(high)} % of the squared sum.",
        high - low,
        "share of the squared sum, from least to most",
        "depends on settings",
        standing="estimated",
    )


def _excess(e: Audited) -> AuditFinding:
    """How far they are above the optimum that halves the roughness of exact values."""
    c, least = e.true.at_half
    W = e.true.completed(e.W)
    excess = (((W - e.E) ** 2).sum() + c * e.own.robust.value(W)) / least - 1.0
    return AuditFinding(
        "excess",
        f"At weight {c:.3g}, which halves the roughness of {e.compared} values, these "
        f"have an objective {in_percent(excess)} above the least.",
        excess,
        "share above the least objective",
        "depends on settings",
        standing="proved",
    )


# ---- All of them, in the order of an audit


def _front(own: NearestFront, zero: str, labels: Labels, W: Attributions) -> Trail:
    """What more alike attributions cost, from exact values, and what came beside it."""
    c, _ = own.at_half
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
    words = {**trail.words, aim.name: f"faithfulness to {zero} values"}
    return replace(trail, others=found.baselines, words=words)


_REACH: Final = 1e3
"""How far weights go from that which removes half of what could go."""

_N_WEIGHTS: Final = 25


@knows_other_words
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
    evidence = Audited.of(
        *(attributions, model, X, data, sample_weight, output, base),
        *(target, outcome, graph, n_neighbors, rng),
    )
    findings = [_additivity(evidence), _base(evidence)]
    findings += [_exactness(evidence), _signs(evidence), _reasons(evidence)]
    findings.append(_unused(evidence))
    causes: dict[str, Any] = {}
    if evidence.has_neighbours:
        findings += _own_value(evidence)
    if evidence.is_compared:
        findings += [*_directions(evidence), *_prices(evidence)]
        told_causes, causes = _causes(evidence)
        findings += told_causes
    findings += [_background(evidence), _seed(evidence)]
    if evidence.is_compared:
        if evidence.others:
            findings.append(_neighbours(evidence))
        if evidence.true.is_rough:
            findings.append(_excess(evidence))
    front = None
    if evidence.is_compared:
        is_true = evidence.is_exact and evidence.true.is_rough
        start = (evidence.true, "exact") if is_true else (evidence.own, "these")
        front = partial(_front, *start, evidence.labels, evidence.W)
    several = len(evidence.W) > 1
    near = f"{min(evidence.n_neighbors, len(evidence.W) - 1)} nearest of each"
    if graph is not None:
        near = repr(graph)
    similar = {"similar rows": near} if several else {}
    if evidence.counts_rows:
        similar = {"rows": "counted from 0", **similar}
    if evidence.has_neighbours:
        own = evidence.own_values
        similar["own values"] = f"{own.explanation.method}, over {own.background}"
    return Audit(
        findings=tuple(findings),
        explanation=Explanation(
            attributions=evidence.W,
            method="given",
            labels=evidence.labels,
            units="output",
            base_value=evidence.base,
            prediction=evidence.prediction,
            quantity=evidence.function.quantity,
            **evidence.function.told(evidence.points),
        ),
        exact=evidence.E if evidence.is_exact else None,
        **causes,
        settings={
            "attributions": evidence.came.source,
            "unit": evidence.unit,
            "background": f"{plural(len(evidence.background), 'row')}"
            f"{'' if evidence.weights is None else ' with weights'}"
            f"{'' if data is not None else ', those that are audited'}",
            "exact values": evidence.known.estimate.source,
            **similar,
            "seed": str(evidence.seed),
        },
        front=front,
        record=Record.of(model, X=X, data=data),
    )
