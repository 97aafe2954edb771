"""From models and documents to functions, as results in one line have them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.functions.texts import TextFunction
from propopt.functions.wrapping import KnownTable, wrapped_and_told, wrapped_by_margin


TEXTS = ["good food", "bad food", "no good", "bad", "good", "so bad"]
LABELS = [1, 0, 0, 0, 1, 0]


def fitted(model):
    return make_pipeline(CountVectorizer(binary=True), model).fit(TEXTS, LABELS)


@pytest.mark.parametrize("X", [TEXTS, pd.Series(TEXTS), np.array(TEXTS)])
def test_documents_are_their_own_data(X):
    f = wrapped_and_told(fitted(LogisticRegression()), X, None, "auto", None)[0]
    assert isinstance(f, TextFunction)
    assert [d.text for d in f.text_schema.documents] == TEXTS
    f = wrapped_and_told(
        fitted(LogisticRegression()), X[:1], None, "auto", TEXTS, batch_rows=3
    )[0]
    assert (len(f.text_schema.documents), f.batch_rows) == (6, 3)


def test_a_schema_is_for_wrap():
    schema = po.TextSchema.of(TEXTS)
    f = wrapped_and_told(fitted(LogisticRegression()), TEXTS, None, "auto", schema)[0]
    assert f.text_schema is schema
    with pytest.raises(InvalidInput, match="a schema belongs to wrap"):
        wrapped_and_told(f, TEXTS, None, "auto", schema)
    assert wrapped_and_told(f, TEXTS, None, "auto", None)[0] is f


def test_the_margin_of_a_boosted_classifier():
    model = fitted(GradientBoostingClassifier(n_estimators=3, random_state=0))
    probability = po.wrap(model, data=TEXTS)
    margin = po.wrap(model, output="margin", data=TEXTS)
    assert (probability.is_read, margin.is_read) == (False, True)
    result = wrapped_by_margin(model, None, "auto", KnownTable(TEXTS), batch_rows=2)
    np.testing.assert_array_equal(result.value(TEXTS), margin.value(TEXTS))
    assert result.batch_rows == 2
    asked = wrapped_by_margin(model, None, "probability", KnownTable(TEXTS))
    np.testing.assert_array_equal(asked.value(TEXTS), probability.value(TEXTS))


def test_the_probability_of_others():
    model = fitted(LogisticRegression())
    result = wrapped_by_margin(model, None, "auto", KnownTable(TEXTS)).value(TEXTS)
    np.testing.assert_array_equal(result, model.predict_proba(TEXTS)[:, 1])


class TestTorch:
    @staticmethod
    def module(dtype):
        torch = pytest.importorskip("torch")

        class Counts(torch.nn.Module):
            """Scores of two classes from numbers of letters."""

            def __init__(self):
                super().__init__()
                torch.manual_seed(0)
                self.layer = torch.nn.Linear(2, 2, dtype=dtype or torch.float32)
                self.drop = torch.nn.Dropout(0.5)

            def forward(self, texts):
                assert isinstance(texts, list)
                rows = [[len(t), t.count("o")] for t in texts]
                return self.layer(self.drop(torch.tensor(rows, dtype=self.dtype)))

            @property
            def dtype(self):
                return self.layer.weight.dtype

        return torch, Counts()

    def test_values_and_effects(self):
        torch, module = self.module(None)
        f = po.wrap(module, 1, "probability", data=TEXTS)
        module.train()
        values = f.value(TEXTS)
        assert module.training
        module.eval()
        with torch.no_grad():
            expected = torch.softmax(module(TEXTS).double(), 1)[:, 1].numpy()
        np.testing.assert_allclose(values, expected, rtol=1e-12)
        assert f.calls.trials == 6
        at = f.of_document(TEXTS[0])
        less = f.value(["good food", " food"])
        assert at.gradient_at(np.ones((1, 2)))[0, 0] == less[0] - less[1]
        assert "torch module" in f.structure.reason

    def test_a_module_of_several_scores_needs_a_target(self):
        _, module = self.module(None)
        with pytest.raises(InvalidInput, match="has 2 outputs; give the position"):
            po.wrap(module, data=TEXTS).value(TEXTS)
