"""The attributions that are constant on parts of points and features."""

import numpy as np
from numpy.testing import assert_allclose

from propopt.losses.linear_algebra import Components
from propopt.losses.restricted import Restriction


PARTS = Restriction(
    Components(np.array([0, 0, 1, 1, 1])), Components(np.array([0, 1, 1]))
)


def test_the_basis_is_that_of_the_expansion_and_distances_are_to_the_nearest(rng):
    U = rng.normal(size=(2, 2))
    T = rng.normal(size=(5, 3))
    assert_allclose(PARTS.basis @ U.ravel(), PARTS.expanded(U).ravel(), atol=1e-15)
    assert_allclose(PARTS.coordinates(PARTS.expanded(U)), U, atol=1e-14)
    solution = np.linalg.lstsq(PARTS.basis.toarray(), T.ravel())[0]
    nearest = (PARTS.basis @ solution).reshape(T.shape)
    assert_allclose(PARTS.expanded(PARTS.coordinates(T)), nearest, atol=1e-14)
    assert_allclose(PARTS.least_distance(T), ((T - nearest) ** 2).sum(), rtol=1e-12)
