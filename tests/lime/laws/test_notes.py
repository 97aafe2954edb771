"""Notes of laws about rows and bins, and laws of columns in another order."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from propopt.base.arrays import Points
from propopt.base.errors import InvalidInput


def notes(X: object, rows: object, **settings: object) -> str:
    law = po.lime.TabularLaw.from_data(X, **settings)  # type: ignore[arg-type]
    return "\n".join(law.notes(np.asarray(rows, float)))


EVEN = np.linspace(0.0, 1.0, 401)[:, None] ** 1.0


def test_rows_within_even_bins_have_no_notes() -> None:
    assert notes(EVEN, [[0.3], [0.6001]]) == ""


def test_rows_outside_the_data_are_counted() -> None:
    text = notes(EVEN, [[1.5], [-0.1], [0.3]])
    assert "2 rows have values beyond all that are drawn" in text
    assert "'x0'" in text


def test_ends_of_the_data_are_not_outside() -> None:
    assert "beyond" not in notes(EVEN, [[0.0], [1.0]])


def test_rows_in_bins_without_data_are_counted() -> None:
    X = np.repeat([0.0, 3.0], 50)[:, None]
    text = notes(X, [[1.5], [3.0]], n_bins=[[1.0, 2.0]])
    assert "1 row has values in bins never drawn" in text


def test_columns_of_one_bin_and_of_few_are_named() -> None:
    frame = pd.DataFrame(
        {"a": np.full(80, 7.0), "b": np.repeat([0.0, 1.0], 40), "c": np.arange(80.0)}
    )
    text = notes(frame, [[7.0, 0.5, 3.5]])
    assert "columns have one bin, so that their coefficients are 0: 'a'" in text
    assert "fewer bins than asked for, as quantiles are equal: 'b'" in text
    assert "'c'" not in text


def test_notes_are_in_the_result(rng: np.random.Generator) -> None:
    X = rng.normal(size=(100, 2))
    f = po.wrap(lambda X: X[:, 0])
    result = po.lime.limits(f, X[:1] + 100.0, data=X, n_samples=1000)
    assert any("beyond all that are drawn" in note for note in result.notes)


@pytest.fixture
def frame(rng: np.random.Generator) -> pd.DataFrame:
    return pd.DataFrame(rng.normal(size=(100, 3)), columns=["a", "b", "c"])


def make(kind: str, frame: pd.DataFrame) -> po.lime.TabularLaw:
    law = po.lime.TabularLaw.from_data(frame, n_bins={"a": 2, "b": 3, "c": 4})
    if kind == "gaussian":
        return po.lime.GaussianLaw.from_data(frame)  # type: ignore[return-value]
    return law if kind == "tabular" else po.lime.GlimeLaw(law)  # type: ignore[return-value]


@pytest.mark.parametrize("kind", ["tabular", "gaussian", "glime"])
def test_columns_in_another_order_are_put_right_by_name(
    kind: str, frame: pd.DataFrame
) -> None:
    law = make(kind, frame)
    turned = frame[["c", "a", "b"]]
    f = po.wrap(lambda X: np.asarray(X)[:, 0] + 2.0 * np.asarray(X)[:, 1])
    _, labels = f.read(turned)
    aligned = law.aligned(labels, 3)
    assert aligned.labels.features == ("c", "a", "b")
    own = [tuple(column.bins) for column in law.columns]
    assert [tuple(column.bins) for column in aligned.columns] == [own[2], *own[:2]]


def test_columns_of_other_names_are_refused(frame: pd.DataFrame) -> None:
    law = po.lime.TabularLaw.from_data(frame)
    f = po.wrap(lambda X: np.asarray(X)[:, 0])
    with pytest.raises(InvalidInput, match="'c' not known"):
        po.lime.limits(f, frame.rename(columns={"c": "z"}), law)
    with pytest.raises(InvalidInput, match="it has 3 columns, and X has 2"):
        po.lime.limits(f, frame[["a", "b"]], law)


def test_arrays_go_by_position(frame: pd.DataFrame) -> None:
    law = po.lime.TabularLaw.from_data(frame)
    f = po.wrap(lambda X: np.asarray(X)[:, 0])
    points: Points
    points, labels = f.read(frame.to_numpy())
    assert law.aligned(labels, points.shape[1]) is law


def test_explainers_take_laws_by_the_names_of_columns(frame: pd.DataFrame) -> None:
    law = po.lime.TabularLaw.from_data(frame)
    tree = DecisionTreeRegressor(max_depth=3, random_state=0)
    f = po.wrap(tree.fit(frame, frame["a"] * frame["b"]))
    own = po.explainers.ExactLime(law=law).explain(f, frame[:3])
    other = po.explainers.ExactLime(law=law.reordered(np.array([2, 0, 1])))
    again = other.explain(f, frame[:3])
    np.testing.assert_allclose(again.attributions, own.attributions, rtol=1e-12)
