"""What a file may say of a thing is what the thing takes, with the same defaults."""

import dataclasses
import inspect
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
from command_line import python

from propopt import losses
from propopt.explaining import explainers
from propopt.lime import TextLaw
from propopt.problems import losses as loss_sections
from propopt.problems.inductive import RULES
from propopt.problems.jobs.explain import ExplainSection
from propopt.problems.jobs.interactions import (
    MinipatchesSection,
    SplitSection,
)
from propopt.problems.jobs.lime import LimeSection
from propopt.problems.losses import BASELINE_SECTIONS
from propopt.problems.subject.models import (
    VECTORIZERS,
    BoostingModel,
    ForestModel,
)


GRAPHS = {*loss_sections.POINT_GRAPHS, *loss_sections.FEATURE_GRAPHS}
SCHEMES = (MinipatchesSection, SplitSection)
JOINED = (*BASELINE_SECTIONS, *GRAPHS, *loss_sections.LOSSES, *SCHEMES, LimeSection)
COUNTED = [rule for rule in RULES if rule.makes is not None]
MADE = [*JOINED, *COUNTED, ForestModel, BoostingModel, *VECTORIZERS, ExplainSection]
NOT_OF_FILES = {
    "Lime": {"law"},
    "LimePackage": {"data"},
    "ExactLime": {"data"},
    "GradientMatching": {"G", "units"},
    "FunctionMatching": {
        *("X", "values", "quantity"),
        "perturbations",
    },
    "SharedRobustness": {"present"},
    "KernelRobustness": {"kernel_matrix"},
    "Minipatches": {"keep", "folder"},
    "DataSplit": {"groups"},
}
"""Tables, laws and objects, which a file cannot hold."""

FROM_ELSEWHERE = {"X", "n_nodes", "name", "count", "max_count"}
"""What the subject, the file or a list of numbers gives."""

OTHER_DEFAULTS = {"units", "graph"}
"""A list of units, of which gradients are comparable; the complete gaussian graph."""


def parameters(section):
    return inspect.signature(section.makes).parameters


def choices(annotation):
    """All words among which a setting is chosen, however it is wrapped."""
    if get_origin(annotation) is Literal:
        return set(get_args(annotation))
    return set().union(*map(choices, get_args(annotation)))


@pytest.mark.parametrize("section", MADE, ids=lambda s: s.__name__)
def test_settings_have_the_defaults_of_what_is_made(section):
    taken = parameters(section)
    for name in (taken.keys() & section.model_fields.keys()) - OTHER_DEFAULTS:
        field, default = section.model_fields[name], taken[name].default
        assert field.is_required() == (default is inspect.Parameter.empty), name
        same = list(default) if isinstance(default, tuple) else default
        assert field.is_required() or field.default == same, name


@pytest.mark.parametrize("section", JOINED, ids=lambda s: s.__name__)
def test_all_that_is_taken_is_a_key_with_the_same_words_or_is_of_no_file(section):
    made, fields, taken = section.makes, section.model_fields, parameters(section)
    hidden = NOT_OF_FILES.get(made.__name__, set()) | FROM_ELSEWHERE
    if section is LimeSection:
        hidden = {"data", "units"}
    assert taken.keys() - fields.keys() <= hidden
    assert not fields.keys() & (hidden - FROM_ELSEWHERE)
    is_plain = inspect.isclass(made) and not dataclasses.is_dataclass(made)
    hints = get_type_hints(made.__init__ if is_plain else made)
    # sizes, of which sqrt is one; a table, which a file names
    for name in (taken.keys() & fields.keys()) - {"rows", "offset"}:
        assert choices(fields[name].annotation) == choices(hints[name]), name


def test_every_baseline_and_loss_can_stand_in_a_file():
    fields = [x.model_fields.get("bandwidth") for x in BASELINE_SECTIONS]
    assert {x.default for x in fields if x} == {TextLaw().bandwidth}
    made = {section.makes.method for section in BASELINE_SECTIONS}
    assert made == set(explainers.BASELINES)
    of_files = {section.name for section in loss_sections.LOSSES}
    assert set(loss_sections.Losses.model_fields) == of_files
    for name in of_files:
        assert hasattr(losses, "".join(map(str.capitalize, name.split("_"))))


OF_ANOTHER = '''\
"""A loss, a graph, a baseline, a reader and a law of another package."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator

import propopt as po
from propopt.explaining.explainers.baseline import Baseline, Findings
from propopt.structures.products.families import Powers
from propopt.structures.products.sums import SumOfProducts


class Quietness(po.PairwiseRobustness):
    """Similar points get similar attributions, in a larger unit."""

    def __init__(self, graph: po.graphs.SimilarityGraph, unit: float = 1.0) -> None:
        S = graph.similarities * unit
        super().__init__(po.graphs.graph_from_matrix(S), name="quietness")


def ring_graph(n_nodes: int, step: int = 1) -> po.graphs.SimilarityGraph:
    """Points in a circle.

    Parameters
    ----------
    n_nodes : int
        How many.
    step : int
        How far a neighbour is.
    """
    S = np.roll(np.eye(n_nodes), step, axis=0)
    return po.graphs.graph_from_matrix(S + S.T)


@dataclass(frozen=True, kw_only=True)
class Constant(Baseline):
    """The same number everywhere."""

    method: ClassVar[str] = "constant"

    value: float = 2.0
    sign: Literal["plus", "minus"] = "plus"

    def _findings(self, request):
        sign = 1.0 if self.sign == "plus" else -1.0
        W = np.full(request.points.shape, sign * self.value)
        return Findings(attributions=W)


class Ramp(BaseEstimator):
    """2 + 3 x_0 x_1² − x_2, whatever it is fitted to."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        X = np.asarray(X)
        return 2 + 3 * X[:, 0] * X[:, 1] ** 2 - X[:, 2]


def read_ramp(model, output, view):
    """Powers of columns; factor 0 times factor 1, and factor 2 alone."""
    powers = Powers(np.arange(3), np.array([1, 2, 1]), np.zeros(3))
    paths = np.array([[0, 1], [2, -1]])
    return SumOfProducts(2.0, np.array([3.0, -1.0]), paths, (powers,), 3)


def coarse_law(X, schema=None, *, kernel_width=None):
    """Two bins of each column."""
    how = {"n_bins": 2, "kernel_width": kernel_width}
    return po.lime.TabularLaw.from_data(X, schema, **how)
'''
USED = """\
import sys
import propopt as po

problem = {
    "data": {"grid": {"low": -1, "high": 1, "per_dimension": 9, "dimensions": 1}},
    "function": {"name": "power", "degree": 3},
    "objective": {
        "gradient_matching": 1,
        "quietness": {"weight": 0.5, "unit": 10, "graph": {"kind": "chain"}},
        "pairwise_robustness": {"graph": {"kind": "ring", "step": 2}},
    },
    "sweep": {"pairwise_robustness": [0.1, 1]},
    "baselines": [{"method": "constant", "value": 3, "sign": "minus"}],
}
built = po.problems.read_sections(problem).build()
found = built.sweep(built.baselines())
assert found.certified(1e-6)
assert list(found.losses) == ["gradient_matching", "pairwise_robustness", "quietness"]
assert (found.baselines[0].attributions == -3.0).all()
assert built.losses["quietness"].graph.similarities.max() == 10
graph = built.losses["pairwise_robustness"].graph
assert graph.similarities.toarray()[0].nonzero()[0].tolist() == [2, 7]
problem["baselines"][0]["sign"] = "both"
try:
    po.problems.read_sections(problem)
except po.errors.ProblemFileError as error:
    print(error)
"""


@pytest.fixture
def another(tmp_path, monkeypatch):
    """Another package is installed, for whatever process is started."""
    (tmp_path / "of_another.py").write_text(OF_ANOTHER, encoding="utf-8")
    facts = tmp_path / "of_another-1.0.dist-info"
    facts.mkdir()
    given = "Metadata-Version: 2.1\nName: of_another\nVersion: 1.0\n"
    (facts / "METADATA").write_text(given)
    (facts / "entry_points.txt").write_text(
        "[propopt.losses]\nquietness = of_another:Quietness\n"
        "[propopt.graphs]\nring = of_another:ring_graph\n"
        "[propopt.baselines]\nconstant = of_another:Constant\n"
        "[propopt.readers]\n"
        "of_another.Ramp = of_another:read_ramp\n"
        "[propopt.laws]\ncoarse = of_another:coarse_law\n"
        "torn = of_another:torn_law\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


READ = """\
import warnings

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import propopt as po

warnings.simplefilter("error")
X = np.random.default_rng(0).normal(size=(60, 3))
from of_another import Ramp


def limits(model):
    law = po.lime.TabularLaw.from_data(X)
    return po.lime.limits(po.wrap(model), X[:2], law, rng=0, progress=False)


for model in (Ramp(), make_pipeline(StandardScaler(), Ramp())):
    model.fit(X)
    found, f = limits(model), po.wrap(model)
    assert found.is_exact
    np.testing.assert_allclose(f.products.value(X), model.predict(X), rtol=1e-12)
    look = po.explain(model, X, data=X, kind="slopes", law="data", progress=False)
    assert look.parameters["gradient"] == "exact (computed from the model)"
"""
LAW = """\
import numpy as np

import propopt as po
from propopt.cli import main

problem = {
    "data": {"grid": {"low": -1, "high": 1, "per_dimension": 4, "dimensions": 2}},
    "function": {"name": "power", "degree": 3},
    "lime": {"rows": 3, "law": "coarse", "kernel_width": 1.5},
}
file = po.problems.read_sections(problem)
subject, job = file.subject, file.schema.lime
assert job.build(subject).kernel_width == 1.5
found = job.solve(file, progress=False)
law = po.lime.TabularLaw.from_data(subject.others, n_bins=2, kernel_width=1.5)
same = po.lime.limits(subject.function, subject.points[:3], law, data=subject.others)
np.testing.assert_array_equal(found.coefficients, same.coefficients)
for wrong in ({"n_bins": 3}, {"law": "torn"}, {"law": "other"}):
    problem["lime"] = {"law": "coarse", **wrong}
    try:
        file = po.problems.read_sections(problem)
        file.job.solve(file, progress=False)
    except po.errors.PropoptError as error:
        print(error)
"""
TOLD = {
    USED: ["baselines.0.sign: expected 'plus' or 'minus', got 'both'"],
    READ: [],
    LAW: [
        "n_bins: leave it out, as law='coarse' has no such setting",
        "of_another 1.0 is broken: its 'torn' of the group propopt.laws (of_another:"
        "torn_law) raises AttributeError",
        "lime.law: expected 'tabular', 'gaussian', 'coarse' or 'torn', got 'other'",
    ],
}


@pytest.mark.usefixtures("another")
@pytest.mark.parametrize("program", TOLD, ids=["used", "read", "law"])
def test_what_other_packages_register_stands_in_files_and_is_believed(program):
    done = python("-c", program)
    assert done.stderr == ""
    for line, message in zip(done.stdout.splitlines(), TOLD[program], strict=True):
        assert message in line
