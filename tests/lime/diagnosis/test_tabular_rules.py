"""Each rule of tabular LIME: where it fires, with its number, and where it does not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from lime_cases import explained, grid, linear, product, tabular
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from propopt.lime import LimeDiagnosis, limits
from propopt.lime.explanation import evidence_of


def found(diagnosis: LimeDiagnosis, rule: str, column: int | None = None):
    return [item for item in diagnosis.of(rule) if item.column == column]


def quiet(diagnosis: LimeDiagnosis, rule: str):
    (item,) = [item for item in diagnosis.quiet if item.rule == rule]
    return item


# ---- cancellation


def test_a_bin_in_the_middle_of_an_odd_number_cancels_a_linear_function():
    X = grid(2, -10.0, 10.0)
    five = explained(linear([5.0, 1.0], X), [0.5, 7.0], X, tabular(X, n_bins=5))
    (item,) = found(five.diagnose(), "cancellation by binning", 0)
    span = np.ptp(five.subject.profiles(five.points)[0][0])
    assert span == pytest.approx(80.0, rel=0.02)  # 5 times four of five bins of 20
    assert item.number == pytest.approx(abs(five.coefficients[0, 0]) / span, rel=1e-9)
    assert item.number < 1e-3
    assert "with 4 bins and" in item.sentence


def test_an_even_number_of_bins_does_not_cancel_it():
    X = grid(2, -10.0, 10.0)
    four = explained(linear([5.0, 1.0], X), [0.5, 7.0], X, tabular(X, n_bins=4))
    diagnosis = four.diagnose()
    assert "cancellation by binning" not in diagnosis.rules
    # β = λ (2.5 − mean of −7.5, −2.5, 7.5) over λ 15
    number = quiet(diagnosis, "cancellation by binning").number
    assert number == pytest.approx(10.0 / 3.0 / 15.0, rel=0.01)
    spans = [np.ptp(means[0]) for means in four.subject.profiles(four.points)]
    ratios = np.abs(four.coefficients[0]) / spans
    assert number == pytest.approx(ratios.min(), rel=1e-9)


def test_coefficients_with_one_bin_less_and_one_more_are_told():
    X = grid(1, -10.0, 10.0)
    model = linear([5.0], X)
    five = explained(model, [0.5], X, tabular(X, n_bins=5))
    (item,) = found(five.diagnose(), "cancellation by binning", 0)
    others = [
        explained(model, [0.5], X, tabular(X, n_bins=p, kernel_width=0.75))
        for p in (4, 6)
    ]
    for other, p in zip(others, (4, 6), strict=True):
        assert f"{other.coefficients[0, 0]:.4g} with {p} bins" in item.sentence


# ---- signs against profiles


def against(lime, column: int) -> list[int]:
    """The rows with a finding on a column, whose numbers are β over the rise of h."""
    rows = []
    for item in lime.diagnose().of("sign against the profile"):
        h = lime.subject.profiles(lime.points)[item.column][item.row]
        beta = lime.coefficients[item.row, item.column]
        assert item.number == pytest.approx(beta / (h[-1] - h[0]), rel=1e-9)
        assert item.number < 0.0
        if item.column == column:
            rows.append(item.row)
    return sorted(rows)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_linear_function_has_the_sign_of_its_slope_in_upper_bins_alone(sign):
    X = grid(2)
    lime = limits(linear([3.0 * sign, 1.0], X), X[:60], data=X)
    lower = np.flatnonzero(X[:60, 0] < 0.5)
    assert against(lime, 0) == lower.tolist()
    first = lime.diagnose().to_frame().iloc[0]
    assert first["rule"] == "sign against the profile"
    assert "rises" in first["sentence"] or "falls" in first["sentence"]


def test_flat_steps_of_a_tree_that_rises_are_no_falls():
    X = grid(2)
    tree = DecisionTreeRegressor(max_depth=1).fit(X, 1e6 + (X[:, 0] > 0.6))
    lime = limits(tree, X[:60], data=X)
    assert against(lime, 0) == np.flatnonzero(X[:60, 0] < 0.5).tolist()
    assert against(lime, 1) == []  # which the tree does not use


def test_profiles_that_turn_have_no_sign_to_be_against():
    X = grid(2, -1.0, 1.0)
    tree = DecisionTreeRegressor(max_depth=5).fit(X, X[:, 0] ** 2)
    lime = limits(tree, X[:60], data=X)
    assert against(lime, 0) == []
    assert np.ptp(np.sign(lime.coefficients[:, 0])) == 2.0


def test_categories_and_weights_of_distances_have_no_profile_to_be_against():
    X = grid(2)
    law = po.lime.GaussianLaw.from_data(X)
    lime = limits(linear([1.0, 1.0], X), X[:3], law, data=X)
    item = quiet(lime.diagnose(), "sign against the profile")
    assert "no profile of their own" in item.sentence
    table = pd.DataFrame({"town": list("abcd") * 100, "x": X[:, 0]})
    f = po.wrap(lambda Z: Z["town"].map(ord) + Z["x"], data=table)
    lime = limits(f, table.iloc[:8], data=table, n_samples=400)
    columns = {i.column for i in lime.diagnose().of("sign against the profile")}
    assert columns == {1}


def test_estimated_signs_are_told_beyond_three_errors():
    X = grid(30, -1.0, 1.0)
    # columns from the third on have no effect, and their estimates a sign
    f = po.wrap(lambda Z: np.exp(Z[:, 0]) + 0.5 * np.sin(50.0 * Z[:, 0] * Z[:, 1]))
    lime = limits(f, X[:60], data=X, n_samples=2000)
    diagnosis = lime.diagnose()
    rows = [i.row for i in diagnosis.of("sign against the profile") if i.column == 0]
    # exp(x) has the mean 1.18: below the third bin the coefficient is negative
    assert sorted(rows) == np.flatnonzero(X[:60, 0] < 0.0).tolist()
    assert not [i for i in diagnosis.of("sign against the profile") if i.column > 1]


# ---- bandwidth fragility


def test_a_root_near_the_width_is_fragile():
    X = grid(2)
    law = tabular(X, kernel_width=0.6)
    lime = explained(product(X), [0.9, 0.1], X, law)
    (item,) = found(lime.diagnose(), "bandwidth fragility", 0)
    # the zero of m* + ε s for the other factor, with bin means 1/8, 3/8, 5/8, 7/8
    means = np.array([0.125, 0.375, 0.625, 0.875]) - 0.3
    root = np.sqrt(-0.5 / np.log(-means[0] / means[1:].sum()))
    assert 2.0**-item.number * 0.6 == pytest.approx(root, rel=5e-3)
    assert lime.path().sign_changes[0].widths[0] == pytest.approx(root, rel=5e-3)
    assert found(lime.diagnose(), "bandwidth fragility", 1) == []


def test_a_sign_that_is_not_that_without_weights_is_fragile_however_far_the_root():
    X = grid(2)
    lime = explained(product(X), [0.9, 0.1], X, tabular(X, kernel_width=0.2))
    (item,) = found(lime.diagnose(), "bandwidth fragility", 0)
    assert item.number > 1.0


def test_a_far_root_on_the_side_of_narrow_kernels_is_not_fragile():
    X = grid(2)
    lime = explained(product(X), [0.9, 0.1], X, tabular(X, kernel_width=3.0))
    diagnosis = lime.diagnose()
    assert "bandwidth fragility" not in diagnosis.rules
    item = quiet(diagnosis, "bandwidth fragility")
    assert item.number == pytest.approx(np.log2(3.0 / 0.54), abs=0.02)


# ---- weights


def test_default_weights_of_thirty_columns_are_not_local():
    X = grid(30)
    lime = explained(linear([1.0] * 30, X), [0.1] * 30, X)
    (item,) = found(lime.diagnose(), "non-local weights")
    # Π c² / (w + (1 − w) ε²) with w = 1/4, ν = 0.75 √30
    eps = np.exp(-0.5 / (0.5625 * 30))
    c, c2 = 0.25 + 0.75 * eps, 0.25 + 0.75 * eps**2
    assert item.number == pytest.approx((c**2 / c2) ** 30, rel=1e-6)


def test_narrow_kernels_are_local():
    X = grid(3)
    lime = explained(linear([1.0] * 3, X), [0.1] * 3, X, tabular(X, kernel_width=0.7))
    assert "non-local weights" not in lime.diagnose().rules


def test_a_narrow_kernel_leaves_coefficients_to_ridge_and_the_row():
    X = grid(2)
    lime = explained(product(X), [0.9, 0.1], X, tabular(X, kernel_width=0.2))
    diagnosis = lime.diagnose(5000)
    ridge = {item.column: item for item in diagnosis.of("weight collapse: ridge")}
    eps = np.exp(-0.5 / 0.04)
    c = 0.25 + 0.75 * eps
    alpha, weight = 0.25 / c, 4999 * c**2
    V = weight * alpha * (1.0 - alpha)
    assert ridge[0].number == pytest.approx(V / (V + 1.0), rel=1e-3)
    # both numbers are told: the limit and the mean of runs
    assert f"{lime.coefficients[0, 0]:.4g}" in ridge[0].sentence
    assert f"{lime.expected(5000)[0, 0]:.4g}" in ridge[0].sentence
    assert {item.column for item in diagnosis.of("weight collapse: ridge")} == {0, 1}


def test_default_weights_do_not_collapse():
    X = grid(3)
    lime = explained(linear([1.0, 2.0, 3.0], X), [0.1, 0.3, 0.9], X)
    rules = lime.diagnose(5000).rules
    assert not {rule for rule in rules if rule.startswith("weight collapse")}


def test_the_first_row_matters_where_weights_are_few():
    X = grid(2)
    law = tabular(X, kernel_width=0.25)
    lime = explained(product(X), [0.99, 0.99], X, law)
    shift = lime.local_gap[0] / (30 * lime.mean_weight[0] * lime.alpha[0, 0])
    (item,) = found(lime.diagnose(30), "weight collapse: first row", 0)
    floor = 0.1 * np.abs(lime.coefficients).max()
    beta = max(abs(lime.coefficients[0, 0]), floor)
    assert item.number == pytest.approx(abs(shift) / beta, rel=1e-6)


def test_few_samples_count_where_the_kernel_is_narrow():
    X = grid(12)
    law = tabular(X, kernel_width=0.4)
    lime = explained(linear([1.0] * 12, X), [0.1] * 12, X, law)
    (item,) = found(lime.diagnose(5000), "weight collapse: samples")
    assert item.number == pytest.approx(5000 * lime.effective_share[0] / 130, rel=1e-9)


# ---- noise


def test_a_coefficient_below_two_deviations_of_a_run_is_noise():
    X = grid(2)
    lime = explained(linear([10.0, 0.05], X), [0.1, 0.1], X)
    few, many = lime.diagnose(500), lime.diagnose(5_000_000)
    (item,) = found(few, "noise", 1)
    ratio = abs(lime.coefficients[0, 1]) / lime.noise(500)[0, 1]
    assert item.number == pytest.approx(ratio, rel=1e-9)
    wrong = 2.0 * lime.noise(500)[0, 1] - abs(lime.coefficients[0, 1])
    largest = abs(lime.coefficients[0, 0])
    assert item.severity == pytest.approx(0.85 * wrong / largest, rel=1e-9)
    assert found(few, "noise", 0) == []
    assert found(many, "noise", 1) == []


def test_columns_that_are_not_used_are_not_noise():
    X = grid(3)
    lime = explained(linear([10.0, 5.0, 0.0], X[:, :3]), [0.1, 0.1, 0.1], X)
    zero = np.abs(lime.coefficients[0]) < 1e-9
    columns = {item.column for item in lime.diagnose(50).of("noise")}
    assert not zero[[c for c in columns if lime.coefficients[0, c] == 0.0]].any()


def test_close_rivals_have_no_stable_ranking():
    X = grid(5)
    close = explained(linear([5.0, 4.0, 3.0, 2.99, 0.1], X), [0.1] * 5, X)
    (item,) = found(close.diagnose(500), "unstable ranking")
    assert 0.4 < item.number < 0.62  # which of two equal ones is third
    apart = explained(linear([5.0, 4.0, 3.0, 0.2, 0.1], X), [0.1] * 5, X)
    assert "unstable ranking" not in apart.diagnose(5000).rules


# ---- edges


def test_a_value_beside_an_edge_has_the_coefficient_of_the_next_bin_too():
    X = grid(1)
    model = linear([1.0], X)
    lime = explained(model, [0.505], X)  # the edge is at 0.5, bins are 0.25 wide
    (item,) = found(lime.diagnose(), "edge proximity", 0)
    low, middle, high = lime.law.columns[0].edges
    assert item.number == pytest.approx((0.505 - middle) / (high - middle), rel=1e-9)
    assert low < middle
    below = explained(model, [0.45], X).coefficients[0, 0]
    assert f"beyond it the coefficient is {below:.4g}" in item.sentence


def test_a_value_in_the_middle_of_its_bin_is_far_from_edges():
    X = grid(1)
    lime = explained(linear([1.0], X), [0.625], X)
    item = quiet(lime.diagnose(), "edge proximity")
    assert item.number == pytest.approx(0.5, rel=0.01)


def test_the_end_of_the_data_is_no_edge():
    X = grid(1)
    lime = explained(linear([1.0], X), [0.999], X)
    assert "edge proximity" not in lime.diagnose().rules


# ---- fidelity


def test_a_product_of_centred_columns_has_low_fidelity():
    X = grid(2, -1.0, 1.0)
    terms = product(X)
    lime = explained(terms, [0.9, 0.9], X, tabular(X, kernel_width=100.0))
    diagnosis = lime.diagnose()
    low = found(diagnosis, "low fidelity: r2")
    linear_only = explained(linear([1.0, 1.0], X), [0.9, 0.9], X)
    assert low
    assert low[0].number == pytest.approx(lime.r2[0])
    assert "low fidelity: r2" not in [
        rule for rule in linear_only.diagnose().rules if linear_only.r2[0] > 0.5
    ]


def test_the_gap_at_the_row_is_told_in_deviations_of_f():
    X = grid(2, -1.0, 1.0)
    lime = explained(product(X), [0.99, 0.99], X, tabular(X, kernel_width=100.0))
    (item,) = found(lime.diagnose(), "low fidelity: local gap")
    sd = np.sqrt(lime.runs.variance[0])
    assert item.number == pytest.approx(abs(lime.local_gap[0]) / sd, rel=1e-9)


@pytest.mark.parametrize(
    ("x", "rule"), [(0.01, "low fidelity: r2"), (0.99, "low fidelity: local gap")]
)
def test_what_bins_leave_of_a_sum_of_single_columns_is_a_note(x, rule):
    X = grid(4, -1.0, 1.0)
    diagnosis = explained(linear([1.0] * 4, X), [x] * 4, X).diagnose()
    (item,) = diagnosis.of(rule)
    assert item.is_note
    assert rule not in diagnosis.rules


@pytest.mark.parametrize("known", [True, False])
def test_the_share_of_interactions_is_that_of_the_analysis_of_variance(known):
    X = grid(2, -1.0, 1.0)

    def f(Z):
        return Z[:, 0] * (Z[:, 1] - 0.3)

    lime = explained(
        product(X) if known else f, [0.9, 0.9], X, tabular(X, kernel_width=1e3)
    )
    case = evidence_of(lime, lime.subject, 1000)
    # of f = x (y − 0.3) under even columns: Var x y = 1/9, and Var 0.3 x = 0.03
    assert case.interactions[0] == pytest.approx((1 / 9) / (1 / 9 + 0.03), abs=0.02)


def test_columns_without_an_effect_add_nothing_to_what_single_columns_hold():
    X = grid(30, -1.0, 1.0)
    lime = explained(lambda Z: Z[:, 0] * Z[:, 1], [0.9] * 30, X)
    # 32 strata of 8192 draws in 30 columns would have a share of 0.11 without an effect
    assert evidence_of(lime, lime.subject, 1000).interactions[0] > 0.97


# ---- samples and data


def test_a_skewed_bin_is_drawn_with_another_mean():
    column = np.random.default_rng(3).lognormal(0.0, 1.5, (2000, 1))
    lime = explained(linear([1.0], column), [column.max() / 2.0], column)
    (item,) = found(lime.diagnose(), "sampling mismatch: bin mean", 0)
    law = lime.law.columns[0]
    drawn = law.pieces.normals.means[-1]
    apart = abs(drawn - law.pieces.mean[-1]) / law.pieces.sd[-1]
    assert item.number == pytest.approx(apart, rel=1e-9)
    even = grid(1)
    flat = explained(linear([1.0], even), [0.9], even).diagnose()
    assert "sampling mismatch: bin mean" not in flat.rules


def test_columns_that_go_together_are_told_once():
    X = grid(2)
    pair = np.column_stack([X[:, 0], X[:, 0] + 0.05 * X[:, 1], X[:, 1]])
    diagnosis = explained(linear([1.0, 1.0, 1.0], pair), [0.3] * 3, pair).diagnose()
    (item,) = found(diagnosis, "sampling mismatch: correlation")
    assert item.number == pytest.approx(np.corrcoef(pair[:, 0], pair[:, 1])[0, 1])
    alone = explained(linear([1.0, 1.0], X), [0.3] * 2, X).diagnose()
    assert "sampling mismatch: correlation" not in alone.rules


def test_samples_are_off_the_data_where_columns_go_together():
    X = grid(1)
    line = np.repeat(X, 3, axis=1) + 1e-3 * grid(3)
    off = explained(linear([1.0] * 3, line), [0.3] * 3, line).diagnose()
    (item,) = found(off, "sampling mismatch: off the data")
    assert item.number > 0.9
    cube = grid(3)
    inside = explained(linear([1.0] * 3, cube), [0.3] * 3, cube).diagnose()
    assert "sampling mismatch: off the data" not in inside.rules


# ---- quirks


def test_values_beyond_the_data_are_told():
    X = grid(1)
    lime = explained(linear([1.0], X), [1.5], X)
    (item,) = found(lime.diagnose(), "out of range", 0)
    high = X.max()
    edge = lime.law.columns[0].edges[-1]
    assert item.number == pytest.approx((1.5 - high) / (high - edge), rel=1e-9)


def test_ties_merge_bins_and_make_points():
    X = np.column_stack([grid(1)[:, 0], np.repeat([0.0, 0.0, 0.0, 1.0], 100)])
    diagnosis = explained(linear([1.0, 1.0], X), [0.3, 1.0], X).diagnose()
    assert found(diagnosis, "package: point-mass bin", 1)
    (item,) = found(diagnosis, "package: unequal bins")
    assert "1 column with fewer than 4 bins" in item.sentence
    assert item.number == pytest.approx(1.25)  # shares 3/4, 0 and 1/4 of thirds


def test_even_columns_have_no_quirks():
    X = grid(2)
    rules = explained(linear([1.0, 1.0], X), [0.3, 0.3], X).diagnose().rules
    assert not {rule for rule in rules if rule.startswith("package")}


def test_a_penalty_on_the_intercept_is_told_where_weights_are_few():
    X = grid(2)
    lime = explained(product(X), [0.9, 0.1], X, tabular(X, kernel_width=0.2))
    high = explained(
        lambda Z: 100.0 + Z[:, 0],
        [0.9, 0.1],
        X,
        tabular(X, kernel_width=0.25),
        n_samples=500,
    )
    assert lime.diagnose(50_000_000).of("package: free intercept") == ()
    assert found(high.diagnose(100), "package: free intercept")


# ---- what all share


def test_a_rule_that_finds_nothing_says_how_near_it_came():
    X = grid(2)
    diagnosis = explained(linear([1.0, 1.0], X), [0.3, 0.3], X).diagnose()
    item = quiet(diagnosis, "non-local weights")
    assert item.sentence == f"nothing found; largest {item.number:.3g}"
    assert item.number < item.threshold


def test_what_misleads_most_comes_first():
    X = grid(4)
    lime = explained(product(X[:, :2]), [0.9, 0.1], X[:, :2])
    severities = [item.severity for item in lime.diagnose(100).findings]
    assert severities == sorted(severities, reverse=True)


def test_names_categories_and_gaps_are_diagnosed():
    X = pd.DataFrame(
        {
            "age": [20.0, 30.0, np.nan, 50.0, 60.0, 70.0] * 20,
            "town": list("aabbcc") * 20,
        },
        index=[f"r{n}" for n in range(120)],
    )
    f = po.wrap(lambda X: X["age"].fillna(0.0) + 9.0 * (X["town"] == "a"), data=X)
    lime = limits(f, X.iloc[:3], data=X, n_samples=400)
    frame = lime.diagnose().to_frame()
    told = frame[frame["found"]]
    assert set(told["row"]) <= {"r0", "r1", "r2", None}
    assert set(told["feature"]) <= {"age", "town", None}
    by_name = frame.set_index("rule")["sentence"]
    assert "estimated" in by_name["bandwidth fragility"]


# ---- alignment


def bump_tree():
    """The tree of Figure 13: depth 4, fitted to a bump at (−3, 3)."""
    X = np.random.default_rng(3).uniform(-10.0, 10.0, (1000, 2))
    y = np.exp(-0.5 * ((X - [-3.0, 3.0]) ** 2).sum(axis=1))
    return DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, y), X


def test_a_row_below_a_bump_has_a_coefficient_of_what_is_elsewhere():
    tree, X = bump_tree()
    law = tabular(X, kernel_width=1.0)
    on, below = (explained(tree, row, X, law) for row in ([-3.0, 2.3], [-3.0, -2.3]))
    (item,) = found(below.diagnose(), "alignment artifact", 0)
    assert item.number > 0.99
    assert abs(below.coefficients[0, 0]) > 0.02  # and f is flat there:
    cell = tree.predict(np.array([[-3.0, -2.3], [-2.0, -1.0], [-4.0, -4.0]]))
    assert np.ptp(cell) < 0.01
    assert found(on.diagnose(), "alignment artifact", 0) == []


def test_a_cell_aligned_with_a_box_is_told_and_the_box_is_not():
    def box(Z):
        return ((Z[:, 0] > 0.25) & (Z[:, 0] <= 0.5) & (Z[:, 1] <= 0.25)).astype(float)

    X = grid(2)
    tree = DecisionTreeRegressor(random_state=0).fit(X, box(X))
    inside, aligned, other = (
        explained(tree, row, X, tabular(X, kernel_width=1.0)).diagnose()
        for row in ([0.4, 0.1], [0.4, 0.9], [0.9, 0.9])
    )
    assert [item.column for item in aligned.of("alignment artifact")] == [0]
    assert found(aligned, "alignment artifact", 0)[0].number == pytest.approx(1.0)
    assert "alignment artifact" not in inside.rules
    assert {item.column for item in other.of("alignment artifact")} == {0, 1}


def test_additive_functions_have_no_alignment_artifacts():
    X = grid(3)
    diagnosis = explained(linear([1.0, 2.0, 3.0], X), [0.1, 0.3, 0.9], X).diagnose()
    assert quiet(diagnosis, "alignment artifact").number == pytest.approx(0.0, abs=1e-9)


def test_where_f_varies_in_the_cell_an_aligned_coefficient_is_not_told():
    def stepped_box(Z):
        box = (Z[:, 0] > 0.25) & (Z[:, 0] <= 0.5) & (Z[:, 1] <= 0.25)
        return box + 1.0 * (Z[:, 2] > 0.6)

    X = grid(3)
    tree = DecisionTreeRegressor(random_state=0).fit(X, stepped_box(X))
    law = tabular(X, kernel_width=1.0)
    varies = explained(tree, [0.4, 0.9, 0.62], X, law).diagnose()
    assert found(varies, "alignment artifact", 0) == []
    flat = explained(tree, [0.4, 0.9, 0.1], X, law).diagnose()
    assert found(flat, "alignment artifact", 0)[0].number > 0.95


# ---- odd rows and functions


def test_a_row_beyond_an_end_bin_of_one_value_is_told_in_widths_of_all():
    X = np.column_stack([np.repeat([0.0, 1.0], 20), grid(1, -10.0, 10.0)[:40, 0]])
    f = linear([1.0, 1.0], X)
    diagnosis = explained(f, [-5.0, 0.0], X, tabular(X)).diagnose()
    (item,) = found(diagnosis, "out of range", 0)
    assert item.number == pytest.approx(5.0)


def test_a_flat_function_is_diagnosed():
    X = grid(2, -10.0, 10.0)
    tree = DecisionTreeRegressor(max_depth=1).fit(X, np.full(len(X), 5.0))
    diagnosis = limits(tree, X[:1], data=X).diagnose()
    assert quiet(diagnosis, "sampling mismatch: off the data").sentence
