"""Rules of tabular LIME: where each fires, with its number, and where not; results."""

import runpy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from lime_cases import explained, grid, linear, product, tabular
from sklearn.ensemble import RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from papers.lime import gaussian_theory
from propopt.base.errors import InvalidInput
from propopt.lime import GaussianLaw, GlimeLaw, limits
from propopt.lime.diagnosis.evidence import RuleOutcome
from propopt.lime.diagnosis.rules import LIME_RULES


def findings_on(diagnosis, rule, column=None):
    return [item for item in diagnosis.of(rule) if item.column == column]


def number_of(diagnosis, rule, column=None):
    """Of the one finding on a column, or of the row."""
    (item,) = findings_on(diagnosis, rule, column)
    return item.number


def quiet(diagnosis, rule):
    (item,) = [item for item in diagnosis.quiet if item.rule == rule]
    return item


def close(number, rel=1e-9, abs=None):
    return pytest.approx(number, rel=rel, abs=abs)


ONE, TWO, THREE, WIDE = grid(1), grid(2), grid(3), grid(2, -10.0, 10.0)
CENTRED = grid(2, -1.0, 1.0)
FLAT = linear([1.0, 1.0], TWO)
AGAINST = "sign against the profile"
ALIGNED = "alignment artifact"


def of_product(width, row=(0.9, 0.1), X=TWO, **settings):
    law = tabular(X, kernel_width=width)
    return explained(product(X), list(row), X, law, **settings)


def test_a_bin_in_the_middle_of_an_odd_number_cancels_a_linear_function():
    rule, model = "cancellation by binning", linear([5.0, 1.0], WIDE)
    five, four = (
        explained(model, [0.5, 7.0], WIDE, tabular(WIDE, n_bins=p)) for p in (5, 4)
    )
    number = number_of(five.diagnose(), rule, 0)
    span = np.ptp(five.subject.profiles(five.points)[0][0])
    assert span == close(80.0, 0.02)  # 5 times four of five bins of 20
    assert number == close(abs(five.coefficients[0, 0]) / span)
    assert number < 1e-3
    diagnosis = four.diagnose()
    assert rule not in diagnosis.rules
    # β = λ (2.5 − mean of −7.5, −2.5, 7.5) over λ 15
    number = quiet(diagnosis, rule).number
    assert number == close(10.0 / 3.0 / 15.0, 0.01)
    spans = [np.ptp(means[0]) for means in four.subject.profiles(four.points)]
    assert number == close((np.abs(four.coefficients[0]) / spans).min())


def against(lime, column):
    """The rows with a finding on a column, whose numbers are β over the rise of h."""
    rows = []
    for item in lime.diagnose().of(AGAINST):
        h = lime.subject.profiles(lime.points)[item.column][item.row]
        beta = lime.coefficients[item.row, item.column]
        assert item.number == close(beta / (h[-1] - h[0]))
        assert item.number < 0.0
        if item.column == column:
            rows.append(item.row)
    return sorted(rows)


def stump(X, y, depth=1):
    return DecisionTreeRegressor(max_depth=depth, random_state=0).fit(X, y)


@pytest.mark.parametrize(
    "model",
    [
        linear([3.0, 1.0], TWO),
        linear([-3.0, 1.0], TWO),
        stump(TWO, 1e6 + (TWO[:, 0] > 0.6)),  # whose flat steps are no falls
    ],
)
def test_a_monotone_function_has_the_sign_of_its_slope_in_upper_bins_alone(model):
    lime = limits(model, TWO[:60], data=TWO)
    lower = np.flatnonzero(TWO[:60, 0] < 0.5).tolist()
    assert against(lime, 0) == lower
    first = lime.diagnose().to_frame().iloc[0]
    assert first["rule"] == AGAINST
    row, column = lime.labels.position(first["row"], 60), 0
    if first["feature"] == "x1":
        column = 1
    assert first["coefficient"] == lime.coefficients[row, column]
    if isinstance(model, DecisionTreeRegressor):
        assert against(lime, 1) == []  # which the tree does not use


CODES = np.column_stack([np.arange(120) % 2, np.arange(120) // 2 % 3]).astype(float)


def test_of_two_bins_no_sign_is_against_the_profile():
    """There a coefficient is the difference of both means, such as f(0) − f(1)."""
    lime = limits(linear([6.88, 1.0], CODES), CODES[:6], data=CODES)
    low = CODES[:6, 0] == 0.0
    step = np.where(low, -6.88, 6.88)
    np.testing.assert_allclose(lime.coefficients[:, 0], step, rtol=1e-6)
    assert against(lime, 0) == []
    assert against(lime, 1) == np.flatnonzero(CODES[:6, 1] == 0.0).tolist()  # of three
    halves = limits(linear([3.0, 1.0], TWO), TWO[:9], tabular(TWO, n_bins=2), data=TWO)
    assert against(halves, 0) == against(halves, 1) == []


def test_what_has_no_profile_to_be_against():
    # one that turns
    tree = stump(CENTRED, CENTRED[:, 0] ** 2, 5)
    lime = limits(tree, CENTRED[:60], data=CENTRED)
    assert against(lime, 0) == []
    assert np.ptp(np.sign(lime.coefficients[:, 0])) == 2.0
    # weights of distances, and categories
    lime = limits(FLAT, TWO[:3], GaussianLaw.from_data(TWO), data=TWO)
    assert np.isnan(quiet(lime.diagnose(), AGAINST).number)
    table = pd.DataFrame({"town": list("abcd") * 100, "x": TWO[:, 0]})
    f = po.wrap(lambda Z: Z["town"].map(ord) + Z["x"], data=table)
    lime = limits(f, table.iloc[:8], data=table, n_samples=400)
    assert {item.column for item in lime.diagnose().of(AGAINST)} == {1}


def test_estimated_signs_are_told_beyond_three_errors():
    X = grid(12, -1.0, 1.0)
    # columns from the third on have no effect, and their estimates a sign
    f = po.wrap(lambda Z: np.exp(Z[:, 0]) + 0.5 * np.sin(50.0 * Z[:, 0] * Z[:, 1]))
    lime = limits(f, X[:24], data=X, n_samples=2000)
    findings = lime.diagnose().of(AGAINST)
    # exp(x) has the mean 1.18: below the third bin the coefficient is negative
    rows = sorted(item.row for item in findings if item.column == 0)
    assert rows == np.flatnonzero(X[:24, 0] < 0.0).tolist()
    assert not [item for item in findings if item.column > 1]


def test_roots_of_coefficients_near_the_width_are_fragile():
    rule, lime = "bandwidth fragility", of_product(0.6)
    diagnosis = lime.diagnose()
    # the zero of m* + ε s for the other factor, with bin means 1/8, 3/8, 5/8, 7/8
    means = np.array([0.125, 0.375, 0.625, 0.875]) - 0.3
    root = np.sqrt(-0.5 / np.log(-means[0] / means[1:].sum()))
    assert 2.0 ** -number_of(diagnosis, rule, 0) * 0.6 == close(root, 5e-3)
    assert lime.path().sign_changes[0][0] == close(root, 5e-3)
    assert findings_on(diagnosis, rule, 1) == []
    # a sign that is not that without weights is fragile however far the root
    assert number_of(of_product(0.2).diagnose(), rule, 0) > 1.0
    # and a far root on the side of narrow kernels is not
    diagnosis = of_product(3.0).diagnose()
    assert rule not in diagnosis.rules
    assert quiet(diagnosis, rule).number == close(np.log2(3.0 / 0.54), abs=0.02)


def test_a_narrow_kernel_leaves_coefficients_to_ridge_and_the_row():
    lime = of_product(0.2)
    (ridge,) = lime.diagnose(5000).of("weight collapse: ridge")
    eps = np.exp(-0.5 / 0.04)
    c = 0.25 + 0.75 * eps
    alpha, weight = 0.25 / c, 4999 * c**2
    V = weight * alpha * (1.0 - alpha)
    assert ridge.number == close(V / (V + 1.0), 1e-3)
    # default weights do not collapse
    lime = explained(linear([1.0, 2.0, 3.0], THREE), [0.1, 0.3, 0.9], THREE)
    assert not any(rule.startswith("weight coll") for rule in lime.diagnose(5000).rules)


def test_the_first_row_and_the_samples_that_count_where_weights_are_few():
    lime = of_product(0.25, (0.99, 0.99))
    shift = lime.local_gap[0] / (30 * lime.mean_weight[0] * lime.alpha[0, 0])
    size = np.abs(lime.coefficients[0])
    beta = max(size[0], 0.1 * size.max())
    number = number_of(lime.diagnose(30), "weight collapse: first row", 0)
    assert number == close(abs(shift) / beta, 1e-6)
    X = grid(12)
    law = tabular(X, kernel_width=0.4)
    lime = explained(linear([1.0] * 12, X), [0.1] * 12, X, law)
    number = number_of(lime.diagnose(5000), "weight collapse: samples")
    assert number == close(5000 * lime.effective_share[0] / 130)


def test_a_coefficient_below_two_deviations_of_a_run_is_noise():
    lime = explained(linear([10.0, 0.05], TWO), [0.1, 0.1], TWO)
    few, many = lime.diagnose(500), lime.diagnose(5_000_000)
    (item,) = findings_on(few, "noise", 1)
    sizes, sd = np.abs(lime.coefficients[0]), lime.noise(500)[0, 1]
    assert item.number == close(sizes[1] / sd)
    assert item.severity == close(0.85 * (2.0 * sd - sizes[1]) / sizes[0])
    assert findings_on(few, "noise", 0) == findings_on(many, "noise", 1) == []
    # columns that are not used are no noise
    lime = explained(linear([10.0, 5.0, 0.0], THREE), [0.1, 0.1, 0.1], THREE)
    columns = {item.column for item in lime.diagnose(50).of("noise")}
    assert (lime.coefficients[0, [*columns]] != 0.0).all()


def test_low_fidelity_is_told_in_shares_and_in_deviations_of_f():
    r2, gap = "low fidelity: r2", "low fidelity: local gap"
    lime = of_product(100.0, (0.9, 0.9), CENTRED)
    assert number_of(lime.diagnose(), r2) == close(lime.r2[0])
    additive = explained(linear([1.0, 1.0], CENTRED), [0.9, 0.9], CENTRED)
    assert additive.r2[0] > 0.5
    assert r2 not in additive.diagnose().rules
    lime = of_product(100.0, (0.99, 0.99), CENTRED)
    sd = np.sqrt(lime.runs.variance[0])
    assert number_of(lime.diagnose(), gap) == close(abs(lime.local_gap[0]) / sd)
    # what bins leave of a sum of single columns is a note
    X = grid(4, -1.0, 1.0)
    for x, rule in ((0.01, r2), (0.99, gap)):
        diagnosis = explained(linear([1.0] * 4, X), [x] * 4, X).diagnose()
        (item,) = diagnosis.of(rule)
        assert item.severity < 0.25
        assert rule not in diagnosis.rules


def interactions(model, X, row, law=None):
    lime = explained(model, row, X, law)
    return lime.evidence(1000)[0].interactions[0]


def test_the_share_of_interactions_is_that_of_the_analysis_of_variance():
    law = tabular(CENTRED, kernel_width=1e3)
    # of f = x (y − 0.3) under even columns: Var x y = 1/9, and Var 0.3 x = 0.03
    expected = pytest.approx((1 / 9) / (1 / 9 + 0.03), abs=0.02)
    for f in (product(CENTRED), lambda Z: Z[:, 0] * (Z[:, 1] - 0.3)):
        assert interactions(f, CENTRED, [0.9, 0.9], law) == expected
    # columns without an effect add nothing to what single columns hold:
    # 32 strata of 8192 draws in 30 columns would have a share of 0.11 without an effect
    X = grid(30, -1.0, 1.0)
    assert interactions(lambda Z: Z[:, 0] * Z[:, 1], X, [0.9] * 30) > 0.97


def test_a_row_below_a_bump_has_a_coefficient_of_what_is_elsewhere():
    """The tree of Figure 13: depth 4, fitted to a bump at (−3, 3)."""
    X = np.random.default_rng(3).uniform(-10.0, 10.0, (1000, 2))
    tree = stump(X, np.exp(-0.5 * ((X - [-3.0, 3.0]) ** 2).sum(axis=1)), 4)
    law = tabular(X, kernel_width=1.0)
    on, below = (explained(tree, row, X, law) for row in ([-3.0, 2.3], [-3.0, -2.3]))
    assert number_of(below.diagnose(), ALIGNED, 0) > 0.99
    assert abs(below.coefficients[0, 0]) > 0.02  # and f is flat there:
    cell = tree.predict(np.array([[-3.0, -2.3], [-2.0, -1.0], [-4.0, -4.0]]))
    assert np.ptp(cell) < 0.01
    assert findings_on(on.diagnose(), ALIGNED, 0) == []


def box(Z):
    return (Z[:, 0] > 0.25) & (Z[:, 0] <= 0.5) & (Z[:, 1] <= 0.25)


def test_a_cell_aligned_with_a_box_is_told_and_the_box_is_not():
    tree, law = stump(TWO, 1.0 * box(TWO), None), tabular(TWO, kernel_width=1.0)
    inside, aligned, other = (
        explained(tree, row, TWO, law).diagnose()
        for row in ([0.4, 0.1], [0.4, 0.9], [0.9, 0.9])
    )
    assert [item.column for item in aligned.of(ALIGNED)] == [0]
    assert number_of(aligned, ALIGNED, 0) == pytest.approx(1.0)
    assert ALIGNED not in inside.rules
    assert {item.column for item in other.of(ALIGNED)} == {0, 1}
    # where f varies in the cell an aligned coefficient is not told
    tree = stump(THREE, box(THREE) + 1.0 * (THREE[:, 2] > 0.6), None)
    law = tabular(THREE, kernel_width=1.0)
    varies, flat = (
        explained(tree, [0.4, 0.9, x], THREE, law).diagnose() for x in (0.62, 0.1)
    )
    assert findings_on(varies, ALIGNED, 0) == []
    assert number_of(flat, ALIGNED, 0) > 0.95
    # and additive functions have none
    lime = explained(linear([1.0, 2.0, 3.0], THREE), [0.1, 0.3, 0.9], THREE)
    assert quiet(lime.diagnose(), ALIGNED).number == pytest.approx(0.0, abs=1e-9)


NORMAL = linear([10.0, -10.0, 0.0], grid(3, -2.0, 2.0))
NORMAL.coef_[2] = 0.0  # and no dust of rounding


def law_of(width):
    return GaussianLaw.of(np.zeros(3), 1.0, width)


def diagnosed(row, law):
    law = law if isinstance(law, GlimeLaw) else law_of(law)
    return limits(NORMAL, np.array([row]), law).diagnose()


def numbers(diagnosis, rule):
    return {item.column: item.number for item in diagnosis.of(rule)}


def test_the_width_of_figure_7_switches_a_column_off():
    # ν_crit = 0.5301 for ξ = 0.432 and quartiles of N(0, 1)
    rule, row = "switched off", [1.0, 0.432, 0.1]
    (item,) = diagnosed(row, 0.53).of(rule)
    assert item.column == 1
    assert item.number < 1e-3
    assert diagnosed(row, 2.0).of(rule) == ()
    X = grid(3, -2.0, 2.0)
    tabular = quiet(limits(NORMAL, X[:1], data=X).diagnose(), rule)
    assert np.isnan(tabular.number)
    glime = diagnosed(row, GlimeLaw(law_of(0.53)))
    assert 1 in numbers(glime, rule)
    assert "weight collapse: samples" not in glime.rules


def test_bins_below_the_mean_and_narrow_kernels():
    row = [1.0, -1.5, 0.1]
    gain = gaussian_theory.gains(law_of(2.0), [row]).gain[0, 1]
    opposite = numbers(diagnosed(row, 2.0), "sign opposite to gradient")
    assert opposite == {1: close(gain, 1e-12)}
    assert gain == pytest.approx(-1.46146931, abs=1e-8)
    rule, row = "no samples outside the bin", [0.3, 0.3, 0.3]
    outside = numbers(diagnosed(row, 0.08), rule)
    assert set(outside) == {0, 1}  # the third column is not used
    gains = gaussian_theory.gains(law_of(0.08), [row])
    expected = 5000 * np.exp(gains.log_weight[0]) * gains.complement[0, 0]
    assert outside[0] == close(expected)
    assert rule not in diagnosed(row, 2.0).rules


# ---- the tables of docs/guide/lime.md: false alarms, and planted cases that are named


@pytest.fixture(scope="module")
def tables():
    examples = Path(__file__).parents[3] / "examples"
    return runpy.run_path(str(examples / "more/lime_alarms.py"))


@pytest.mark.parametrize("kind", ["normal", "counts", "grades"])
def test_harmless_rows_have_few_findings_but_signs_against_slopes(tables, kind):
    result = tables["harmless"](table=tables[kind])
    assert (result["false alarms"] <= 0.3).all()
    if kind != "normal":
        return
    # half of the quartiles are below their mean, where a contrast is negative: 60 rows
    # times D fair coins, beyond 5 sd once in 2e6
    share = result["signs against the slope"] / result.index
    sd = (0.25 / (60 * result.index.to_numpy())) ** 0.5
    assert (abs(share - 0.5) < 5.0 * sd).all()


def test_all_that_is_planted_is_named(tables):
    result = tables["planted"]()
    assert set(result.index) == {rule.name for rule in LIME_RULES}
    assert (result["named as"] == "finding").all()


# ---- what all rules share, and the result of a diagnosis: table, text, card


NAMES = sorted(rule.name for rule in LIME_RULES)


def passes(item):
    (rule,) = [rule for rule in LIME_RULES if rule.name == item.rule]
    return item.number < rule.below or item.number > rule.above


def outcomes(rule, numbers, **settings):
    checked = RuleOutcome(numbers=numbers, stakes=np.ones((1, 1)), **settings)
    case = SimpleNamespace(beta=numbers)
    return replace(rule, check=lambda _: checked).findings(case)


@pytest.mark.parametrize("rule", LIME_RULES, ids=lambda rule: rule.name)
def test_a_number_beyond_its_threshold_is_found_or_excused(rule):
    sign = 1.0 if rule.below == -np.inf else -1.0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        numbers = rule.limit + rng.normal(size=(4, 3)) * 10.0 ** rng.integers(-9, 2)
        numbers[rng.random(numbers.shape) < 0.2] = np.nan
        excused = rng.random((4, 3)) < 0.6
        beyond = sign * numbers > sign * rule.limit
        items = outcomes(rule, numbers, excused=excused)
        result = [item for item in items if item.is_reported]
        assert len(result) == (beyond & ~excused).sum()
        assert all(map(passes, result))
        assert bool(result) == (len(items) == len(result))
    # a number that is excused is shown
    numbers = np.array([[rule.limit - sign, rule.limit + sign]])
    (item,) = outcomes(rule, numbers, excused=np.array([[True, True]]))
    assert not item.is_reported
    assert passes(item)


def cases():
    X = grid(3)
    forest = RandomForestRegressor(5, max_depth=4, random_state=0)
    forest.fit(X, X[:, 0] * X[:, 1] + (X[:, 2] > 0.6))
    narrow = GaussianLaw.from_data(X, kernel_width=0.4)

    def net(Z):
        return np.tanh(3.0 * Z @ [1.0, -1.0, 0.3] + Z[:, 0] * Z[:, 1])

    yield limits(forest, X[:9], data=X)
    yield limits(forest, X[:9], tabular(X, kernel_width=0.3), data=X)
    yield limits(forest, X[:4], GaussianLaw.from_data(X), data=X)
    yield limits(net, X[:4], data=X, n_samples=500)
    yield limits(net, X[:2], narrow, data=X, n_samples=500)
    yield limits(forest, X[:2], GlimeLaw(tabular(X)), data=X)


def test_no_diagnosis_contradicts_its_thresholds():
    n_excused = 0
    for lime in cases():
        diagnosis = lime.diagnose()
        rules = [item.rule for item in diagnosis.quiet]
        reported = {item.rule for item in diagnosis.reported}
        assert sorted({*rules, *reported}) == NAMES
        assert len(rules) == len(set(rules))
        frame = diagnosis.to_frame()
        kinds = frame["kind"].tolist()[-len(rules) :]
        for item, kind in zip(diagnosis.quiet, kinds, strict=True):
            assert passes(item) == (kind == "excused")
            assert np.isnan(item.number) == (kind == "not checked")
            n_excused += passes(item)
        for item in diagnosis.reported:
            assert passes(item) or item.rule == "bandwidth fragility"
    assert n_excused > 0


def test_an_estimate_takes_few_calls():
    X = grid(3, -1.0, 1.0)
    law = tabular(X, n_bins=5)
    f = po.wrap(lambda Z: np.exp(0.1 * Z[:, 0] * Z[:, 1]) + Z[:, 2])
    rows = X[:20].copy()
    rows[0] = [0.9, law.columns[1].edges[-1] + 1e-3, 0.0]
    lime = limits(f, rows, law, data=X, n_samples=500)
    before = f.calls.rows
    diagnosis = lime.diagnose()
    # common draws, and some for places beyond edges and in other bins
    assert f.calls.rows - before < 8192 + 20 * 500 + 20 * 2 * 500
    assert diagnosis.of("cancellation by binning")
    assert diagnosis.sampling_error == lime.sampling_error > 0.0


def facts(diagnosis, row):
    return {
        (item.rule, item.column): (item.number, item.severity, item.coefficient)
        for item in diagnosis.reported
        if item.row == row
    }


def test_a_row_alone_is_diagnosed_as_among_others():
    rows = next(cases())
    whole, alone = rows.diagnose(), rows.diagnose(rows=[5])
    among, same = facts(whole, 5), facts(alone, 0)
    assert among.keys() == same.keys()
    assert among
    for key, numbers_of_key in among.items():
        assert same[key] == pytest.approx(numbers_of_key, rel=1e-6, nan_ok=True)
    assert list(alone.to_frame().columns) == list(whole.to_frame().columns)
    assert set(alone.to_frame()["row"]) <= {5, None}
    with pytest.raises(InvalidInput, match=r"there is no .99."):
        rows.diagnose(rows=[99])


@pytest.fixture(scope="module")
def diagnosis():
    return of_product(0.5, n_samples=500).diagnose()


def test_the_table_has_what_was_found_and_what_was_not(diagnosis):
    frame = diagnosis.to_frame()
    assert (frame["kind"] == "finding").sum() == len(diagnosis.findings)
    assert len(frame) == len(diagnosis.reported) + len(diagnosis.quiet)
    kinds = {"finding": diagnosis.findings, "note": diagnosis.notes}
    for kind, items in kinds.items():
        assert (frame["kind"] == kind).sum() == len(items) > 0
    assert all(item.severity >= 0.25 for item in diagnosis.findings)
    assert all(item.severity < 0.25 for item in diagnosis.notes)
    assert set(diagnosis.rules) == set(frame.loc[frame["kind"] == "finding", "rule"])
    assert frame.loc[frame["kind"] == "quiet", "severity"].isna().all()
    limits_of = {rule.name: rule.limit for rule in LIME_RULES}
    assert frame["limit"].tolist() == frame["rule"].map(limits_of).tolist()


def test_a_card_has_the_worst_case_of_each_rule_and_one_danger():
    lime = limits(linear([3.0, -1.0], TWO), TWO[:60], data=TWO)
    diagnosis = lime.diagnose()
    document = diagnosis.document()
    table = document.blocks[0].frame
    assert table["rule"].tolist() == list(diagnosis.rules)
    assert table["cases"].sum() == len(diagnosis.findings)
    assert document.facts["findings"].value == len(diagnosis.findings)
    assert document.facts["sampling error"].value == 0.0
    worst = diagnosis.findings[0]
    assert worst.coefficient == lime.coefficients[worst.row, worst.column]
    assert table["worst at"][0] == f"row {worst.row}, x{worst.column}"
    assert table["flagged if"][0] == "< 0"
    (danger,) = document.dangers
    assert f"x{worst.column} in row {worst.row} is " in danger
    # the slope of the first column is positive, that of the second negative
    assert ("rises" if worst.column == 0 else "falls") in danger
    calm = limits(linear([0.0, 0.0], TWO), TWO[:3], data=TWO).diagnose().document()
    assert not calm.dangers
    assert calm.facts["findings"].value == 0
