"""Arrays of an explanation are read-only, and copied where someone could write."""

from __future__ import annotations

import copy
import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.tables.frames import Labels


X = np.random.default_rng(3).normal(size=(9, 2))
GRAPH = po.chain_graph(9)
OBJECTIVE = po.GradientMatching(3 * X**2) + po.PairwiseRobustness(GRAPH)
WITH_EDGES = po.GradientMatching(X) + po.MaxDifferenceRobustness(GRAPH)
WEIGHTS = {"pairwise_robustness": [0.1, 1.0, 10.0]}
FUNCTION = po.functions.Power(3)


def every_array(result):
    _ = result.attributions, result.standard_errors  # some are computed when read
    fields = {k: x for k, x in vars(result).items() if isinstance(x, np.ndarray)}
    return fields | result.details


def induced():
    explainer = po.inductive.GaussianProcessExplainer(lengthscale=1.0).fit(X, X)
    return explainer.explain(X + 0.1, return_std=True)


def saved_and_loaded(tmp_path):
    po.solve(WITH_EDGES).save(tmp_path / "best")
    return po.Explanation.load(tmp_path / "best")


MAKERS = {
    "solve": lambda _: po.solve(WITH_EDGES),
    **{
        solver: lambda _, solver=solver: po.solve(OBJECTIVE, solver)
        for solver in ("spectral", "krylov", "normal_equations", "conic")
    },
    "lasso": lambda _: po.solve(OBJECTIVE + 0.1 * po.Sparsity(), "lasso"),
    "bounded": lambda _: po.solve(
        1.0 * OBJECTIVE.losses[0], subject_to=[OBJECTIVE.losses[1] <= 1.0]
    ),
    "zero": lambda _: po.solve(1.0 * po.GradientMatching(0.0 * X)),
    "curve": lambda _: po.sweep(OBJECTIVE, WEIGHTS).optimized[1],
    "path": lambda _: po.sweep(
        WITH_EDGES, {"max_difference_robustness": [0.1, 1.0]}
    ).optimized[1],
    "workers": lambda _: po.sweep(
        WITH_EDGES, {"max_difference_robustness": [0.1, 1.0]}, n_jobs=2
    ).optimized[0],
    "smoothgrad": lambda _: po.explainers.SmoothGrad(scale=0.1).explain(FUNCTION, X),
    "lime": lambda _: po.explainers.Lime(scale=0.1).explain(FUNCTION, X),
    "aggregate": lambda _: po.explainers.aggregate(OBJECTIVE, [X, 2 * X]),
    "induced": lambda _: induced(),
    "explain": lambda _: po.explain(FUNCTION, X),
    "loaded": saved_and_loaded,
    "scaled": lambda _: po.Explanation(
        attributions=X, method="mine", standard_errors=np.abs(X)
    ).scaled([1.0, 2.0]),
    "grouped": lambda _: po.solve(OBJECTIVE).grouped({"both": ["x0", "x1"]}),
    "given": lambda _: po.Explanation(
        attributions=X.tolist(), method="mine", details={"r2": np.ones(9)}
    ),
    "unpickled": lambda _: pickle.loads(pickle.dumps(po.solve(WITH_EDGES))),
    "copied": lambda _: copy.deepcopy(po.solve(WITH_EDGES)),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_no_array_of_an_explanation_can_be_written_to(make, tmp_path):
    result = make(tmp_path)
    for name, array in every_array(result).items():
        assert isinstance(array, np.ndarray), name
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7.0


def test_what_was_given_is_copied_and_stays_writable():
    W, errors = X.copy(), np.ones(9)
    result = po.Explanation(attributions=W, method="mine", details={"errors": errors})
    W[:], errors[:] = 0.0, 0.0
    np.testing.assert_array_equal(result.attributions, X)
    np.testing.assert_array_equal(result.details["errors"], np.ones(9))


def test_a_read_only_array_is_not_copied():
    W = X.copy()
    W.setflags(write=False)
    result = po.Explanation(attributions=W, method="mine")
    assert result.attributions is W
    assert po.Explanation(**vars(result)).attributions is W


def test_a_solution_is_not_copied():
    G = np.ones((200_000, 10))
    best = po.solve(1.0 * po.GradientMatching(G))
    other = po.GradientMatching(G, name="other")
    tracemalloc.start()
    try:
        again = best.measured(other)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert again.attributions is best.attributions
    assert peak < 1.5 * G.nbytes  # W − G, and no copy of W


def test_the_frame_is_the_readers_own():
    best = po.solve(OBJECTIVE)
    frame = best.to_frame()
    frame.iloc[0, 0] = 7.0
    assert frame.iloc[0, 0] == 7.0
    assert best.attributions[0, 0] != 7.0


@pytest.mark.parametrize(
    ("attributions", "complaint"),
    [
        (np.ones(3), "expected 2 dimensions"),
        ([[1.0, np.nan]], "not finite"),
        ([["a", "b"]], "expected numbers"),
        (np.ones((0, 2)), "empty"),
    ],
)
def test_attributions_that_are_none_are_refused(attributions, complaint):
    with pytest.raises(InvalidInput, match=f"^attributions: .*{complaint}"):
        po.Explanation(attributions=attributions, method="mine")


def test_whole_numbers_become_floats():
    result = po.Explanation(attributions=np.arange(4).reshape(2, 2), method="mine")
    assert result.attributions.dtype == np.float64


@pytest.mark.parametrize("labels", [Labels(points=("a",)), Labels(features=("a",))])
def test_names_are_one_for_each_row_and_column(labels):
    with pytest.raises(InvalidInput, match=r"labels: expected \d names of .*, got 1"):
        po.Explanation(attributions=X, method="mine", labels=labels)


def test_a_frame_is_read_as_numbers():
    result = po.Explanation(attributions=pd.DataFrame(X), method="mine")
    np.testing.assert_array_equal(result.attributions, X)
