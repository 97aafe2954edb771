"""The worked example: 12 patches of one row and one column, by hand."""

import numpy as np
import pytest

from propopt.base.arrays import Array
from propopt.interactions.errors_of_rows import ABSOLUTE, SQUARED, RowError
from propopt.interactions.features import Features
from propopt.interactions.left_out import inclusion_exclusion, set_scores
from propopt.interactions.minipatches import PatchErrors
from propopt.interactions.patch_draws import Patches


V = np.array([[0, 1, 2, 3], [1, 1, 0, 2], [2, 0, 1, 4]])
Y = np.array([1.0, 2.0, 4.0])
PAIRS = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])


def example(error: RowError, n_groups: int = 12) -> PatchErrors:
    """Patch (i, c) has row i and column c and predicts v[i, c] + k (c + 1) at row k."""
    rows, columns = np.repeat(np.arange(3), 4), np.tile(np.arange(4), 3)
    predictions = V.reshape(12, 1) + np.arange(3) * (columns[:, None] + 1.0)
    patches = Patches(rows[:, None], np.eye(4, dtype=bool)[columns], rows, 3)
    return PatchErrors(
        patches=patches,
        predictions=predictions[:, :, None],
        y=Y,
        error=error,
        features=Features.of(["a", "b", "c", "d"]),
        row_weights=np.ones(3),
        n_groups=n_groups,
    )


def test_predictions_without_features() -> None:
    # of targets 0 and predictions above, absolute errors are the predictions themselves
    source = example(ABSOLUTE)
    object.__setattr__(source, "y", np.zeros(3))
    whole = source.errors(np.zeros((1, 0), dtype=np.intp)).rows[:, 0]
    single = source.errors(np.arange(4)[:, None]).rows
    np.testing.assert_allclose(whole, [1.375, 4.125, 6.25], rtol=1e-15)
    np.testing.assert_allclose(single[:, 0], [4 / 3, 29 / 6, 7.5], rtol=1e-15)
    np.testing.assert_allclose(single[:, 3], [5 / 6, 3, 29 / 6], rtol=1e-15)
    pair = source.errors(PAIRS[:1]).rows[:, 0]
    np.testing.assert_allclose(pair, [1.75, 6, 8.75], rtol=1e-15)


OF_SQUARED = [-4.596065, -1.503472, 1.964120, -0.660880, 1.515046, 0.107639]
OF_ABSOLUTE = [-0.527778, -0.305556, -0.027778, -0.194444, 0.416667, 0.472222]


@pytest.mark.parametrize(
    ("error", "rows", "means", "se"),
    [
        (SQUARED, [-0.147569, -5.376736, -8.263889], OF_SQUARED, 2.375272),
        (ABSOLUTE, [-0.125, -0.625, -0.833333], OF_ABSOLUTE, 0.210177),
    ],
)
def test_scores_of_pairs(
    error: RowError, rows: list[float], means: list[float], se: float
) -> None:
    source = example(error)
    z = inclusion_exclusion(source, PAIRS).rows
    np.testing.assert_allclose(z[:, 0], rows, atol=5e-7)
    result = set_scores(source, PAIRS)
    np.testing.assert_allclose(result["estimates"], means, atol=5e-7)
    assert result["standard_errors"][0] == pytest.approx(se, abs=5e-7)


def score_without(patch: int) -> float:
    """Of the pair (0, 1) by squared errors, a patch left out, row by row."""
    rows, columns = np.repeat(np.arange(3), 4), np.tile(np.arange(4), 3)
    total = 0.0
    for k in range(3):
        used = (rows != k) & (np.arange(12) != patch)
        predicted = V.ravel() + k * (columns + 1.0)

        def error(
            *left_out: int, at: int = k, used: Array = used, all_: Array = predicted
        ) -> float:
            own = used & ~np.isin(columns, left_out)
            return float((Y[at] - all_[own].mean()) ** 2)

        total += error(0) + error(1) - error(0, 1) - error()
    return total / 3


def test_the_error_of_patches_is_the_jackknife_over_them() -> None:
    # √((G − 1)/G Σ_g (z̄_(−g) − mean)²), each of the 12 patches a group of its own
    left_out = np.array([score_without(patch) for patch in range(12)])
    expected = np.sqrt(11 / 12 * ((left_out - left_out.mean()) ** 2).sum())
    result = set_scores(example(SQUARED), PAIRS)
    assert result["monte_carlo"][0] == pytest.approx(expected, rel=1e-12)
