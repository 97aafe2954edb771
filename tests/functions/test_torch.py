"""Torch modules: what they compute, in the mode, precision and batches they need."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.neural_network import MLPClassifier, MLPRegressor
from torch_networks import nn, returning, three_scores, torch, trained_otherwise

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


# against scikit-learn, finite differences and formulas


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("activation", ["tanh", "relu", "logistic"])
def test_copied_regressor_has_the_same_values_and_gradients(X, rng, activation):
    model = MLPRegressor(
        hidden_layer_sizes=(6, 5), activation=activation, random_state=0, max_iter=20
    )
    model.fit(X, rng.normal(size=len(X)))
    assert_same(po.wrap(copied(model)), po.wrap(model), X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("output", ["probability", "log_odds"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_copied_classifier_has_the_same_values_and_gradients(X, output, n_classes):
    model = MLPClassifier(hidden_layer_sizes=(6,), random_state=0, max_iter=20)
    model.fit(X, np.arange(len(X)) % n_classes)
    for target in range(n_classes):
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


def test_two_scores_have_the_probabilities_of_their_difference(network, X):
    two = nn.Sequential(network, nn.Linear(3, 2).double())
    first, second = po.wrap(two, 0), po.wrap(two, 1)
    difference = second.value(X) - first.value(X)
    odds = po.wrap(two, 1, "log_odds")
    np.testing.assert_allclose(odds.value(X), difference, atol=1e-13)
    probability = po.wrap(two, 1, "probability").value(X)
    np.testing.assert_allclose(probability, 1 / (1 + np.exp(-difference)), atol=1e-14)


def test_one_score_stands_for_two_classes(moody, X):
    score = po.wrap(moody).value(X)
    for target, sign in [(None, 1.0), (1, 1.0), (0, -1.0)]:
        for output in ("margin", "log_odds"):
            function = po.wrap(moody, target, output)
            np.testing.assert_array_equal(function.value(X), sign * score)
        probability = po.wrap(moody, target, "probability").value(X)
        np.testing.assert_allclose(probability, 1 / (1 + np.exp(-sign * score)))


def test_log_odds_do_not_saturate_in_double_precision():
    huge = returning(lambda x, scale: 30.0 * scale * x)
    function = po.wrap(huge, output="log_odds")
    assert function.value([[2.0]]) == [120.0]
    np.testing.assert_array_equal(function.gradient([[2.0]]), [[60.0]])


@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
def test_one_column_may_come_with_or_without_its_axis(X, shape):
    module = returning(lambda x, scale: (scale * x**2).sum(dim=1).reshape(shape))
    np.testing.assert_allclose(po.wrap(module).value(X), 2 * (X**2).sum(axis=1))
    np.testing.assert_allclose(po.wrap(module).gradient(X), 4 * X)


# what is left as it was


def test_dropout_and_batch_norm_are_evaluated_as_in_evaluation(moody, X):
    with torch.no_grad():
        expected = moody.eval()(torch.tensor(X)).numpy()[:, 0]
    moody.train()
    function = po.wrap(moody)
    np.testing.assert_array_equal(function.value(X), expected)
    np.testing.assert_array_equal(function.gradient(X), po.wrap(moody).gradient(X))


def test_mode_of_every_part_is_restored(moody, X):
    moody.train()
    moody[1].eval()  # frozen statistics, as in fine-tuning
    modes = [part.training for part in moody.modules()]
    function = po.wrap(moody)
    function.value(X)
    function.gradient(X)
    assert [part.training for part in moody.modules()] == modes
    assert True in modes
    assert False in modes


def test_mode_is_restored_after_an_error(moody):
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


def test_values_keep_no_graph(network, X):
    flags = []
    network.register_forward_hook(
        lambda *observed: flags.append(observed[-1].requires_grad)
    )
    function = po.wrap(network, 0)
    function.value(X)
    function.gradient(X)
    assert flags == [False, False, False, True]  # two are a trial


@pytest.mark.parametrize("context", ["no_grad", "inference_mode"])
def test_gradients_are_there_where_autograd_is_switched_off(network, X, context):
    function = po.wrap(network, 0)
    expected = function.gradient(X)
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
def test_batches_are_bounded_and_change_nothing(network, X, monkeypatch, budget, most):
    function = po.wrap(network, 1, "log_odds")
    expected = function.value(X), function.gradient(X)
    monkeypatch.setattr(torch_modules, "AUTOGRAD_CALLS", budget)
    sizes = []
    network.register_forward_hook(lambda *observed: sizes.append(len(observed[-1])))
    np.testing.assert_allclose(function.value(X), expected[0], atol=1e-14)
    np.testing.assert_allclose(function.gradient(X), expected[1], atol=1e-14)
    assert max(sizes) == most
    assert sum(sizes) == 2 * len(X)


def test_rows_given_to_the_module_are_counted(network, X, monkeypatch):
    monkeypatch.setattr(torch_modules, "AUTOGRAD_CALLS", Budget(2**22, 4))
    function = po.wrap(network, 1)
    function.value(X)
    assert (function.calls.rows, function.calls.batches) == (9, 3)
    function.gradient(X)
    assert (function.calls.rows, function.calls.batches) == (18, 6)


def test_rows_in_another_order_have_gradients_in_that_order(moody, X, rng):
    order = rng.permutation(len(X))
    function = po.wrap(moody)
    np.testing.assert_allclose(
        function.gradient(X[order]), function.gradient(X)[order], atol=1e-14
    )


# kinds of modules


def test_data_parallel_module_works(network, X):
    assert_same(po.wrap(nn.DataParallel(network), 1), po.wrap(network, 1), X)


@pytest.mark.filterwarnings("default")  # the compiler makes warnings of its own
def test_compiled_module_works(network, X):
    compiled = torch.compile(network, backend="eager")
    compiled.train()
    assert_same(po.wrap(compiled, 1), po.wrap(network, 1), X)
    assert all(part.training for part in network.modules())


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_script_module_works(network, X):
    assert_same(po.wrap(torch.jit.script(network), 1), po.wrap(network, 1), X)


def test_torch_is_not_imported_for_other_models():
    code = (
        "import sys, propopt as po; po.wrap(lambda X: X[:, 0]).gradient([[1.0]]);"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# errors


@pytest.mark.parametrize(
    ("target", "output", "message"),
    [
        (None, "auto", r"target: the model has 3 outputs; give the position of one"),
        (None, "probability", r"target: the model has 3 outputs"),
        (3, "value", r"target: no output at position 3"),
        (-1, "value", r"target: expected the position of an output"),
        ("cat", "value", r"got 'cat'"),
        (0, "odds", r"output: expected one of 'auto', .* got 'odds'"),
    ],
)
def test_wrong_target_or_output(network, X, target, output, message):
    with pytest.raises(InvalidInput, match=message):
        po.wrap(network, target, output).value(X)


def test_one_score_has_no_third_class(moody, X):
    with pytest.raises(InvalidInput, match=r"stands for two classes; .* got 2"):
        po.wrap(moody, 2, "probability").value(X)
    with pytest.raises(InvalidInput, match=r"no output at position 1"):
        po.wrap(moody, 1).value(X)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x, scale: (x, scale), r"returned a tuple; expected one real tensor"),
        (lambda x, _: x.to(torch.complex128), r"a tensor of torch.complex128"),
        (lambda _, scale: scale, r"returned shape \(\) for 9 rows"),
        (lambda x, _: x[:4], r"returned shape \(4, 3\) for 9 rows"),
        (lambda x, _: x[:, :, None], r"returned shape \(9, 3, 1\) for 9 rows"),
    ],
)
def test_modules_that_return_something_else(X, function, message):
    with pytest.raises(InvalidInput, match=message):
        po.wrap(returning(function), 0).value(X)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, scale: x.detach() * scale,
        lambda x, _: x.argmax(dim=1),
        lambda x, _: (x > 0).any(dim=1),
        lambda x, scale: scale.expand(len(x)),
    ],
    ids=["detached", "argmax", "boolean", "constant"],
)
def test_modules_without_a_way_back_are_refused(X, function):
    wrapped = po.wrap(returning(function), 0)
    assert wrapped.value(X).shape == (9,)
    with pytest.raises(InvalidInput, match="no way from the output back to the input"):
        wrapped.gradient(X)


def test_value_that_is_not_finite_is_named_by_its_row(X):
    table = pd.DataFrame(X, index=list("abcdefghi"))
    table.loc["d", 1] = 1e30
    module = returning(lambda x, scale: scale * torch.exp(x).sum(dim=1))
    with pytest.raises(InvalidInput, match="the first is row 'd'"):
        po.wrap(module).value(table)


def test_class_of_modules_is_refused():
    with pytest.raises(InvalidInput, match="Linear is a class"):
        po.wrap(nn.Linear)


def test_points_of_another_width_are_reported_with_the_shape_given(network):
    message = r"given inputs of shape \(2, 5\).*first layer takes 3; .*input_shape="
    with pytest.raises(InvalidInput, match=message) as caught:
        po.wrap(network, 0).value(np.ones((2, 5)))
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_a_module_that_has_answered_fails_by_its_own_error(X):
    module = nn.Linear(3, 1)
    function = po.wrap(module)
    function.value(X)

    def refuse(_):
        raise RuntimeError("the device is gone")

    module.forward = refuse
    with pytest.raises(RuntimeError, match="the device is gone"):
        function.value(X)


def test_input_shape_that_does_not_fit(X):
    function = po.wrap(nn.Flatten(), 0, input_shape=(1, 2, 2))
    with pytest.raises(InvalidInput, match=r"\(1, 2, 2\) takes 4 columns, got 3"):
        function.value(X)
    with pytest.raises(InvalidInput, match=r"input_shape: expected an integer >= 1"):
        po.wrap(nn.Flatten(), input_shape=(1, 0))
    with pytest.raises(InvalidInput, match=r"input_shape: .* is not a torch module"):
        po.wrap(lambda X: X[:, 0], input_shape=(3,))
