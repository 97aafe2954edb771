"""Mixtures that data never has: counts by hand, copulas, known structures."""

import itertools
import math

import numpy as np
import pytest

from benchmarks.claim_mixtures import (
    MARGINALS,
    STRUCTURES,
    among_harmless,
    independent,
    mixtures_of,
)
from propopt.base.text import Reason
from propopt.laws.mixtures import Mixtures, one_row_per_unit


def of(*columns, categories=None):
    codes = np.zeros(len(columns), bool) if categories is None else categories
    return Mixtures.of(np.column_stack(columns), np.asarray(codes))


# ---- Cells of pairs


def test_void_cells_are_those_of_their_definition():
    """Counted cell by cell: cut values, frequent categories, missing values."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=600)
    town = np.floor(2.0 * z) + 5.0
    gaps = np.where(z > 1.0, np.nan, rng.normal(size=600))
    seen = of(z, town, gaps, rng.normal(size=600), categories=[0, 1, 0, 0])
    bins = seen.bins_of(seen.data)
    n, m = 600, seen.n_bins
    assert m == int(math.sqrt(60.0))
    evidence = {}
    for u, v in itertools.combinations(range(4), 2):
        void, tested = {}, 0
        for i, j in itertools.product(range(m + 1), repeat=2):
            observed = int(((bins[:, u] == i) & (bins[:, v] == j)).sum())
            expected = (bins[:, u] == i).sum() * (bins[:, v] == j).sum() / n
            tested += expected >= 8.0
            if expected >= 8.0 and observed <= expected / 10.0:
                terms = [expected**k / math.factorial(k) for k in range(observed + 1)]
                void[i, j] = expected - math.log(math.fsum(terms))
        evidence[u, v] = sum(void.values()) - len(void) * math.log(max(tested, 1))
        counts = evidence[u, v] > math.log(6 / 0.01)
        expected_void = set(void) if counts else set()
        assert (
            set(map(tuple, np.argwhere(seen.void[u, :, v]).tolist())) == expected_void
        )
        p, q = ((bins[:, [k]] == np.arange(m + 1)).mean(axis=0) for k in (u, v))
        share = sum(p[i] * q[j] for i, j in expected_void)
        assert seen.shares[u, v] == pytest.approx(share, abs=1e-12)
        assert seen.shares[v, u] == pytest.approx(share, abs=1e-12)
    assert evidence[0, 1] > 100.0 > math.log(600.0) > evidence[1, 3]
    assert seen.shares[0, 2] > 0.0  # missing where z is high


def test_one_hole_is_no_evidence_and_two_are():
    """8.8 − log 81 = 4.41 and twice as much, where log(1/.01) = 4.61 is required."""
    for holes, counts in (([(3, 5)], False), ([(3, 5), (6, 1)], True)):
        cells = [x for x in itertools.product(range(9), repeat=2) if x not in holes]
        rows = np.repeat(np.array(cells, float), 11, axis=0)
        seen = of(*rows.T)
        assert seen.n_bins == 9
        voids = np.argwhere(seen.void[0, :, 1]).tolist()
        assert voids == ([[3, 5], [6, 1]] if counts else [])


def test_bins_have_equal_numbers_of_rows_and_missing_values_one_of_their_own():
    values = np.append(np.arange(900.0), np.full(100, np.nan))
    seen = of(values, np.zeros(1000))
    counts = np.bincount(seen.bins_of(seen.data)[:, 0], minlength=seen.n_bins + 1)
    assert counts.tolist() == [90] * 10 + [100]
    far = np.array([[1e300, np.nan], [-1e300, 7.0]])
    assert seen.bins_of(far).tolist() == [[9, 10], [0, 0]]


def test_the_share_is_that_of_a_gaussian_copula():
    """Mass where the density is below a tenth of that of independent columns."""
    rng = np.random.default_rng(0)
    z, e = rng.normal(size=(2, 4000))
    for r, true in ((0.7, 0.120), (0.9, 0.387), (0.99, 0.763)):
        share = of(z, r * z + math.sqrt(1.0 - r * r) * e).shares[0, 1]
        assert abs(share - true) < 0.06


def test_increasing_maps_and_the_order_of_columns_change_nothing():
    rng = np.random.default_rng(0)
    z = rng.normal(size=800)
    X = np.column_stack([z, z + 0.3 * rng.normal(size=800), rng.normal(size=800)])
    shares = of(*X.T).shares
    assert np.array_equal(of(*np.exp(3.0 * X.T)).shares, shares)
    assert np.array_equal(of(*X.T[::-1]).shares, shares[::-1, ::-1])
    assert np.array_equal(of(*X[::-1].T).shares, shares)


# ---- False and true relations


@pytest.mark.parametrize("n", [100, 300, 1000, 5000])
def test_independent_columns_are_not_blamed(n):
    """Twelve kinds of marginals; at most 1 % of tables have a false pair."""
    kinds = [*MARGINALS] * 4
    seen = mixtures_of(independent(np.random.default_rng(n), n, kinds))
    assert not seen.void.any()
    assert not seen.nestings
    assert not seen.relations
    assert seen.groups() == []
    assert seen.never_seen(seen.data, np.arange(48)) == (0.0, ())


FOUND = [x for x in STRUCTURES if x not in ("r = .5", "exclusive or")]


@pytest.mark.parametrize("name", FOUND)
def test_structures_are_found_among_28_harmless_columns(name):
    table, d = among_harmless(name, 1000, 28, np.random.default_rng(5))
    seen = mixtures_of(table)
    share, worst = seen.never_seen(seen.data, np.arange(d + 28))
    assert share > 0.0
    assert set(worst) <= set(range(d))
    assert not seen.shares[d:].any()


@pytest.mark.parametrize("name", STRUCTURES)
def test_groups_are_the_columns_of_the_structure(name):
    table, d = among_harmless(name, 2000, 12, np.random.default_rng(6))
    weak = ("r = .7", "r = .5", "missing together", "exclusive or")
    whole = [] if name in weak else [list(range(d))]
    assert mixtures_of(table).groups() == whole


@pytest.mark.parametrize("harmless", [28, 98])
def test_the_share_of_a_pair_does_not_depend_on_harmless_columns(harmless):
    """|z| < 5 with 1,000 draws: 6e-7."""
    table, _ = among_harmless("r = .99", 1000, harmless, np.random.default_rng(0))
    seen = mixtures_of(table)
    players = np.arange(harmless + 2)
    share, worst = seen.never_seen(seen.data, players)
    void = seen.shares[0, 1]
    D = harmless + 2
    split = np.mean([2.0 * k * (D - k) / (D * (D - 1)) for k in range(1, D)])
    error = math.sqrt(split * void * (1.0 - split * void) / 1000)
    assert abs(share - split * void) < 5.0 * error
    assert worst == (0, 1)
    one_player = np.maximum(players - 1, 0)
    assert seen.never_seen(seen.data, one_player) == (0.0, ())


def test_mixtures_that_break_a_ratio_or_a_nesting_are_never_seen():
    rng = np.random.default_rng(0)
    debt, income = rng.lognormal(sigma=0.6, size=(2, 2000))
    code = rng.integers(100, size=2000).astype(float)
    columns = [debt, income, debt / income, code, code // 10.0]
    seen = of(*columns, categories=[0, 0, 0, 1, 1])
    x, b = seen.data[:1000], seen.data[1000:]
    is_x = np.zeros(x.shape, bool)
    assert not any(mask.any() for _, mask in seen.causes(x, b, is_x))
    is_x[:, [2, 3]] = True
    causes = dict(seen.causes(x, b, is_x))
    far = np.abs(np.log(x[:, 2]) - np.log(b[:, 0] / b[:, 1]))
    unseen = causes[0, 1, 2]
    assert unseen[far > 0.5].mean() > 0.9
    assert unseen[far < 0.05].mean() < 0.1
    assert np.array_equal(causes[3, 4], x[:, 4] != b[:, 4])
    unknown = np.where(np.arange(5) == 3, 7.5, x)  # a level that the table lacks
    assert not dict(seen.causes(unknown, b, is_x))[3, 4].any()


# ---- Tables


def test_a_panel_has_one_row_for_each_unit():
    for units, repeats in ((500, 2), (200, 5), (120, 12)):
        rng = np.random.default_rng(units)
        steady = np.repeat(rng.normal(size=(units, 6)), repeats, axis=0)
        X = np.column_stack([steady, rng.normal(size=(len(steady), 4))])
        seen = of(*X.T)
        assert len(seen.data) == units
        assert not seen.void.any()
    table, _ = among_harmless("age, year of birth", 1000, 6, np.random.default_rng(0))
    assert len(mixtures_of(table).data) == 1000
    rows = np.arange(300.0).reshape(100, 3)
    assert one_row_per_unit(rows) is rows


def test_odd_tables():
    rng = np.random.default_rng(0)
    missing = np.full((200, 3), np.nan)
    for X in (missing, np.zeros((200, 2)), rng.normal(size=(110, 90))):
        seen = of(*X.T)
        assert not seen.void.any()
        assert seen.groups() == []
    for X in (rng.normal(size=(99, 4)), rng.normal(size=(300, 1))):
        assert isinstance(of(*X.T), Reason)
    z = rng.normal(size=300)
    assert of(z, z, z).groups() == [[0, 1, 2]]
    wide = rng.normal(size=(5000, 300))
    seen = of(*wide.T)
    assert seen.n_bins == 3
    assert len(seen.data) * (300 * 4) ** 2 <= 4e9  # operations


def test_a_difference_of_values_uses_only_mixtures_that_separate_both():
    """Φ_0 − Φ_1 by its definition: other values of whole pairs do not enter."""
    rng = np.random.default_rng(0)
    D = 4
    sets = [c for k in range(D + 1) for c in itertools.combinations(range(D), k)]
    v = {c: rng.normal() for c in sets}
    w = {c: x if (0 in c) != (1 in c) else rng.normal() for c, x in v.items()}

    def phi(game, d):
        others = [k for k in range(D) if k != d]
        return math.fsum(
            (game[tuple(sorted((*c, d)))] - game[c]) / (D * math.comb(D - 1, k))
            for k in range(D)
            for c in itertools.combinations(others, k)
        )

    assert phi(v, 0) - phi(v, 1) == pytest.approx(phi(w, 0) - phi(w, 1), abs=1e-12)
