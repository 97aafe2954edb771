"""What an error of the target costs: the identity, its estimate, and its interval."""

import numpy as np
import pytest
from scipy import stats

import propopt as po
from propopt.results import hessian
from propopt.results.hessian import QuadraticPart
from propopt.results.target_error import (
    Scatter,
    TargetError,
    contrasts,
    ratio_interval,
)


N, D, B = 12, 3, 10
WEIGHTS = np.array([1.3, 0.4, 0.7])
A = WEIGHTS[0]
RNG = np.random.default_rng(5)
GRAPH = po.knn_graph(RNG.standard_normal((N, 2)), 3)
G = RNG.standard_normal((N, D))


def objective(target, *others):
    return (
        WEIGHTS[0] * po.GradientMatching(target)
        + WEIGHTS[1] * po.PairwiseRobustness(GRAPH)
        + WEIGHTS[2] * po.Smoothness(po.chain_graph(D))
        + sum(others)
    )


def part():
    return QuadraticPart(po.losses.Program(objective(G).losses))


def true_excess(G, W, *others):
    """F_G(W) − F_G*, as the difference of two values."""
    F = objective(G, *others)
    return F.value(W) - po.solve(F, tolerance=1e-12).objective


def energy(E):
    """a² ⟨E, H⁻¹E⟩."""
    return A**2 * np.vdot(E, part().hessian(WEIGHTS).solve(E))


def drawn(rng, sizes):
    """Blocks that all rows share: errors of few degrees of freedom."""
    common = rng.standard_normal((B, len(sizes))) * sizes
    directions = np.random.default_rng(1).standard_normal((len(sizes), N, D))
    return G + np.einsum("bk,knd->bnd", common, directions)


def test_the_excess_of_a_quadratic_objective_is_the_energy_of_the_error():
    E = 0.3 * RNG.standard_normal((N, D))
    W = po.solve(objective(G + E)).attributions
    assert true_excess(G, W) == pytest.approx(energy(E), rel=1e-10)


@pytest.mark.parametrize(
    "other",
    [0.5 * po.Sparsity(), 1.5 * po.MaxDifferenceRobustness(GRAPH)],
    ids=["sparsity", "max difference"],
)
def test_with_another_convex_loss_the_excess_is_at_most_that(other):
    shares = []
    for _ in range(5):
        E = 0.5 * RNG.standard_normal((N, D))
        best = po.solve(objective(G + E, other), tolerance=1e-9)
        shares.append(true_excess(G, best.attributions, other) / energy(E))
    assert min(shares) > 0.0
    assert max(shares) < 1.0


def test_with_a_bound_the_excess_is_at_most_that():
    bound = po.Sparsity() <= 0.6 * np.abs(po.solve(objective(G)).attributions).sum()
    F = objective(G)
    E = 0.5 * RNG.standard_normal((N, D))
    W = po.solve(objective(G + E), subject_to=[bound], tolerance=1e-9).attributions
    least = po.solve(F, subject_to=[bound], tolerance=1e-9).objective
    assert 0.0 < F.value(W) - least < energy(E)


@pytest.mark.parametrize("most", [hessian.MOST_DIAGONALIZED, 0])
def test_the_gram_matrix_is_that_of_the_deviations(most, monkeypatch):
    monkeypatch.setattr(hessian, "MOST_DIAGONALIZED", most)
    blocks = drawn(RNG, np.ones(5))
    deviations = blocks - blocks.mean(axis=0)
    H = part().hessian(WEIGHTS)
    K = Scatter(part(), blocks).gram(A, WEIGHTS)
    for b, c in [(0, 0), (3, 7), (9, 2)]:
        inner = A**2 * np.vdot(deviations[b], H.solve(deviations[c]))
        assert K[b, c] == pytest.approx(inner, rel=1e-9)


def test_the_estimate_and_its_standard_error_are_those_of_a_jackknife():
    blocks = drawn(RNG, np.ones(5))

    def excess(some):
        """Of the mean of B blocks, as these tell it."""
        K = Scatter(part(), some).gram(A, WEIGHTS)
        return np.trace(K) / (B * (len(some) - 1))

    own = TargetError.of_gram(Scatter(part(), blocks).gram(A, WEIGHTS))
    left_out = [excess(np.delete(blocks, b, axis=0)) for b in range(B)]
    assert own.value == pytest.approx(excess(blocks), rel=1e-12)
    spread = np.sqrt((B - 1) * np.var(left_out))
    assert own.spread == pytest.approx(spread, rel=1e-9)
    assert own.n_blocks == B


def gaussian_gram(rng, roots, n_blocks=B):
    """K of deviations whose covariance has the eigenvalues ``roots²``."""
    X = rng.standard_normal((n_blocks, len(roots))) * roots
    X -= X.mean(axis=0)
    return X @ X.T


def test_degrees_count_the_errors_that_are_independent():
    rng = np.random.default_rng(0)
    for count in (1, 4, 100):
        grams = (gaussian_gram(rng, np.ones(count)) for _ in range(300))
        result = np.median([TargetError.of_gram(K).degrees for K in grams])
        # the median of 300; a prototype gave 1.0, 4.2 and 97
        assert 0.8 * count <= result <= 1.3 * count


@pytest.mark.parametrize(
    "roots",
    [np.ones(3), np.ones(60), 0.8 ** np.arange(40)],
    ids=["few", "many", "decay"],
)
def test_the_interval_covers_the_excess_of_the_mean(roots):
    rng = np.random.default_rng(2)
    covered = []
    for _ in range(1000):
        result = TargetError.of_gram(gaussian_gram(rng, roots))
        # independent of the scatter, as means of normal blocks are
        excess = float(((rng.standard_normal(len(roots)) * roots) ** 2).sum()) / B
        low, high = result.interval
        covered.append(low <= excess <= high)
    # 95 %, and 92 % at worst, where degrees are estimated; 5 σ of 1000 is 0.034
    assert 0.90 <= np.mean(covered) <= 0.985


def test_contrasts_of_blocks_tell_what_their_gram_matrix_tells():
    rng, ratios = np.random.default_rng(3), []
    C = contrasts(B)
    np.testing.assert_allclose(C @ C.T, np.eye(B - 1), atol=1e-15)
    for _ in range(200):
        K = gaussian_gram(rng, np.ones(40))
        own, other = (
            TargetError.of_gram(K),
            TargetError.of_energies(np.diag(C @ K @ C.T)),
        )
        assert other.value == pytest.approx(own.value, rel=1e-12)
        assert other.n_blocks == B
        ratios.append(other.degrees / own.degrees)
    # 2 mean²/variance of nine numbers: a median of 1.1, and a wide spread
    assert 0.8 <= np.median(ratios) <= 1.5


def test_the_interval_of_contrasts_covers_the_excess_of_the_mean():
    rng, covered = np.random.default_rng(4), []
    for _ in range(1000):
        roots = np.ones(15)
        K = gaussian_gram(rng, roots)
        result = TargetError.of_energies(np.diag(contrasts(B) @ K @ contrasts(B).T))
        excess = float(((rng.standard_normal(15) * roots) ** 2).sum()) / B
        low, high = result.interval
        covered.append(low <= excess <= high)
    assert 0.90 <= np.mean(covered) <= 0.985


def test_one_contrast_says_little():
    result = TargetError.of_energies(np.array([2.0]))
    assert (result.value, result.degrees, result.n_blocks) == (1.0, 1.0, 2)
    assert np.isnan(result.spread)


def test_the_ratio_is_one_of_f():
    low, high = ratio_interval(7.0, 10)
    assert stats.f(7, 63).cdf([low, high]).tolist() == pytest.approx([0.025, 0.975])


def test_two_blocks_say_little_and_equal_ones_nothing_is_off():
    two = TargetError.of_gram(gaussian_gram(RNG, np.ones(4), n_blocks=2))
    assert np.isnan(two.spread)
    assert two.degrees == 1.0
    assert two.interval[1] > 100 * two.value
    none = TargetError.of_gram(np.zeros((B, B)))
    assert (none.value, none.interval) == (0.0, (0.0, 0.0))


def test_standard_errors_are_the_scatter_of_the_optima():
    blocks = drawn(RNG, np.ones(5))
    optima = [po.solve(objective(block)).attributions for block in blocks]
    expected = np.std(optima, axis=0, ddof=1) / np.sqrt(B)
    result = Scatter(part(), blocks).standard_errors(A, WEIGHTS)
    np.testing.assert_allclose(result, expected, rtol=1e-9)
