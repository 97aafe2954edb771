"""Every baseline on documents: each by itself, in one table of all words."""

import numpy as np
import pandas as pd
import pytest
from refusals import refusals
from text_models import (
    DOCUMENTS,
    called,
    forest,
    linear,  # noqa: F401  # of refusals.txt
)

import propopt as po
from propopt.base.errors import EstimatedWarning, InvalidInput
from propopt.explaining.explainers import (
    BASELINES,
    ExactLime,
    ExactShap,
    Gradient,
    Lime,
    LimePackage,
    Shap,
    SmoothGrad,
    TreeShap,
)
from propopt.tables.documents import PatternWords, TextSchema


LAW = po.lime.TextLaw()
LONG = [text for text in DOCUMENTS if len(text.split()) > 1]
METHODS = {
    "gradient": Gradient(),
    "lime": Lime(law=LAW, n_samples=200),
    "exact_lime": ExactLime(law=LAW),
    "shap": Shap(),
    "lime_package": LimePackage(n_samples=100),
    "tree_shap": TreeShap(),
    "exact_shap": ExactShap(),
}
REFUSED = {"smoothgrad": SmoothGrad(scale=0.1)}
each_method = pytest.mark.parametrize("method", METHODS)


@pytest.fixture(scope="module")
def function():
    words = TextSchema.of([*LONG, ""], PatternWords())
    return po.wrap(forest(), data=words)


def test_every_baseline_takes_documents_or_refuses_them():
    assert METHODS.keys() | REFUSED.keys() == BASELINES.keys()


TREES, EXACT = TreeShap(), ExactLime(law=LAW)


@each_method
def test_words_of_a_document_are_explained_by_it_alone(method, function):
    package = {"shap": "shap", "lime_package": "lime"}.get(method, "numpy")
    pytest.importorskip(package)
    names = [f"review {n}" for n in range(len(LONG) + 1)]
    X = pd.Series([*LONG, ""], index=names)
    result = METHODS[method].explain(function, X, progress=False)
    counts, _ = function.read(X)
    assert result.attributions.shape == counts.shape
    assert not result.attributions[counts == 0].any()
    assert result.attributions[:-1].any()
    assert not result.attributions[-1].any()
    assert result.labels.points == tuple(names)
    assert result.labels.features == function.text_schema.vocabulary
    assert (result.units, result.method) == ("output", method)
    alone = METHODS[method].explain(function, LONG[:1], progress=False)
    own, together = alone.attributions[0], result.attributions[0]
    np.testing.assert_allclose(own, together, rtol=0, atol=1e-12)
    again, other = (
        METHODS[method].explain(function, LONG[:1], rng=seed, progress=False)
        for seed in (0, 4)
    )
    np.testing.assert_array_equal(alone.attributions, again.attributions)
    drawn = (alone.attributions != other.attributions).any()
    assert drawn == (method in ("lime", "lime_package"))


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "documents"))
def test_what_has_no_meaning_for_documents_is_refused(function, line, message):
    with pytest.raises(InvalidInput, match=message):
        eval(line, globals() | locals())


@pytest.mark.parametrize("method", [Lime(law=LAW), ExactLime(law=LAW)])
def test_one_word_has_its_effect_and_does_not_lose_the_others(method):
    function = po.wrap(called, data=["good food", "good"])
    result = method.explain(function, ["good food", "good"])
    alone = method.explain(function, ["good"])
    effect = function.value(["good"]) - function.value([""])
    assert effect != 0.0
    np.testing.assert_allclose(alone.attributions, [[effect[0], 0.0]], atol=1e-12)
    own, beside = alone.attributions[0], result.attributions[1]
    np.testing.assert_allclose(beside, own, atol=1e-12)
    assert alone.details["intercept"] == function.value([""])


def test_limits_are_those_of_text_limits_and_samples_scatter_about_them(function):
    exact = EXACT.explain(function, LONG)
    table = exact.to_frame()
    limits = po.lime.text_limits(function, LONG, LAW).to_frame()
    names = zip(limits["document"], limits["word"], strict=True)
    own = [table.loc[name] for name in names]
    np.testing.assert_allclose(own, limits["coefficient"], atol=1e-12)
    assert np.count_nonzero(table) == np.count_nonzero(own)
    sampled = Lime(law=LAW, n_samples=4000).explain(function, LONG, rng=0)
    counts, _ = function.read(LONG)
    there = (counts > 0) & (sampled.standard_errors > 1e-9)
    z = (sampled.attributions - exact.attributions)[there]
    z /= sampled.standard_errors[there]
    # 30 normal numbers: beyond 5 once in 60,000 times
    assert np.abs(z).max() < 5.0
    assert 0.5 < np.sqrt((z**2).mean()) < 1.6


def test_shapley_values_of_trees_are_those_of_the_package(function):
    pytest.importorskip("shap")
    trees = TREES.explain(function, LONG)
    package = Shap().explain(function, LONG, progress=False)
    np.testing.assert_allclose(trees.attributions, package.attributions, atol=1e-9)
    assert np.abs(trees.additivity_error).max() < 1e-12


def test_long_documents_of_a_model_that_is_called_are_estimated_with_a_warning():
    text = " ".join(f"w{k}" for k in range(20)) + " not bad at"
    function = po.wrap(called, data=[text])
    with pytest.warns(EstimatedWarning, match="exact_lime"):
        result = ExactLime(law=LAW, n_samples=500).explain(function, [text])
    assert result.standard_errors.shape == result.attributions.shape


class OtherWords:
    filler = PatternWords().filler

    def find(self, text):
        return PatternWords().find(text)


def test_the_package_on_words_that_stand_for_others_draws_the_same_samples():
    pytest.importorskip("lime")
    text = ["good food at a bad price, not good"]
    own, others = (
        LimePackage(n_samples=200).explain(
            po.wrap(called, data=TextSchema.of(text, rule)), text, rng=3, progress=False
        )
        for rule in (PatternWords(), OtherWords())
    )
    np.testing.assert_allclose(own.attributions, others.attributions, atol=1e-12)
    assert own.attributions.any()
