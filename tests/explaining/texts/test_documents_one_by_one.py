"""``po.Explainer`` of documents: fitted once, then asked one by one."""

import numpy as np
import pandas as pd
import pytest
from text_models import DOCUMENTS, forest

import propopt as po
from propopt.base.errors import InvalidInput


WAYS = {
    "effects": {},
    "limits": {"law": po.lime.TextLaw()},
    "shapley": {"units": "output"},
    "effects that add up": {"units": "output", "contributions": "slopes"},
}
NEW = [f"{DOCUMENTS[0]} marvellously", DOCUMENTS[1], DOCUMENTS[2], "xylophone"]


@pytest.fixture(scope="module")
def model():
    return forest()


@pytest.fixture(scope="module", params=WAYS.values(), ids=WAYS)
def fitted(request, model):
    explainer = po.Explainer(model, DOCUMENTS, robustness=0.4, **request.param)
    return explainer.fit(progress=False), request.param


def test_the_reference_is_what_explain_says(fitted, model):
    explainer, settings = fitted
    same = po.explain(model, DOCUMENTS, robustness=0.4, **settings, progress=False)
    np.testing.assert_array_equal(explainer.reference_.attributions, same.attributions)
    assert explainer.reference_.parameters == same.parameters
    assert explainer.robustness_ == 0.4


def test_a_document_has_the_same_answer_whoever_else_is_asked(fitted):
    explainer, _ = fitted
    together = explainer.explain(NEW, progress=False).to_frame()
    for n in (2, 0):
        alone = explainer.explain([NEW[n]], progress=False).to_frame().iloc[0]
        assert (together.iloc[n][alone.index] == alone).all()
        assert not together.iloc[n].drop(alone.index).any()


def test_it_is_the_optimum_beside_the_fixed_documents(fitted, model):
    explainer, settings = fitted
    result = explainer.explain(NEW[:1], progress=False)
    W, fixed = result.to_frame().iloc[0], explainer.reference_.to_frame()
    parts = settings.get("units") == "output"
    g = pd.Series(
        (result.contributions if parts else result.gradient)[0], index=W.index
    )
    words = po.wrap(model, data=NEW[:1]).text_schema.vocabulary
    assert set(W.index[W != 0.0]) <= set(words)
    counts = po.wrap(model, data=DOCUMENTS).read(DOCUMENTS)[0]
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


def test_an_answer_says_how_it_was_made(fitted):
    explainer, _ = fitted
    result = explainer.explain(NEW, progress=False)
    assert "marvellously" in result.to_frame().columns
    told = explainer.reference_.parameters
    assert result.parameters["graph"].endswith(
        f"of {len(DOCUMENTS)} reference documents"
    )
    assert result.parameters["function"] == told["function"]
    assert "stability" not in result.parameters


def test_words_that_nobody_had_have_their_target(fitted):
    explainer, settings = fitted
    if settings.get("units") == "output":
        return
    result = explainer.explain(["xylophone"], progress=False)
    W, g = result.attributions[0], result.gradient[0]
    np.testing.assert_array_equal(W, g)
    assert result.labels.features[-1] == "xylophone"


def test_a_document_without_words_is_explained_by_nothing(fitted):
    explainer, _ = fitted
    result = explainer.explain(["", DOCUMENTS[0]], progress=False)
    assert not result.attributions[0].any()
    assert result.attributions[1].any()


def test_reference_documents_are_drawn_with_their_names(model):
    texts = pd.Series(DOCUMENTS, index=[f"r{n}" for n in range(len(DOCUMENTS))])
    explainer = po.Explainer(model, texts, n_reference=5, rng=3).fit(progress=False)
    assert explainer.reference_.shape[0] == 5
    assert set(explainer.reference_.labels.points) < set(texts.index)
    few = explainer.explain(texts[:2], progress=False)
    assert few.labels.points == ("r0", "r1")


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"scale": None}, "scale: words have no scale"),
        ({"law": "data"}, "law: of documents expected 'auto'"),
        ({"contributions": "slopes"}, "contributions: it is of units='output'"),
    ],
)
def test_settings_without_a_meaning_are_refused(model, settings, match):
    with pytest.raises(InvalidInput, match=match):
        po.Explainer(model, DOCUMENTS, **settings).fit(progress=False)


def test_it_is_not_saved(model, tmp_path):
    explainer = po.Explainer(model, DOCUMENTS, robustness=0.1).fit(progress=False)
    with pytest.raises(InvalidInput, match="save: an Explainer of documents"):
        explainer.save(tmp_path / "explainer.npz")
