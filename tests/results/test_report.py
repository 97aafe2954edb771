"""Reports: chapters of every result on one page, escaped, with what each rests on."""

import base64
import dataclasses
import hashlib
import json
import re

import numpy as np
import pandas as pd
import pytest
from quiet_boosters import booster
from sklearn.ensemble import RandomForestRegressor

import propopt as po
from propopt.base.document import Document, Table, cell_text, share_text
from propopt.base.vocabulary import TERMS
from propopt.results.report.explorer import Explorer
from propopt.results.report.neighbours import Neighbours
from propopt.results.report.page import page_of
from propopt.structures.fitted_model import FittedModel
from propopt.tables.frames import Labels


def test_a_page_counts_the_rows_of_a_table_that_it_leaves_out():
    table = Table(pd.DataFrame({"size": [3.0, 2.0]}), total=9)
    assert "7 more" in page_of([Document(title="All", blocks=[table])])


def test_a_page_asks_for_nothing_and_allows_its_script_alone():
    page = page_of([CURVE.document()])
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert not re.search(r"""(src|href)=["']?(https?:|//)""", page)


# ---- rows beside their most similar, against loops over all pairs
RNG = np.random.default_rng(7)
X = RNG.normal(size=(20, 3))
ROBUST = po.PairwiseRobustness(po.graphs.gaussian_graph(X))
CURVE = po.sweep(
    po.GradientMatching(X**2) + ROBUST, {ROBUST.name: np.logspace(-2, 1, 12)}
)


def test_the_worst_pairs_are_those_of_the_loss():
    best = CURVE.knee()
    table, rows = Neighbours.of(best).worst(best)
    S, W = ROBUST.graph.similarities.toarray(), best.attributions
    cost = {
        (n, m): S[n, m] * ((W[n] - W[m]) ** 2).sum()
        for n in range(20)
        for m in range(n + 1, 20)
    }
    worst = sorted(cost, key=cost.get, reverse=True)[: len(table)]
    reported = zip(map(int, table.index), map(int, table["similar row"]), strict=True)
    assert list(reported) == worst
    assert rows[:2] == list(worst[0])
    assert 2.0 * sum(cost.values()) == pytest.approx(best.losses[ROBUST.name])
    share = 100.0 * cost[worst[0]] / sum(cost.values())
    assert table["share of differences"].iloc[0] == share_text(share / 100.0)


def test_without_a_graph_the_nearest_by_values_is_the_most_similar():
    ours = po.results.Explanation(attributions=X**2, method="mine", points=X)
    similar, scaled = Neighbours.of(ours), X / X.std(axis=0)
    for n in (0, 7, 19):
        distances = np.linalg.norm(scaled - scaled[n], axis=1)
        assert similar.nearest(n) == np.argsort(distances)[1]
    assert Neighbours.of(po.results.Explanation(attributions=X, method="mine")) is None


def test_a_missing_value_counts_as_the_mean_of_its_column():
    holed = np.where(np.arange(60).reshape(20, 3) % 7 == 0, np.nan, X + 5.0)
    filled = pd.DataFrame(holed).fillna(pd.DataFrame(holed).mean()).to_numpy()
    some, whole = (
        Neighbours.of(po.results.Explanation(attributions=X, method="mine", points=Z))
        for Z in (holed, filled)
    )
    np.testing.assert_array_equal(some.edges, whole.edges)
    np.testing.assert_allclose(some.distance, whole.distance, rtol=1e-12)


def explorers(result):
    blocks = [
        block for chapter in result.document().chapters() for block in chapter.blocks
    ]
    return [block for block in blocks if isinstance(block, Explorer)]


def table_of(chapter):
    (table,) = [block.frame for block in chapter.blocks if isinstance(block, Table)]
    return table


def chapters_of(result):
    return {chapter.title: chapter for chapter in result.document().chapters()}


def test_the_first_cards_of_a_sweep_are_of_the_knee_and_its_axes_of_the_swept_loss():
    G = np.random.default_rng(5).normal(size=(12, 3))
    objective = (
        po.GradientMatching(G)
        + 0.1 * po.Sparsity()
        + po.PairwiseRobustness(po.graphs.chain_graph(12))
    )
    outcome = po.sweep(objective, {"pairwise_robustness": [0.1, 1.0, 10.0]})
    retained = outcome.ends.shares(outcome.knee().losses)["gradient_matching"]
    document = outcome.document()
    table = document.blocks[0].frame
    assert table["faithfulness kept"].tolist()[1] == share_text(retained)
    assert table[""].tolist() == ["", "knee", ""]
    (explorer,) = explorers(outcome)
    assert explorer.front_path.axes == ("gradient_matching", "pairwise_robustness")
    assert 'min="0" max="2"' in page_of([document])


def test_a_card_has_the_largest_error_of_a_row_sum():
    phi = np.random.default_rng(6).normal(size=(8, 3))
    robust = po.PairwiseRobustness(po.graphs.chain_graph(8))
    sums = po.losses.Completeness(phi.sum(axis=1))
    best = po.solve(po.GradientMatching(phi) + robust, subject_to=[sums])
    ends = {"base_value": np.zeros(8), "prediction": phi.sum(axis=1)}
    whole = dataclasses.replace(best, units="output", **ends)
    off = dataclasses.replace(
        whole, attributions=1.01 * best.attributions, certificate=None
    )
    missed = np.abs(0.01 * best.attributions.sum(axis=1)).max()
    for one, error in ((whole, 0.0), (off, missed)):
        fact = one.document().facts["additivity error"]
        assert fact.value == pytest.approx(error)


def test_what_the_script_draws_from_gives_the_attributions_of_each_optimum():
    (explorer,) = explorers(CURVE)
    data = json.loads(explorer.data)
    path, rows = data["path"], data["rows"]
    assert path["weights"] == [one.weights[ROBUST.name] for one in CURVE.optimized]
    size = np.abs(X**2).max()
    for index, one in enumerate(CURVE.optimized):
        for row in rows:
            ours = one.attributions[int(row["name"])]
            np.testing.assert_allclose(row["z"][index], ours, atol=1e-6 * size)
        for loss in path["losses"]:
            name = loss["name"].removeprefix("loss ")
            assert loss["values"][index] == one.losses[name]


def many_rows():
    Z = RNG.normal(size=(500, 30))
    robust = po.PairwiseRobustness(po.graphs.knn_graph(Z, 8))
    objective = po.GradientMatching(np.tanh(Z)) + robust
    return po.sweep(objective, {robust.name: np.logspace(-2, 1, 12)})


def wide_rows():
    Z = RNG.normal(size=(500, 120))
    names = [f"answer {j} in a survey of many questions" for j in range(120)]
    words = dict.fromkeys(names[:40], ("an answer of forty letters or some more",))
    return po.results.Explanation(
        attributions=Z,
        method="mine",
        points=np.where(np.arange(120) < 40, 0.0, Z),
        categories=words,
        labels=Labels(features=tuple(names)),
    )


@pytest.mark.parametrize("make", [many_rows, wide_rows])
def test_pages_of_large_results_are_below_two_megabytes(make, tmp_path):
    make().to_html(tmp_path / "page.html")
    assert 300_000 < (tmp_path / "page.html").stat().st_size < 2_000_000


def test_an_audit_shows_a_row_with_errors_next_to_exact_values():
    rng = np.random.default_rng(2)
    Z = rng.normal(size=(40, 3))
    model = RandomForestRegressor(10, random_state=0).fit(Z, Z[:, 0] * Z[:, 1])
    audit = po.audit(Z - Z.mean(axis=0), model, Z)
    (explorer,) = explorers(audit)
    data = json.loads(explorer.data)
    wrong = audit["row sums"].rows
    assert [row["name"] for row in data["rows"][:1]] == [str(wrong[0])]
    for row in data["rows"]:
        n = int(row["name"])
        np.testing.assert_allclose(
            row["z"][0], audit.explanation.attributions[n], atol=1e-7
        )
        np.testing.assert_allclose(row["was"], audit.exact[n], atol=1e-7)
    page = page_of([audit.document()])
    assert "Dashed: exact values." in page
    audit = po.audit(audit.exact[:, [1, 0, 2]], model, Z)
    assert audit["values"].cause == "columns in another's place"
    worst = np.abs(audit.explanation.attributions - audit.exact).max(axis=1).argmax()
    assert json.loads(explorers(audit)[0].data)["rows"][0]["name"] == str(worst)


def test_the_smallest_results_have_pages_too():
    one = po.results.Explanation(attributions=np.zeros((1, 1)), method="mine")
    none = po.TradeOffs(
        optimized=(),
        baselines=(dataclasses.replace(one, losses={"sparsity": 0.0}),),
        losses=("sparsity",),
    )
    flat = po.sweep(
        po.GradientMatching(np.ones((2, 1)))
        + po.PairwiseRobustness(po.graphs.chain_graph(2)),
        {"pairwise_robustness": [1.0, 2.0, 4.0]},
    )
    for result in (one, none, flat):
        assert "<h1" in page_of([result.document()])


def test_many_weights_are_no_more_work_than_some():
    weights = np.logspace(-2, 1, 400)
    objective = po.GradientMatching(X**2) + ROBUST
    curve = po.sweep(objective, {ROBUST.name: weights})
    (explorer,) = explorers(curve)
    path, best = explorer.front_path, curve.knee()
    assert len(path.optima) in (25, 26)
    assert path.optima[path.start] is best
    (block,) = chapters_of(curve)["All optima"].blocks
    assert len(block.frame) == 50
    # the same weight of all optima stands above the table
    assert "weight of gradient_matching 1" in block.caption
    assert list(block.frame)[-2:] == ["faithfulness kept", "differences removed"]


def test_a_feature_with_the_name_of_a_label_is_not_defined():
    names = Labels(features=("score", "tenure"))
    W = np.array([[3.0, 1.0], [2.0, 5.0]])
    mine = po.results.Explanation(attributions=W, method="mine", labels=names)
    page = page_of([mine.document()])
    assert list(table_of(chapters_of(mine)["Attributions"])) == ["score", "tenure"]
    assert TERMS["clear signs"].definition in page
    assert TERMS["score"].definition not in page


# ---- the page that somebody signs
@pytest.fixture(scope="module")
def slipped():
    """An audit of 30 rows in which one number has the other sign."""
    rng = np.random.default_rng(3)
    rows = pd.DataFrame(rng.normal(size=(30, 3)), columns=["a", "b", "c"])
    model = RandomForestRegressor(10, random_state=0).fit(rows, rows["a"] * rows["b"])
    exact = po.explainers.ExactShap(data=rows).explain(po.wrap(model, data=rows), rows)
    W = exact.attributions.copy()
    W[7, 0] *= -1.0
    record = po.results.Record.of(model, X=rows, data=rows)
    audit = po.audit(W, model, rows, base=exact.base_value)
    return audit.to_sign(
        tolerance=0.01,
        decision=po.results.Decision(0.0, "refused", "accepted"),
        record=record,
    )


def test_the_page_has_every_row_with_base_prediction_decision_and_verdict(slipped):
    (block,) = chapters_of(slipped)["Rows"].blocks
    table = block.frame
    assert list(table.index) == [str(n) for n in range(30)]
    assert f"base {cell_text(slipped.explanation.base_value[0])}" in block.caption
    np.testing.assert_allclose(table["prediction"], slipped.explanation.prediction)
    accepted = slipped.explanation.prediction >= 0.0
    assert list(table["decision"] == "accepted") == list(accepted)
    assert set(table["decision"]) == {"accepted", "refused"}
    assert list(table.index[table["tolerance"] == "fail"]) == ["7"]
    assert table.loc["7", "in column"] == "a"
    off = abs(slipped.explanation.attributions[7, 0] - slipped.exact[7, 0])
    assert table.loc["7", "largest difference from exact values"] == pytest.approx(off)
    fact = slipped.document().facts["tolerance"]
    assert (fact.value, fact.note) == (0.01, "1 of 30 rows fail")
    again = slipped.to_sign(tolerance=1e3).document().facts["tolerance"]
    assert again.note == "0 of 30 rows fail"


def test_the_page_has_every_value_with_the_exact_one(slipped):
    table = table_of(chapters_of(slipped)["Values"])
    assert table.shape == (30, 3)
    ours, exact = table.loc["7", "a"].split("\N{NO-BREAK SPACE}(")
    assert exact.endswith("✗")
    numbers = [
        float(x.strip("✗\N{NO-BREAK SPACE})").replace("−", "-")) for x in (ours, exact)
    ]
    expected = [slipped.explanation.attributions[7, 0], slipped.exact[7, 0]]
    largest = np.abs(slipped.explanation.attributions).max()
    np.testing.assert_allclose(numbers, expected, atol=0.006 * largest)
    assert table.map(lambda cell: "✗" in cell).to_numpy().sum() == 1
    assert table.map(lambda cell: "(" in cell).to_numpy().sum() == 1  # others are equal


def test_wide_tables_have_the_largest_columns_and_the_sum_of_others():
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(12, 16))
    rows[:, [2, 9, 10]] *= 0.1
    audit = po.audit(rows - rows.mean(axis=0), lambda Z: Z.sum(axis=1), rows)
    first, second = (x.frame for x in chapters_of(audit)["Values"].blocks)
    names = [*first, *second]
    assert names == [*(f"x{j}" for j in range(16) if j not in (2, 9, 10)), "others"]
    ours = audit.explanation.attributions[0, [2, 9, 10]].sum()
    last = float(second.loc["0", "others"].replace("−", "-"))
    assert last == pytest.approx(ours, abs=0.006)


def test_rows_that_fail_stand_on_the_page_where_not_all_have_room(monkeypatch):
    monkeypatch.setattr("propopt.results.report.review_sheet.CELLS_ON_PAGE", 40)
    rows = np.random.default_rng(5).normal(size=(30, 2))
    W = rows - rows.mean(axis=0)
    W[28, 0] += 1.0
    audit = po.audit(W, lambda Z: Z.sum(axis=1), rows).to_sign(tolerance=0.1)
    table = table_of(chapters_of(audit)["Rows"])
    assert len(table) < 10
    assert "28" in table.index


def test_a_record_names_versions_and_tables_and_other_tables_have_other_digests(
    slipped, tmp_path
):
    record = slipped.record
    assert record.model == "sklearn.ensemble.RandomForestRegressor"
    assert record.versions["propopt"] == po.__version__
    assert record.versions["numpy"] == np.__version__
    assert {"scikit-learn", "Python"} <= record.versions.keys()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", record.date)
    page = page_of([slipped.document()])
    body = re.sub("<(script|style|title).*?</\\1>", "", page, flags=re.S)
    text = re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", body))
    assert all(f"{name} {x}" in text for name, x in record.versions.items())
    for reported in (
        record.date,
        *record.digests.values(),
        "Signature",
        "For its review",
    ):
        assert reported in text
    slipped.save(tmp_path / "audit.npz")
    again = po.results.Audit.load(tmp_path / "audit.npz")
    assert (again.record, again.decision) == (record, slipped.decision)
    table = pd.DataFrame({"a": [1.0, np.nan], "b": ["x", "y"]})
    others = [table.rename(columns={"b": "c"}), table[::-1], table.assign(b="x")]
    of = po.results.Record.of
    reported = {of(X=x).digests["X"] for x in (table, table.copy(), *others)}
    assert len(reported) == 4


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_a_record_names_the_booster_inside_an_estimator(library):
    package = pytest.importorskip(library)
    rows = np.random.default_rng(6).normal(size=(60, 2))
    natives = []
    for n_trees in (3, 3, 4):
        model = booster(library, n_estimators=n_trees).fit(rows, rows[:, 0])
        natives.append(model.get_booster() if library == "xgboost" else model.booster_)
    native = natives[0]
    fitted = FittedModel.of(native)
    assert fitted.estimator is not native
    assert fitted.native is FittedModel.of(fitted.estimator).native is native
    records = [*map(po.results.Record.of, (fitted.estimator, *natives))]
    names = {record.model for record in records}
    assert names == {f"{type(native).__module__}.Booster"}
    assert records[0].versions[library] == package.__version__
    wrapped, first, again, other = (record.digests["model"] for record in records)
    assert wrapped == first == again != other


def test_contributions_are_listed_with_their_targets():
    rows = pd.DataFrame(np.random.default_rng(8).normal(size=(25, 3)))
    model = RandomForestRegressor(10, random_state=0).fit(rows, rows[0] * rows[1])
    outcome = po.explain(model, rows, data=rows)
    chapters = chapters_of(outcome)
    table = table_of(chapters["Values"])
    assert len(table) == len(table_of(chapters["Rows"])) == 25
    cell = table.iloc[3, 1].replace("−", "-")
    ours, exact = (float(x.strip("()")) for x in cell.split())
    half = 0.006 * np.abs(outcome.attributions).max()
    assert ours == pytest.approx(outcome.attributions[3, 1], abs=half)
    assert exact == pytest.approx(outcome.contributions[3, 1], abs=half)
