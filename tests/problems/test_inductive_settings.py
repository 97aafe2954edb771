"""Problem files in the inductive setting: messages, and what a sweep of one finds."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import propopt as po
from propopt.inductive import GaussianProcessExplainer


FILE = """\
setting: inductive
data:
  uniform: {low: -2, high: 2, points: 40, dimensions: 2}
  explain: 15
function: {name: sine}
objective:
  gradient_matching: 2
  kernel_robustness: {lengthscale: 0.5, jitter: 0}
  smoothness: {graph: {kind: chain}}
inductive:
  inducing:
    - {rule: all}
sweep:
  kernel_robustness: [0.01, 1]
  smoothness: [0, 0.5]
baselines:
  - {method: gradient}
plot: {x: gradient_matching, y: kernel_robustness}
"""
OF_LINES = "  smoothness: {graph: {kind: chain}}\n", "  smoothness: [0, 0.5]\n"
AMONG = FILE.replace("  explain: 15\n", "")
for line in OF_LINES:
    AMONG = AMONG.replace(line, "")
RULES = {
    "subset": "{rule: subset, counts: [10, 40]}",
    "own": "{rule: subset, with_gradients: true, counts: [10, 40]}",
    "random": "{rule: random, counts: [10, 40]}",
    "farthest": "{rule: farthest, counts: [10, 40]}",
    "greedy": "{rule: greedy, tolerance: 1e-12, counts: [10, 40]}",
}


def swept(path):
    problem = po.problems.read_problem(path).build()
    return problem, problem.sweep(list(problem.baselines()), progress=False)


def inductive(trade_offs):
    return [b for b in trade_offs.baselines if b.method == "inductive"]


def instead(old, new, text=FILE):
    assert text.count(old) == 1
    return text.replace(old, new)


def test_rows_that_are_not_explained_are_the_observations(write):
    problem, trade_offs = swept(write(FILE))
    X = np.random.default_rng(0).uniform(-2, 2, (40, 2))
    np.testing.assert_array_equal(problem.points, X[:15])
    explainer = GaussianProcessExplainer(
        lengthscale=0.5, features=po.graphs.chain_graph(2)
    )
    explainer.fit(X[15:], np.cos(X[15:]))
    kernel = po.losses.KernelRobustness(RBF(0.5)(X[:15]))
    for result, best in zip(inductive(trade_offs), trade_offs.optimized, strict=True):
        W, given = result.attributions, result.parameters
        names = ("kernel_robustness", "smoothness")
        robust, smooth = (best.weights[name] / 2 for name in names)
        (expected,) = explainer.explain_path(X[:15], [(robust, smooth)])
        np.testing.assert_allclose(W, expected.attributions)
        assert (given["robustness"], given["smoothness"]) == (robust, smooth)
        # losses are measured at the new inputs, and the gap to a bound on all
        distance = ((W - np.cos(X[:15])) ** 2).sum()
        assert result.losses["gradient_matching"] == pytest.approx(distance)
        assert result.losses["kernel_robustness"] == pytest.approx(kernel.value(W))
        assert result.weights == best.weights
        assert result.objective > best.objective
        above = result.objective - best.certificate.lower_bound
        assert result.gap == pytest.approx(above / result.objective)


@pytest.mark.parametrize("rule", RULES)
def test_with_all_points_observed_and_inducing_the_optimum_is_found(write, rule):
    _, trade_offs = swept(write(instead("{rule: all}", RULES[rule], AMONG)))
    result = inductive(trade_offs)
    assert [e.parameters["n_inducing"] for e in result] == [10, 10, 40, 40]
    assert min(few.gap for few in result[:2]) > 1e-3
    for whole, best in zip(result[2:], trade_offs.optimized, strict=True):
        assert whole.gap < 1e-6
        np.testing.assert_allclose(whole.attributions, best.attributions, atol=1e-6)


def test_own_gradients_make_new_inputs_more_faithful(write):
    given = "{rule: given, inputs: [[0, 0], [1, 1], [-1, 1]]}"
    rules = f"{{rule: all}}\n    - {{rule: all, with_gradients: true}}\n    - {given}"
    _, trade_offs = swept(write(instead("{rule: all}", rules)))
    result = inductive(trade_offs)
    for without, one in zip(result[:4], result[4:8], strict=True):
        assert one.losses["gradient_matching"] < without.losses["gradient_matching"]
    assert {e.parameters["n_inducing"] for e in result[8:]} == {3}  # that are given


def test_pairwise_robustness_and_another_kernel(write):
    text = instead(
        "kernel_robustness: {lengthscale: 0.5, jitter: 0}",
        "pairwise_robustness: {graph: {kind: gaussian}}",
    )
    text = text.replace("kernel_robustness", "pairwise_robustness")
    text = text.replace("  inducing:", "  kernel: matern\n  mean: common\n  inducing:")
    _, trade_offs = swept(write(text))
    for result in inductive(trade_offs):
        assert result.gap > 0
        assert result.parameters["mean"] == "common"
        assert "Matern" in result.parameters["kernel"]


def test_the_prior_is_that_of_kernel_robustness(write):
    text = instead("jitter: 0}", "jitter: 0, mean: none}", AMONG)
    _, trade_offs = swept(write(text))
    for result in inductive(trade_offs):
        assert result.parameters["mean"] == "none"
        assert result.gap < 1e-6
    _, trade_offs = swept(write(text.replace("inducing:", "mean: common\n  inducing:")))
    assert all(e.gap > 1e-6 for e in inductive(trade_offs))
    # the section may be left out
    text = instead("inductive:\n  inducing:\n    - {rule: all}\n", "")
    _, trade_offs = swept(write(text))
    for result in inductive(trade_offs):
        assert result.parameters["rule"] == "all"
        assert "length_scale=0.5" in result.parameters["kernel"]


def test_an_interruption_keeps_what_is_done(write, monkeypatch):
    path = write(instead("{rule: all}", "{rule: random, counts: [3, 4, 5]}"))
    problem = po.problems.read_problem(path).build()
    path, calls = GaussianProcessExplainer.explain_path, []

    def stopping(explainer, *arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return path(explainer, *arguments)

    monkeypatch.setattr(GaussianProcessExplainer, "explain_path", stopping)
    trade_offs = problem.sweep(progress=False)
    assert trade_offs.interrupted
    assert len(trade_offs.optimized) == 4
    assert len(inductive(trade_offs)) == 8
