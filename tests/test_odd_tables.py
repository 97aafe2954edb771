"""Odd tables, in each public function that takes one: it works, or says why not."""

import importlib.util
import io  # noqa: F401  # of odd_tables.txt
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp  # noqa: F401  # of odd_tables.txt
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from propopt.base.errors import PropoptError


N, D = 6, 3
TABLE = np.random.default_rng(0).normal(size=(N, D))
NAMES = ["age", "bmi", "use"]
FRAME = pd.DataFrame(TABLE, columns=NAMES)
LINES = Path(__file__).with_name("odd_tables.txt").read_text(encoding="utf-8")


def with_cells(*cells):
    return FRAME.assign(bmi=pd.Series([*cells] * N, dtype=object)[:N])


def lines_of(section):
    """By name the lines of a section."""
    part = LINES.partition(f"\n==== {section}\n")[2].partition("\n\n")[0]
    return dict(line.split(": ", 1) for line in part.splitlines())


LIBRARIES = {
    name: importlib.import_module(name)
    for name in ("polars", "torch")
    if importlib.util.find_spec(name)
}
MADE = lines_of("tables")
for library in LIBRARIES:
    MADE |= lines_of(library)
CALLS = lines_of("calls")


y = TABLE[:, 0] * TABLE[:, 1]
linear = LinearRegression().fit(TABLE, y)
tree = DecisionTreeRegressor(max_depth=2).fit(TABLE, y)
function = po.wrap(linear)
gradient = po.GradientMatching(TABLE)
robust = po.PairwiseRobustness(po.graphs.knn_graph(TABLE, 2))
best = po.solve(gradient + robust)
fitted = po.Explainer(linear, TABLE).fit()
quiet = {"progress": False}
inductive = po.inductive.GaussianProcessExplainer().fit(TABLE, gradients=TABLE)


def iloco(X, target):
    scheme = po.interactions.Minipatches(n_patches=150)
    found = po.interactions.ILOCO(LinearRegression(), scheme=scheme, random_state=0)
    return found.fit(X, target)


def called(call, X):
    """What is done with a table."""
    return eval(CALLS[call], globals() | {"X": X})


def raw_errors(call):
    """By name of a table what a call raises that is not ours."""
    found = {}
    for name, line in MADE.items():  # generators are made anew for each call
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                called(call, eval(line, globals() | LIBRARIES))
            except PropoptError as error:
                if len(str(error)) > 1_500 or not str(error):
                    found[name] = "too long, or empty"
            except Exception as error:  # noqa: BLE001  # that is what is looked for
                found[name] = f"{type(error).__name__}: {error}"
    plt.close("all")
    if call.startswith("inductive"):  # TypeErrors that scikit-learn's checks ask for
        found = {
            k: x for k, x in found.items() if k not in ("objects", "matrix", "class")
        }
    return found


@pytest.mark.parametrize("call", sorted(CALLS))
def test_an_odd_table_is_taken_or_refused_in_a_sentence(call):
    assert raw_errors(call) == {}


TAKE_OTHERS = {"graph_from_matrix", "lime.text_limits", "ILOCO target"}
TAKE_OTHERS |= {"plot_heatmap", "targets", "schema"}


@pytest.mark.parametrize("call", sorted(CALLS.keys() - TAKE_OTHERS))
def test_a_plain_table_is_taken(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert called(call, TABLE) is not None
    plt.close("all")
