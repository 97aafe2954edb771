"""Models in files of ONNX, against the estimators that they were written from."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import propopt as po
from propopt.base.errors import ProblemFileError


pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")
skl2onnx = pytest.importorskip("skl2onnx")
FILE = """\
data: {sklearn: TABLE, explain: 20, standardize: true}
model: {onnx: model.onnx, SETTINGS}
objective:
  gradient_matching: 1
  pairwise_robustness: {graph: {kind: knn, n_neighbors: 3}}
"""
DIABETES = load_diabetes(return_X_y=True, as_frame=True)
CANCER = load_breast_cancer(as_frame=True)
LABELS = CANCER.target_names[CANCER.target]


def logistic():
    X = StandardScaler().fit_transform(CANCER.data)
    return LogisticRegression(C=0.01).fit(X, LABELS)


def network():
    X, y = DIABETES
    sizes = {"hidden_layer_sizes": [3], "max_iter": 20_000, "random_state": 0}
    model = MLPRegressor(activation="tanh", alpha=30, solver="lbfgs", **sizes)
    return model.fit(StandardScaler().fit_transform(X), y)


@pytest.fixture
def export(tmp_path):
    def to_file(model, n_columns=None, dtype="float32", **options):
        row = None if n_columns is None else np.zeros((1, n_columns), dtype)
        made = skl2onnx.to_onnx(model, row, **options)
        (tmp_path / "model.onnx").write_bytes(made.SerializeToString())

    return to_file


@pytest.fixture
def problem(problem):
    """A file that names a file of ONNX."""

    def read(table, settings=""):
        return problem(FILE.replace("TABLE", table).replace("SETTINGS", settings))

    return read


@pytest.mark.parametrize(
    ("output", "error"), [("probability", 1e-3), ("log_odds", 2e-2)]
)
@pytest.mark.parametrize("zipmap", [True, False])
def test_probabilities_are_the_classifiers(zipmap, output, error, export, subject):
    model = logistic()
    export(model, 30, options={"zipmap": zipmap})
    label = "malignant" if zipmap else 1
    ours = subject("breast_cancer", f"output: {output}, target_class: {label}")
    exact = po.wrap(model, target="malignant", output=output)
    X = ours.points
    values = exact.value(X.to_numpy())
    np.testing.assert_allclose(ours.function.value(X), values, rtol=1e-3, atol=1e-4)
    G = exact.gradient(X.to_numpy())
    np.testing.assert_allclose(ours.gradient(X), G, atol=error * np.abs(G).max())


@pytest.mark.parametrize(("dtype", "digits"), [("float32", 3e-3), ("float64", 1e-6)])
def test_values_are_those_of_the_regression(dtype, digits, export, subject):
    model = network()
    export(model, 10, dtype)
    ours, exact = subject("diabetes"), po.wrap(model)
    X = ours.points
    values = exact.value(X.to_numpy())
    np.testing.assert_allclose(ours.function.value(X), values, rtol=digits / 100)
    G = exact.gradient(X.to_numpy())
    np.testing.assert_allclose(ours.gradient(X), G, atol=digits * np.abs(G).max())
    assert ours.score.in_words() == "fitted elsewhere, no held-out score"


def test_columns_may_be_inputs_by_their_names(export, subject, complaint):
    X, y = DIABETES
    passed = ColumnTransformer([("all", "passthrough", list(X))])
    model = make_pipeline(passed, Ridge()).fit(X, y)
    number = skl2onnx.common.data_types.FloatTensorType([None, 1])
    export(model, initial_types=[(name, number) for name in list(X)[::-1]])
    ours, slopes = subject("diabetes"), model[-1].coef_
    G = ours.gradient(ours.points).to_numpy()
    error = 0.02 * np.abs(slopes).max()
    np.testing.assert_allclose(G, np.broadcast_to(slopes, G.shape), atol=error)
    assert "takes the columns 's6', 's5'" in complaint("iris")


def test_a_problem_with_a_file_is_solved_where_its_precision_resolves(export, problem):
    export(network(), 10)
    file = problem("diabetes")
    assert file.build().sweep(progress=False).certified(1e-6)
    path = file.source.path
    path.write_text(path.read_text().replace(", standardize: true", ""))
    with pytest.raises(
        ProblemFileError, match=r"steps of at least 0\.005, which exceeds"
    ):
        _ = po.problems.read_problem(path).build().function
    export(network(), 10, "float64")
    _ = po.problems.read_problem(path).build().function


def test_slopes_of_trees_are_sampled_here(export, subject):
    X, y = DIABETES
    forest = RandomForestRegressor(3, max_depth=3, random_state=0)
    export(forest.fit(X.to_numpy(), y), 10)
    ours = subject("diabetes", "")
    estimate = ours.estimate(ours.points)
    assert not estimate.exact
    slopes = np.abs(estimate.values)
    assert slopes.max() > max(1, 5 * np.median(estimate.standard_errors))


def test_what_does_not_fit_is_refused(export, complaint, tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"no model")
    assert "2: model.onnx: model.onnx is not an ONNX" in complaint("diabetes")
    export(logistic(), 30)
    assert "2: model.onnx: model.onnx takes 30 columns" in complaint("diabetes")
    assert "2: model.output: OnnxClassifier has no" in complaint(
        "breast_cancer", "output: margin"
    )
    assert complaint("breast_cancer", "tensor: output_probabilty").endswith(
        "(did you mean 'output_probability'?); it has 'output_probability'"
    )


@pytest.mark.parametrize(
    ("kind", "shape", "message"),
    [
        ("INT64", [None, 10], "takes tensor(int64) as 'X'; expected float or double"),
        ("FLOAT", [1, 10], "takes 1 rows at a time; export it with a first axis"),
        ("FLOAT", [None, 1, 10], "expected (rows, columns)"),
    ],
)
def test_what_is_no_table_is_refused(kind, shape, message, complaint, tmp_path):
    helper, proto = onnx.helper, onnx.TensorProto
    ends = [
        helper.make_tensor_value_info(name, getattr(proto, kind_), shape)
        for name, kind_ in (("X", kind), ("Y", "FLOAT"))
    ]
    nodes = [helper.make_node("Cast", ["X"], ["Y"], to=proto.FLOAT)]
    graph = helper.make_graph(nodes, "cast", ends[:1], ends[1:])
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=9)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    assert message in complaint("diabetes")
