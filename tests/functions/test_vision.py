"""Torch modules of images, optimized maps of them, and classifiers of torchvision."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest
from torch_networks import nn, seeded, three_scores, torch, trained_otherwise

import propopt as po
from propopt.base.errors import InvalidInput, MissingExtra
from propopt.functions import images


@pytest.fixture
def shape():
    return po.ImageShape(channels=2, height=6, width=5)


@pytest.fixture
def cnn():
    with seeded():
        layers = nn.Conv2d(2, 4, 3, padding=1), nn.Tanh(), nn.Flatten()
        return nn.Sequential(*layers, nn.Linear(4 * 30, 3)).double()


def test_rows_reach_the_module_as_images(cnn, shape, rng):
    images = rng.normal(size=(4, 2, 6, 5))
    with torch.no_grad():
        expected = cnn(torch.tensor(images))[:, 1].numpy()
    for input_shape in (shape, (2, 6, 5)):
        function = po.wrap(cnn, 1, input_shape=input_shape)
        rows = shape.rows(images)
        np.testing.assert_allclose(function.value(rows), expected, atol=1e-14)
        assert function.gradient(rows).shape == (4, 60)


def test_gradients_of_images_are_those_of_autograd(cnn, shape, rng):
    images = torch.tensor(rng.normal(size=(4, 2, 6, 5)), requires_grad=True)
    cnn(images)[:, 1].sum().backward()
    function = po.wrap(cnn, 1, input_shape=shape)
    ours = function.gradient(shape.rows(images.detach().numpy()))
    np.testing.assert_allclose(shape.images(ours), images.grad.numpy(), atol=1e-14)


def test_optimized_maps_are_certified(cnn, shape, rng):
    rows = rng.normal(size=(4, 60))
    gradients = po.wrap(cnn, 1, input_shape=shape).gradient(rows)
    objective = (
        po.GradientMatching(gradients)
        + 0.3 * po.PairwiseRobustness(po.gaussian_graph(rows))
        + 0.2 * po.Smoothness(shape.pixel_graph())
    )
    best = po.solve(objective)
    assert best.certificate.holds(1e-6)
    assert best.objective < objective.value(gradients)


def test_maps_of_large_images_are_found_with_points_and_features_exchanged(shape, rng):
    G, robust, smooth = rng.normal(size=(4, 60)), po.chain_graph(4), shape.pixel_graph()
    usual = po.solve(
        po.GradientMatching(G)
        + 0.3 * po.PairwiseRobustness(robust)
        + 0.2 * po.Smoothness(smooth)
    )
    exchanged = po.solve(
        po.GradientMatching(G.T)
        + 0.3 * po.Smoothness(robust)
        + 0.2 * po.PairwiseRobustness(smooth),
        solver="krylov",
    )
    assert exchanged.objective == pytest.approx(usual.objective, rel=1e-6)
    np.testing.assert_allclose(exchanged.attributions.T, usual.attributions, atol=1e-3)


# classifiers of torchvision, and what they are made of


def test_normalisation_is_that_of_its_formula(rng):
    pixels = torch.tensor(rng.random(size=(2, 3, 4, 4)), dtype=torch.float32)
    layer = po.functions.normalisation(images.IMAGENET_MEAN, images.IMAGENET_STD)
    mean = torch.tensor(images.IMAGENET_MEAN)[:, None, None]
    std = torch.tensor(images.IMAGENET_STD)[:, None, None]
    torch.testing.assert_close(layer.train()(pixels), (pixels - mean) / std)
    assert not any(p.requires_grad for p in layer.parameters())


@pytest.mark.parametrize(("mean", "std"), [([0.1], [0.1, 0.2]), ([0.1], [0.0])])
def test_normalisation_needs_a_positive_number_for_each_channel(mean, std):
    pytest.importorskip("torch")
    with pytest.raises(InvalidInput, match="std: expected one number > 0 for each"):
        po.functions.normalisation(mean, std)


def test_weights_are_read_from_a_file(rng, tmp_path):
    network, moody = three_scores(), trained_otherwise()
    path = tmp_path / "weights.pth"
    torch.save(network.state_dict(), path)
    with seeded():
        other = nn.Sequential(nn.Linear(3, 7), nn.Tanh(), nn.Linear(7, 3)).double()
    other[0].weight.data += 1.0
    po.functions.load_weights(other, path)
    X = rng.normal(size=(5, 3))
    expected = po.wrap(network, 0).value(X)
    np.testing.assert_array_equal(po.wrap(other, 0).value(X), expected)
    before = {name: value.clone() for name, value in moody.state_dict().items()}
    with pytest.raises(InvalidInput, match=r"not of this architecture; .*'1.weight'"):
        po.functions.load_weights(moody, path)
    assert all(torch.equal(v, before[k]) for k, v in moody.state_dict().items())


class Harmful:
    def __reduce__(self):
        return print, ("executed",)


def test_files_that_are_no_weights_are_refused_and_not_executed(tmp_path, capsys):
    network = three_scores()
    path = tmp_path / "weights.pth"
    with pytest.raises(InvalidInput, match=r"weights: .* cannot be read"):
        po.functions.load_weights(network, path)
    path.write_text("no weights")
    with pytest.raises(InvalidInput, match=r"weights: .* cannot be read"):
        po.functions.load_weights(network, path)
    path.write_bytes(pickle.dumps(Harmful(), protocol=2))
    with pytest.raises(InvalidInput, match=r"weights: .* cannot be read"):
        po.functions.load_weights(network, path)
    torch.save([1, 2], path)
    with pytest.raises(InvalidInput, match=r"holds no state_dict"):
        po.functions.load_weights(network, path)
    assert capsys.readouterr().out == ""


def test_without_torchvision_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchvision", None)
    monkeypatch.setitem(sys.modules, "torchvision.models", None)
    with pytest.raises(MissingExtra, match=r'pip install "propopt\[vision\]"'):
        po.functions.torchvision_model("resnet50")


def test_resnet_50_of_torchvision_explains_two_images(rng, tmp_path):
    models = pytest.importorskip("torchvision.models")
    with seeded():
        original = models.resnet50(weights=None).eval()
    torch.save(original.state_dict(), tmp_path / "resnet50.pth")
    classifier = po.functions.torchvision_model("resnet50", tmp_path / "resnet50.pth")
    shape = po.ImageShape(channels=3, height=224, width=224)
    images = rng.random(size=(2, 3, 224, 224))
    function = po.wrap(classifier, target=207, input_shape=shape)
    mean = np.array(images.IMAGENET_MEAN)[:, None, None]
    std = np.array(images.IMAGENET_STD)[:, None, None]
    normalised = torch.tensor((images - mean) / std, dtype=torch.float32)
    with torch.no_grad():
        expected = original(normalised)[:, 207].numpy()
    rows = shape.rows(images)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(function.value(rows), expected, atol=1e-4 * scale)
    gradient = function.gradient(rows)
    assert gradient.shape == (2, 150_528)
    assert np.abs(gradient).max() > 0
    with pytest.raises(InvalidInput, match="torchvision has no classifier 'resnet0'"):
        po.functions.torchvision_model("resnet0")
