"""What the library says of a problem, held against definitions and rivals."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import propopt as po
from storm.definitions import Long, Precision, Quadratic, long
from storm.problems import StormProblem, draw
from storm.rivals import of_another_solver, rivals


BOUND = 1e-9  # a lower bound may lie above a rival's objective by so much, relatively
LOSS = 1e-9  # a loss may differ from its definition by so much
GAP = 1e-6  # what is not certified to this has to be announced
EPSILON = 2.0**-52
CONDITION = 1e4 * EPSILON  # of the kernels that are drawn: 2‖K⁻¹‖ ≤ 200, cond ≤ 3,000

SOLVERS = ("spectral", "krylov", "one_bound", "lasso", "splitting", "normal_equations")
SOLVERS += ("conic", "minimum_norm", "CLARABEL")

ANNOUNCED = (po.errors.Refused, po.errors.Infeasible, po.errors.SolverFailure)
WARNINGS = (
    po.errors.UncertifiedWarning,
    po.errors.TrivialObjectiveWarning,
    po.errors.UnsolvedWarning,
)


@dataclass(frozen=True)
class Weather:
    """How one problem went."""

    faults: tuple[str, ...]
    announced: str | None = None


def weather(number: int) -> Weather:
    """Solve problem ``number`` and judge what comes back."""
    problem = draw(number)
    rng = np.random.default_rng([number, 1])
    faults: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            for result in _results(problem, rng):
                faults += judged(problem, result, rng)
        except ANNOUNCED as announced:
            return Weather(tuple(faults), f"{type(announced).__name__}: {announced}")
        except Exception as crash:  # noqa: BLE001  # whatever it is, it is a fault
            return Weather((*faults, f"crash: {type(crash).__name__}: {crash}"))
    kinds = [warning.category for warning in caught]
    strange = [w for w in caught if not issubclass(w.category, WARNINGS)]
    faults += [f"{w.category.__name__}: {w.message}" for w in strange]
    if po.errors.UncertifiedWarning in kinds:
        faults = [fault for fault in faults if not fault.startswith("uncertified")]
        return Weather(tuple(faults), "uncertified")
    return Weather(tuple(faults))


def _results(problem: StormProblem, rng: np.random.Generator) -> Iterator:
    """One explanation by the automatic or another solver, or several of a sweep."""
    kind = rng.random()
    if kind < 0.25:
        swept = problem.terms[int(rng.integers(len(problem.terms)))]
        weights = swept.weight * 10.0 ** np.sort(rng.uniform(-3, 3, 3))
        name = {swept.loss.name: weights}
        curve = po.sweep(problem.objective, name, subject_to=problem.bounds)
        yield from curve.optimized
        return
    solver = str(rng.choice(SOLVERS)) if kind > 0.8 else "auto"
    yield po.solve(problem.objective, solver, subject_to=problem.bounds)


def judged(problem: StormProblem, result, rng: np.random.Generator) -> Iterator[str]:
    """What is wrong with a result, in words."""
    weights = dict(result.weights)
    claimed = dict(result.losses)
    lower = Long(result.certificate.lower_bound)
    W = long(result.attributions)
    if not np.isfinite(result.attributions).all():
        yield "attributions are not finite"
        return
    for each in (claimed, result.losses):
        yield from _wrong_losses(problem, each, W, result.certificate.scale, weights)
    certificate = result.certificate
    if not (certificate.gap <= GAP and certificate.violation <= GAP):
        yield f"uncertified: gap {certificate.gap:.1e}, {certificate.violation:.1e}"
    for limit in problem.limits:
        yield from _violated(limit, W)
    for bound in {lower, Long(certificate.lower_bound)}:
        yield from _beaten(problem, weights, bound, certificate, W, rng)


def _wrong_losses(problem, losses, W, scale, weights) -> Iterator[str]:
    """Losses that are not those of W, to 1e-9 of themselves or of the objective."""
    for term in problem.terms:
        name, value = term.loss.name, term.definition.value(W)
        allowed = LOSS * value + _rounding(term.definition, W)
        if weights[name] > 0:
            allowed += LOSS * Long(scale) / Long(weights[name])
        if abs(Long(losses[name]) - value) > allowed:
            yield f"{name} is {losses[name]!r} and should be {float(value)!r}"


def _violated(limit, W) -> Iterator[str]:
    value = limit.definition.value(W)
    slack = GAP * Long(limit.bound.limit) + _rounding(limit.definition, W)
    if value > limit.bound.limit + slack:
        yield f"uncertified: {limit.bound} is {float(value):.6g}"


def _beaten(problem, weights, lower, certificate, W, rng) -> Iterator[str]:
    scale = Long(certificate.scale)
    others = list(rivals(problem, weights))
    if rng.random() < 0.1:
        other = of_another_solver(problem, str(rng.choice(SOLVERS)))
        if other is not None and all(limit.holds(other) for limit in problem.limits):
            others.append(("another solver", other))
    if all(limit.holds(W) for limit in problem.limits):
        others.append(("itself", W))
    for name, rival in others:
        value = problem.value(rival, weights)
        slack = sum(
            Long(weights[t.loss.name]) * _rounding(t.definition, rival)
            for t in problem.terms
        )
        if lower > value + BOUND * max(value, scale) + slack:
            yield (
                f"{name} costs {float(value)!r}, below the bound {float(lower)!r} "
                f"({certificate.kind}) by {float((lower - value) / value):.1e}"
            )


def _rounding(definition, W) -> np.longdouble:
    """What rounding may take for the loss.

    The last digits of W differ by δ = ε|W|, and ‖A(W + δ)‖² ≤ (‖A W‖ + ‖A δ‖)²; a
    kernel has to be inverted besides.
    """
    if not isinstance(definition, Quadratic):
        return Long(0)
    noise = np.random.default_rng(0).choice([-4.0, 4.0], W.shape) * EPSILON
    energy = definition.energy(noise * np.abs(W))
    lost = energy + 2 * np.sqrt(energy * np.abs(definition.value(W)))
    if isinstance(definition, Precision):
        lost += CONDITION * (definition.centred(W) ** 2).sum()
    return lost
