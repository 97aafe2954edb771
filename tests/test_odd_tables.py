"""Odd tables, in each public function that takes one: it works, or says why not."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest
from odd_tables import TABLE, odd_tables
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from propopt.base.errors import PropoptError


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
    scheme = po.interactions.Minipatches(n_patches=300)
    found = po.interactions.ILOCO(LinearRegression(), scheme=scheme, random_state=0)
    return found.fit(X, target)


CALLS = {
    "explain": lambda X: po.explain(linear, X, **quiet),
    "explain alone": lambda X: po.explain(linear, X, data=TABLE, **quiet),
    "explain data": lambda X: po.explain(linear, TABLE, data=X, **quiet),
    "explain slopes": lambda X: po.explain(tree, X, kind="slopes", **quiet),
    "explain contributions": lambda X: po.explain(
        linear, TABLE, data=TABLE, contributions=X, **quiet
    ),
    "explain beside": lambda X: po.explain(
        linear, TABLE, data=TABLE, offset=X, **quiet
    ),
    "Explainer": lambda X: po.Explainer(tree, X).fit(progress=False),
    "Explainer.explain": lambda X: fitted.explain(X),
    "audit": lambda X: po.audit(X, linear, TABLE),
    "audit X": lambda X: po.audit(TABLE, linear, X),
    "audit data": lambda X: po.audit(TABLE, linear, TABLE, data=X),
    "compare": lambda X: po.compare(linear, tree, X, data=TABLE),
    "compare data": lambda X: po.compare(linear, tree, TABLE, data=X),
    "wrap": lambda X: po.wrap(tree, data=X),
    "value": lambda X: function.value(X),
    "gradient": lambda X: function.gradient(X),
    "estimate": lambda X: function.estimate(X),
    "schema": po.functions.TableSchema.of,
    "GradientMatching": po.GradientMatching,
    "FunctionMatching": lambda X: po.losses.FunctionMatching(X, y),
    "targets": lambda X: po.losses.FunctionMatching(TABLE, X),
    "loss value": gradient.value,
    "robust value": robust.value,
    "certify": lambda X: po.proofs.certify(gradient, X),
    "measured": lambda X: po.results.Explanation(attributions=X, method="mine"),
    "knn_graph": lambda X: po.graphs.knn_graph(X, 2),
    "gaussian_graph": po.graphs.gaussian_graph,
    "threshold_graph": lambda X: po.graphs.threshold_graph(X, 1.0),
    "correlation_graph": po.graphs.correlation_graph,
    "graph_from_matrix": po.graphs.graph_from_matrix,
    "sweep baselines": lambda X: po.sweep(
        gradient + robust, {"pairwise_robustness": [1.0]}, {"mine": X}, **quiet
    ),
    "ExactShap": lambda X: po.explainers.ExactShap(data=X).explain(
        po.wrap(tree, data=TABLE), TABLE
    ),
    "Gradient": lambda X: po.explainers.Gradient().explain(function, X),
    "Shap": lambda X: po.explainers.Shap(data=TABLE).explain(function, X),
    "Lime": lambda X: po.explainers.Lime(scale=0.5, n_samples=20).explain(function, X),
    "main_effects": lambda X: po.explainers.main_effects(function, X, data=TABLE),
    "lime.limits": lambda X: po.lime.limits(linear, X, data=TABLE, **quiet),
    "lime.limits data": lambda X: po.lime.limits(linear, TABLE[:1], data=X, **quiet),
    "lime.text_limits": lambda X: po.lime.text_limits(linear, X, **quiet),
    "ILOCO": lambda X: iloco(X, y),
    "ILOCO target": lambda X: iloco(TABLE, X),
    "inductive": lambda X: po.inductive.GaussianProcessExplainer().fit(
        X, gradients=np.ones((len(TABLE), TABLE.shape[1]))
    ),
    "inductive gradients": lambda X: po.inductive.GaussianProcessExplainer().fit(
        TABLE, gradients=X
    ),
    "inductive explain": lambda X: inductive.explain(X),
    "inductive predict": lambda X: inductive.predict(X),
    "plot_row": lambda X: po.plots.plot_row(best, 0, X=X),
    "plot_heatmap": po.plots.plot_heatmap,
    "shares": lambda X: best.shares(po.GradientMatching(X) + robust),
}
"""By name what is done with a table."""


def raw_errors(call):
    """By name of a table what a call raises that is not ours."""
    found = {}
    for name, make in odd_tables().items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                CALLS[call](make())
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
        assert CALLS[call](TABLE) is not None
    plt.close("all")
