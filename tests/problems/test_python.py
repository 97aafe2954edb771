"""Problems that are made in Python, of objects or of sections."""

from __future__ import annotations

import numpy as np
import pytest

import propopt as po
from propopt.base.errors import InvalidInput, ProblemFileError
from propopt.functions import Power


X = np.linspace(-1, 1, 5)[:, None]
CUBE = Power(3)
GRID = {"low": -1, "high": 1, "per_dimension": 5, "dimensions": 1}
GAUSSIAN = {"graph": {"kind": "gaussian", "lengthscale": 0.5}}
SECTIONS = {
    "data": {"grid": GRID},
    "function": {"name": "power", "degree": 3},
    "objective": {"gradient_matching": 1, "pairwise_robustness": GAUSSIAN},
    "sweep": {"pairwise_robustness": [0.1, 1]},
    "baselines": [{"method": "smoothgrad", "scale": [0.5, 1], "n_samples": 5}],
}


def problem(**settings):
    robust = po.PairwiseRobustness(po.gaussian_graph(X, 0.5))
    objective = po.GradientMatching(CUBE.estimate(X)) + robust
    made = {"points": X, "function": CUBE, "objective": objective} | settings
    return po.problems.Problem(**made)


def test_objects_give_what_sections_give(tmp_path):
    noisy = [po.explainers.SmoothGrad(scale=s, n_samples=5) for s in (0.5, 1.0)]
    weights = {"pairwise_robustness": [0.1, 1]}
    mine = problem(weights=weights, baselines=[noisy], name="mine")
    same = po.problems.read_sections(SECTIONS).build()
    tables = [p.sweep(p.baselines()).to_frame() for p in (mine, same)]
    for column in set(tables[0]) - {"seconds"}:
        assert tables[0][column].equals(tables[1][column]), column
    curve = po.problems.run_problem(mine, tmp_path, quiet=True)  # like a file
    saved = po.TradeOffs.load(tmp_path / "mine.npz")
    assert len(curve.optimized) == len(saved.optimized) == 2


@pytest.mark.parametrize("values", [0.5, [0.5], np.array([0.5])])
def test_weights_and_limits_are_numbers_lists_or_arrays(values):
    assert problem(weights={"pairwise_robustness": values}).weights == {
        "pairwise_robustness": [0.5]
    }
    limited = problem(limits={"pairwise_robustness": values}).sweep()
    (best,) = limited.optimized
    assert best.losses["pairwise_robustness"] == pytest.approx(0.5, rel=1e-6)


def test_nothing_is_computed_before_it_is_asked_for():
    def fail():
        pytest.fail("computed")

    made = po.problems.Problem(subject=fail, objective=fail, name="later")
    assert made.name == "later"
    assert made.swept == []


@pytest.mark.parametrize(
    "settings", [{"points": None}, {"function": None}, {"subject": object()}]
)
def test_a_subject_or_points_with_a_function(settings):
    with pytest.raises(InvalidInput, match="expected a subject, or points and a fun"):
        problem(**settings)


def test_an_error_knows_the_part_of_the_problem():
    greedy = po.explainers.Shap(background=np.zeros((1, 7)))
    made = problem(baselines=[po.explainers.Gradient(), greedy])
    with pytest.raises(InvalidInput) as caught:
        list(made.baselines())
    assert caught.value.part == ("baselines", 1)


def test_mistakes_in_sections_have_keys_and_no_line():
    wrong = SECTIONS | {"objective": {"gradient_matching": -1}}
    for sections, told in [
        (wrong, "objective.gradient_matching: expected a number >= 0, got -1"),
        (SECTIONS | {"solver": "clarabell"}, "solver: 'clarabell' is not known"),
    ]:
        with pytest.raises(ProblemFileError) as caught:
            po.problems.read_sections(sections)
        assert str(caught.value).startswith(told)


def test_sections_can_be_named(tmp_path):
    file = po.problems.read_sections(SECTIONS, "my table", tmp_path)
    assert file.name == "my table"
    assert po.problems.read_sections(SECTIONS | {"name": "other"}).name == "other"


def test_another_seed_draws_anew():
    file = po.problems.read_sections(SECTIONS)
    first, same, other = (
        next(f.build().baselines()).attributions
        for f in (file, file.with_seed(0), file.with_seed(1))
    )
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()
