"""Every solver agrees with Clarabel on random small problems, within the gaps.

The problems are those of the storm: sizes, graphs, losses, their weights, limits and
the scale of the data are drawn. Every solver that does not refuse one is compared.
"""

from collections import Counter

import pytest
from storm.problems import draw

import propopt as po
from propopt.base.errors import PropoptError
from propopt.losses import Program
from propopt.solvers.curves import Spectral
from propopt.solvers.factored import Factored
from propopt.solvers.lasso import Lasso
from propopt.solvers.normal_equations import NormalEquations
from propopt.solvers.reductions import TransposeReduction
from propopt.solvers.splitting import Splitting


SOLVERS = {
    "spectral": Spectral(),
    "factored": Factored(),
    "krylov": po.solvers.Krylov(),
    "lasso": Lasso(),
    "splitting": Splitting(),
    "normal_equations": NormalEquations(),
    "transposed": TransposeReduction(po.solvers.Auto()),
}
PROBLEMS = range(20_000, 20_400)


def compared(problem):
    """The solvers that do not refuse it; none of problems that are not for these."""
    if problem.shape[0] > 25 or problem.limits:
        return []
    program = Program(problem.objective.losses)
    return [name for name, ours in SOLVERS.items() if ours.refusal(program) is None]


def slack(explanation):
    """How far the optimum may be, and rounding."""
    return (explanation.gap + 1e-9) * explanation.certificate.scale


@pytest.mark.sampled(7)
@pytest.mark.filterwarnings("ignore::propopt.base.errors.UncertifiedWarning")
@pytest.mark.filterwarnings("ignore::propopt.base.errors.TrivialObjectiveWarning")
@pytest.mark.parametrize("first", PROBLEMS[::20])
def test_solvers_agree_with_clarabel(first):
    for number in range(first, first + 20):
        problem = draw(number)
        if not (names := compared(problem)):
            continue
        try:
            reference = po.solve(problem.objective, "CLARABEL")
        except PropoptError:  # announced
            continue
        for name in names:
            result = po.solve(problem.objective, SOLVERS[name])
            difference = abs(result.objective - reference.objective)
            assert difference <= slack(result) + slack(reference), (number, name)


def test_every_structured_solver_is_compared():
    counts = Counter(
        name for number in PROBLEMS[:100] for name in compared(draw(number))
    )
    assert all(counts[name] >= 5 for name in SOLVERS), counts
