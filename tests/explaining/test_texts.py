"""``po.explain`` and ``po.Explainer`` of documents; near-duplicates from end to end."""

import numpy as np
import pandas as pd
import pytest
from refusals import refusals
from text_models import DOCUMENTS, called, forest, linear

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.functions.texts import without_each


WAYS = {
    "effects": {},
    "limits": {"law": po.lime.TextLaw()},
    "shapley": {"kind": "contributions"},
    "effects that add up": {"kind": "contributions", "contributions": "slopes"},
}
each_way = pytest.mark.parametrize("settings", WAYS.values(), ids=WAYS)


@pytest.fixture(scope="module")
def model():
    return forest()


def value_of(model, texts) -> np.ndarray:
    return model.predict_proba(list(texts))[:, 1]


QUIET = {"progress": False}


@each_way
def test_the_optimum_is_certified_and_names_its_words(model, settings):
    named = pd.Series(DOCUMENTS, index=[f"review {n}" for n in range(len(DOCUMENTS))])
    best = po.explain(model, named, **settings, **QUIET)
    assert best.attributions.any()
    counts = po.wrap(model, data=DOCUMENTS).read(DOCUMENTS)[0]
    assert not best.attributions[counts == 0].any()
    assert best.certificate.holds(1e-6)
    assert best.labels.points == tuple(named.index)
    assert best.labels.features == po.wrap(model, data=named).text_schema.vocabulary
    assert best.units == "output"
    assert "n_neighbors=8" in best.parameters["graph"]
    assert best.parameters["weight rule"] == "knee of the trade-off curve"
    if "kind" in settings:  # words of each document add up
        blank = [po.wrap(model, data=[x]).of_document(x).document for x in DOCUMENTS]
        empty = [x.without(np.zeros(x.n_words, bool)) for x in blank]
        total = value_of(model, DOCUMENTS) - value_of(model, empty)
        np.testing.assert_allclose(best.attributions.sum(axis=1), total, atol=1e-12)
        assert np.abs(best.additivity_error).max() < 1e-12
    # one document has its target
    best = po.explain(model, [DOCUMENTS[3]], **settings, **QUIET)
    kind = "contributions" if "kind" in settings else "gradient"
    if settings.get("contributions") != "slopes":
        target = getattr(best, kind)
        np.testing.assert_allclose(best.attributions, target, rtol=0, atol=1e-9)
    assert best.parameters["weight rule"] == "none: no similar documents share a word"


def test_the_target_is_the_effect_of_deleting_each_word(model):
    best = po.explain(model, DOCUMENTS, progress=False, kind="slopes")
    function = po.wrap(model, data=DOCUMENTS)
    documents = function.documents_of(DOCUMENTS)
    for row, document in zip(best.gradient, documents, strict=True):
        columns, effects = function.text_schema.columns_of(document), []
        if document.n_words:
            without = value_of(
                model, without_each(document, np.ones(document.n_words, bool))
            )
            effects = value_of(model, [document.text])[0] - without
        np.testing.assert_allclose(row[columns], effects, atol=1e-12)
        assert np.count_nonzero(row) == np.count_nonzero(row[columns])


@pytest.mark.parametrize("make", [forest, linear])
def test_the_target_of_complete_attributions_is_shapley_values(make):
    shap = pytest.importorskip("shap")
    model = make()
    best = po.explain(model, DOCUMENTS, kind="contributions", progress=False)
    function = po.wrap(model, data=DOCUMENTS)
    for n in (0, 3, 5):
        at = function.of_document(DOCUMENTS[n])
        masker = shap.maskers.Independent(np.zeros((1, at.n_words)))
        explainer = shap.explainers.ExactExplainer(
            lambda bits, at=at: at.value_at(np.asarray(bits, float)), masker
        )
        phi = explainer(np.ones((1, at.n_words)), silent=True).values[0]
        columns = function.text_schema.columns_of(at.document)
        result = best.contributions[n, columns]
        np.testing.assert_allclose(result, phi, atol=1e-9)


def test_a_model_that_can_only_be_called_is_explained_too():
    best = po.explain(called, DOCUMENTS, kind="contributions", **QUIET)
    assert best.certificate.holds(1e-6)
    # of three words each has a third of what they do together
    row = dict(zip(best.labels.features, best.contributions[3], strict=True))
    assert row["not"] == pytest.approx(2.0, abs=1e-9)
    assert row["all"] == pytest.approx(1.0, abs=1e-9)

    # long documents are drawn, with errors
    def rough(texts):
        return np.sqrt(1.0 + called(texts))

    texts = [" ".join(f"w{k}" for k in range(n, n + 18)) for n in (0, 2)]
    pair = [text + " bad not at" for text in texts]
    best, again, other = (
        po.explain(
            rough, pair, kind="contributions", sampling=po.Sampling(rng=seed), **QUIET
        )
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(best.attributions, again.attributions)
    assert (best.attributions != other.attributions).any()
    assert "sets of the words" in best.parameters["contributions"]
    assert "no scikit-learn pipeline" in best.parameters["contributions"]
    row = dict(zip(best.labels.features, best.contributions[0], strict=True))
    # words that do the same; 6 errors of ten blocks, by chance once in 5,000 words
    error = best.standard_errors[0].max()
    same = (
        [row[f"w{k}"] for k in range(18)],
        [row[word] for word in ("bad", "not", "at")],
    )
    for values in same:
        np.testing.assert_allclose(values, np.mean(values), atol=6 * error)
    assert np.mean(same[1]) > 1.2 * np.mean(same[0])
    assert 0.0 < error < 0.03 * np.mean(same[0])


def test_given_contributions_are_taken_and_have_to_be_of_words_that_are_there(model):
    first = po.explain(model, DOCUMENTS, kind="contributions", **QUIET)
    settings = {"kind": "contributions", "contributions": np.array(first.contributions)}
    again = po.explain(model, DOCUMENTS, **settings, **QUIET)
    np.testing.assert_allclose(again.attributions, first.attributions, atol=1e-6)
    settings["contributions"][0, first.labels.features.index("slow")] = 1.0
    with pytest.raises(InvalidInput, match="document 0 has a contribution of 'slow'"):
        po.explain(model, DOCUMENTS, **settings)


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "texts"))
def test_what_has_no_meaning_for_documents_is_refused(model, line, message):
    def explained(**settings):
        return po.explain(model, DOCUMENTS, **settings)

    with pytest.raises(InvalidInput, match=message):
        eval(line, globals() | locals())


NEW = [f"{DOCUMENTS[0]} marvellously", DOCUMENTS[1], DOCUMENTS[2], "xylophone"]


@pytest.fixture(scope="module", params=WAYS.values(), ids=WAYS)
def fitted(request, model):
    explainer = po.Explainer(model, DOCUMENTS, robustness=0.4, **request.param)
    return explainer.fit(progress=False), request.param


def test_the_reference_is_what_explain_says_and_answers_tell_how(fitted, model):
    explainer, settings = fitted
    same = po.explain(model, DOCUMENTS, robustness=0.4, **settings, **QUIET)
    given = po.Explainer(model, DOCUMENTS, robustness=0.4, **settings)
    given = given.fit(DOCUMENTS, progress=False).reference_
    np.testing.assert_array_equal(given.attributions, same.attributions)
    assert given.parameters == same.parameters
    reference = explainer.reference_  # in an order of its own
    texts = [*reference.labels.texts]
    assert sorted(texts) == sorted(DOCUMENTS)
    columns = [*same.labels.features]
    assert [*reference.labels.features] == sorted(columns)
    ordered = reference.to_frame().iloc[[texts.index(x) for x in DOCUMENTS]][columns]
    equal = [DOCUMENTS.index(x) for x in DOCUMENTS]  # of repeated texts the first
    np.testing.assert_allclose(ordered, same.attributions[equal], atol=1e-9)
    assert explainer.robustness_ == 0.4
    together = explainer.explain([*NEW, ""], **QUIET)
    frame = together.to_frame()
    assert "marvellously" in frame.columns
    words = f"of {len(DOCUMENTS)} reference documents"
    assert together.parameters["graph"].endswith(words)
    assert together.parameters["function"] == reference.parameters["function"]
    assert not together.attributions[-1].any()  # without words
    for n in (2, 0):  # the same answer whoever else is asked
        alone = explainer.explain([NEW[n]], **QUIET).to_frame().iloc[0]
        assert (frame.iloc[n][alone.index] == alone).all()
        assert not frame.iloc[n].drop(alone.index).any()
    if (
        settings.get("kind") != "contributions"
    ):  # words that nobody had have their target
        result = explainer.explain(["xylophone"], **QUIET)
        np.testing.assert_array_equal(result.attributions[0], result.gradient[0])
        assert result.labels.features[-1] == "xylophone"


def test_it_is_the_optimum_beside_the_fixed_documents(fitted, model):
    explainer, settings = fitted
    result = explainer.explain(NEW[:1], progress=False)
    W, fixed = result.to_frame().iloc[0], explainer.reference_.to_frame()
    parts = settings.get("kind") == "contributions"
    target = result.contributions if parts else result.gradient
    g = pd.Series(target[0], index=W.index)
    words = po.wrap(model, data=NEW[:1]).text_schema.vocabulary
    assert set(W.index[W != 0.0]) <= set(words)
    counts = explainer.fitted_.problem.points
    present = pd.DataFrame(counts != 0.0, columns=fixed.columns)
    S = similarities(counts, fixed.columns, NEW[0], model)
    near = np.argsort(-S, kind="stable")[:8]

    def half_slope(d):
        own = [j for j in near if d in present.columns and present[d].iloc[j]]
        return W[d] - g[d] + 0.8 * sum(S[j] * (W[d] - fixed[d].iloc[j]) for j in own)

    slopes = np.array([half_slope(d) for d in words])
    expected = slopes.mean() if parts else 0.0
    np.testing.assert_allclose(slopes, expected, atol=1e-12)
    assert result.certificate.holds(1e-9)
    if parts:
        total = result.prediction - result.base_value
        assert W.sum() == pytest.approx(float(total[0]), abs=1e-12)


def test_documents_by_themselves_have_a_program_of_their_own(fitted):
    explainer, _ = fitted
    result = explainer.explain(NEW, progress=False)
    W, program = result.attributions, result.program
    values = {loss.name: loss.value_at(W) for loss in program.losses}
    assert values == pytest.approx(result.losses, rel=1e-12)
    objective = sum(
        c * x for c, x in zip(result.weights.values(), program.losses, strict=True)
    )
    proof = po.proofs.certify(objective, W, bounds=program.bounds)
    assert proof.gap < 1e-12
    assert po.proofs.certify(objective, 1.01 * W, bounds=program.bounds).gap > 1e-5
    certain = result.certain()
    alone = explainer.explain(NEW[:1], progress=False).certain(
        small_change=certain.small_change
    )
    frame = pd.DataFrame(certain.half_widths, columns=result.labels.features)
    own = pd.Series(alone.half_widths[0], index=alone.labels.features)
    np.testing.assert_allclose(frame.loc[0, own.index], own, rtol=1e-9)


def similarities(counts, words, text, model):
    """Cosines of tf-idf, of the documents that are fixed."""
    own = po.wrap(model, data=[text])
    new = pd.Series(own.read([text])[0][0], index=own.text_schema.vocabulary)
    idf = 1.0 + np.log((1.0 + len(counts)) / (1.0 + (counts != 0.0).sum(axis=0)))
    rare = 1.0 + np.log(1.0 + len(counts))
    U = counts * idf
    U = U / np.maximum(np.linalg.norm(U, axis=1, keepdims=True), 1e-300)
    u = new * [dict(zip(words, idf, strict=True)).get(word, rare) for word in new.index]
    u = u / np.linalg.norm(u)
    return U @ [u.get(word, 0.0) for word in words]


def test_reference_documents_are_drawn_with_their_names_and_not_saved(model, tmp_path):
    texts = pd.Series(DOCUMENTS, index=[f"r{n}" for n in range(len(DOCUMENTS))])
    explainer = po.Explainer(
        model,
        texts,
        graph=po.graphs.Nearest(n_reference=5),
        sampling=po.Sampling(rng=3),
        kind="slopes",
    ).fit(**QUIET)
    assert explainer.reference_.shape[0] == 5
    assert set(explainer.reference_.labels.points) < set(texts.index)
    assert explainer.explain(texts[:2], **QUIET).labels.points == ("r0", "r1")
    with pytest.raises(InvalidInput, match="save: an Explainer of documents"):
        explainer.save(tmp_path / "explainer.npz")


PAIRS = [
    "good food and a fair price",
    "good food and a fair bill",
    "bad food and a slow waiter",
    "bad food and a slow kitchen",
    "the price was not good",
    "the price was not bad",
    "slow and bad",
]
WEIGHTS = np.geomspace(1e-2, 1e2, 9)


@pytest.fixture(scope="module")
def function():
    return po.wrap(linear(), output="log_odds", data=PAIRS)


def test_what_adds_up_is_compared_and_what_does_not_says_why(function, tmp_path):
    present = function.read(PAIRS)[0]
    robust = po.losses.SharedRobustness(po.graphs.document_graph(present), present)
    shapley = po.explainers.TreeShap().explain(function, PAIRS)
    totals = function.value(PAIRS) - function.value([""])
    total = po.losses.Completeness(totals, present > 0)
    matching = po.GradientMatching(shapley)
    law, settings = {"law": po.lime.TextLaw()}, {"subject_to": [total]}
    others = {
        "shapley": shapley,
        "run": po.explainers.Lime(**law, n_samples=100).explain(function, PAIRS),
        "limit": po.explainers.ExactLime(**law).explain(function, PAIRS),
    }
    weights = {robust.name: WEIGHTS}
    front = po.sweep(matching + robust, weights, others, **settings, **QUIET)
    table = front.distances().set_index("method")
    assert table["excess"]["shapley"] == 0.0  # the target: weight zero
    assert table["excess"][["run", "limit"]].isna().all()
    assert "violates completeness" in table["not_compared"]["limit"]
    assert "weight.completeness" not in table
    assert not front.on_front[-2:].any()
    front.save(tmp_path / "front.npz")
    again = po.TradeOffs.load(tmp_path / "front.npz")
    assert again.distances().equals(front.distances())
    # a complete explanation is loaded with its sums
    objective = matching + 0.5 * robust
    best = po.solve(objective, **settings)
    best.save(tmp_path / "best.npz")
    settings["objective"] = objective
    again = po.results.Explanation.load(tmp_path / "best.npz", **settings)
    assert again.certificate.holds(1e-6)
    one, other = again.certificate.lower_bound, best.certificate.lower_bound
    assert one == pytest.approx(other, rel=1e-6)
    assert (again.certain().signs == best.certain().signs).all()
