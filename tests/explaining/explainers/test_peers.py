"""Explanations for captum and Quantus, and torch modules."""

import warnings

import numpy as np
import pytest
from torch_networks import seeded, three_scores, torch

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.explaining.explainers import (
    Gradient,
    SmoothGrad,
    captum_attribution,
    quantus_explain_func,
)
from propopt.functions import Power


POINTS = np.random.default_rng(0).normal(size=(6, 4))


def cubes(points):
    return Gradient().explain(Power(3), points)


def grouped(points):
    return cubes(points).grouped({"pair": ["x0", "x1"]})


BY_CLASS = {0: lambda points: Gradient().explain(Power(2), points), 1: cubes}


@pytest.mark.parametrize("shape", [(6, 4), (6, 1, 4), (6, 1, 2, 2)])
def test_quantus_gets_attributions_of_the_shape_of_its_inputs(shape):
    inputs = POINTS.reshape(shape)
    W = quantus_explain_func(cubes)(model=None, inputs=inputs, targets=np.ones(6))
    np.testing.assert_allclose(W, 3 * inputs**2)


def test_each_row_is_explained_for_its_target():
    targets = np.array([0, 1, 1, 0, 0, 1])
    W = quantus_explain_func(BY_CLASS)(None, POINTS, targets)
    expected = np.where(targets[:, None] == 1, 3 * POINTS**2, 2 * POINTS)
    np.testing.assert_allclose(W, expected)
    with pytest.raises(InvalidInput, match=r"target: expected one of \[0, 1\], got 2"):
        quantus_explain_func(BY_CLASS)(None, POINTS, np.full(6, 2))
    with pytest.raises(InvalidInput, match=r"expected attributions of shape \(6, 4\)"):
        quantus_explain_func(grouped)(None, POINTS, np.ones(6))


@pytest.mark.usefixtures("captum")
def test_captum_gets_tensors_as_it_gave_them_and_chooses_by_its_target():
    method = captum_attribution(None, cubes)
    inputs = torch.tensor(POINTS, dtype=torch.float32, requires_grad=True)
    W = method.attribute(inputs)
    assert (W.dtype, W.shape, W.requires_grad) == (torch.float32, inputs.shape, False)
    np.testing.assert_allclose(W.numpy(), 3 * POINTS**2, rtol=1e-5)
    (again,) = method.attribute((inputs,))
    assert torch.equal(W, again)
    assert not method.has_convergence_delta()
    method, inputs = captum_attribution(None, BY_CLASS), torch.tensor(POINTS)
    np.testing.assert_allclose(method.attribute(inputs, target=0), 2 * POINTS)
    each = torch.tensor([1, 0, 0, 0, 0, 0])
    W = method.attribute(inputs, target=each).numpy()
    np.testing.assert_allclose(W[0], 3 * POINTS[0] ** 2)
    np.testing.assert_allclose(W[1:], 2 * POINTS[1:])


@pytest.mark.usefixtures("captum")
@pytest.mark.parametrize(
    ("explain", "inputs", "target", "sentence"),
    [
        (cubes, 1, 1, "made for one output"),
        (BY_CLASS, 1, None, r"expected one of \[0, 1\], got none"),
        (cubes, 2, None, "expected one tensor, got 2"),
    ],
)
def test_what_captum_cannot_have_is_refused(explain, inputs, target, sentence):
    tensors = (torch.tensor(POINTS),) * inputs
    with pytest.raises(InvalidInput, match=sentence):
        captum_attribution(None, explain).attribute(tensors, target)


@pytest.fixture
def captum():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("captum.attr")


@pytest.fixture
def X(rng):
    return rng.normal(size=(9, 3))


@pytest.mark.filterwarnings("ignore")  # of captum, about itself
def test_slopes_are_those_of_captum_smoothed_or_not(captum, X):
    network = three_scores()
    saliency = captum.Saliency(network)
    settings = {"target": 2, "abs": False}
    plain = saliency.attribute(torch.tensor(X, requires_grad=True), **settings)
    function = po.wrap(network, 2)
    gradient = Gradient().explain(function, X).attributions
    np.testing.assert_allclose(gradient, plain.numpy(), atol=1e-14)
    # 27 means, each of 2,000 draws: |z| >= 5.5 in one of a million runs
    with seeded():
        noise = {"nt_type": "smoothgrad", "nt_samples": 2000, "stdevs": 0.5}
        inputs = torch.tensor(X, requires_grad=True)
        tunnel = captum.NoiseTunnel(saliency).attribute(inputs, **noise, **settings)
    ours = SmoothGrad(scale=0.5, n_samples=2000).explain(function, X, rng=0)
    error = np.sqrt(2) * ours.standard_errors
    z = (ours.attributions - tunnel.detach().numpy()) / error
    assert np.abs(z).max() < 5.5
    # what would be wrong is far away
    assert np.abs((gradient - ours.attributions) / error).max() > 12
