"""Explainers, sweeps and captum agree on torch modules, and names are kept."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from torch_networks import nn, seeded, three_scores, torch, trained_otherwise

import propopt as po
from propopt.explaining.explainers import Gradient, Lime, LimePackage, Shap, SmoothGrad


@pytest.fixture
def X(rng):
    return rng.normal(size=(9, 3))


@pytest.fixture
def network():
    return three_scores()


@pytest.fixture
def moody():
    return trained_otherwise()


@pytest.fixture
def table(X):
    names = ["age", "income", "debt"]
    return pd.DataFrame(X, columns=names, index=[f"customer {n}" for n in range(9)])


@pytest.mark.parametrize(
    "explainer",
    [
        Gradient(),
        SmoothGrad(scale=0.1, n_samples=4),
        Lime(scale=0.1, n_samples=8),
        Shap(),
    ],
    ids=lambda explainer: explainer.method,
)
def test_explainers_keep_the_names_of_a_table(moody, table, explainer):
    frame = explainer.explain(po.wrap(moody), table, rng=0).to_frame()
    assert list(frame.columns) == list(table.columns)
    assert list(frame.index) == list(table.index)


def test_lime_package_keeps_the_names_of_a_table(moody, table):
    pytest.importorskip("lime")
    explainer = LimePackage(background=table, n_samples=20)
    frame = explainer.explain(po.wrap(moody), table.iloc[:2], rng=0).to_frame()
    assert list(frame.columns) == list(table.columns)
    assert list(frame.index) == list(table.index[:2])


def test_explainers_find_the_slope_of_a_linear_module(table):
    module = nn.Linear(3, 1).double()
    slope = np.broadcast_to(module.weight.detach().numpy(), table.shape)
    function = po.wrap(module)
    for explainer in (Gradient(), SmoothGrad(scale=1.0), Lime(scale=1.0)):
        result = explainer.explain(function, table, rng=0)
        np.testing.assert_allclose(result.attributions, slope, atol=1e-10)
    shap = Shap().explain(function, table, rng=0).attributions
    centred = (table - table.mean()).to_numpy()
    np.testing.assert_allclose(shap, slope * centred, atol=1e-10)


def test_sweep_keeps_the_names_of_a_table(moody, table):
    objective = po.GradientMatching(
        po.wrap(moody).gradient(table)
    ) + po.PairwiseRobustness(po.knn_graph(table, n_neighbors=3))
    curve = po.sweep(objective, {"pairwise_robustness": [0.1, 1.0]})
    assert curve.certified(1e-6)
    frame = curve.optimized[0].to_frame()
    assert list(frame.columns) == list(table.columns)
    assert list(frame.index) == list(table.index)


@pytest.mark.filterwarnings("ignore")  # of captum, about itself
def test_gradients_are_the_saliency_of_captum(network, X):
    attr = pytest.importorskip("captum.attr")
    saliency = attr.Saliency(network).attribute(
        torch.tensor(X, requires_grad=True), target=2, abs=False
    )
    ours = Gradient().explain(po.wrap(network, 2), X)
    np.testing.assert_allclose(ours.attributions, saliency.numpy(), atol=1e-14)


@pytest.mark.filterwarnings("ignore")  # of captum, about itself
def test_smoothgrad_is_the_noise_tunnel_of_captum(network, X):
    # 27 means, each of 2,000 draws: |z| >= 5.5 in one of a million runs
    attr = pytest.importorskip("captum.attr")
    with seeded():
        tunnel = attr.NoiseTunnel(attr.Saliency(network)).attribute(
            torch.tensor(X, requires_grad=True),
            nt_type="smoothgrad",
            nt_samples=2000,
            stdevs=0.5,
            target=2,
            abs=False,
        )
    ours = SmoothGrad(scale=0.5, n_samples=2000).explain(po.wrap(network, 2), X, rng=0)
    error = np.sqrt(2) * ours.standard_errors
    z = (ours.attributions - tunnel.detach().numpy()) / error
    assert np.abs(z).max() < 5.5
    plain = po.wrap(network, 2).gradient(X)  # what would be wrong is far away
    assert np.abs((plain - ours.attributions) / error).max() > 12
