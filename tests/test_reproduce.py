"""``propopt reproduce``: statements that can fail, and what is written."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import propopt as po
from propopt.cli import main
from propopt.errors import InvalidInput
from propopt.problem import read_problem
from propopt.reproduce import Finding, cubic, held_out, induction, laws, run
from propopt.reproduce.charts import draw_fronts
from propopt.reproduce.enclosure import Frontier
from propopt.reproduce.figure import PaperFigure
from propopt.reproduce.figures import FIGURES
from propopt.reproduce.figures.fig2 import zeros_appear
from propopt.reproduce.figures.fig3 import matches_where_no_worse
from propopt.reproduce.figures.fig4 import shap_is_unfaithful
from propopt.reproduce.figures.tables import UserTable
from propopt.reproduce.panels import Panel, Solved


PAPER = Path(__file__).parent.parent / "problems" / "paper"
FILE = """\
data:
  grid: {low: -5, high: 5, per_dimension: 12, dimensions: 1}
function: {name: power, degree: 3}
objective:
  gradient_matching: 1
  pairwise_robustness: {graph: {kind: gaussian, lengthscale: 1}}
sweep:
  pairwise_robustness: [0.1, 1, 10]
baselines:
  - {method: gradient}
  - {method: smoothgrad, scale: [0.5, 1, 2], n_samples: 50}
  - {method: lime, scale: [0.5, 1], n_samples: 50}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(FILE, encoding="utf-8")
    return path


@pytest.fixture
def solved(file):
    problem = read_problem(file)
    return Solved(problem, problem.sweep(problem.baselines(), progress=False))


INDUCTIVE = """\
setting: inductive
data:
  uniform: {low: -5, high: 5, points: 60, dimensions: 2}
function: {name: power, degree: 3}
objective:
  gradient_matching: 1
  kernel_robustness: {lengthscale: 1.5, jitter: 0}
inductive:
  inducing:
    - {rule: subset, counts: &counts [3, 10, 20, 40, 60]}
    - {rule: subset, own_gradients: true, counts: *counts}
    - {rule: random, counts: *counts}
    - {rule: greedy, tolerance: 1e-12, counts: *counts}
sweep: {kernel_robustness: [0.05]}
baselines:
  - {method: gradient}
"""


@pytest.fixture
def later(tmp_path):
    path = tmp_path / "later.yaml"
    path.write_text(INDUCTIVE, encoding="utf-8")
    problem = read_problem(path)
    return Solved(problem, problem.sweep(problem.baselines(), progress=False))


def panel(file, *chosen, column="x³"):
    return Panel(column=column, row="D = 1", file=file, laws=chosen)


def figure(*panels):
    return PaperFigure(
        title="A figure",
        about="What it shows.",
        panels=panels,
        draw=partial(draw_fronts, size=(2.0, 2.0)),
    )


def with_baseline(solved, **changes):
    """The same with the first SmoothGrad changed."""
    gradient, first, *rest = solved.trade_offs.baselines
    changed = dataclasses.replace(first, **changes)
    baselines = (gradient, changed, *rest)
    return Solved(
        solved.problem, dataclasses.replace(solved.trade_offs, baselines=baselines)
    )


def with_optima(solved, change):
    optimized = tuple(map(change, solved.trade_offs.optimized))
    return Solved(
        solved.problem, dataclasses.replace(solved.trade_offs, optimized=optimized)
    )


# findings


@pytest.mark.parametrize(
    ("sense", "limit", "passed"),
    [("<=", 1.0, True), ("<=", 0.5, False), (">=", 1.0, True), (">=", 2.0, False)],
)
def test_a_finding_passes_on_its_side_of_the_limit(sense, limit, passed):
    found = Finding(statement="s", value=1.0, sense=sense, limit=limit)
    assert found.passed is passed
    assert found.verdict == ("PASS" if passed else "FAIL")
    assert (found.margin >= 0) is passed


@pytest.mark.parametrize("sense", ["<=", ">="])
def test_what_is_no_number_fails(sense):
    assert not Finding(statement="s", value=float("nan"), sense=sense, limit=0.0).passed


# laws hold, and can fail


@pytest.mark.parametrize("law", laws.WITH_GRADIENTS)
def test_laws_hold_for_a_true_sweep(solved, law):
    assert law(solved).passed


def test_a_baseline_that_beats_the_optimum_fails(solved):
    losses = {"gradient_matching": 1.0, "pairwise_robustness": 0.0}
    cheat = with_baseline(solved, losses=losses)
    assert not laws.none_beats(cheat).passed
    assert not laws.dominated(cheat).passed


def test_a_baseline_just_below_the_front_fails(solved):
    best = solved.trade_offs.optimized[1]
    below = {name: 0.999 * value for name, value in best.losses.items()}
    assert not laws.dominated(with_baseline(solved, losses=below)).passed
    assert not laws.none_beats(with_baseline(solved, losses=below)).passed


def test_a_baseline_on_the_front_passes(solved):
    best = solved.trade_offs.optimized[1]
    found = laws.dominated(with_baseline(solved, losses=dict(best.losses)))
    assert found.passed
    assert found.value == pytest.approx(0.0, abs=1e-6)


def test_an_optimum_without_a_tight_bound_fails(solved):
    def loosened(best):
        loose = dataclasses.replace(
            best.certificate, lower_bound=0.9 * best.certificate.value
        )
        return dataclasses.replace(best, certificate=loose)

    assert not laws.certified(with_optima(solved, loosened)).passed


def test_a_weight_that_was_not_solved_fails(solved):
    missing = dataclasses.replace(solved.trade_offs, failures=("no answer",))
    assert not laws.certified(Solved(solved.problem, missing)).passed


def test_a_gradient_that_is_not_one_fails(solved):
    wrong, *others = solved.trade_offs.baselines
    losses = wrong.losses | {"gradient_matching": 1e-9}
    baselines = (dataclasses.replace(wrong, losses=losses), *others)
    cheat = dataclasses.replace(solved.trade_offs, baselines=baselines)
    assert not laws.gradient_is_faithful(Solved(solved.problem, cheat)).passed


def test_a_sweep_without_gradient_says_nothing_of_it(solved):
    fewer = solved.trade_offs.baselines[1:]
    bare = dataclasses.replace(solved.trade_offs, baselines=fewer)
    assert not laws.gradient_is_faithful(Solved(solved.problem, bare)).passed


def test_a_loss_that_rises_with_its_weight_fails(solved):
    law = partial(laws.falls_with_its_weight, loss="pairwise_robustness")
    assert law(solved).passed
    swapped = dict(zip([0.1, 1.0, 10.0], [10.0, 1.0, 0.1], strict=True))

    def turned(best):
        weight = swapped[best.weights["pairwise_robustness"]]
        return dataclasses.replace(
            best, weights={"gradient_matching": 1.0, "pairwise_robustness": weight}
        )

    assert not law(with_optima(solved, turned)).passed


@pytest.mark.parametrize("law", [*cubic.EXACT, *cubic.SAMPLED])
def test_statements_on_the_cube_hold(solved, law):
    assert law(solved).passed


@pytest.mark.parametrize("law", cubic.SAMPLED)
def test_a_smoothgrad_with_too_much_noise_fails(solved, law):
    first = solved.trade_offs.baselines[1]
    noise = np.linspace(-60, 60, 12)[:, None]
    assert not law(
        with_baseline(solved, attributions=first.attributions + noise)
    ).passed


def test_dense_attributions_have_no_zeros(tmp_path):
    text = FILE.replace("sweep:\n  pairwise_robustness: [0.1, 1, 10]", "sweep: WEIGHTS")
    text = text.replace(
        "  pairwise_robustness: {", "  sparsity: 1\n  pairwise_robustness: {"
    )
    path = tmp_path / "sparse.yaml"
    found = {}
    for weights in ([0.01, 0.02], [0.01, 100.0]):
        path.write_text(text.replace("WEIGHTS", f"{{sparsity: {weights}}}"))
        problem = read_problem(path)
        found[weights[1]] = zeros_appear(Solved(problem, problem.sweep()))
    assert not found[0.02].passed
    assert found[100.0].passed


def test_a_baseline_below_the_optimum_is_no_match(solved):
    assert matches_where_no_worse(solved).passed
    losses = {"gradient_matching": 0.1, "pairwise_robustness": 0.0}
    assert not matches_where_no_worse(with_baseline(solved, losses=losses)).passed


def test_shap_that_is_on_the_chart_fails(solved):
    near = with_baseline(solved, method="shap", parameters={"units": "output"})
    assert not shap_is_unfaithful(near).passed
    far = {"gradient_matching": 1e9, "pairwise_robustness": 1e9}
    assert shap_is_unfaithful(
        with_baseline(solved, parameters={"units": "output"}, losses=far)
    ).passed


# inductive explanations beside the optimum

INDUCTION = [
    induction.never_below,
    induction.own_gradients_are_faithful,
    induction.reaches_optimum,
    partial(induction.falls_at_each_step, rule="random"),
    partial(induction.falls_at_each_step, rule="greedy"),
    partial(induction.falls_exponentially, rule="greedy"),
    partial(induction.chosen_beat_random, rule="greedy"),
    partial(induction.falls_by, rule="greedy", decades=1.0),
]


def with_excess(solved, rule, change):
    """The same with the objective of a rule's explanations changed, by their counts."""

    def changed(found):
        if found.parameters.get("rule") != rule:
            return found
        factor = change(found.parameters["n_inducing"])
        losses = {name: factor * value for name, value in found.losses.items()}
        return dataclasses.replace(found, losses=losses)

    baselines = tuple(map(changed, solved.trade_offs.baselines))
    return Solved(
        solved.problem, dataclasses.replace(solved.trade_offs, baselines=baselines)
    )


@pytest.mark.parametrize("law", INDUCTION)
def test_statements_on_inductive_explanations_hold(later, law):
    assert law(later).passed


def test_excesses_are_those_of_the_objective(later):
    table = induction.excesses(later)
    assert len(table) == 20
    (best,) = later.trade_offs.optimized
    for found, given in zip(induction.inductive(later), table["excess"], strict=True):
        assert given == pytest.approx(found.objective / best.objective - 1)


def test_an_inductive_explanation_below_the_optimum_fails(later):
    cheat = with_excess(later, "greedy", lambda count: 1e-4 if count == 40 else 1.0)
    assert not induction.never_below(cheat).passed


def test_an_excess_that_rises_fails(later):
    cheat = with_excess(later, "greedy", lambda count: 1e6 if count == 40 else 1.0)
    assert not induction.falls_at_each_step(cheat, rule="greedy").passed
    assert not induction.falls_by(cheat, rule="greedy", decades=1.0).passed
    assert not induction.falls_exponentially(cheat, rule="greedy").passed
    assert not induction.chosen_beat_random(cheat, rule="greedy").passed


def test_an_optimum_that_is_not_reached_fails(later):
    cheat = with_excess(later, "random", lambda _: 1.1)
    found = induction.reaches_optimum(cheat)
    assert found.value == pytest.approx(0.1, rel=0.01)
    assert not found.passed


def test_observations_that_reach_the_optimum_are_no_others(later):
    assert not induction.stays_above(later).passed


def test_maps_that_are_rough_or_dear_fail():
    chosen = FIGURES["fig6"]().panels[1]
    problem = read_problem(chosen.file)
    solved = Solved(problem, problem.sweep(problem.baselines(), progress=False))
    laws_of_inductive = (
        held_out.is_smooth,
        held_out.beats_smoothgrad,
        held_out.nears_optimum,
        partial(held_out.falls_with_its_weight, loss="smoothness"),
        partial(held_out.falls_with_its_weight, loss="kernel_robustness"),
    )
    assert all(law(solved).passed for law in laws_of_inductive)
    dear = with_excess(solved, "all", lambda _: 1000.0)
    assert not any(law(dear).passed for law in laws_of_inductive[:3])
    assert laws.none_beats(solved).passed
    cheap = with_excess(solved, "all", lambda _: 0.01)
    assert not laws.none_beats(cheap).passed


def test_a_panel_tells_the_excess_of_each_inductive_explanation(tmp_path, monkeypatch):
    path = tmp_path / "later.yaml"
    path.write_text(INDUCTIVE, encoding="utf-8")
    one = dataclasses.replace(
        panel(path, induction.never_below), distances=induction.distances
    )
    made = figure(one)
    made = dataclasses.replace(made, draw=FIGURES["fig5"]().draw)
    made = dataclasses.replace(
        made,
        panels=(
            dataclasses.replace(one, pictures=FIGURES["fig5"]().panels[0].pictures),
        ),
    )
    assert reproduce(monkeypatch, tmp_path / "out", made, "--quiet") == 0
    page = (tmp_path / "out" / "tiny.md").read_text(encoding="utf-8")
    assert "| inductive, rule = greedy, own gradients = False, inputs = 40," in page
    assert "excess |" in page
    assert "saved |" not in page
    ElementTree.parse(tmp_path / "out" / "tiny.svg")


# the best possible at equal other losses


@pytest.mark.parametrize("part", [0.02, 0.3, 0.9, 2.0])
def test_an_enclosure_holds_the_optimum_under_a_bound(part, rng):
    G = rng.normal(size=(15, 2))
    faithfulness = po.GradientMatching(G)
    robustness = po.PairwiseRobustness(po.chain_graph(15))
    limit = part * robustness.value(G)
    best = po.solve(faithfulness, subject_to=[robustness <= limit])
    found = Frontier(faithfulness + robustness, []).enclose(
        {"gradient_matching": 1.0, "pairwise_robustness": limit}
    )
    assert found.lower <= best.objective * (1 + 1e-6) + 1e-9
    assert best.objective <= found.upper * (1 + 1e-6) + 1e-9
    assert found.upper - found.lower <= 0.01 * max(found.cost, found.upper)


def test_an_enclosure_holds_the_optimum_under_two_bounds(rng):
    G = rng.normal(size=(10, 2))
    faithfulness, sparsity = po.GradientMatching(G), po.Sparsity()
    robustness = po.PairwiseRobustness(po.chain_graph(10))
    limits = {"sparsity": 0.5 * sparsity.value(G), "pairwise_robustness": 2.0}
    best = po.solve(
        faithfulness,
        subject_to=[
            sparsity <= limits["sparsity"],
            robustness <= limits["pairwise_robustness"],
        ],
    )
    found = Frontier(faithfulness + sparsity + robustness, []).enclose(
        {"gradient_matching": best.objective * 1.5, **limits}
    )
    assert found.lower * (1 - 1e-6) <= best.objective <= found.upper * (1 + 1e-6)
    assert 0.3 < found.saved <= 1 / 3 + 1e-6


# problem files


@pytest.mark.parametrize("name", FIGURES)
def test_every_panel_has_a_valid_file(name):
    for one in FIGURES[name]().panels:
        assert read_problem(one.file).swept


def test_every_problem_file_of_the_paper_is_in_a_figure():
    used = {one.file for make in FIGURES.values() for one in make().panels}
    assert used == set(PAPER.glob("*.yaml"))


@pytest.mark.parametrize("name", FIGURES)
def test_panels_of_a_figure_have_titles_of_their_own(name):
    titles = [one.title for one in FIGURES[name]().panels]
    assert len(titles) == len(set(titles))


# a table of the user's


def write_table(folder, target):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(30, 3)), columns=list("abc"))
    path = folder / "my table.csv"
    table.assign(y=target).to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    ("target", "task", "found"),
    [
        (np.arange(30) / 7, None, ("regression", None)),
        (["no", "yes", "yes"] * 10, None, ("classification", "yes")),
        ([0, 1, 1] * 10, None, ("classification", 1)),
        ([3, 4, 4, 5, 6] * 6, None, ("regression", None)),
        ([3, 4, 4, 5, 6] * 6, "classification", ("classification", 4)),
    ],
)
def test_a_table_of_the_users_becomes_a_problem_file(tmp_path, target, task, found):
    csv = write_table(tmp_path, target)
    made = UserTable(csv=csv, target="y", task=task).panel(tmp_path)
    problem = read_problem(made.file)
    assert made.file == tmp_path / "table_my table.yaml"
    assert (problem.schema.model.task, problem.schema.model.target_class) == found
    assert problem.schema.data.explain == 10
    assert problem.points.shape == (10, 3)


def test_text_columns_of_a_table_of_ones_own_are_categories(tmp_path, rng):
    csv = tmp_path / "customers.csv"
    table = pd.DataFrame({"age": rng.normal(size=30), "plan": list("abc") * 10})
    table.assign(y=table["age"] + (table["plan"] == "a")).to_csv(csv, index=False)
    problem = read_problem(UserTable(csv=csv, target="y").panel(tmp_path).file)
    assert problem.schema.data.categorical == ["plan"]
    assert list(problem.function.gradient(problem.points)) == ["age", "plan"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["fig1", "--csv", "t.csv", "--target", "y"], "add it, or all"),
        (["tables", "--csv", "t.csv"], "--csv needs --target"),
        (["tables", "--target", "y"], "add --csv"),
        (["tables", "--csv", "t.csv", "--target", "y"], "there is no file t.csv"),
        (["tables", "--csv", __file__, "--target", "y"], "no column 'y'|not a CSV"),
        (["fig7"], "there is no 'fig7'; did you mean 'fig"),
    ],
)
def test_bad_arguments_are_refused_before_any_work(
    options, message, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(Panel, "run", None)
    assert main(["reproduce", *options, "-o", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert any(part in error for part in message.split("|"))


# running


def reproduce(monkeypatch, folder, made, *options):
    monkeypatch.setitem(FIGURES, "tiny", lambda: made)
    return main(["reproduce", "tiny", "--output", str(folder), *options])


def stop(solved):
    del solved
    raise KeyboardInterrupt


def failing(solved):
    del solved
    return Finding(statement="one is more than | two", value=1, sense=">=", limit=2)


def test_a_figure_whose_statements_hold(file, tmp_path, monkeypatch, capsys):
    made = figure(panel(file, *laws.WITH_GRADIENTS), panel(file, column="again"))
    out = tmp_path / "out"
    assert reproduce(monkeypatch, out, made) == 0
    assert {path.name for path in out.iterdir()} == {
        "README.md",
        "statements.csv",
        "tiny.md",
        "tiny.svg",
    }
    page = (out / "tiny.md").read_text(encoding="utf-8")
    assert "# tiny: A figure" in page
    assert "| smoothgrad, δ = 0.5 |" in page
    assert "FAIL" not in page
    assert "4 of 4 findings PASS, 0 FAIL" in (out / "README.md").read_text("utf-8")
    assert "4 of 4 findings PASS" in capsys.readouterr().out
    ElementTree.parse(out / "tiny.svg")


def test_a_statement_that_fails_is_told_everywhere(file, tmp_path, monkeypatch, capsys):
    made = figure(panel(file, laws.certified, failing))
    assert reproduce(monkeypatch, tmp_path, made) == 4
    assert "FAIL one is more than | two: 1, expected >= 2" in capsys.readouterr().out
    row = "| one is more than \\| two | FAIL | 1 | >= 2 | 1 | x³, D = 1 |"
    assert row in (tmp_path / "tiny.md").read_text(encoding="utf-8")
    assert row in (tmp_path / "README.md").read_text(encoding="utf-8")
    table = pd.read_csv(tmp_path / "statements.csv")
    assert table["verdict"].tolist() == ["PASS", "FAIL"]


def test_the_narrowest_finding_stands_for_a_statement(file, tmp_path, monkeypatch):
    wide, narrow = (
        Finding(statement="s", value=value, sense=">=", limit=0.0)
        for value in (2.0, 1.0)
    )
    made = figure(
        panel(file, lambda _: wide), panel(file, lambda _: narrow, column="other")
    )
    reproduce(monkeypatch, tmp_path, made, "--quiet")
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "| s | PASS | 1 | >= 0 | 2 | other, D = 1 |" in page


def test_quiet_prints_nothing(file, tmp_path, monkeypatch, capsys):
    made = figure(panel(file, laws.certified))
    assert reproduce(monkeypatch, tmp_path, made, "--quiet") == 0
    assert capsys.readouterr() == ("", "")


def test_the_same_run_draws_the_same_picture(file, tmp_path, monkeypatch):
    made = figure(panel(file, laws.certified))
    pictures = []
    for folder in ("one", "two"):
        reproduce(monkeypatch, tmp_path / folder, made, "--quiet")
        pictures.append((tmp_path / folder / "tiny.svg").read_bytes())
    assert pictures[0] == pictures[1]


def test_two_jobs_find_the_same(file):
    panels = [panel(file, laws.none_beats), panel(file, laws.certified)]
    together = list(run.panel_results(panels, 2))
    assert [r.findings for r in together] == [one.run().findings for one in panels]


def test_an_interrupted_run_keeps_what_is_done(file, tmp_path, monkeypatch, capsys):
    made = figure(panel(file, laws.certified), panel(file, stop, column="second"))
    assert reproduce(monkeypatch, tmp_path, made) == 130
    assert "interrupted" in capsys.readouterr().out
    page = (tmp_path / "tiny.md").read_text(encoding="utf-8")
    assert "**Interrupted**: 1 of 2 panels" in page
    assert "every optimum is certified" in (tmp_path / "README.md").read_text("utf-8")


def test_an_interruption_before_anything_is_done(file, tmp_path, monkeypatch, capsys):
    assert reproduce(monkeypatch, tmp_path, figure(panel(file, stop))) == 130
    assert "files that were written are whole" in capsys.readouterr().err
    assert not (tmp_path / "README.md").exists()


def test_warnings_are_written_down(file, tmp_path, monkeypatch):
    def warning(solved):
        import warnings

        warnings.warn("mind this", stacklevel=1)
        return laws.certified(solved)

    reproduce(monkeypatch, tmp_path, figure(panel(file, warning)), "--quiet")
    assert "- x³, D = 1: mind this" in (tmp_path / "tiny.md").read_text("utf-8")


def test_a_page_is_the_old_one_or_the_new_one(file, tmp_path, monkeypatch):
    made = figure(panel(file, laws.certified))
    reproduce(monkeypatch, tmp_path, made, "--quiet")
    before = (tmp_path / "tiny.md").read_bytes()

    def torn(path, text, **settings):
        with path.open("w", **settings) as stream:
            stream.write(text[:10])
        raise OSError("disk full")

    monkeypatch.setattr(Path, "write_text", torn)
    with pytest.raises(OSError, match="disk full"):
        reproduce(monkeypatch, tmp_path, made, "--quiet")
    assert (tmp_path / "tiny.md").read_bytes() == before
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_folder_that_cannot_be_made_is_refused(file):
    with pytest.raises(InvalidInput, match="cannot make the folder"):
        po.reproduce_paper(["fig1"], file / "below")


def test_a_number_of_jobs_that_is_zero_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="n_jobs"):
        po.reproduce_paper(["fig2"], tmp_path, n_jobs=0, quiet=True)


def test_help_lists_every_figure(capsys):
    with pytest.raises(SystemExit):
        main(["reproduce", "--help"])
    listed = capsys.readouterr().out
    assert all(name in listed for name in FIGURES)


def test_the_cheapest_panel_of_the_paper_holds():
    chosen = next(
        p for p in FIGURES["fig2"]().panels if p.title.startswith("x², D = 1")
    )
    result = chosen.run()
    assert [f.statement for f in result.findings if not f.passed] == []
    assert (result.distances["saved"] >= 0).all()
