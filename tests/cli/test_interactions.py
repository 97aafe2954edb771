"""``propopt interactions``: how much features matter jointly, and runs that go on."""

import numpy as np
import pytest
from command_line import done as run_in
from command_line import names
from fuzz.csv_files import TABLE
from fuzz.problem_files import BASES, dump
from sklearn.datasets import load_diabetes

import propopt as po


PATCHES = """\
data: {sklearn: diabetes}
model: {kind: linear}
interactions:
  scheme: {kind: minipatches, n_patches: 420, n_features: 5}
  level: 0.5
  adjust: none
seed: 3
"""

WHOLE = ["file_interactions.csv", "file_main_effects.csv"]
WHOLE = ["file.json", "file.npz", "file.svg", *WHOLE]


def test_files_and_print_hold_what_the_library_finds(done):
    patches = done(PATCHES)
    assert names(patches.folder) == WHOLE
    settings = {"n_patches": 420, "n_features": 5}
    subject, scheme = patches.subject, po.interactions.Minipatches(**settings)
    fitted = po.interactions.ILOCO(subject.learner, scheme, random_state=3)
    fitted.fit(subject.points, subject.target)
    result, main_effects = fitted.result_, fitted.main_effects_
    saved = patches.load(po.interactions.InteractionScores)
    np.testing.assert_array_equal(saved.scores, result.scores)
    assert saved.names == result.names
    pairs = patches.table("_interactions")
    np.testing.assert_array_equal(pairs["score"], result.scores)
    np.testing.assert_array_equal(pairs["se"], result.standard_errors)
    np.testing.assert_array_equal(pairs["se_mc"], result.monte_carlo)
    assert pairs["feature_1"].tolist()[:2] == ["age", "age"]
    single = patches.table("_main_effects")
    np.testing.assert_array_equal(single["score"], main_effects.scores)
    stored, printed = patches.stored, patches.printed
    assert stored["job"] == "interactions"
    assert stored["n_sets"] == stored["n_candidates"] == 45
    assert stored["settings"]["scheme"]["n_patches"] == 420
    fitted_patches = {"why": "as requested", "n_patches": 420, "most": 420}
    assert stored["patches"] == {**fitted_patches, "until": None, "share": None}
    # how well it predicts is told beside a constant
    np.testing.assert_allclose(stored["mean_error_of_a_constant"], np.var(TARGET))
    mean = fitted.refit_errors_.errors(np.zeros((1, 0), dtype=int)).rows.mean()
    np.testing.assert_allclose(stored["mean_error"], mean)
    for message in (
        f"mean squared error: {mean:.4g} (constant 5930)\n",
        f"\n\n{result}\n",
        f"\n\n{main_effects}\n",
        f"wrote {patches.folder}/file_interactions.csv, _main_effects.csv, .svg, .npz",
    ):
        assert message in printed


TARGET = load_diabetes().target
ALL_SPLIT = """\
data: {sklearn: diabetes}
model: {kind: linear}
interactions:
  scheme: {kind: split}
seed: 3
"""
SURE = {
    "level: 0.5": {"level": 0.5},
    "adjust: none": {"adjust": "none"},
    "adjust: holm, side: lower": {"adjust": "holm", "side": "lower"},
    "order: 1": {},
}


@pytest.mark.parametrize("settings", SURE)
def test_intervals_are_those_that_are_asked_for(done, settings):
    lines = "".join(f"  {setting}\n" for setting in settings.split(", "))
    sure = done(ALL_SPLIT.replace("seed", f"{lines}seed"), "-q")
    scores = sure.load(po.interactions.InteractionScores)
    table, frame = sure.table("_interactions"), scores.to_frame(**SURE[settings])
    for column in ("ci_low", "ci_high", "p_adj"):
        np.testing.assert_array_equal(table[column], frame[column])
    assert table["reject"].tolist() == frame["reject"].tolist()
    assert scores.order == (1 if "order" in settings else 2)


@pytest.mark.parametrize(("order", "n_panels"), [(1, 1), (2, 2), (3, 2)])
def test_the_picture_has_pairs_sets_and_features(done, order, n_panels):
    groups = "  groups: {lipids: [s1, s2, s3, s4], blood: [bp, s6]}\n"
    drawn = done(ALL_SPLIT.replace("seed", f"  order: {order}\n{groups}seed"), "-q")
    svg = (drawn.folder / "file.svg").read_text()
    assert svg.count('<g id="axes_') == n_panels
    names_of_groups = ["age", "sex", "bmi", "blood", "lipids", "s5"]
    assert drawn.stored["features"] == names_of_groups


def test_categories_and_groups_are_features(tmp_path):
    (tmp_path / "table.csv").write_bytes(TABLE)
    (base,) = (base for base in BASES if base.get("interactions", {}).get("adjust"))
    stored = run_in(tmp_path, dump(base).decode(), "-q").stored
    assert stored["features"] == ["age", "size", "city", "colour", "label"]


# ---- ``--resume``: what was finished is not fitted again
