"""Explanations: saved and loaded exactly, whole files only, names kept."""

from __future__ import annotations

import dataclasses
import zipfile

import numpy as np
import pandas as pd
import pytest
from crafted_archives import header_of, members_of, npy, with_header, write
from exact_values import same

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.results.target_error import TargetError, exact_target
from propopt.tables.frames import Labels


G = np.arange(6.0).reshape(3, 2) / 7

FULL = po.Explanation(
    attributions=G,
    method="lime",
    labels=Labels(points=("a", "b", "c"), features=("age", "größe")),
    parameters={"scale": 0.1, "n_samples": 10, "kernel_width": None, "fit": True},
    weights={"gradient_matching": 1.0, "sparsity": 0.1},
    losses={"gradient_matching": 1 / 3, "sparsity": 1e-300},
    certificate=po.Certificate(
        value=1 / 3, lower_bound=0.1, scale=1 / 3, kind="dual", distance=2 / 3
    ),
    multipliers={"sparsity": 0.1 + 0.2},
    standard_errors=G / 3,
    details={"r2": np.array([0.1, 0.2, 0.3])},
    solver="conic",
    seconds=0.1,
)
BARE = po.Explanation(attributions=G, method="gradient")
NO_DISTANCE = po.Explanation(
    attributions=G,
    method="optimized",
    certificate=po.Certificate(value=1, lower_bound=1, scale=1, kind="dual"),
)
SLOPES = po.Explanation(
    attributions=np.array([[1.0, -2.0, 4.0], [3.0, 0.5, 2.0]]),
    method="lime",
    labels=Labels(("p", "q"), ("a", "b", "c")),
    parameters={"scale": 0.1},
    weights={"sparsity": 1.0},
    losses={"sparsity": 12.5},
    multipliers={"smoothness": 1.0},
    standard_errors=np.ones((2, 3)),
    details={"r2": np.ones(2)},
    evaluations=200,
)
OUTPUT = dataclasses.replace(SLOPES, units="output")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "best.npz"


def reloaded(explanation: po.Explanation, path) -> po.Explanation:
    explanation.save(path)
    return po.Explanation.load(path)


@pytest.mark.parametrize("explanation", [FULL, BARE, NO_DISTANCE, OUTPUT])
def test_every_field_comes_back_exactly(explanation, path):
    assert same(reloaded(explanation, path), explanation)
    with np.load(path, allow_pickle=False) as file:
        assert all(file[name].dtype != object for name in file.files)
        known = explanation.standard_errors is not None
        assert ("standard_errors" in file.files) is known


@pytest.mark.parametrize(
    "names",
    [
        ("a", "b", "c"),
        (3, 1, 2),
        (0.1, 0.2, 1e300),
        (1, "one", 1.5),
        tuple(np.arange(3)),
        tuple(np.array([0.5, 1.5, 2.5])),
        ("", "ü", 'a "quoted"\nline'),
        None,
    ],
    ids=repr,
)
def test_names_of_points_come_back_as_they_were(names, path):
    labels = Labels(points=names, features=("x", "y"))
    explanation = po.Explanation(attributions=G, method="gradient", labels=labels)
    result = reloaded(explanation, path).labels
    assert result == labels
    if names is not None:
        kinds = [float if isinstance(n, float) else type(n) for n in names]
        kinds = [int if issubclass(k, np.integer) else k for k in kinds]
        assert [type(n) for n in result.points] == kinds


def test_other_names_become_text(path):
    days = tuple(pd.date_range("2024-01-01", periods=3))
    explanation = po.Explanation(
        attributions=G, method="gradient", labels=Labels(points=days)
    )
    assert reloaded(explanation, path).labels.points == tuple(map(str, days))


def test_object_arrays_are_not_written(path):
    bad = po.Explanation(
        attributions=G, method="gradient", details={"what": np.array([object()])}
    )
    with pytest.raises(ValueError, match="expected numbers, got object"):
        bad.save(path)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("best", "best.npz"),
        ("best.npz", "best.npz"),
        ("scale=0.1", "scale=0.1.npz"),
        ("best.v1", "best.v1.npz"),
    ],
)
def test_name_is_kept_and_completed(name, file, tmp_path):
    BARE.save(tmp_path / name)
    assert [p.name for p in tmp_path.iterdir()] == [file]
    np.testing.assert_array_equal(po.Explanation.load(tmp_path / name).attributions, G)
    assert po.Explanation.load(str(tmp_path / file)).method == "gradient"


def test_missing_file_is_not_found(tmp_path):
    with pytest.raises(FileNotFoundError):
        po.Explanation.load(tmp_path / "nothing.npz")


def test_failed_write_leaves_the_old_file(path, monkeypatch):
    FULL.save(path)
    before = path.read_bytes()

    def savez(file, **_):
        file.write_bytes(b"half of it")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", savez)
    with pytest.raises(OSError, match="disk full"):
        BARE.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["best.npz"]


def test_saving_again_replaces_the_file(path):
    FULL.save(path)
    BARE.save(path)
    assert po.Explanation.load(path).method == "gradient"


def cut_file(path):
    FULL.save(path)
    path.write_bytes(path.read_bytes()[:200])


def other_zip(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("notes.txt", "hello")


def other_archive(**arrays):
    return lambda path: np.savez(path, **arrays)


OTHER_FILES = {
    "archive": other_archive(data=np.ones(3)),
    "array": lambda path: path.write_bytes(npy(np.ones(3))),
    "text": lambda path: path.write_text("method,loss\n"),
    "empty": lambda path: path.write_bytes(b""),
    "cut": cut_file,
    "zip": other_zip,
    "header of another": other_archive(
        header=np.array('{"format": "other"}'), attributions=np.ones(3)
    ),
    "no header": other_archive(header=np.array("hello"), attributions=np.ones(3)),
}


@pytest.mark.parametrize("write", OTHER_FILES.values(), ids=OTHER_FILES)
def test_other_files_are_refused_by_name(write, path):
    write(path)
    with pytest.raises(InvalidInput, match=r"best\.npz: not a saved explanation"):
        po.Explanation.load(path)


def test_a_file_of_the_first_version_is_read(path):
    FULL.save(path)
    members = members_of(path)
    header = header_of(members) | {"version": 1}
    header["labels"] = header.pop("shared")[0]
    for later in ("units", "evaluations", "target", "quantity", "digest"):
        del header[later]
    write(path, with_header(members, header))
    result = po.Explanation.load(path)
    assert (result.units, result.evaluations) == ("gradient", 0)
    np.testing.assert_array_equal(result.attributions, FULL.attributions)


def test_newer_version_is_refused_with_both_numbers(path):
    FULL.save(path)
    members = members_of(path)
    write(path, with_header(members, header_of(members) | {"version": 7, "new": 1}))
    with pytest.raises(InvalidInput, match=r"version 7; this propopt reads version 6"):
        po.Explanation.load(path)


def test_frame_has_the_names_of_the_input():
    frame = pd.DataFrame(G, columns=["age", "dose"], index=["p", "q", "r"])
    best = po.solve(1.0 * po.GradientMatching(frame))
    pd.testing.assert_frame_equal(best.to_frame(), frame, check_exact=False)


def test_frame_of_nameless_input_counts_features():
    assert list(BARE.to_frame().columns) == ["x0", "x1"]
    assert list(BARE.to_frame().index) == [0, 1, 2]


def test_repr_gives_what_is_known():
    text = repr(FULL)
    for part in ("lime", "3 points × 2 features", "gradient_matching=0.333333"):
        assert part in text
    assert "gap=7.0e-01" in text
    assert "solver=conic" in text
    assert repr(BARE) == "Explanation(gradient, 3 points × 2 features)"


def test_objective_is_the_weighted_sum_and_gap_that_of_the_certificate():
    assert FULL.objective == pytest.approx(1 / 3)
    assert FULL.gap == FULL.certificate.gap
    assert BARE.objective is BARE.gap is None


def test_measuring_adds_losses_and_keeps_the_rest():
    measured = FULL.measured(po.Smoothness(po.chain_graph(2)))
    assert measured.losses["gradient_matching"] == 1 / 3
    assert measured.losses["smoothness"] > 0
    assert "smoothness" not in FULL.losses
    assert measured.details is FULL.details


def test_evaluations_are_shown_where_they_were_counted():
    assert repr(SLOPES).endswith("evaluations=200)")
    assert "evaluations" not in repr(BARE)


def test_scaled_attributions_keep_only_what_holds_for_them():
    result = SLOPES.scaled([10, 1, 0.5])
    np.testing.assert_array_equal(result.attributions, [[10, -2, 2], [30, 0.5, 1]])
    assert result.units == "scaled"
    assert result.details == {}
    np.testing.assert_array_equal(result.standard_errors, [[10, 1, 0.5]] * 2)
    assert result.weights == result.losses == result.multipliers == {}
    assert result.certificate is result.objective is None
    assert result.parameters == SLOPES.parameters
    assert (result.labels, result.evaluations) == (SLOPES.labels, 200)


@pytest.mark.parametrize("units", ["output", "scaled"])
def test_only_slopes_can_be_scaled(units):
    with pytest.raises(InvalidInput, match=f"units 'gradient', got '{units}'"):
        dataclasses.replace(SLOPES, units=units).scaled(np.ones(3))


@pytest.mark.parametrize(
    "scale", [2.0, [1.0, 2.0], [1.0, np.nan, 1.0], np.ones((1, 3))]
)
def test_a_scale_that_is_not_one_number_per_feature_is_refused(scale):
    with pytest.raises(InvalidInput, match=r"^scale: "):
        SLOPES.scaled(scale)


def test_grouped_attributions_are_signed_sums_in_order_of_the_first():
    result = SLOPES.grouped({"last": ["c", "b"]})
    assert result.labels == Labels(("p", "q"), ("a", "last"))
    np.testing.assert_array_equal(result.attributions, [[1, 2], [3, 2.5]])
    assert result.weights == result.losses == result.details == result.multipliers == {}
    assert (result.units, result.evaluations) == ("gradient", 200)
    ends = SLOPES.grouped({"ends": ["c", "a"]})
    np.testing.assert_array_equal(ends.to_frame()["ends"], [5, 5])
    assert list(ends.to_frame().columns) == ["ends", "b"]
    result = SLOPES.grouped({"a": ["a", "b"]})  # of the name of its own feature
    assert result.labels.features == ("a", "c")


@pytest.mark.parametrize(
    ("groups", "complaint"),
    [
        ({"x": ["z"]}, "'x': no feature 'z'"),
        ({"x": []}, "'x': expected a list"),
        ({"x": "a"}, "'x': expected a list"),
        ({"x": ["a"], "y": ["a"]}, "'a' appears twice"),
        ({"c": ["a", "b"]}, "'c': a feature is called so too"),
    ],
)
def test_groups_that_are_none_are_refused(groups, complaint):
    with pytest.raises(InvalidInput, match=complaint):
        SLOPES.grouped(groups)


def test_features_of_one_name_cannot_be_grouped():
    twice = dataclasses.replace(SLOPES, labels=Labels(features=("a", "a", "c")))
    with pytest.raises(InvalidInput, match="two features have one name"):
        twice.grouped({"x": ["c"]})


def test_a_loaded_explanation_shows_the_card_that_it_had(tmp_path):
    X = np.random.default_rng(0).normal(size=(12, 3))
    objective = po.GradientMatching(X**3) + po.PairwiseRobustness(po.knn_graph(X, 2))
    best = po.solve(objective)
    best.save(tmp_path / "best")
    again = po.Explanation.load(tmp_path / "best")
    assert "% certain" in again._repr_html_()
    assert again._repr_html_() == best._repr_html_()
    assert str(again) == str(best)
    assert again.loss_shares == best.loss_shares
    assert again.scaled([1.0, 2.0, 3.0]).loss_shares == {}  # of other numbers
    assert again.scaled([1.0, 2.0, 3.0]).certain_share is None


def test_parts_that_miss_the_prediction_are_refused(path):
    W, base = np.array([[1.0, -2.0], [0.5, 0.25]]), np.array([3.0, 3.0])
    parts = po.Explanation(
        attributions=W,
        method="optimized",
        units="output",
        base_value=base,
        prediction=base + W.sum(axis=1),
    )
    parts.save(path)
    off = parts.prediction + np.array([0.0, 0.0035])  # of 3.75: by 0.1 %
    with pytest.raises(InvalidInput, match="row 1 and its base value miss"):
        dataclasses.replace(parts, prediction=off).save(path)


def test_intervals_follow_the_laws_of_their_errors():
    W, errors = np.array([[1.0, -2.0]]), np.array([[0.5, 0.25]])
    plain = po.Explanation(attributions=W, method="mine", standard_errors=errors)
    low, high = np.moveaxis(plain.intervals(level=0.9), 2, 0)
    np.testing.assert_allclose((high - low) / 2, 1.6448536269514722 * errors)
    np.testing.assert_allclose((high + low) / 2, W)
    target = TargetError(value=1.0, scale=2.0, spread=0.1, source="draws", n_blocks=10)
    drawn = dataclasses.replace(plain, target=target)
    low, high = np.moveaxis(drawn.intervals(level=0.9), 2, 0)
    np.testing.assert_allclose((high - low) / 2, 1.8331129326536335 * errors)  # t_9
    exact = po.Explanation(attributions=W, method="mine", target=exact_target("e", 1.0))
    assert (exact.intervals() == W[:, :, None]).all()
    with pytest.raises(InvalidInput, match="standard_errors: they are not known"):
        po.Explanation(attributions=W, method="mine").intervals()
    with pytest.raises(InvalidInput, match="level: expected a number between"):
        plain.intervals(level=1.0)
