"""Stated errors of sampled explanations against those from all coalitions."""

import math

import numpy as np
import pytest
from coalitions import shapley_by_definition

import propopt as po


FEW = po.graphs.Nearest(n_reference=20)


def curved(X):
    """A function of seven columns, with interactions; nothing of it can be read."""
    X = np.asarray(X)
    pairs = np.tanh(X[:, 0] * X[:, 1]) + np.sin(2.0 * X[:, 6]) * X[:, 0]
    return pairs + X[:, 2] * X[:, 3] * (X[:, 4] > 0) + 0.5 * X[:, 5]


def short(X):
    """A function of four columns: all sets are evaluated against the drawn rows."""
    return curved(np.column_stack([X, X[:, :3]]))


CASES = {
    "orders and a drawn background": (curved, 7, 600, 40),
    "orders": (curved, 7, 90, 80),
    "a drawn background": (short, 4, 600, 40),
}


@pytest.mark.parametrize("name", CASES)
def test_the_stated_root_mean_square_is_that_of_the_errors(name):
    """E true² = E stated², within 4 standard errors: false alarm 6e-5, and fixed."""
    f, width, n_rows, n_seeds = CASES[name]
    errors, stated = [], []
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        data, new = rng.normal(1.0, 1.0, (n_rows, width)), rng.normal(size=(4, width))
        best = po.explain(f, new, data=data, graph=FEW, sampling=po.Sampling(rng=seed))
        exact = shapley_by_definition(f, new, data)
        size = (exact**2).mean()
        errors.append(((best.contributions - exact) ** 2).mean() / size)
        stated.append(best.target.rms**2 / size)
        assert best.target.share == pytest.approx(math.sqrt(best.sampling_excess))
        assert best.base_value[0] == pytest.approx(f(data).mean(), abs=1e-9)
        assert "base error" not in best.parameters
    apart = np.array(errors) - stated
    z = apart.mean() / (apart.std(ddof=1) / math.sqrt(n_seeds))
    assert z < 4.0
    assert z > -4.0
    for factor in (0.5, 2.0):  # half or twice the error would be seen
        other = np.array(errors) - factor**2 * np.array(stated)
        z = other.mean() / (other.std(ddof=1) / math.sqrt(n_seeds))
        assert abs(z) > 4.0


def test_sampled_values_are_not_compared_with_themselves():
    X = np.random.default_rng(0).normal(1.0, 1.0, (300, 7))
    settings = {"data": X, "graph": FEW}
    drawn = po.explain(curved, X[:30], **settings).document().facts
    assert drawn["differs from SHAP"].shown_basis == "estimated"
    assert not {"top feature as SHAP", "signs against SHAP"} & drawn.keys()
    whole = po.explain(lambda X: X[:, 0] * X[:, 1], X[:30, :2], data=X[:90, :2])
    assert whole.document().facts["top feature as SHAP"].value > 0.9
    same = po.explain(
        lambda X: X[:, 0] * X[:, 1], X[:30, :2], data=X[:90, :2], robustness=0.0
    )
    assert "differs from SHAP" not in same.document().facts


@pytest.mark.parametrize("n_documents", [1, 2])
def test_new_documents_have_the_error_of_sampled_words(n_documents):
    letters = "a b c d e f g h i j k l m n o p q r s t u v w x y z"
    texts = [letters[start : start + 44] for start in range(0, 16, 2)]

    def f(documents):
        words = [set(text.split()) for text in documents]
        return np.array([float(len(x & set("efgh"))) * ("k" in x) for x in words])

    new = [letters[:44], "k e"][:n_documents]
    best = po.explain(f, new, data=texts, kind="contributions")
    assert 0.0 < best.target.share < 0.5
    assert best.target.n_blocks == 10
    # e, f, g, h and k of the first text: ±4/5 each and 4/5 times 1/2 ...
    exact = dict.fromkeys("efgh", 0.5) | {"k": 2.0}
    found = best.to_frame().iloc[0]
    gaps = [found[word] - value for word, value in exact.items()]
    assert np.abs(gaps).max() < 1.0
