"""The attributions that are constant on parts of points and features."""

import numpy as np
from numpy.testing import assert_allclose

from propopt.losses.linear_algebra import Components
from propopt.losses.restricted import Restriction


PARTS = Restriction(
    Components(np.array([0, 0, 1, 1, 1])), Components(np.array([0, 1, 1]))
)


def test_the_basis_spans_the_nearest_and_distances_are_to_it(rng):
    U = rng.normal(size=(2, 2))
    T = rng.normal(size=(5, 3))
    W = (PARTS.basis @ U.ravel()).reshape(T.shape)
    assert_allclose(PARTS.nearest(W), W, atol=1e-14)
    assert_allclose(PARTS.basis.T @ W.ravel(), U.ravel(), atol=1e-14)
    solution = np.linalg.lstsq(PARTS.basis.toarray(), T.ravel())[0]
    nearest = (PARTS.basis @ solution).reshape(T.shape)
    assert_allclose(PARTS.nearest(T), nearest, atol=1e-14)
    rows = np.unique(PARTS.nearest(T), axis=0)  # exactly constant on parts
    assert [len(np.unique(row)) for row in rows] == [2, 2]
    assert_allclose(PARTS.least_distance(T), ((T - nearest) ** 2).sum(), rtol=1e-12)
