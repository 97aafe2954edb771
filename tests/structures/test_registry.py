"""What is read exactly: a class is one registration, a subclass is another class."""

from __future__ import annotations

import numpy as np
import pytest
from differentiated import central_differences
from sklearn.cross_decomposition import PLSRegression
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

import propopt as po
from propopt.structures import registry
from propopt.structures.networks import Affine, Network
from propopt.structures.readers.fitted_networks import Reader, floats


RNG = np.random.default_rng(5)
X = RNG.normal([1.0, -2.0, 0.5], size=(40, 3))
Y = X @ [1.0, 0.5, -2.0] + 0.1 * RNG.normal(size=40)


def latent_scores(model) -> Network:
    """Partial least squares predict A (x − mean) + b."""
    A = floats(model.coef_)
    mean = model._x_mean  # noqa: SLF001  # it is kept nowhere else
    return Affine(A, floats(model.intercept_) - A @ mean)


class UnitLength(Network):
    """Points on the sphere, z = x / ‖x‖."""

    n_scores, width = X.shape[1], 3 * X.shape[1]

    def scores(self, points):
        return self.linearized(points)[0]

    def linearized(self, points):
        lengths = np.linalg.norm(points, axis=1, keepdims=True)
        z = points / lengths

        def pullback(cotangents):  # (C − z zᵀC) / ‖x‖
            along = (z * cotangents).sum(axis=1, keepdims=True)
            return (cotangents - along * z) / lengths

        return z, pullback


def is_exact(model):
    function = po.wrap(model)
    assert function.gradient_method == "exact"
    np.testing.assert_allclose(function.value(X), model.predict(X).ravel(), rtol=1e-12)
    differences = central_differences(function.value, X)
    np.testing.assert_allclose(function.gradient(X), differences, rtol=1e-7, atol=1e-9)


def test_a_model_is_read_exactly_once_its_reader_is_registered(monkeypatch):
    model = PLSRegression(n_components=2).fit(X, Y)
    assert "differences" in po.wrap(model).gradient_method
    monkeypatch.setitem(registry.MODELS, PLSRegression, Reader(latent_scores))
    is_exact(model)
    is_exact(make_pipeline(StandardScaler(), PLSRegression(n_components=2)).fit(X, Y))


def test_a_transform_is_read_exactly_once_its_reader_is_registered(monkeypatch):
    model = make_pipeline(StandardScaler(), Normalizer(), Ridge()).fit(X, Y)
    assert "differences" in po.wrap(model).gradient_method
    monkeypatch.setitem(registry.TRANSFORMS, Normalizer, lambda _: UnitLength())
    is_exact(model)


@pytest.mark.parametrize("kind", registry.MODELS, ids=lambda kind: kind.__name__)
def test_subclasses_of_what_is_registered_are_not_read(kind):
    subclass = type(f"Sub{kind.__name__}", (kind,), {})
    assert registry.exact_network(subclass()) is None
    assert registry.exact_link(subclass(), "value", 0, 1) is None


def test_no_link_is_known_for_probabilities_that_are_no_softmax():
    model = LogisticRegression(solver="liblinear").fit(X, Y > 0)
    model.solver = "liblinear"
    assert registry.exact_link(model, "probability", 1, 3) is None
    assert registry.exact_link(model, "margin", 1, 3) is not None
