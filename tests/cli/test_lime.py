"""``propopt lime``: what LIME tends to at rows of a table, in files and in print."""

import numpy as np
import pytest
from command_line import names

import propopt as po
from propopt.base.cards import to_text


FOREST = """\
data: {sklearn: iris, explain: 30}
model: {kind: forest, n_estimators: 5, target_class: setosa}
lime: {rows: 3, n_samples: 200, path: [0.5, 2]}
"""
NO_PATH = FOREST.replace(", path: [0.5, 2]", "")
WHOLE = ["file_diagnosis.csv", "file_lime.csv", "file_path.csv"]
WHOLE = ["file.json", "file.npz", "file.svg", *WHOLE]
CUBE = """\
data: {grid: {low: -1, high: 1, per_dimension: 9, dimensions: 2}}
function: {name: power, degree: 3}
lime: {rows: [80, 7], n_samples: 100, n_bins: 3, diagnose: false}
"""


@pytest.fixture
def forest(done):
    return done(FOREST)


def test_files_and_print_hold_what_the_library_finds(forest):
    def limits(**settings):
        law = po.lime.TabularLaw.from_data(subject.others, **settings)
        data = {"data": subject.others, "n_samples": 200}
        return po.lime.limits(subject.function, rows, law, **data).coefficients

    assert names(forest.folder) == WHOLE
    subject, stored, printed = forest.subject, forest.stored, forest.printed
    rows = subject.points[:3]
    saved, table = forest.load(po.lime.LimeExplanation), forest.table("_lime")
    np.testing.assert_array_equal(saved.coefficients, limits())
    np.testing.assert_array_equal(table["coefficient"], limits().ravel())
    assert table["row"].tolist() == [row for row in rows.index for _ in range(4)]
    assert table["single_run_sd"].min() > 0
    assert table["single_run_sd_source"].str.match(r"estimate \([\d,]+ draws").all()
    assert stored["job"] == "lime"
    assert stored["lime"]["rows"] == list(rows.index)
    assert stored["lime"]["source"] == "exact"
    assert stored["score"]["name"] == "accuracy"
    path = forest.table("_path")  # the limits of each width
    result = path.loc[path["kernel_width"] == 2.0, "coefficient"]
    wide = limits(kernel_width=2.0).ravel()
    np.testing.assert_allclose(result, wide, rtol=1e-12)
    assert len(path) == 3 * 2 * 4
    assert (path["standard_error"] == 0.0).all()
    found = forest.table("_diagnosis")  # what coefficients hide
    counts = found.loc[found["kind"] == "finding", "rule"].value_counts().to_dict()
    assert stored["findings"] == counts
    for told in (
        *(f"\n\n{to_text(saved.document(row))}\n" for row in rows.index),
        *(f"\n  {rule} " for rule in counts),
        "\n\nLIME diagnosis · ",
        f"wrote {forest.folder}/file_lime.csv, _diagnosis.csv, _path.csv, .svg, .npz",
    ):
        assert told in printed


def test_rows_are_those_of_the_table_whether_fitted_on_or_not(done, forest):
    subject = forest.subject
    rows = [subject.others.index[0], subject.points.index[-1]]
    table = done(NO_PATH, "-q", "--rows", *map(str, rows)).table("_lime")
    assert table["row"].unique().tolist() == rows
    values = table.loc[table["row"] == rows[0], "value"].to_numpy(float)
    np.testing.assert_array_equal(values, subject.others.iloc[0])


def test_rows_of_a_grid_keep_their_numbers(done):
    cube = done(CUBE)
    table = cube.table("_lime")
    assert table["row"].unique().tolist() == [80, 7]
    assert table.loc[table["row"] == 80, "value"].tolist() == [1.0, 1.0]
    assert "row 80 (1 of 2) · " in cube.printed
    assert "diagnosis" not in cube.printed
    assert names(cube.folder) == ["file.json", "file.npz", "file.svg", "file_lime.csv"]
    assert cube.stored["findings"] is None


def test_what_cannot_be_exact_says_why(done):
    net = done(FOREST.replace("forest, n_estimators: 5", "mlp, hidden: [3]"), "-v")
    assert net.stored["lime"]["sampling_error"] > 0.0
    assert "\nridge: 1\n" in net.printed
    reason = net.stored["lime"]["reason"]
    assert reason
    assert f"\nreason of sampling: {reason}\n" in net.printed
    assert (net.table("_path")["standard_error"] > 0).any()
