"""A small table of numbers and its targets, and what exact gradients are."""

import numpy as np
import pandas as pd
from differentiated import central_differences
from sklearn.preprocessing import StandardScaler


RNG = np.random.default_rng(7)
X = RNG.normal([1.0, -2.0, 0.0, 30.0], [1.0, 2.0, 0.5, 4.0], size=(60, 4))
NOISE = RNG.normal(size=60)
Y = 3.0 * X[:, 0] - X[:, 1] * X[:, 2] + 0.1 * X[:, 3] + NOISE
BINARY = np.where(X[:, 0] + NOISE > 1.0, "yes", "no")
THREE = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + NOISE, [0.2, 1.8])]
UNIT = StandardScaler().fit_transform(X)
FRAME = pd.DataFrame(
    X, columns=["w", "x", "y", "z"], index=[f"p{n}" for n in range(60)]
)


def same(actual, expected, rtol):
    """Equal up to ``rtol`` of the largest entry."""
    np.testing.assert_allclose(
        actual, expected, rtol=rtol, atol=rtol * np.abs(expected).max()
    )


def assert_exact(function, points, expected_value, step=None, digits=1e-12):
    """Its value is the model's own, and its gradient is that of its differences."""
    assert function.gradient_method == "exact"
    same(function.value(points), expected_value, digits)
    differences = central_differences(function.value, points, step)
    same(function.gradient(points), differences, 1e-6)


def mlp(kind, activation="tanh", **settings):
    """A perceptron that stops after three steps, which it takes for convergence."""
    sizes = {"hidden_layer_sizes": (7, 5), "tol": 1e9, "n_iter_no_change": 3}
    return kind(activation=activation, random_state=0, **sizes, **settings)
