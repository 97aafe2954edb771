"""Metrics against captum and quantus, on the same draws."""

import warnings

import numpy as np
import pytest
from torch_networks import torch

import propopt as po
from propopt.explaining.metrics import Infidelity, MaxSensitivity, Sparseness
from propopt.explaining.metrics.metric import Noisy, metric_rng
from propopt.laws.perturbations import Perturbations


N_POINTS, N_FEATURES, N_SAMPLES = 7, 5, 12
SAME = {"rtol": 1e-6, "atol": 1e-12}


def imported(name):
    """The package, without what it says when it is imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name)


@pytest.fixture(scope="module")
def quantus():
    return imported("quantus")


@pytest.fixture(scope="module")
def captum():
    return imported("captum.metrics")


@pytest.fixture(scope="module")
def network():
    """Two layers in double precision, of inputs rounded to single as quantus does."""
    rng = np.random.default_rng(3)
    first = torch.tensor(rng.normal(size=(N_FEATURES, 9)))
    second = torch.tensor(rng.normal(size=(9, 1)))

    class Network(torch.nn.Module):
        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            return torch.tanh(inputs.float().double() @ first) @ second

    return Network().eval()


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(5).normal(size=(N_POINTS, N_FEATURES))


@pytest.fixture(scope="module")
def function(network):
    def values(points: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return network(torch.tensor(points))[:, 0].numpy()

    return po.wrap(values)


@pytest.fixture(scope="module")
def explain(network):
    """Gradients by autograd."""

    def gradients(points: np.ndarray) -> np.ndarray:
        at = torch.tensor(np.asarray(points), dtype=torch.float64, requires_grad=True)
        with torch.enable_grad():  # captum asks without
            (result,) = torch.autograd.grad(network(at).sum(), at)
        return result.numpy()

    return gradients


def draws(metric: Noisy) -> np.ndarray:
    """What the metric draws for seed 0, (N, S, D)."""
    settings = {"scale": metric.scale, "n_samples": metric.n_samples}
    law = Perturbations(distribution=metric.distribution, **settings)
    return law.draw((N_POINTS, N_SAMPLES, N_FEATURES), metric_rng(0))


class Replay:
    """A perturbation function of quantus that adds given noise, sample by sample."""

    def __init__(self, noise: np.ndarray) -> None:
        self.noise = iter(np.moveaxis(noise, 1, 0))

    def __call__(self, arr: np.ndarray, **_: object) -> np.ndarray:
        return arr + next(self.noise)


def asked_of_quantus(metric, network, X, attributions, explain=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = None if explain is None else lambda inputs, **_: explain(inputs)
        given = {"model": network, "x_batch": X, "y_batch": np.zeros(len(X), int)}
        given |= {"a_batch": attributions, "explain_func": own}
        result = metric(**given, channel_first=True)
    return np.array(result, float)


def zeros(points):
    """Attributions of which many are zero."""
    return np.maximum(np.sin(3 * np.asarray(points)), 0)


@pytest.mark.parametrize("sparse", [False, True])
def test_max_sensitivity_is_that_of_quantus(sparse, quantus, network, explain, X):
    metric, method = MaxSensitivity(n_samples=N_SAMPLES), zeros if sparse else explain
    settings = {"nr_samples": N_SAMPLES, "disable_warnings": True}
    peer = quantus.MaxSensitivity(perturb_func=Replay(draws(metric)), **settings)
    expected = asked_of_quantus(peer, network, X, method(X), method)
    assert (method(X) == 0).any() == sparse
    np.testing.assert_allclose(metric(method, X), expected, **SAME)


def test_sparseness_is_that_of_quantus(quantus, network, X):
    peer = quantus.Sparseness(disable_warnings=True, normalise=False)
    expected = asked_of_quantus(peer, network, X, X**3)
    np.testing.assert_allclose(Sparseness()(X**3), expected, **SAME)


def test_max_sensitivity_is_that_of_captum(captum, explain, X):
    metric = MaxSensitivity(scale=0.3, n_samples=N_SAMPLES)
    noise = torch.tensor(draws(metric).reshape(-1, N_FEATURES))
    expected = captum.sensitivity_max(
        lambda inputs: (torch.tensor(explain(inputs[0].detach().numpy())),),
        torch.tensor(X),
        perturb_func=lambda inputs, _=None: (inputs + noise,),
        n_perturb_samples=N_SAMPLES,
    )
    np.testing.assert_allclose(metric(explain, X), expected.numpy(), **SAME)


@pytest.mark.parametrize("rescaling", ["none", "best"])
def test_infidelity_is_that_of_captum(rescaling, captum, network, function, explain, X):
    metric = Infidelity(scale=0.3, n_samples=N_SAMPLES, rescaling=rescaling)
    noise = torch.tensor(draws(metric).reshape(-1, N_FEATURES))
    expected = captum.infidelity(
        network,
        lambda inputs: (noise, inputs - noise),
        torch.tensor(X),
        torch.tensor(1.7 * explain(X)),
        n_perturb_samples=N_SAMPLES,
        normalize=rescaling == "best",
    )
    result = metric(1.7 * explain(X), function, X)
    np.testing.assert_allclose(result, expected.numpy(), **SAME)
