"""One row has one answer: from every door, thread and process, to the last bit."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.linear_model import Ridge
from sklearn.neural_network import MLPRegressor

import propopt as po
from tests.support.explainer_cases import X, black_box


Y = black_box(X.to_numpy())
MODELS = {
    "a forest": RandomForestRegressor(10, max_depth=4, random_state=0),
    "a network": MLPRegressor(hidden_layer_sizes=(8,), max_iter=2000, random_state=0),
    "a linear model": Ridge(),
    "boosting": HistGradientBoostingRegressor(max_iter=20, random_state=0),
}


def answer(model, row, settings):
    """What a process of its own says of a row."""
    best = po.explain(model, X.iloc[[row]], X, progress=False, **settings)
    return best.attributions[0].tobytes()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["contributions", "slopes"])
@pytest.mark.parametrize("name", MODELS)
def test_a_row_has_one_answer_whoever_asks(name, kind):
    model, settings = MODELS[name].fit(X, Y), {"kind": kind}
    rows = X.iloc[:16]
    explainer = po.Explainer(model, X, **settings).fit(progress=False)
    expected = [w.tobytes() for w in explainer.explain(rows).attributions]
    assert len(set(expected)) > 8 or name == "a linear model"
    turned = po.explain(model, rows.iloc[::-1], X, progress=False, **settings)
    assert [w.tobytes() for w in turned.attributions[::-1]] == expected

    def asked(n):
        return explainer.explain(rows.iloc[[n]]).attributions[0].tobytes()

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(asked, [*range(16)] * 4)) == expected * 4


@pytest.mark.filterwarnings("ignore")
def test_two_processes_have_the_same_answer():
    model, rows = MODELS["a forest"].fit(X, Y), (0, 5, 9)
    best = po.Explainer(model, X).fit(progress=False).explain(X)
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        tasks = [processes.submit(answer, model, n, {}) for n in rows]
        expected = [best.attributions[n].tobytes() for n in rows]
        assert [task.result() for task in tasks] == expected


def test_a_generator_is_asked_for_one_seed():
    settings = {"progress": False, "kind": "contributions"}
    rngs = [np.random.default_rng(3) for _ in range(2)]
    sampling = [po.Sampling(rng=rng) for rng in rngs]
    one = po.explain(black_box, X.iloc[:3], X, sampling=sampling[0], **settings)
    other = po.Explainer(black_box, X, sampling=sampling[1]).fit(progress=False)
    expected = other.explain(X.iloc[:3], progress=False).attributions
    np.testing.assert_array_equal(one.attributions, expected)
    assert rngs[0].random() == rngs[1].random()


@pytest.mark.filterwarnings("ignore")
def test_a_model_that_is_not_its_trees_has_one_background():
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(250, 3)))
    model = GradientBoostingRegressor(n_estimators=5, random_state=0)
    trees = model.fit(rows, rows[0] * rows[1]).predict
    model.predict = lambda X: trees(X) + np.asarray(X)[:, 0] ** 2
    explainer = po.Explainer(model, rows).fit()
    reference = explainer.reference_
    assert reference.parameters["background"].startswith("100 draws of 250")
    again = explainer.explain(pd.DataFrame(explainer.fitted_.problem.points[:5]))
    np.testing.assert_allclose(
        again.attributions, reference.attributions[:5], rtol=0, atol=1e-12
    )
