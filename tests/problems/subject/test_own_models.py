"""Models of one's own: objects of Python modules, imported only where allowed."""

import sys

import numpy as np
import pytest

import propopt as po
from propopt.base.errors import ProblemFileError
from propopt.cli import main
from propopt.problems import Code


MODULE = """\
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

Path(__file__).with_name("imported").touch()
X, y = load_diabetes(return_X_y=True, as_frame=True)
line = LinearRegression().fit(X, y)
forest = RandomForestRegressor(3, random_state=0).fit(X, y)
network = MLPRegressor(hidden_layer_sizes=[3], solver="lbfgs", max_iter=5)
raw = make_pipeline(StandardScaler(), network)


def product(X):
    return np.prod(np.asarray(X), axis=1)


class models:
    product = product
"""
FILE = """\
data: {sklearn: diabetes, explain: 20}
model: {import: "MODEL"}
objective:
  gradient_matching: 1
  pairwise_robustness: {graph: {kind: knn, n_neighbors: 3}}
seed: 3
"""
GRID = "data: {grid: {low: -1, high: 1, per_dimension: 4, dimensions: 2}}"
pytestmark = pytest.mark.filterwarnings("ignore:lbfgs failed to converge")


@pytest.fixture
def folder(tmp_path):
    """A folder with a module."""
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "own_models.py").write_text(MODULE)
    return modules


@pytest.fixture
def on_path(folder, monkeypatch):
    monkeypatch.syspath_prepend(folder)
    yield folder
    sys.modules.pop("own_models", None)


@pytest.fixture
def problem(problem):
    """A file that names a model."""

    def read(model, code=Code.ALLOWED, text=FILE):
        return problem(text.replace("MODEL", model), code)

    return read


def test_no_code_runs_unasked(on_path, problem, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = problem("own_models:line").source.path
    for command in (["check"], ["sweep", "-q"]):
        assert main([*command, str(path)]) == 2
        assert capsys.readouterr().err.replace(f"{tmp_path}/", "") == (
            "file.yaml:2: model.import: importing own_models:line runs Python code; "
            "add --allow-code to the command (code=Code.ALLOWED in Python) if you "
            "trust it\n"
        )
    default = po.problems.read_problem(path)
    ways = default.check_data, lambda: default.build().points, lambda: default.subject
    for refused in ways:
        with pytest.raises(ProblemFileError, match="add --allow-code"):
            refused()
    assert not (on_path / "imported").exists()
    assert "own_models" not in sys.modules


@pytest.mark.usefixtures("on_path")
def test_a_fitted_estimator_is_explained_as_it_is(subject):
    ours = subject("own_models:line")
    G = ours.gradient(ours.points)
    np.testing.assert_allclose(G, np.broadcast_to(ours.estimator.coef_, G.shape))
    assert ours.estimator is sys.modules["own_models"].line
    assert ours.score.in_words().endswith("on 20 rows that may be training rows")


@pytest.mark.usefixtures("on_path")
def test_an_estimator_that_is_not_fitted_is_copied_seeded_and_fitted(subject):
    one, other = subject("own_models:raw"), subject("own_models:raw")
    G = one.gradient(one.points).to_numpy()
    np.testing.assert_array_equal(G, other.gradient(other.points))
    assert one.estimator[-1].random_state == 3
    raw = sys.modules["own_models"].raw
    assert raw[-1].random_state is None
    assert len(vars(raw[0])) == len(type(raw[0])().get_params())  # not fitted
    np.testing.assert_allclose(one.estimator[0].mean_, one.others.mean())
    assert one.score.rows == "held-out rows"


@pytest.mark.usefixtures("on_path")
@pytest.mark.parametrize("name", ["product", "models.product"])
def test_a_callable_needs_no_table(name, problem, complaint):
    text = FILE.replace("data: {sklearn: diabetes, explain: 20}", GRID)
    file = problem(f"own_models:{name}", text=text)
    file.check_data()
    ours = file.subject
    G = ours.gradient(ours.points)
    np.testing.assert_allclose(G, np.asarray(ours.points)[:, ::-1], atol=1e-9)
    assert ours.score.in_words() == "fitted elsewhere, no held-out score"
    assert file.build().sweep(progress=False).certified(1e-6)
    assert complaint("own_models:raw", text=text) == (
        "file.yaml:2: model: Pipeline is not fitted, and data has no target; name the "
        "column in data.target, or give a fitted model"
    )


@pytest.mark.usefixtures("on_path")
@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("own_models:line.coef", "model.import: own_models:line.coef: 'LinearRegr"),
        ("no_such:x", "model.import: no_such could not be imported: No module named"),
        ("own_models.line", "model.import: expected module:object, such as package."),
        ("own_models:X", "model: DataFrame gives no numbers to explain"),
    ],
)
def test_what_is_no_model_is_refused_with_a_reason(model, message, complaint):
    assert complaint(model).startswith(f"file.yaml:2: {message}")


def test_the_folder_of_the_problem_file_is_not_searched(complaint, tmp_path):
    (tmp_path / "beside.py").write_text(MODULE)
    message = "file.yaml:2: model.import: beside could not be imported"
    assert complaint("beside:line").startswith(message)
    assert not (tmp_path / "imported").exists()
