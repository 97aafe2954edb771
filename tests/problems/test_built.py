"""What a valid problem file builds, and what objects and sections in Python do."""

import numpy as np
import pytest
from problem_texts import FILE, LOSSES, instead

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.laws.background import canonical_order, row_digests


EVERY_LOSS = """\
data: {grid: {low: -1, high: 1, per_dimension: 2, dimensions: 3}}
function: {name: exponential}
objective:
  gradient_matching: {weight: 2, norm: l1}
  function_matching: 1
  pairwise_robustness: {graph: {kind: knn, n_neighbors: 2, weights: gaussian}}
  kernel_robustness: {lengthscale: 1, mean: none}
  max_difference_robustness: {graph: {kind: threshold, threshold: 4}, aggregate: sum}
  smoothness: {graph: {kind: group, labels: [a, a, 1]}}
  sparsity: 0.5
"""


def test_every_loss(problem):
    of_words = "shared_robustness"
    names = [name for name in LOSSES.split(", ") if name != of_words]
    others = [f"  {name}: 1\n" for name in names if f"  {name}:" not in EVERY_LOSS]
    objective = problem("".join([EVERY_LOSS, *others])).build().objective
    assert list(objective.weights) == names
    message = {"gradient_matching": 2, "sparsity": 0.5}
    assert objective.weights == {
        name: message.get(name, 1) for name in objective.weights
    }
    assert objective.labels.features is None
    values = objective.breakdown(np.ones((8, 3)))
    assert values["sparsity"] == 24.0
    assert values["smoothness"] == 0.0


def test_own_values_of_a_file_are_mean_slopes_over_the_rows_it_does_not_explain(
    problem,
):
    text = """\
data: {sklearn: diabetes, explain: 20}
model: {kind: mlp, task: regression, hidden: [4]}
objective:
  gradient_matching: 1
  pairwise_robustness: {graph: {kind: knn, n_neighbors: 2}, offset: main_effects}
"""
    file = problem(text)
    subject = file.subject
    loss = file.build().losses["pairwise_robustness"]
    arguments = {"data": subject.others, "units": "gradient"}
    reference = po.explainers.main_effects(
        subject.function_with_slopes, subject.points, **arguments
    )
    np.testing.assert_array_equal(loss.offset, reference.explanation.attributions)
    rows = canonical_order(row_digests(subject.others.to_numpy(float)))[-100:]
    moved = subject.others.iloc[rows].assign(bmi=subject.points["bmi"].iloc[3])
    position = list(moved).index("bmi")
    expected = np.asarray(subject.gradient(moved))[:, position].mean()
    assert loss.offset[3, position] == pytest.approx(expected)


EITHER = ("chain", "complete")
OF_FEATURES = (*EITHER, "correlation", "pixel, height: 1, width: 3")
OF_POINTS = (*EITHER, "gaussian", "gaussian, cutoff: 0.1")


def test_graphs_of_features_and_of_points(problem):
    for graph in OF_FEATURES:
        text = EVERY_LOSS.replace("group, labels: [a, a, 1]", graph)
        assert problem(text).build().losses["smoothness"].n_features == 3
    for graph in OF_POINTS:
        text = EVERY_LOSS.replace("threshold, threshold: 4", graph)
        loss = problem(text).build().losses["max_difference_robustness"]
        assert loss.n_points == 8


def test_weights_and_axes_of_the_sweep(problem):
    text = instead("[0.1, 1]", "{low: 0.01, high: 100, points: 5}")
    built = problem(text).build()
    weights = built.weights["pairwise_robustness"]
    np.testing.assert_allclose(weights, [0.01, 0.1, 1, 10, 100])
    assert built.axes == ("gradient_matching", "pairwise_robustness")
    text = instead("[0.1, 1]", "{low: 0, high: 1, points: 3, scale: linear}")
    assert problem(text).build().weights["pairwise_robustness"] == [0, 0.5, 1]
    one = "data: {sklearn: iris}\nfunction: {name: sine}\n"
    one += "objective: {gradient_matching: 1}\n"
    assert problem(one).build().axes == 2 * ("gradient_matching",)
    built = problem(FILE + "solver: spectral\ntolerance: 1e-8\n").build()
    curve = built.sweep(built.baselines())
    assert [e.weights["pairwise_robustness"] for e in curve.optimized] == [0.1, 1]
    assert {e.solver for e in curve.optimized} == {"spectral"}
    assert curve.certified(1e-8)
    with pytest.raises(InvalidInput, match="simplex"):
        built.sweep(solver="simplex")


def test_baselines_of_all_combinations(problem):
    text = """\
baselines:
  - {method: smoothgrad, scale: [0.1, 0.2], n_samples: 5}
  - {method: shap, units: [output, gradient]}
  - {method: lime_package}
  - {method: lime, scale: [1]}
"""
    built = problem(FILE + text).build()
    methods = [explainer.method for explainer in built.methods]
    assert methods == [*2 * ["smoothgrad"], *2 * ["shap"], "lime_package", "lime"]
    noisy = next(built.baselines())
    assert noisy.parameters["scale"] == 0.1
    assert noisy.attributions.shape == (5, 1)


OF_UNITS = """\
data: {sklearn: iris, explain: 20, standardize: true}
model: {kind: forest, n_estimators: 3, target_class: setosa}
objective: {gradient_matching: 1, pairwise_robustness: {graph: {kind: chain}}}
sweep: {pairwise_robustness: [0.1, 1]}
baselines: [{method: exact_lime, kernel_width: [0.5, 2], units: [gradient, output]}]
"""


def test_exact_lime_is_compared_with_slopes_in_units_of_slopes_alone(problem):
    built = problem(OF_UNITS).build()
    distances = built.sweep(built.baselines(), progress=False).distances()
    units = distances["parameter.units"]
    assert (distances.loc[units == "gradient", "excess"] > 0).all()
    assert distances.loc[units == "output", "excess"].isna().all()
    assert distances.loc[units == "output", "not_compared"].notna().all()
    assert distances["parameter.kernel_width"].tolist() == [0.5, 0.5, 2.0, 2.0]


def test_scalars(problem, tmp_path):
    built = problem(instead("weight: 1", "weight: 1e-3")).build()
    assert built.objective.weights["pairwise_robustness"] == 1e-3
    assert problem(FILE + "name: 2024-13-45\n").name == "2024-13-45"
    path = tmp_path / "marked.yaml"
    path.write_text(FILE, encoding="utf-8-sig")
    assert po.problems.read_problem(path).name == "marked"


def test_what_an_anchor_names_stands_where_its_aliases_do(problem):
    lines = """\
plot: {x: &loss gradient_matching, y: *loss}
baselines:
  - {method: smoothgrad, scale: &scales [0.1], n_samples: 10}
  - {method: lime, scale: *scales}
"""
    built = problem(FILE + lines).build()
    assert built.axes == ("gradient_matching", "gradient_matching")
    assert [explainer.scale for explainer in built.methods] == [0.1, 0.1]


GRID = {"low": -1, "high": 1, "per_dimension": 5, "dimensions": 1}
GAUSSIAN = {"graph": {"kind": "gaussian", "lengthscale": 0.5}}
SECTIONS = {
    "data": {"grid": GRID},
    "function": {"name": "power", "degree": 3},
    "objective": {"gradient_matching": 1, "pairwise_robustness": GAUSSIAN},
    "sweep": {"pairwise_robustness": [0.1, 1]},
    "baselines": [{"method": "smoothgrad", "scale": [0.5, 1], "n_samples": 5}],
}


def test_an_error_knows_the_part_of_the_problem(monkeypatch):
    def refuse(*_, **__):
        raise InvalidInput("no")

    made = po.problems.read_sections(SECTIONS).build()
    monkeypatch.setattr(po.explainers.SmoothGrad, "explain", refuse)
    with pytest.raises(InvalidInput) as caught:
        list(made.baselines())
    assert caught.value.part == ("baselines", 0)


def test_another_seed_draws_anew():
    file = po.problems.read_sections(SECTIONS)
    first, same, other = (
        next(f.build().baselines()).attributions
        for f in (file, file.with_seed(0), file.with_seed(1))
    )
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()
