"""Every solver agrees with Clarabel on random small problems, within the gaps.

The problems are those of the storm: sizes, graphs, losses, their weights, limits and
the scale of the data are drawn. Every solver that does not refuse one is compared.
"""

import pytest
from storm.problems import draw

import propopt as po
from propopt.base.errors import PropoptError
from propopt.losses import Program
from propopt.solvers.centred import Transposed
from propopt.solvers.curves import Spectral
from propopt.solvers.factored import Factored
from propopt.solvers.lasso import Lasso
from propopt.solvers.normal_equations import NormalEquations
from propopt.solvers.splitting import Splitting


SOLVERS = {
    "spectral": Spectral(),
    "factored": Factored(),
    "krylov": po.solvers.Krylov(),
    "lasso": Lasso(),
    "splitting": Splitting(),
    "normal_equations": NormalEquations(),
    "transposed": Transposed(po.solvers.Auto()),
}
compared = dict.fromkeys(SOLVERS, 0)


def slack(explanation):
    """How far the optimum may be, and rounding."""
    return (explanation.gap + 1e-9) * explanation.certificate.scale


@pytest.mark.sampled(7)
@pytest.mark.filterwarnings("ignore::propopt.base.errors.UncertifiedWarning")
@pytest.mark.filterwarnings("ignore::propopt.base.errors.TrivialObjectiveWarning")
@pytest.mark.parametrize("first", range(20_000, 20_400, 20))
def test_solvers_agree_with_clarabel(first):
    for number in range(first, first + 20):
        problem = draw(number)
        if problem.shape[0] > 25 or problem.limits:
            continue
        try:
            reference = po.solve(problem.objective, "CLARABEL")
        except PropoptError:  # announced
            continue
        for name, solver in SOLVERS.items():
            if solver.refusal(Program(problem.objective.losses)) is None:
                result = po.solve(problem.objective, solver)
                difference = abs(result.objective - reference.objective)
                assert difference <= slack(result) + slack(reference), (number, name)
                compared[name] += 1


def test_every_structured_solver_was_compared():
    assert all(count >= 5 for count in compared.values()), compared
