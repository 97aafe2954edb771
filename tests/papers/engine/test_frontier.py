"""The best possible at equal other losses is enclosed; panels of files and objects."""

import dataclasses

import numpy as np
import pytest
import yaml
from reproduction import FILE, panel, solved, with_baseline

import propopt as po
from papers import PAPERS
from papers.engine import statements
from papers.engine.frontier import Frontier
from papers.engine.panels import Panel
from propopt.base.errors import InvalidInput
from propopt.problems import read_problem, read_sections


def gradients(rng):
    return rng.normal(size=(15, 2)) + 3.0


LINE = np.arange(15.0)[:, None]
LOSSES = {
    "chain": lambda: po.PairwiseRobustness(po.graphs.chain_graph(15)),
    "two parts": lambda: po.PairwiseRobustness(two_chains()),
    "kernel": lambda: po.losses.KernelRobustness(np.exp(-np.abs(LINE - LINE.T))),
    "smooth": lambda: po.Smoothness(po.graphs.chain_graph(2)),
    "sparse": lambda: po.Sparsity(),
}


def two_chains():
    S = po.graphs.chain_graph(15).similarities.toarray()
    S[6, 7] = S[7, 6] = 0.0
    return po.graphs.SimilarityGraph(S)


def cheapest_when_zero(name, G):
    """A where B is zero: means over what the loss couples, or nothing at all."""
    match name:
        case "chain" | "kernel":
            W = np.broadcast_to(G.mean(axis=0), G.shape)
        case "two parts":
            parts = [np.tile(P.mean(axis=0), (len(P), 1)) for P in (G[:7], G[7:])]
            W = np.concatenate(parts)
        case "smooth":
            W = np.broadcast_to(G.mean(axis=1, keepdims=True), G.shape)
        case _:
            W = np.zeros_like(G)
    return po.GradientMatching(G).value(W)


@pytest.mark.parametrize("known", [(), (0.1, 1.0, 10.0)])
@pytest.mark.parametrize("name", LOSSES)
def test_at_a_limit_of_zero_the_answer_is_exact(name, known, rng):
    G = gradients(rng)
    objective = po.GradientMatching(G) + LOSSES[name]()
    loss = objective.losses[1]
    optima = [po.solve(objective.with_weights({loss.name: c})) for c in known]
    for cost in (1e-3, 1.0, 1e6):
        limits = {"gradient_matching": cost, loss.name: 0.0}
        result = Frontier(objective, optima).enclose(limits)
        exact = cheapest_when_zero(name, G)
        assert result.upper == pytest.approx(exact, rel=1e-9)
        assert result.lower == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("part", [1e-30, 1e-26, 1e-18, 1e-12, 1e-8, 1e-4])
@pytest.mark.parametrize("name", ["chain", "two parts", "smooth"])
def test_limits_near_zero_are_enclosed(name, part, rng):
    """A* lies below that of zero, by at most about √part of it."""
    G = gradients(rng)
    objective = po.GradientMatching(G) + LOSSES[name]()
    loss = objective.losses[1]
    optima = [po.solve(objective.with_weights({loss.name: c})) for c in (0.1, 1.0)]
    end = cheapest_when_zero(name, G)
    limits = {"gradient_matching": end, loss.name: part * loss.value(G)}
    result = Frontier(objective, optima).enclose(limits)
    assert result.lower <= end * (1 + 1e-12)
    assert result.lower <= result.upper * (1 + 1e-12)
    assert end * (1 - 20 * np.sqrt(part) - 0.01) <= result.upper <= end * (1 + 1e-6)
    assert result.upper - result.lower <= 0.011 * end


def test_maps_that_are_constant_over_images_may_still_be_rough(rng):
    """One limit is zero, the other is not: the end is a front of its own."""
    G = gradients(rng)
    robustness = po.PairwiseRobustness(po.graphs.chain_graph(15))
    smoothness = po.Smoothness(po.graphs.chain_graph(2))
    objective = po.GradientMatching(G) + robustness + smoothness
    mean = G.mean(axis=0, keepdims=True)
    limit = 0.25 * smoothness.value(np.broadcast_to(mean, G.shape))
    # a constant halfway to that with equal columns: half the difference, a quarter of B
    middle = mean.mean() + 0.5 * (mean - mean.mean())
    exact = po.GradientMatching(G).value(np.broadcast_to(middle, G.shape))
    result = Frontier(objective, []).enclose(
        {"gradient_matching": exact, "pairwise_robustness": 0.0, "smoothness": limit}
    )
    assert result.lower <= exact * (1 + 1e-9)
    assert result.upper == pytest.approx(exact, rel=0.01)
    assert result.upper - result.lower <= 0.01 * exact


def test_a_constant_baseline_gives_away_what_it_is_off_the_mean():
    G = solved().problem.losses["gradient_matching"].G
    constant = np.broadcast_to(G.mean(axis=0), G.shape)
    best = po.GradientMatching(G).value(constant)
    losses = {"gradient_matching": best / 0.9, "pairwise_robustness": 0.0}
    result = statements.dominated(with_baseline(solved(), losses=losses))
    assert result.holds
    assert result.value == pytest.approx(0.1, rel=1e-6)
    losses["gradient_matching"] = 0.999 * best
    assert not statements.dominated(with_baseline(solved(), losses=losses)).holds


@pytest.mark.parametrize("part", [0.02, 0.3, 0.9, 2.0])
def test_an_enclosure_holds_the_optimum_under_a_bound(part, rng):
    G = rng.normal(size=(15, 2))
    faithfulness = po.GradientMatching(G)
    robustness = po.PairwiseRobustness(po.graphs.chain_graph(15))
    limit = part * robustness.value(G)
    best = po.solve(faithfulness, subject_to=[robustness <= limit])
    limits = {"gradient_matching": 1.0, "pairwise_robustness": limit}
    result = Frontier(faithfulness + robustness, []).enclose(limits)
    assert result.lower <= best.objective * (1 + 1e-6) + 1e-9
    assert best.objective <= result.upper * (1 + 1e-6) + 1e-9
    assert result.upper - result.lower <= 0.01 * max(result.cost, result.upper)


def test_an_enclosure_holds_the_optimum_under_two_bounds(rng):
    G = rng.normal(size=(10, 2))
    faithfulness, sparsity = po.GradientMatching(G), po.Sparsity()
    robustness = po.PairwiseRobustness(po.graphs.chain_graph(10))
    limits = {"sparsity": 0.5 * sparsity.value(G), "pairwise_robustness": 2.0}
    bounds = [loss <= limits[loss.name] for loss in (sparsity, robustness)]
    best = po.solve(faithfulness, subject_to=bounds)
    result = Frontier(faithfulness + sparsity + robustness, []).enclose(
        {"gradient_matching": best.objective * 1.5, **limits}
    )
    assert result.lower * (1 - 1e-6) <= best.objective <= result.upper * (1 + 1e-6)
    assert 0.3 < result.saved <= 1 / 3 + 1e-6


STATEMENTS = statements.EVERYWHERE
FIGURES = [(name, figure) for name, paper in PAPERS.items() for figure in paper.figures]


def problems(paper, figure):
    panels = PAPERS[paper].figures[figure]().panels
    return [one.problem for one in panels if isinstance(one, Panel)]


@pytest.mark.parametrize(("paper", "figure"), FIGURES)
def test_every_panel_has_a_valid_file_and_a_title_of_its_own(paper, figure):
    for problem in problems(paper, figure):
        built = read_problem(problem).build()
        assert built.weights or built.limits
    titles = [panel.title for panel in PAPERS[paper].figures[figure]().panels]
    assert len(titles) == len(set(titles))


@pytest.mark.parametrize("name", PAPERS)
def test_every_problem_file_and_every_verdict_of_a_paper_is_of_a_figure(name):
    paper = PAPERS[name]
    files = {file for figure in paper.figures for file in problems(name, figure)}
    kept = paper.problems and set(paper.problems.folder.glob("*.yaml"))
    assert files == (kept or set())
    assert {figure for figure, _, _ in paper.record} <= set(paper.figures)
    with pytest.raises(InvalidInput, match=r"fig7\.yaml in .*problems"):
        PAPERS["properties"].problems.path("fig7")


def sections():
    return yaml.safe_load(FILE)


def test_sections_have_the_findings_of_their_file(tmp_path):
    file = tmp_path / "tiny.yaml"
    file.write_text(FILE, encoding="utf-8")
    expected = panel(file, *STATEMENTS).run()
    read = read_sections(sections())
    before = vars(read).copy()
    said = panel(read, *STATEMENTS).run()
    assert said.findings == expected.findings
    # nothing that was computed goes home with the panel
    assert vars(said.panel.problem) == before


def test_what_a_file_says_is_drawn_anew_for_each_seed():
    random = sections()
    random["data"] = {"uniform": {"low": -5, "high": 5, "points": 12, "dimensions": 1}}
    draws = []

    def statement(solved):
        draws.extend(np.asarray(one.problem.points) for one in solved.draws)
        return statements.EVERYWHERE[0](solved)

    one = panel(read_sections(random), statement)
    dataclasses.replace(one, seeds=(1, 0)).run()
    first, other, same = draws
    np.testing.assert_array_equal(first, same)
    assert not np.isclose(first, other).any()
