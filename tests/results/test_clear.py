"""Clear signs and places: no small change of a row turns them, a larger one does."""

import numpy as np
import pytest
from refusals import refusals
from scipy.stats import t as student
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier

import propopt as po
from propopt.base.document import share_text
from propopt.base.errors import InvalidInput
from propopt.losses.faithfulness import Estimate
from propopt.proofs.sampling_error import TargetError
from propopt.tables.frames import group_sums


N, D = 7, 6
RNG = np.random.default_rng(4)
PHI = RNG.normal(size=(N, D)) * [2.0, 1.0, 1.0, 0.5, 0.3, 0.1]
W = 0.75 * PHI + 0.25 * PHI[RNG.permutation(N)]
W += (PHI.sum(axis=1) - W.sum(axis=1))[:, None] / D  # rows add up
GROUPS = {"pair": ["x1", "x3"]}
SUMS = np.array(
    [
        [1, 0, 0, 0, 0, 0],
        [0, 1, 0, 1, 0, 0],
        [0, 0, 1, 0, 0, 0],
        [0, 0, 0, 0, 1, 0],
        [0, 0, 0, 0, 0, 1.0],
    ]
)
BY = ("size", "value")


def parts(W=W, contributions=PHI, units="output", **fields):
    return po.results.Explanation(
        attributions=W,
        method="mine",
        units=units,
        contributions=contributions,
        **fields,
    )


def slopes(W=W, gradient=PHI):
    return po.results.Explanation(attributions=W, method="mine", gradient=gradient)


def changed(rng, rows, delta, keeps_sums):
    """Changes of this length, and of smaller ones."""
    v = rng.normal(size=(rows, D)) * rng.random((rows, D)) ** 3
    if keeps_sums:
        v -= v.mean(axis=1, keepdims=True)
    sizes = np.linalg.norm(v, axis=1, keepdims=True)
    return v * delta * np.minimum(2.0 * rng.random((rows, 1)), 1.0) / sizes


def conclusions(clear):
    return clear.signs, clear.best_ranks, clear.worst_ranks


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("kind", ["output", "slopes", "groups"])
def test_no_change_within_delta_turns_what_is_clear(kind, by):
    best, groups = (slopes(), None) if kind == "slopes" else (parts(), None)
    A = np.eye(D)
    if kind == "groups":
        A, groups = SUMS, GROUPS
    clear = best.clear(0.15, order=by, groups=groups)
    assert 0.2 < clear.sign.mean() < 1.0
    assert 0.0 < clear.order.mean() < 1.0
    ends = 1.0 if kind == "slopes" else 2.0
    rng = np.random.default_rng(0)
    for n in range(N):
        V = [W[n] + changed(rng, 4000, 0.15, kind != "slopes")]
        V += [PHI[n] + np.linspace(0.0, ends, 41)[:, None] * (W[n] - PHI[n])]
        for v in V[0] @ A.T, V[1] @ A.T:
            s = clear.signs[n]
            assert (np.sign(v) == s)[:, s != 0].all()
            keys = np.abs(v) if by == "size" else v
            ranks = 1 + (keys[:, None] > keys[:, :, None]).sum(axis=2)
            assert (ranks >= clear.best_ranks[n]).all()
            assert (ranks <= clear.worst_ranks[n]).all()


def turning(w, d, by, keeps_sums):
    """Unit changes that turn the sign of d, or its place, fastest; of each form."""
    P = np.eye(D) - (1.0 / D if keeps_sums else 0.0)
    e, s = np.eye(D), np.sign(w) if by == "size" else np.ones(D)
    forms = [s[d] * e[d] - k * s[o] * e[o] for o in range(D) if o != d for k in (1, -1)]
    if by == "value":
        forms = forms[::2]
    return [P @ x / np.linalg.norm(P @ x) for x in forms if np.abs(P @ x).max() > 1e-9]


@pytest.mark.parametrize("keeps_sums", [True, False])
def test_a_sign_is_turned_by_a_change_a_millionth_longer(keeps_sums):
    make = parts if keeps_sums else slopes
    P = np.eye(D) - (1.0 / D if keeps_sums else 0.0)
    for n, d in np.ndindex(N, D):
        w = W[[n]]
        length = abs(w[0, d]) / np.linalg.norm(P[d])
        for factor, retained in ((1.0 - 1e-6, True), (1.0 + 1e-6, False)):
            clear = make(w, None).clear(length * factor)
            assert clear.sign[0, d] == retained
            v = w[0] - np.sign(w[0, d]) * length * factor * P[d] / np.linalg.norm(P[d])
            assert (v[d] * w[0, d] > 0.0) == retained
            assert not keeps_sums or v.sum() == pytest.approx(w.sum(), abs=1e-12)


@pytest.mark.parametrize("keeps_sums", [True, False])
@pytest.mark.parametrize("by", BY)
def test_a_rank_is_turned_by_a_change_a_millionth_longer(by, keeps_sums):
    make = parts if keeps_sums else slopes
    for n in range(N):
        w = W[n]
        for d in range(D):
            is_clear = [
                bool(make(w[None], None).clear(length, order=by).order[0, d])
                for length in (0.0, 100.0)
            ]
            assert is_clear == [True, False]
            low, high = 0.0, 100.0
            for _ in range(60):
                middle = 0.5 * (low + high)
                clear = make(w[None], None).clear(middle, order=by).order[0, d]
                low, high = (middle, high) if clear else (low, middle)

            def position(v, d=d):
                keys = np.abs(v) if by == "size" else v
                return 1 + (keys > keys[d]).sum()

            steps = turning(w, d, by, keeps_sums)
            for factor, retained in ((1.0 - 1e-6, True), (1.0 + 1e-6, False)):
                here = [
                    position(w + k * high * factor * v) == position(w)
                    for v in steps
                    for k in (1, -1)
                ]
                assert all(here) == retained


def test_signs_and_places_are_the_same_at_every_weight_up_to_twice():
    # what moves by the same each time, so that one change is large enough to matter
    phi = np.array([[1.0, -1.0, 0.4], [1.0, 0.3, -1.3], [2.0, 1.0, -3.0]])
    move = np.array([[0.0, 0.35, -0.35], [0.0, -0.2, 0.2], [-0.4, 0.4, 0.0]])
    clear = parts(phi + move, phi).clear(0.0)
    # 0.4 - 2 × 0.35 is negative; 0.3 - 2 × 0.2 too; 2.0 and 1.0 change places
    assert clear.sign.tolist() == [
        [True] * 2 + [False],
        [True, False, True],
        [True] * 3,
    ]
    assert clear.order.tolist()[2] == [False, False, True]
    assert clear.best_ranks[2].tolist() == [2, 2, 1]
    alone = parts(phi + move, None).clear(0.0)
    assert alone.sign.all()
    assert alone.order[2].all()
    # slopes have one end at each side: the slopes before, and those that are given
    assert slopes(phi + move, phi).clear(0.0).sign.all()


def test_delta_is_5_percent_of_the_reference_rows_and_rows_stand_alone():
    size = np.sqrt((W**2).sum(axis=1).mean())
    assert parts().clear().small_change == pytest.approx(0.05 * size, rel=1e-12)
    whole = parts(row_size=4.0)
    assert whole.clear().small_change == 0.2
    for n in range(N):
        one = parts(W[[n]], PHI[[n]], row_size=4.0).clear()
        for ours, all_rows in zip(
            conclusions(one), conclusions(whole.clear()), strict=True
        ):
            np.testing.assert_array_equal(ours[0], all_rows[n])
    # other units make no difference
    large = parts(1e6 * W, 1e6 * PHI).clear()
    for ours, other in zip(
        conclusions(large), conclusions(parts().clear()), strict=True
    ):
        np.testing.assert_array_equal(ours, other)
    assert parts().clear(0.0).small_change == 0.0


# ---- Groups that data never has apart


APART = (("x0", "x3"), ("x1", "x4", "x5"))


@pytest.mark.parametrize("groups", [None, {"of both": ["x3", "x4"]}])
def test_values_against_the_sum_of_their_group_are_not_clear(groups):
    """By definition, at w, φ and 2w − φ; a group of both joins both groups."""
    best = parts(together=APART)
    clear, plain = (x.clear(0.01, groups=groups) for x in (best, parts()))
    names = clear.features
    joined = APART if groups is None else [("x0", "of both", "x1", "x5")]
    sums = group_sums(groups or {}, best.labels.feature_names(D))[0]
    expected = plain.signs.copy()
    for group in joined:
        k = [names.index(name) for name in group]
        for end in (W, PHI, 2.0 * W - PHI):
            total = (end @ sums.T)[:, k].sum(axis=1, keepdims=True)
            expected[:, k] *= np.sign(total) == plain.signs[:, k]
    assert np.array_equal(clear.signs, expected)
    assert (clear.signs != plain.signs).any()


@pytest.mark.parametrize("by", BY)
def test_no_order_within_a_group_is_clear(by):
    values = np.array([[10.0, 8.0, 4.0, 2.0, 1.0, 0.0]])
    plain = parts(values, values).clear(0.01, order=by)
    assert plain.best_ranks[0].tolist() == [1, 2, 3, 4, 5, 6]
    clear = parts(values, values, together=(("x0", "x3"),)).clear(0.01, order=by)
    assert clear.best_ranks[0].tolist() == [1, 2, 3, 3, 5, 6]
    assert clear.worst_ranks[0].tolist() == [2, 2, 3, 4, 5, 6]
    zeros = parts(values, values, together=(("x0", "x5"),)).clear(0.01, order=by)
    assert zeros.best_ranks[0].tolist() == [1, 2, 3, 4, 5, 5]
    values = np.array([[10.0, 8.0, 0.0, 0.0, 0.0, 0.0]])
    many = parts(values, values, together=(("x0", "x2"),)).clear(0.01, order=by)
    assert many.best_ranks[0].tolist() == [1, 2, 2, 3, 3, 3]


def test_the_sum_is_clear_where_its_two_parts_are_not():
    """f = 1.5 a + 5 (a − b) with r = .99: of −12.1 and +14.8 only the sum is clear."""
    values = np.array([[14.8, -12.1, 0.5]])
    best = parts(values, values, together=(("x0", "x1"),))
    clear = best.clear(1.0)
    assert clear.signs.tolist() == [[1, 0, 0]]
    assert clear.best_ranks[0].tolist() == [1, 1, 3]
    assert clear.worst_ranks[0].tolist() == [2, 2, 3]
    whole = best.clear(1.0, groups=best.groups())
    assert whole.features == ("x0 and x1", "x2")
    assert whole.attributions[0] == pytest.approx([2.7, 0.5])
    assert whole.signs.tolist() == [[1, 0]]
    nothing = np.array([[2.0, -2.0, 1.0]])  # exactly
    assert parts(nothing, nothing, together=(("x0", "x1"),)).clear(0.0).signs[0, 0] == 0


@pytest.mark.parametrize("by", BY)
def test_columns_of_zeros_are_alike_however_many(by):
    wide = np.zeros((N, 900))
    places = RNG.permutation(900)[:D]
    wide[:, places] = W
    clear = parts(wide, None).clear(0.1, order=by)
    root = np.sqrt(2.0) * 0.1
    for n in range(N):
        keys = np.abs(wide[n]) if by == "size" else wide[n]
        s = np.where(wide[n] < 0.0, -1.0, 1.0)
        gap = keys[:, None] - keys
        above = gap > root
        if by == "size":  # √2 where signs agree, √(2 − 4/D) where they do not
            reach = np.sqrt(2.0 - np.subtract.outer(s, s) ** 2 / 900) * 0.1
            total = np.sqrt(2.0 - np.add.outer(s, s) ** 2 / 900) * 0.1
            above = (gap > reach) & (np.add.outer(keys, keys) > total)
        np.testing.assert_array_equal(clear.best_ranks[n], 1 + above.sum(axis=0))
        np.testing.assert_array_equal(clear.worst_ranks[n], 900 - above.sum(axis=1))
    assert clear.clear_signs == clear.sign.sum() / W.size  # zeros have no sign


def test_rows_with_one_or_two_columns():
    one = parts(np.array([[0.5], [-1e-9]]), None).clear(3.0)
    assert one.sign.all()  # the sum is kept, and leaves nothing free
    assert slopes(np.array([[0.5]]), None).clear(3.0).sign.sum() == 0
    two = parts(np.array([[2.0, -1.0]]), None).clear(0.5 * np.sqrt(2.0) + 1e-9)
    assert two.order.all()  # v = (t, −t): sizes 2 + t and 1 + t keep their order
    zero = parts(np.zeros((2, 3)), None).clear()
    assert not zero.sign.any()
    assert zero.clear_signs == 1.0
    assert "<table" in zero._repr_html_()


def test_standard_errors_are_taken_off():
    se = np.full((N, D), 0.02)
    target = TargetError(value=0.1, spread=0.01, n_blocks=8)
    for fields, factor in (({}, 1.959963984540054), ({"target": target}, None)):
        factor = factor or student.ppf(0.975, 7)
        sampled = parts(standard_errors=se, **fields).clear(0.0)
        reach = factor * 0.02
        far = 2.0 * W - PHI
        s = np.sign(W)
        expected = (s * W > reach) & (s * PHI > reach) & (s * far > reach)
        np.testing.assert_array_equal(sampled.sign, expected)
        # with changes by δ they add up
        both = parts(contributions=None, standard_errors=se, **fields).clear(0.3)
        least = 0.3 * np.sqrt(1.0 - 1.0 / D) + reach
        np.testing.assert_array_equal(both.sign, np.abs(W) > least)
    assert np.isnan(parts().clear().sampling_error)
    assert parts().clear().document().facts["sampling error"].number == "unknown"
    unknown = parts(standard_errors=np.where(se > 0.0, np.inf, se)).clear(0.0)
    assert not unknown.sign.any()
    noise = 0.4 * RNG.normal(size=(8, N, D))
    estimate = Estimate.of_blocks(PHI + noise, source="blocks", n_draws=8)
    drawn = po.solve(1.0 * po.GradientMatching(estimate)).clear()
    exact = po.solve(1.0 * po.GradientMatching(PHI)).clear()
    assert drawn.sign.sum() < exact.sign.sum()
    facts = drawn.document().facts
    assert facts["sampling error"].value == drawn.sampling_error > 0.0
    assert facts["clear signs"].shown_basis == "estimated"


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X.iloc[:, :8]
    model = HistGradientBoostingClassifier(max_iter=20).fit(X, y)

    def explained(rows, **how):
        settings = {
            "data": X,
            "kind": "contributions",
            "offset": None,
            "outcome": "benign",
        }
        return po.explain(model, X.iloc[:rows], **settings, **how)

    return explained


def test_plain_shapley_values_are_not_all_clear_and_shares_are_stable(cancer):
    shares = [
        cancer(n, robustness=w).clear().clear_signs for n in (40, 160) for w in (0, 0.1)
    ]
    assert 0.4 < min(shares) < max(shares) < 0.9
    assert max(shares) - min(shares) < 0.15
    plain = cancer(40, robustness=0)
    assert plain.certain().certain_signs < 0.9
    assert plain.clear().sampling_error == plain.certain().sampling_error == 0.0


def test_a_card_has_the_largest_features_and_their_shares():
    wide = np.concatenate([W, 3.0 * W], axis=1)
    clear = parts(wide, None).clear(0.15)
    document = clear.document()
    table = document.blocks[0]
    order = np.argsort(-np.abs(wide).mean(axis=0))
    assert table.frame.index.tolist() == [f"x{d}" for d in order[:10]]
    assert (table.total, len(table.bars["mean size"])) == (12, 10)
    shares = clear.to_frame().iloc[order[:10]]
    for label, name in (
        ("clear rows", "clear_rows"),
        ("clearly +", "clearly_positive"),
        ("clearly −", "clearly_negative"),
        ("clearly first", "clearly_first"),
    ):
        assert table.frame[label].tolist() == [*map(share_text, shares[name])]
    fact = document.facts["clear signs"]
    assert (fact.value, fact.note) == (clear.clear_signs, "small change 0.15")
    assert document.chapters()[0].blocks[0].frame.shape == (12, 5)
    assert parts().clear().document().chapters() == ()  # the card has all


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "clear"))
def test_what_cannot_be_is_refused(line, message):
    with pytest.raises(InvalidInput, match=message):
        eval(line)
