import numpy as np
import pytest
from lime_golden import GOLDEN, POINT, WIDTHS, golden_law, normal_equations, quadrature

from propopt.base.errors import InvalidInput
from propopt.lime.expectations import ExactLimits
from propopt.lime.fidelity import effective_share
from propopt.lime.paths import bandwidth_path


def test_effective_shares_of_the_fixture():
    law, points = golden_law(), np.tile(POINT, (3, 1))
    expected = [0.832010355857, 0.938836666249, 1.0]
    shares = effective_share(law, points, np.array(WIDTHS))
    np.testing.assert_allclose(shares, expected, atol=1e-9)
    weights = np.exp(law.log_weights(points, np.array(WIDTHS)))
    np.testing.assert_allclose(weights[0], 0.737687106475**3, atol=1e-9)


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_normal_equations_over_all_cells_give_the_same(name):
    # shares of bins that differ, so that nothing cancels
    law = golden_law(shares=[[0.2, 0.5, 0.3], [0.6, 0.3, 0.1], [0.3, 0.3, 0.4]])
    f = GOLDEN[name][0]()
    widths = np.array([0.4, 1.7])
    path = bandwidth_path(ExactLimits(f, law), POINT, widths)
    for m, width in enumerate(widths):
        samples, bits, _, weights = quadrature(law, POINT, width)
        beta = normal_equations(f.value(samples), bits, weights)
        result = [path.intercept[m], *path.coefficients[m]]
        np.testing.assert_allclose(result, beta, atol=1e-9)


def test_widths_are_sorted_and_by_default_around_that_of_the_law():
    exact = ExactLimits(GOLDEN["box"][0](), golden_law(2.0))
    path = bandwidth_path(exact, POINT)
    assert len(path.widths) == 50
    np.testing.assert_allclose(path.widths[[0, -1]], [0.2, 20.0])
    assert (np.diff(path.widths) > 0).all()
    given = bandwidth_path(exact, POINT, [3.0, 1.0])
    np.testing.assert_array_equal(given.widths, [1.0, 3.0])
    assert repr(given) == "BandwidthPath(2 widths from 1 to 3, 3 columns)"


@pytest.mark.parametrize("widths", [[0.0, 1.0], [-1.0], [np.nan], [], [[1.0]]])
def test_widths_that_are_none_are_refused(widths):
    exact = ExactLimits(GOLDEN["box"][0](), golden_law())
    with pytest.raises(InvalidInput, match="widths"):
        bandwidth_path(exact, POINT, widths)
