"""Attributions from anywhere come in the order of the table, or are refused."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from refusals import refusals

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.explaining.evidence import read_parts
from propopt.tables.frames import Labels


NAMES = ("Age", "Use", "Frequency of use")
NUMBERED = Labels(features=NAMES, points=(0, 1, 2, 3))
NAMED = Labels(features=NAMES, points=("p", "q", "r", "s"))
W = np.random.default_rng(0).normal(size=(4, 3))
BASE = np.array([0.5, 0.25, 0.5, 0.75])


class Package:
    """What ``shap.Explanation`` has."""

    def __init__(self, values, base_values=None, feature_names=None):
        self.values, self.base_values = values, base_values
        self.feature_names = feature_names


class Lime:
    """What an explanation of the package ``lime`` has."""

    def __init__(self, row):
        self.row, self.intercept = row, {0: -row[0], 1: row[0]}

    def as_map(self):
        pairs = list(enumerate(self.row))
        return {1: pairs[::-1], 0: [(j, -w) for j, w in pairs]}

    def as_list(self):
        return self.as_map()[1]


class Tensor:
    """What torch's tensor has, with a gradient."""

    shape = (4, 3)

    def detach(self):
        return self

    def cpu(self):
        return self

    def __array__(self, dtype=None, copy=None):
        return np.array(W, dtype=dtype)


def table(**columns):
    return pd.DataFrame(W, columns=NAMES).assign(**columns)


def written(folder, frame, **how):
    frame.to_csv(folder / "own.csv", **how)
    return folder / "own.csv"


def saved(folder):
    labels = Labels(features=NAMES[::-1], points=tuple("srqp"))
    explanation = po.results.Explanation(
        attributions=W[::-1, ::-1],
        method="mine",
        units="output",
        base_value=BASE[::-1],
        labels=labels,
    )
    explanation.save(folder / "ours.npz")
    return folder / "ours.npz"


BOTH = np.stack([-W, W], axis=2)
BIASED = np.column_stack([W, BASE])
MOVED = table(base_value=BASE).set_axis(list("pqrs"), axis=0).iloc[::-1, [2, 3, 0, 1]]
CONDITIONS = [
    [
        ("1.0 < Age <= 4", row[0]),
        ("Use > 3", row[1]),
        ("Frequency of use <= 9.5", row[2]),
    ]
    for row in W
]
CARRIERS = {
    "array": (lambda _: W, NUMBERED, False),
    "lists": (lambda _: W.tolist(), NUMBERED, False),
    "classes": (lambda _: BOTH, NUMBERED, False),
    "class_arrays": (lambda _: [-W, W], NUMBERED, False),
    "frame": (lambda _: table(), NUMBERED, False),
    "frame_without_rows": (lambda _: table(), NAMED, False),
    "frame_moved": (lambda _: MOVED, NAMED, True),
    "csv": (lambda f: written(f, table(base_value=BASE), index=False), NUMBERED, True),
    "csv_named": (lambda f: written(f, MOVED), NAMED, True),
    "csv_counted": (lambda f: written(f, table(expected_value=BASE)), NAMED, True),
    "csv_as_text": (lambda f: str(written(f, table(), index=False)), NAMED, False),
    "csv_of_others": (
        lambda f: written(f, table(base_value=BASE).set_axis([7, 3, 9, 4])),
        NUMBERED,
        True,
    ),
    "frame_read_back": (
        lambda f: pd.read_csv(written(f, table(base_value=BASE))),
        NAMED,
        True,
    ),
    "csv_of_array": (lambda f: written(f, pd.DataFrame(BIASED)), NAMED, True),
    "bias": (lambda _: BIASED, NAMED, True),
    "bias_named": (lambda _: table(bias=BASE), NAMED, True),
    "biases_flat": (lambda _: np.hstack([-BIASED, BIASED]), NAMED, True),
    "biases": (lambda _: np.stack([-BIASED, BIASED], axis=1), NAMED, True),
    "ours": (saved, NAMED, True),
    "shap": (lambda _: Package(W, BASE, list(NAMES)), NAMED, True),
    "shap_moved": (lambda _: Package(W[:, ::-1], BASE, NAMES[::-1]), NAMED, True),
    "shap_classes": (
        lambda _: Package(BOTH, np.stack([-BASE, BASE], axis=1)),
        NAMED,
        True,
    ),
    "tensor": (lambda _: Tensor(), NAMED, False),
    "pairs": (lambda _: CONDITIONS, NAMED, False),
    "pairs_of_names": (
        lambda _: [list(zip(NAMES, row, strict=True))[::-1] for row in W],
        NAMED,
        False,
    ),
    "lime": (lambda _: [*map(Lime, W)], NAMED, None),
}
"""What carries W, the names of the table, and whether a base comes, too."""


@pytest.mark.parametrize("name", CARRIERS)
def test_every_carrier_gives_the_numbers_in_order(name, tmp_path):
    make, labels, has_base = CARRIERS[name]
    imported = read_parts(make(tmp_path), labels, W.shape, position=1)
    np.testing.assert_allclose(imported.values, W, rtol=1e-14)
    assert not imported.values.flags.writeable
    expected = W[:, 0] if has_base is None else BASE
    if has_base is False:
        assert imported.base is None
    else:
        np.testing.assert_array_equal(imported.base, expected)
    several = ("classes", "class_arrays", "shap_classes", "biases", "biases_flat")
    is_of_several = "output 1 of 0 to 1" in imported.source
    assert imported.source
    assert is_of_several == (name in several)


def test_a_saved_explanation_that_was_optimized_brings_its_exact_values(tmp_path):
    labels = Labels(features=NAMES[::-1], points=tuple("srqp"))
    explanation = po.results.Explanation(
        attributions=W[::-1, ::-1],
        contributions=2.0 * W[::-1, ::-1],
        method="optimized",
        units="output",
        base_value=BASE[::-1],
        labels=labels,
    )
    explanation.save(tmp_path / "own.npz")
    for carrier in (explanation, tmp_path / "own.npz"):
        np.testing.assert_array_equal(
            read_parts(carrier, NAMED, W.shape).exact, 2.0 * W
        )
    assert read_parts(saved(tmp_path), NAMED, W.shape).exact is None


def test_shap_and_lime_themselves_are_read():
    shap = pytest.importorskip("shap")
    explanation = shap.Explanation(
        BOTH, np.tile([0.1, 0.2], (4, 1)), feature_names=NAMES
    )
    imported = read_parts(explanation, NAMED, W.shape, position=1)
    np.testing.assert_array_equal(imported.values, W)
    np.testing.assert_array_equal(imported.base, np.full(4, 0.2))
    tabular = pytest.importorskip("lime.lime_tabular")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    explainer = tabular.LimeTabularExplainer(X, feature_names=NAMES, random_state=0)

    def probabilities(x):
        p = 1.0 / (1.0 + np.exp(-x[:, 0]))
        return np.column_stack([1.0 - p, p])

    rows = [explainer.explain_instance(x, probabilities) for x in X[:2]]
    both = read_parts(rows, Labels(features=NAMES), (2, 3), position=1)
    pairs = read_parts([x.as_list() for x in rows], Labels(features=NAMES), (2, 3))
    np.testing.assert_array_equal(both.values, pairs.values)
    assert both.base is not None


def stored(content, name="own.csv"):
    Path(name).write_bytes(content)
    return name


def read(source):
    return read_parts(source, NAMED, W.shape, position=7)


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "imported"))
def test_what_cannot_be_meant_is_refused(line, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=message):
        eval(line)


X = pd.DataFrame(np.random.default_rng(1).normal(size=(4, 3)), columns=NAMES)
X.index = list("pqrs")


def model(table):
    return np.asarray(table) @ np.ones(3)


def contributed(carrier):
    best = po.explain(model, X, data=X, kind="contributions", contributions=carrier)
    return best.contributions


CHAIN = po.graphs.chain_graph(4)
READERS = {
    "loss": lambda carrier: po.GradientMatching(carrier).G,
    "offset": lambda carrier: po.PairwiseRobustness(CHAIN, offset=carrier).offset,
    "explain": contributed,
    "compare": lambda carrier: po.compare(carrier, carrier).before,
}
SAME = {
    "csv": lambda f: written(f, table(), index=False),
    "shap": lambda _: Package(W, BASE, list(NAMES)),
    "tensor": lambda _: Tensor(),
}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("reader", READERS)
def test_whoever_takes_attributions_reads_every_carrier(name, reader, tmp_path):
    reads = READERS[reader]
    same = reads(SAME[name](tmp_path))
    np.testing.assert_allclose(same, reads(W), rtol=1e-14, equal_nan=True)
    other = np.asarray(reads(1.001 * W + 0.001))
    assert not np.allclose(same, other, equal_nan=True)


def test_lists_of_lime_are_read_where_columns_have_names():
    given = contributed(CONDITIONS)
    np.testing.assert_allclose(given, contributed(W), rtol=1e-14)


def test_a_saved_explanation_is_read(tmp_path):
    np.testing.assert_allclose(contributed(saved(tmp_path)), W, rtol=1e-14)
