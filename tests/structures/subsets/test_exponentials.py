import numpy as np
import pytest

from propopt.structures.subsets.sums import ExponentialSum


@pytest.mark.parametrize("power", [0.5, 1.0])
@pytest.mark.parametrize("smallest", [1.0, 0.3, 1e-2, 1e-4, 1e-8, 1e-14])
def test_powers_are_within_the_stated_error(power, smallest):
    powers = ExponentialSum.of(power, smallest)
    R = np.geomspace(smallest, 1.0, 4001)
    result = np.exp(-np.outer(R, powers.rates)) @ powers.weights
    assert np.abs(result * R**power - 1.0).max() < 5e-15


@pytest.mark.parametrize(("smallest", "n_nodes"), [(1e-2, 48), (1e-4, 66), (1e-8, 101)])
def test_nodes_are_as_few_as_stated(smallest, n_nodes):
    assert len(ExponentialSum.of(0.5, smallest).rates) == n_nodes
    assert len(ExponentialSum.of(1.0, smallest).rates) < n_nodes


@pytest.mark.parametrize(("power", "most"), [(0.5, 12.4), (1.0, 39.3)])
def test_integrals_along_parallels_are_as_large_as_the_bound_says(power, most):
    """The M of the docstring, of which the largest is at R = 1 and at the edge."""
    x, step = np.linspace(-8.0, 60.0, 200_001, retstep=True)
    largest = max(
        _along(x, step, power, b, R) for b in (0, 1, 1.5) for R in (1, 0.1, 1e-4)
    )
    assert 0.99 * most < largest < most


def _along(x, step, power, b, R):
    z = x + 1j * b
    u = np.exp(z - np.exp(-z))
    g = u**power * (1.0 + np.exp(-z)) * np.exp(-np.minimum(u.real * R, 700.0))
    scale = R**power / (np.sqrt(np.pi) if power == 0.5 else 1.0)
    return float(np.abs(g).sum() * step * scale)
