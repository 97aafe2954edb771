"""Statements that hold for every function and every model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, pairwise

from papers.engine.findings import Invariant
from papers.engine.panels import Solved, Statement
from propopt.results.explanation import Explanation


_ROUNDING = 1e-12
_SUMMED = 1e-9
"""Relative rounding of a loss that is summed in another order."""


def none_beats(solved: Solved) -> Invariant:
    """F_c(b) >= F_c* − gap for every baseline b and all weights c of the sweep."""
    margins = [
        (_above(baseline, best), baseline)
        for baseline in solved.trade_offs.baselines
        for best in solved.trade_offs.optimized
    ]
    least, baseline = min(margins, key=lambda pair: pair[0])
    return Invariant(
        statement="no baseline beats the optimum less its certified gap, for any weight"
        ": least 1 − (F* − gap)/F(baseline)",
        value=least,
        sense=">=",
        limit=-_ROUNDING,
        note=named(baseline),
    )


def certified(solved: Solved) -> Invariant:
    """Every optimum is there, and its certified gap is within the tolerance.

    A curve claims the losses of its points. At both ends and at three points between
    they are compared with those of the attributions, which are certified themselves.
    """
    gaps = [gap for one in solved.draws for gap in _gaps(one)]
    missing = sum(len(one.trade_offs.failures) for one in solved.draws)
    return Invariant(
        statement="every optimum is certified, that of a curve from the attributions "
        "at its ends and three points: largest relative gap",
        value=float("inf") if missing else float(max(gaps)),
        sense="<=",
        limit=solved.problem.tolerance,
        note="; ".join(_optima(solved, len(gaps), missing)),
    )


def measured_again(solved: Solved) -> Invariant:
    """Losses are those of the attributions, wherever these were computed.

    These are all baselines and, of a curve, both ends, three points between, and every
    point that is drawn. A certificate bounds the optimum; it does not show that the
    attributions are still those that it was made of.
    """
    errors = [error for one in solved.draws for error in _loss_errors(one)]
    worst, which = max(errors, key=lambda pair: pair[0])
    return Invariant(
        statement="losses are those of the attributions that were computed, of every "
        "baseline and of every optimum that is drawn: largest relative difference",
        value=worst,
        sense="<=",
        limit=_SUMMED,
        note=f"{which}; {len(errors)} losses",
    )


def _loss_errors(solved: Solved) -> Iterator[tuple[float, str]]:
    """Relative errors of losses, and of which explanation."""
    solved.trade_offs.prove()
    explanations = chain(solved.trade_offs.optimized, solved.trade_offs.baselines)
    for one in explanations:
        if one.is_lazy("attributions"):
            continue
        for loss in solved.problem.objective.losses:
            stated, measured = one.losses[loss.name], loss.value(one.attributions)
            largest = max(abs(stated), abs(measured))
            yield (abs(stated - measured) / largest if largest else 0.0), named(one)


def _optima(solved: Solved, count: int, missing: int) -> Iterator[str]:
    """How many optima there are, and what is known of their targets."""
    yield f"{count} optima" + (f", {missing} not solved" * bool(missing))
    targets = [
        best.target
        for one in solved.draws
        for best in one.trade_offs.optimized
        if best.target is not None
    ]
    yield from dict.fromkeys(f"target {x.source}" for x in targets if not x.n_blocks)
    if shares := [x.share for x in targets if x.n_blocks]:
        yield f"sampling error {min(shares):.1%} to {max(shares):.1%}"


def dominated(solved: Solved) -> Invariant:
    """At the other losses of a baseline, the optimum is at least as faithful."""
    pairs = zip(solved.enclosures, solved.trade_offs.baselines, strict=True)
    rivals = [(e.saved, b) for e, b in pairs if e.cost > 0]
    saved, closest = min(rivals, key=lambda pair: pair[0])
    return Invariant(
        statement="every baseline lies above the front or on it: least share of its "
        "faithfulness loss that the optimum at equal other losses saves",
        value=saved,
        sense=">=",
        limit=-1e-6,
        note=f"closest: {named(closest)}",
    )


def falls_with_its_weight(solved: Solved, *, loss: str) -> Invariant:
    """A loss never grows with its own weight, the other weights being the same."""
    rises = rises_with_weight(solved.trade_offs.optimized, loss)
    return Invariant(
        statement=f"{loss.replace('_', ' ')} loss falls as its weight grows: largest "
        "relative rise",
        value=max(rises),
        sense="<=",
        limit=1e-6,
        note=f"{len(rises)} steps",
    )


def trades_off(solved: Solved, *, loss: str) -> Invariant:
    """As the weight of a loss grows, it falls, and the faithfulness loss rises.

    λ is monotone in both, where there are no more than two losses: with a third, the
    faithfulness loss may fall where that one rises.
    """
    first, *_ = solved.problem.objective.losses
    runs = _runs(solved.trade_offs.optimized, loss)
    falls = [rise for run in runs for rise in _rises(run, loss, loss)]
    rises = [-rise for run in runs for rise in _rises(run, first.name, loss)]
    return Invariant(
        statement=f"as the weight of {loss.replace('_', ' ')} grows, its loss falls "
        "and the faithfulness loss rises: largest relative step the other way",
        value=max(falls + rises),
        sense="<=",
        limit=1e-6,
        note=f"{len(falls)} steps",
    )


EVERYWHERE: tuple[Statement, ...] = (
    certified,
    measured_again,
    none_beats,
    dominated,
)


def rises_with_weight(outcomes: Iterable[Explanation], loss: str) -> list[float]:
    """Each relative rise of a loss as its own weight grows, others being the same."""
    return [rise for run in _runs(outcomes, loss) for rise in _rises(run, loss, loss)]


def named(baseline: Explanation) -> str:
    """A baseline with the setting that tells it from its like."""
    for setting in ("scale", "units"):
        if setting in baseline.parameters:
            return f"{baseline.method} {setting}={baseline.parameters[setting]}"
    return baseline.method


def _above(baseline: Explanation, best: Explanation) -> float:
    """1 − (F* − gap)/F(baseline) for the weights of an optimum.

    Infinite where the baseline has no loss and so is an optimum itself: that it equals
    another says nothing.
    """
    value = sum(c * baseline.losses[name] for name, c in best.weights.items())
    bound = best.certificate.lower_bound if best.certificate else 0.0
    if value > 0.0:
        return 1.0 - bound / value
    return -bound if bound > 0.0 else float("inf")


def _runs(outcomes: Iterable[Explanation], loss: str) -> list[list[Explanation]]:
    """Explanations that differ in the weight of one loss only."""
    runs: dict[tuple[float, ...], list[Explanation]] = {}
    for outcome in outcomes:
        others = tuple(c for name, c in outcome.weights.items() if name != loss)
        runs.setdefault(others, []).append(outcome)
    return list(runs.values())


def _rises(run: list[Explanation], loss: str, weight: str) -> list[float]:
    """Each relative rise of a loss from one weight to the next."""
    ordered = sorted(run, key=lambda best: best.weights[weight])
    values = [best.losses[loss] for best in ordered]
    return [b / a - 1.0 if a > 0.0 else b for a, b in pairwise(values)]


def _gaps(solved: Solved) -> list[float]:
    """The gap of each optimum, or by how much attributions contradict its curve."""
    solved.trade_offs.prove()
    pairs = zip(solved.trade_offs.optimized, solved.claims, strict=True)
    return [max(_gap(best), _contradiction(best, claim)) for best, claim in pairs]


def _gap(best: Explanation) -> float:
    return float("inf") if best.gap is None else best.gap


def _contradiction(best: Explanation, claim: float | None) -> float:
    """|claim − F| on the scale of the gap; zero where attributions were not read."""
    proof, value = best.certificate, best.objective
    if proof is None or claim is None or value is None or claim == value:
        return 0.0
    return abs(claim - value) / proof.scale if proof.scale else float("inf")
