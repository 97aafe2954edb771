"""Torch modules in the mode, precision and batches that they need; images."""

from itertools import product

import numpy as np
import pytest
from refusals import refusals
from sklearn.linear_model import Ridge  # noqa: F401  # of refusals.txt
from sklearn.neural_network import MLPClassifier, MLPRegressor
from torch_networks import nn, returning, seeded, three_scores, torch, trained_otherwise

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.base.resources import Budget
from propopt.functions import torch_modules


@pytest.fixture
def X(rng):
    return rng.normal(size=(9, 3))


@pytest.fixture
def network():
    return three_scores()


@pytest.fixture
def moody():
    return trained_otherwise()


def copied(model) -> nn.Module:
    """A multi-layer perceptron of scikit-learn as a torch module."""
    activation = {"tanh": nn.Tanh, "relu": nn.ReLU, "logistic": nn.Sigmoid}
    layers = []
    for weights, biases in zip(model.coefs_, model.intercepts_, strict=True):
        linear = nn.Linear(*weights.shape, dtype=torch.double)
        linear.weight.data = torch.tensor(weights.T)
        linear.bias.data = torch.tensor(biases)
        layers += [linear, activation[model.activation]()]
    return nn.Sequential(*layers[:-1])


def assert_same(first, second, X, tolerance=1e-12):
    np.testing.assert_allclose(
        first.value(X), second.value(X), rtol=tolerance, atol=tolerance
    )
    np.testing.assert_allclose(
        first.gradient(X), second.gradient(X), rtol=tolerance, atol=tolerance
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_copied_perceptrons_have_the_same_values_and_gradients(X, rng):
    settings = {"hidden_layer_sizes": (6, 5), "random_state": 0, "max_iter": 20}
    for activation in ("tanh", "relu", "logistic"):
        model = MLPRegressor(activation=activation, **settings)
        model.fit(X, rng.normal(size=len(X)))
        assert_same(po.wrap(copied(model)), po.wrap(model), X)
    for n_classes in (2, 3):
        model = MLPClassifier(**settings).fit(X, np.arange(len(X)) % n_classes)
        for target, output in product(range(n_classes), ("probability", "log_odds")):
            ours = po.wrap(copied(model), target, output)
            assert_same(ours, po.wrap(model, target, output), X)


def test_gradients_agree_with_central_differences(network, X):
    for output in ("value", "probability", "log_odds", "margin"):
        function = po.wrap(network, 1, output)
        numerical = po.wrap(network, 1, output, step=1e-5)
        assert numerical.gradient_method.startswith("central differences")
        np.testing.assert_array_equal(numerical.value(X), function.value(X))
        np.testing.assert_allclose(
            numerical.gradient(X), function.gradient(X), atol=1e-9
        )


def test_one_and_two_scores_stand_for_two_classes(network, moody, X):
    two = nn.Sequential(network, nn.Linear(3, 2).double())
    difference = po.wrap(two, 1).value(X) - po.wrap(two, 0).value(X)
    odds = po.wrap(two, 1, "log_odds")
    np.testing.assert_allclose(odds.value(X), difference, atol=1e-13)
    probability = po.wrap(two, 1, "probability").value(X)
    np.testing.assert_allclose(probability, 1 / (1 + np.exp(-difference)), atol=1e-14)
    score = po.wrap(moody).value(X)
    for target, sign in [(None, 1.0), (1, 1.0), (0, -1.0)]:
        for output in ("margin", "log_odds"):
            function = po.wrap(moody, target, output)
            np.testing.assert_array_equal(function.value(X), sign * score)
        probability = po.wrap(moody, target, "probability").value(X)
        np.testing.assert_allclose(probability, 1 / (1 + np.exp(-sign * score)))
    huge = returning(lambda x, scale: 30.0 * scale * x)  # which do not saturate
    function = po.wrap(huge, output="log_odds")
    assert function.value([[2.0]]) == [120.0]
    np.testing.assert_array_equal(function.gradient([[2.0]]), [[60.0]])
    for shape in [(-1,), (-1, 1)]:  # one column with or without its axis
        module = returning(
            lambda x, scale, s=shape: (scale * x**2).sum(dim=1).reshape(s)
        )
        np.testing.assert_allclose(po.wrap(module).value(X), 2 * (X**2).sum(axis=1))
        np.testing.assert_allclose(po.wrap(module).gradient(X), 4 * X)


# what is left as it was


def test_modules_are_asked_as_in_evaluation_and_left_in_their_mode(moody, X):
    with torch.no_grad():
        expected = moody.eval()(torch.tensor(X)).numpy()[:, 0]
    gradient = po.wrap(moody).gradient(X)
    moody.train()
    moody[1].eval()  # frozen statistics, as in fine-tuning
    modes = [part.training for part in moody.modules()]
    function = po.wrap(moody)
    np.testing.assert_array_equal(function.value(X), expected)
    np.testing.assert_array_equal(function.gradient(X), gradient)
    assert [part.training for part in moody.modules()] == modes
    assert {True, False} == set(modes)
    moody.train()
    with pytest.raises(InvalidInput, match="module fails"):
        po.wrap(moody).value(np.ones((2, 5)))
    assert all(part.training for part in moody.modules())


def test_parameters_buffers_and_their_gradients_are_untouched(moody, X):
    moody[0].weight.requires_grad_(False)
    moody[3].weight.grad = torch.ones_like(moody[3].weight)
    state = {name: value.clone() for name, value in moody.state_dict().items()}
    wants = [p.requires_grad for p in moody.parameters()]
    function = po.wrap(moody, output="probability")
    function.value(X)
    function.gradient(X)
    assert [p.requires_grad for p in moody.parameters()] == wants
    assert torch.equal(moody[3].weight.grad, torch.ones_like(moody[3].weight))
    assert [p.grad is None for p in moody.parameters()].count(False) == 1
    for name, value in moody.state_dict().items():
        assert torch.equal(value, state[name])


def test_layers_that_work_in_place_do_not_reach_the_points(X):
    module = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 1).double())
    before = X.copy()
    function = po.wrap(module)
    function.value(X)
    gradient = function.gradient(X)
    np.testing.assert_array_equal(X, before)
    slope = module[1].weight.detach().numpy()
    np.testing.assert_array_equal(gradient, np.where(X > 0, slope, 0.0))


@pytest.mark.parametrize("context", ["no_grad", "inference_mode"])
def test_values_keep_no_graph_and_gradients_are_there_without_autograd(
    network, X, context
):
    flags = []
    network.register_forward_hook(
        lambda *observed: flags.append(observed[-1].requires_grad)
    )
    function = po.wrap(network, 0)
    function.value(X)
    expected = function.gradient(X)
    assert flags == [False, False, False, True]  # two are a trial
    with getattr(torch, context)():
        np.testing.assert_array_equal(function.gradient(X), expected)
    assert torch.is_grad_enabled()


# precision, device, batches


@pytest.mark.parametrize(
    ("dtype", "method", "tolerance"),
    [
        ("float64", "exact", 1e-14),
        ("float32", "autograd, float32", 1e-5),
        ("bfloat16", "autograd, bfloat16", 0.2),
    ],
)
def test_precision_is_that_of_the_module(network, X, dtype, method, tolerance):
    exact = po.wrap(network, 2, "probability")
    expected = exact.value(X), exact.gradient(X)
    function = po.wrap(network.to(getattr(torch, dtype)), 2, "probability")
    assert function.gradient_method == method
    observed = []
    network.register_forward_pre_hook(
        lambda _, inputs: observed.append(inputs[0].dtype)
    )
    answers = function.value(X), function.gradient(X)
    assert set(observed) == {getattr(torch, dtype)}
    for ours, theirs in zip(answers, expected, strict=True):
        assert ours.dtype == np.float64
        np.testing.assert_allclose(ours, theirs, atol=tolerance)


def test_module_without_parameters_has_the_default_precision(X):
    function = po.wrap(nn.Softmax(dim=1), 0)
    assert function.gradient_method == "autograd, float32"
    np.testing.assert_allclose(function.gradient(X).sum(axis=1), 0.0, atol=1e-6)


# torch itself warns once, when the backward pass is the first use of cuBLAS
@pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS")
def test_points_go_to_the_device_of_the_module(network, X):
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    function = po.wrap(network, 0)
    expected = function.value(X), function.gradient(X)
    network.to("cuda")
    np.testing.assert_allclose(function.value(X), expected[0], atol=1e-12)
    np.testing.assert_allclose(function.gradient(X), expected[1], atol=1e-12)


@pytest.mark.parametrize(
    ("budget", "most"), [(Budget(2**22, 4), 4), (Budget(100), 4), (Budget(1), 1)]
)
def test_batches_are_bounded_counted_and_change_nothing(
    network, X, monkeypatch, budget, most
):
    function = po.wrap(network, 1, "log_odds")
    expected = function.value(X), function.gradient(X)
    monkeypatch.setattr(torch_modules, "AUTOGRAD_CALLS", budget)
    sizes = []
    network.register_forward_hook(lambda *observed: sizes.append(len(observed[-1])))
    np.testing.assert_allclose(function.value(X), expected[0], atol=1e-14)
    np.testing.assert_allclose(function.gradient(X), expected[1], atol=1e-14)
    assert max(sizes) == most
    assert sum(sizes) == 2 * len(X)
    assert function.calls.rows == 4 * len(X)
    sizes.clear()
    po.wrap(network, 1, batch_rows=2).gradient(X)
    po.wrap(network, 1, step=1e-2, batch_rows=2).gradient(X)
    assert max(sizes) <= 2


@pytest.mark.filterwarnings("default")  # compilers make warnings of their own
@pytest.mark.parametrize("way", ["parallel", "script", "compile"])
def test_modules_in_other_forms_work(network, X, way):
    ways = {"parallel": nn.DataParallel, "script": torch.jit.script}
    other = ways.get(way, lambda own: torch.compile(own, backend="eager"))(network)
    other.train()
    assert_same(po.wrap(other, 1), po.wrap(network, 1), X)
    assert all(part.training for part in network.modules())


# errors


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "modules"))
def test_wrong_settings_and_answers_are_refused(network, moody, X, line, message):
    def value(module=network, X=X, **settings):
        return po.wrap(module, **settings).value(X)

    with pytest.raises(InvalidInput, match=message):
        eval(line, globals() | locals())


def test_modules_without_a_way_back_are_refused(X):
    for function in (
        lambda x, scale: x.detach() * scale,
        lambda x, _: x.argmax(dim=1),
        lambda x, _: (x > 0).any(dim=1),
        lambda x, scale: scale.expand(len(x)),
    ):
        wrapped = po.wrap(returning(function), 0)
        assert wrapped.value(X).shape == (9,)
        with pytest.raises(InvalidInput, match="no path from the output to the input"):
            wrapped.gradient(X)


def test_a_module_that_has_answered_fails_by_its_own_error(X):
    module = nn.Linear(3, 1)
    function = po.wrap(module)
    function.value(X)

    def refuse(_):
        raise RuntimeError("the device is gone")

    module.forward = refuse
    with pytest.raises(RuntimeError, match="the device is gone"):
        function.value(X)


# images, optimized maps of them, and classifiers of torchvision


def test_rows_reach_the_module_as_images_and_gradients_come_back(rng):
    with seeded():
        layers = nn.Conv2d(2, 4, 3, padding=1), nn.Tanh(), nn.Flatten()
        cnn = nn.Sequential(*layers, nn.Linear(4 * 30, 3)).double()
    shape = po.functions.ImageShape(channels=2, height=6, width=5)
    images = torch.tensor(rng.normal(size=(4, 2, 6, 5)), requires_grad=True)
    answer = cnn(images)[:, 1]
    answer.sum().backward()
    rows = shape.rows(images.detach().numpy())
    for input_shape in (shape, (2, 6, 5)):
        function = po.wrap(cnn, 1, input_shape=input_shape)
        expected = answer.detach().numpy()
        np.testing.assert_allclose(function.value(rows), expected, atol=1e-14)
        ours = shape.images(function.gradient(rows))
        np.testing.assert_allclose(ours, images.grad.numpy(), atol=1e-14)
