"""The explainer of single rows: independent of who else is asked, saved and loaded."""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from coalitions import all_orders
from crafted_archives import (
    craft,
    header_of,
    members_of,
    npy,
    with_header,
    write_signed,
)
from explainer_cases import (
    EXPLAINERS,
    IN_PARTS,
    MIXED,
    N_NEW,
    OUTPUT,
    X_NEW,
    D,
    N,
    X,
    black_box,
    forest,
    mixed,
    mixed_model,
    numbers,
    same,
    taken,
)
from refusals import refusals
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.explaining.saved_explainer import CHECKED_ROWS, SavedExplainer


pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")
EVERY = EXPLAINERS | {f"parts: {name}": IN_PARTS[name] for name in IN_PARTS}
EVERY["by default"] = lambda: po.Explainer(
    forest(), data=X, graph=po.graphs.Nearest(n_reference=25)
)
PARTS = {"data": X, "kind": "contributions"}
GAPS = X.mask(np.random.default_rng(5).random(X.shape) < 0.2)
WEIGHTS = np.random.default_rng(9).gamma(0.5, size=700)
EVERY["parts: weighted groups"] = lambda: po.Explainer(
    forest(),
    data=X,
    offset=None,
    groups={"both": ["f0", "f1"]},
    sample_weight=WEIGHTS[:N],
)
EVERY["a class"] = lambda: po.Explainer(
    LogisticRegression().fit(X, np.arange(N) % 3),
    data=X,
    target=2,
    output="log_odds",
    kind="slopes",
)
EVERY["missing numbers"] = lambda: po.Explainer(
    HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=5).fit(GAPS, OUTPUT),
    data=GAPS,
    robustness=0.1,
    kind="slopes",
)
EVERY["parts: drawn by weight"] = lambda: po.Explainer(
    black_box,
    data=numbers(2, 700),  # more rows than a model is called with
    offset=None,
    sample_weight=WEIGHTS,
    graph=po.graphs.Nearest(n_reference=15),
    robustness=0.1,
)


def fitted_case(name):
    """A fitted explainer, rows in the form that it takes, and what it says of them."""
    explainer = EVERY[name]().fit()
    n_rows = 12 if "parts" in name else N_NEW
    n_rows = 6 if name.endswith("categories") else n_rows
    rows = mixed(1, n_rows) if name.endswith("categories") else X_NEW[:n_rows]
    if name == "network, without names":
        rows = rows.to_numpy()
    expected = {"name": name, "explainer": explainer, "rows": rows}
    return SimpleNamespace(**expected, found=explainer.explain(rows))


@pytest.fixture(scope="module", params=EVERY)
def case(request):
    return fitted_case(request.param)


@pytest.fixture(scope="module", params=[name for name in EVERY if "parts" in name])
def part(request):
    return fitted_case(request.param)


@pytest.mark.sampled(5)
def test_rows_are_certified_and_no_bit_depends_on_who_else_is_asked(case):
    explainer, rows, joint = case.explainer, case.rows, case.found
    order = np.random.default_rng(2).permutation(len(rows))
    same(explainer.explain(taken(rows, order)), joint, order)
    for n in range(0, len(rows), 3):
        same(explainer.explain(taken(rows, [n])), joint, [n])
    again = EVERY[case.name]().fit()  # a second fit
    for size, fitted in ((2, again), (min(33, len(rows)), explainer)):
        same(fitted.explain(taken(rows, range(size))), joint, list(range(size)))
    assert joint.gap < 1e-12
    assert joint.objective == pytest.approx(joint.certificate.value, rel=1e-12)
    assert joint.certificate.kind == "strong convexity"
    assert set(joint.losses) == set(joint.weights)


@pytest.fixture(scope="module")
def plain():
    """With the weight at the knee."""
    return po.Explainer(black_box, data=X, kind="slopes").fit()


@pytest.mark.parametrize("kind", ["slopes", "contributions"])
def test_reference_rows_are_explained_as_explain_does(kind):
    model, settings = forest() if kind == "contributions" else black_box, {"kind": kind}
    together = po.explain(model, X, **settings)
    explainer = po.Explainer(model, data=X, **settings).fit()
    reference = explainer.reference_.to_frame().loc[X.index]  # in their own order
    np.testing.assert_allclose(reference, together.attributions, atol=1e-9)
    given = po.Explainer(model, data=X, **settings).fit(X).reference_
    np.testing.assert_array_equal(given.attributions, together.attributions)
    assert explainer.robustness_ == together.weights["pairwise_robustness"]
    # and one row among the rows of the data
    settings |= {"metric": "effects"} if kind == "contributions" else {}
    explainer = po.Explainer(model, data=X, **settings).fit()
    result = po.explain(model, X_NEW.iloc[[3]], data=X, **settings)
    same(result, explainer.explain(X_NEW), [3])
    assert result.parameters.get("metric") == settings.get("metric")


def test_a_row_of_the_reference_is_new_and_scales_are_those_of_the_data(plain):
    result = plain.explain(X.iloc[[3]])
    place = result.details["reference_rows"][0, 0]
    assert plain.reference_.labels.points[place] == X.index[3]
    own = plain.reference_.attributions[place]
    assert not np.allclose(result.attributions[0], own, rtol=1e-6)
    constant = X_NEW.iloc[:3].assign(f3=0.0)
    slopes = po.wrap(black_box).gradient(constant) * X.std(ddof=0)
    gradient = plain.explain(constant).gradient
    np.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=1e-7)
    polars = pytest.importorskip("polars")
    result = plain.explain(polars.from_pandas(X_NEW))
    same(result, plain.explain(X_NEW), list(range(N_NEW)))


def of_one_row(**settings):
    return po.explain(black_box, X_NEW.iloc[[3]], **settings)


def fitting(**settings):
    return po.Explainer(black_box, **{"data": X, **settings}).fit()


UNFITTED, ARRAY = po.Explainer(black_box, data=X, kind="slopes"), X.to_numpy()


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "explainer"))
def test_what_cannot_be_is_refused(line, message):
    with pytest.raises((InvalidInput, NotFittedError), match=message):
        eval(line)


NEW_GAPS = X_NEW.mask(np.random.default_rng(6).random(X_NEW.shape) < 0.2)


def test_missing_numbers_count_in_distances_as_in_graphs():
    def model(table):
        return np.nan_to_num(np.asarray(table, dtype=float)) @ np.arange(1.0, D + 1.0)

    explainer = po.Explainer(
        model, data=GAPS, scale=None, law="none", kind="slopes"
    ).fit()
    result = explainer.explain(NEW_GAPS.iloc[:10])
    same(explainer.explain(NEW_GAPS.iloc[[4]]), result, [4])
    points = GAPS.loc[[*explainer.reference_.labels.points]].to_numpy()
    for n, row in enumerate(NEW_GAPS.to_numpy()[:10]):
        odd = np.isnan(points) != np.isnan(row)
        squares = np.where(odd, 1.0, np.nan_to_num((points - row) ** 2)).sum(axis=1)
        near = result.details["reference_rows"][n]
        np.testing.assert_allclose(squares[near], np.sort(squares)[:8], rtol=1e-12)


def test_one_row_is_what_is_left_of_the_joint_problem_with_its_reference_fixed(part):
    explainer, result, n = part.explainer, part.found, 4
    predicted = po.wrap(explainer.model, data=part.rows).value(part.rows)
    np.testing.assert_allclose(result.prediction, predicted, rtol=1e-12)
    reference = explainer.reference_
    assert (result.base_value == reference.base_value[0]).all()
    assert np.abs(result.additivity_error).max() <= 1e-12
    assert result.certificate.violation <= 1e-14
    assert result.units == "output"
    phi = reference.contributions
    omega = np.ones(phi.shape[1])
    if explainer.metric == "effects":
        squares = (phi**2).mean(axis=0)
        omega = np.maximum(squares, 1e-6 * squares.max())
    own, b = result.contributions[n], explainer.robustness_
    used = (phi != 0).any(axis=0) | (own != 0)
    total = result.prediction[n] - result.base_value[n]
    # h w/ω + y = (Φ + 2b Σ s_j w_j)/ω where used, Σ w = t
    fitted = explainer.fitted_
    points = fitted.function.read(part.rows, "rows")[0]
    ((near, s),) = fitted.neighbours_of(points[[n]])
    h = 1 + 2 * b * s.sum()
    p = (own + 2 * b * s @ reference.attributions[near]) / h
    ones = np.ones((used.sum(), 1))
    K = np.block([[np.diag(h / omega[used]), ones], [ones.T, np.zeros((1, 1))]])
    w = np.linalg.solve(K, np.append(h * p[used] / omega[used], total))[:-1]
    rounding = 1e-9 * np.abs(w).max()
    np.testing.assert_allclose(result.attributions[n][used], w, rtol=0, atol=rounding)
    assert (result.attributions[n][~used] == 0.0).all()


def test_sampled_contributions_scatter_about_exact_ones_as_they_say(tmp_path):
    settings = {
        **PARTS,
        "graph": po.graphs.Nearest(n_reference=12),
        "robustness": 0.05,
        "offset": None,
    }
    settings["data"] = numbers(0, 90)  # so many that orders are drawn
    explainer = po.Explainer(black_box, **settings).fit()
    result = explainer.explain(X_NEW[:20])
    explainer.save(tmp_path / "it.npz")
    with np.load(tmp_path / "it.npz", allow_pickle=False) as file:
        background = file["background"]
    exact = all_orders(po.wrap(black_box), X_NEW[:20].to_numpy(), background)
    error = result.contributions - exact
    h = 1 + 2 * 0.05 * result.details["similarity"][:, None]
    # what W moves by, of errors of Φ that add up to nothing: a/h
    # of steps that few orders meet, draws may show nothing: 2 % of a row
    unseen = 0.02 * np.linalg.norm(exact, axis=1, keepdims=True)
    scores = error / h / result.standard_errors
    # t of nine degrees: 100 scores beyond 12 once in 13,000 runs
    assert np.abs(scores[np.abs(error) > unseen]).max() <= 12.0
    scores = error / h / np.maximum(result.standard_errors, 0.2 * unseen)
    # the sampling error is Σ ‖error of Φ‖²; a draw of it within a factor of four
    stated, real = result.target.value, (error**2).sum()
    assert 0.25 * real <= stated <= 4.0 * real
    assert 0.5 <= np.sqrt((scores**2).mean()) <= 1.5
    assert "draws" in result.target.source
    # rows of equal values have equal draws, and another seed has others
    twice = explainer.explain(X_NEW.iloc[[3, 3, 4]])
    assert (twice.attributions[0] == twice.attributions[1]).all()
    other = (
        po.Explainer(black_box, **settings, sampling=po.Sampling(rng=4))
        .fit()
        .explain(X_NEW.iloc[[3]])
    )
    assert (other.contributions[0] != result.contributions[3]).all()


@pytest.mark.filterwarnings("ignore::propopt.base.errors.FlatFunctionWarning")
def test_slopes_that_do_not_add_up_are_refused():
    def f(table):  # a step that no row is near: slopes are zero on both sides
        return (np.asarray(table)[:, 0] > 1e3) * 1.0

    flat = {"kind": "contributions", "contributions": "slopes", "offset": None}
    explainer = po.Explainer(f, data=X.to_numpy(), **flat).fit()
    with pytest.raises(InvalidInput, match="row 0: no feature contributes"):
        explainer.explain(1e4 + X.to_numpy()[:1])


def switched(table):
    points = np.asarray(table, dtype=float)
    return points[:, 0] + points[:, 0] * points[:, 1] + 5.0 * points[:, 2]


def with_constant(seed, n):
    points = np.random.default_rng(seed).normal(size=(n, 4))
    points[:, 2] = 1.0  # contributes to no row of the table
    return points


def test_a_column_that_contributes_to_the_row_alone_has_a_part_of_it():
    settings = {"kind": "contributions", "robustness": 0.2, "offset": None}
    explainer = po.Explainer(switched, data=with_constant(0, 40), **settings).fit()
    assert (explainer.reference_.attributions[:, 2:] == 0.0).all()
    rows = with_constant(1, 3)
    rows[1, 2] = 3.0
    result = explainer.explain(rows)
    assert (result.attributions[:, 3] == 0.0).all()
    assert (result.attributions[[0, 2], 2] == 0.0).all()
    # sampled: its part of what the drawn background rows miss beside it
    assert result.contributions[1, 2] == pytest.approx(10.0, abs=0.1)
    h = 1 + 2 * 0.2 * result.details["similarity"][1]
    p = result.contributions[1] / h
    fitted = explainer.fitted_
    (near,) = fitted.neighbours_of(rows[[1]])
    others = explainer.reference_.attributions[near.positions]
    p = p + 2 * 0.2 * near.similarities @ others / h
    total = switched(rows)[1] - result.base_value[1]
    p[:3] += (total - p[:3].sum()) / 3
    np.testing.assert_allclose(result.attributions[1], p, atol=1e-12)
    same(explainer.explain(rows[[1]]), result, [1])
    with pytest.raises(po.errors.Refused, match="weights that differ by row"):
        result.certain()
    assert explainer.explain(rows[[1]]).certain().signs[0, 2] == 1


NEW = {"network, without names": X_NEW.to_numpy()}
NEW |= dict.fromkeys(["categories", "parts: categories"], mixed(1, 5))
NEW["missing numbers"] = GAPS


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", EVERY)
def test_a_loaded_explainer_answers_with_the_same_bits(name, tmp_path):
    original = explainer = EVERY[name]().fit()
    fresh = EVERY[name]()  # a model that nobody asked anything before
    rows = taken(NEW.get(name, X_NEW), range(5))
    answers = explainer.explain(rows)
    settings = ("metric", "contributions", "target", "output")
    for path in (tmp_path / "one.npz", tmp_path / "two.npz"):
        explainer.save(path)
        explainer = po.Explainer.load(path, fresh.model)
        again = explainer.explain(rows)
        same(again, answers, list(range(5)))
        assert again.parameters == answers.parameters
        assert again.labels == answers.labels
        assert again.background == answers.background
        for setting in settings:
            assert getattr(explainer, setting) == getattr(fresh, setting)
    assert explainer.robustness_ == original.robustness_
    one, other = (e.reference_.attributions for e in (explainer, original))
    np.testing.assert_array_equal(one, other)


FUNCTION = po.wrap(black_box)


def between(table):
    """The same at all reference rows, not between them."""
    points = np.asarray(table, dtype=float)
    there = (points[:, None] == ARRAY[None]).all(axis=2).any(axis=1)
    return np.where(there, black_box(points), 2.0 * black_box(points))


IN_OUTPUT = {"kind": "contributions", "robustness": 0.1} | {
    "graph": po.graphs.Nearest(n_reference=10)
}
ONES = po.wrap(black_box, gradient=lambda table: np.ones(np.shape(table)))


def scaled(unit, offset):
    return lambda table: offset + unit * black_box(table)


SLOPES = {"kind": "slopes"}


@pytest.mark.parametrize(("line", "sentence"), refusals(__file__, "other functions"))
def test_another_function_is_refused(line, sentence, tmp_path):
    model, other, settings = eval(line)
    po.Explainer(model, data=ARRAY, **settings).fit().save(tmp_path / "it.npz")
    po.Explainer.load(tmp_path / "it.npz", model)
    with pytest.raises(InvalidInput, match=sentence):
        po.Explainer.load(tmp_path / "it.npz", other)


def test_parts_that_do_not_add_up_are_not_loaded(tmp_path):
    path, model = tmp_path / "it.npz", forest()
    po.Explainer(model, data=X, kind="contributions").fit().save(path)
    with np.load(path, allow_pickle=False) as file:
        assert all(file[name].dtype.kind in "fiubU" for name in file.files)
        assert len(file["values"]) == CHECKED_ROWS  # and no model is in it
        W = file["reference.attributions"].copy()
    W[5, 0] += 1e-6 * np.abs(W).max()
    write_signed(path, {**members_of(path), "reference.attributions.npy": npy(W)})
    with pytest.raises(
        InvalidInput,
        match=r"row 5 does not add up|for this target and these attributions",
    ):
        po.Explainer.load(path, model)


def test_names_that_are_no_text_are_not_saved(tmp_path):
    dates = X.set_axis(pd.date_range("2020", periods=X.shape[1]), axis=1)
    explainer = po.Explainer(black_box, data=dates, kind="slopes").fit()
    with pytest.raises(InvalidInput, match="neither text nor a number"):
        explainer.save(tmp_path / "it.npz")
    assert not (tmp_path / "it.npz").exists()


TREE = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, X["f0"] + X["f3"])
COLOURS = mixed_model()
CASES = {
    "slopes": (black_box, X, {"robustness": 0.2}),
    "categories": (COLOURS, MIXED, {"robustness": 0.2}),
    "parts": (TREE, X, {"kind": "contributions", "metric": "effects"}),
    "arrays": (black_box, X.to_numpy(), {"robustness": 0.1}),
}


@pytest.fixture(scope="module", params=CASES)
def saved(request, tmp_path_factory):
    """The file of a sound explainer, its model, and rows to come."""
    model, data, settings = CASES[request.param]
    path = tmp_path_factory.mktemp("sound") / "sound.npz"
    explainer = po.Explainer(
        model, data=data, graph=po.graphs.Nearest(n_reference=12), **settings
    ).fit()
    explainer.save(path)
    rows = mixed(1, 3) if data is MIXED else X_NEW[:3]
    rows = rows.to_numpy() if isinstance(data, np.ndarray) else rows
    return path, model, rows


def outcome(path, saved):
    """Whether it loads; then it answers in numbers, else in a sentence of ours."""
    _, model, rows = saved
    message = ""
    try:
        loaded = po.Explainer.load(path, model)
    except InvalidInput as error:
        message = str(error)
    if message:
        assert message.startswith(f"{path}: ")
        assert "\n" not in message
        return False
    assert np.isfinite(loaded.explain(rows).attributions).all()
    assert repr(loaded)
    return True


def test_files_that_hold_something_else_are_refused(saved, tmp_path):
    sound, model, *_ = saved
    members, path = members_of(sound), tmp_path / "crafted.npz"
    for line, sentence in refusals(__file__, "files of explainers"):
        write_signed(path, with_header(members, header_of(members) | eval(line)))
        with pytest.raises(InvalidInput, match=sentence):
            po.Explainer.load(path, model)
    with np.load(sound, allow_pickle=False) as file:
        base = file["reference.base_value"].copy()
    write_signed(path, {**members, "reference.base_value.npy": npy(base * np.nan)})
    with pytest.raises(InvalidInput, match="base_value: some saved numbers are missin"):
        po.Explainer.load(path, model)
    for name in ("rows", "sizes", "values"):
        for odd in (np.nan, np.inf, 0.5):
            with np.load(sound, allow_pickle=False) as file:
                array = file[name].copy()
            array.flat[0] += odd * (1.0 + abs(array.flat[0]))
            write_signed(path, {**members, f"{name}.npy": npy(array)})
            with pytest.raises(InvalidInput, match=r"crafted\.npz: "):
                po.Explainer.load(path, model)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_explainer_is_refused_or_sound(seed, saved, tmp_path):
    rng, path, loaded = np.random.default_rng(seed), tmp_path / "crafted.npz", []
    for _ in range(40):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # two of one name; numbers that overflow
            mutation = craft(rng, saved[0], path)
            try:
                loaded.append(outcome(path, saved))
            except Exception as error:
                raise AssertionError(mutation) from error
    assert not all(loaded)
    assert outcome(saved[0], saved)  # the sound one


def test_an_explainer_without_a_part_or_a_weight_is_refused(tmp_path):
    path, model = tmp_path / "rows.npz", forest()
    po.Explainer(model, data=X, kind="contributions").fit().save(path)
    saved = SavedExplainer.load(path)
    for part in ("contributions", "metric", "background", "targets"):
        with pytest.raises(InvalidInput, match="some of their fields are missing"):
            replace(saved, **{part: None}).save(path)
    reference = saved.reference
    weights = {**reference.weights, "gradient_matching": 0.0}
    free = replace(reference, weights=weights, certificate=None)
    replace(saved, reference=free).save(path)
    with pytest.raises(InvalidInput, match="expected the first above zero"):
        po.Explainer.load(path, model)
