"""Parquet files of problems: the same results as CSV files, and what is refused."""

import json

import numpy as np
import pandas as pd
import pytest
from refusals import refusals


DATA = "data: {SOURCE, target: y, categorical: [plan], explain: 12}\n"
JOBS = {
    "sweep": "objective: {gradient_matching: 1, pairwise_robustness: "
    "{graph: {kind: knn, n_neighbors: 3}}}\nsweep: {pairwise_robustness: [0.1, 1]}\n",
    "explain": "explain: {reasons: {}, kind: contributions}\n",
    "lime": "lime: {rows: 2, diagnose: false}\n",
}
MODEL = "model: {kind: hist_gradient_boosting, max_iter: 5, output: log_odds}\n"


@pytest.fixture
def frame(rng):
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["age", "dose"])
    frame.loc[3, "age"] = np.nan
    frame["plan"] = rng.choice(["long", "short", "none yet"], 60)
    frame["y"] = np.where(frame["dose"] > 0, "yes", "no")
    return frame


@pytest.fixture
def run(said, tmp_path):
    """The exit code of a job on a file, and what it says without the folder."""

    def run_job(job, source, text=None, out="out"):
        text = DATA + MODEL + JOBS[job] if text is None else text
        text = text.replace("SOURCE", source)
        return said(text, job, "-o", str(tmp_path / out), "-q")

    return run_job


@pytest.mark.parametrize("job", JOBS)
def test_a_parquet_gives_the_bits_of_a_csv(tmp_path, frame, run, job):
    frame.to_csv(tmp_path / "table.csv", index=False)
    assert run(job, "csv: table.csv", out="csv")[0] == 0
    # a dictionary says that it holds categories, and so need not be listed
    frame.astype({"plan": "category"}).to_parquet(tmp_path / "table.parquet")
    text = (DATA + MODEL + JOBS[job]).replace("categorical: [plan], ", "")
    assert run(job, "parquet: table.parquet", text, out="parquet")[0] == 0
    (tmp_path / "parts").mkdir()
    for part in range(3):
        rows = frame.iloc[20 * part : 20 * part + 20]
        rows.to_parquet(tmp_path / f"parts/{part}.parquet", index=False)
    assert run(job, "parquet: parts", out="folder")[0] == 0
    names = {"lime": ["_lime"], "sweep": ["_attributions"]}
    for name in names.get(job, ["_attributions", "_reasons"]):
        csv = pd.read_csv(tmp_path / f"csv/file{name}.csv", index_col=0)
        if "partners" in csv:  # none has any
            csv["partners"] = csv["partners"].astype(object).fillna("")
        for folder in ("parquet", "folder"):
            path = tmp_path / folder / f"file{name}.parquet"
            if job == "lime":
                table = pd.read_csv(tmp_path / f"{folder}/file{name}.csv", index_col=0)
                # old versions of pandas read the last digit of a CSV otherwise
                numbers = [pd.to_numeric(x["value"], "coerce") for x in (table, csv)]
                np.testing.assert_allclose(*numbers, rtol=1e-14)
                table["value"] = csv["value"]
            else:
                assert not path.with_suffix(".csv").exists()
                table = pd.read_parquet(path)
            if name == "_reasons":
                csv, table = csv.reset_index(), table.reset_index()
                table = table[list(csv)].astype(csv.dtypes.to_dict())
            pd.testing.assert_frame_equal(table, csv, check_names=False)


def test_interactions_and_audits_take_parquet(tmp_path, frame, run):
    table = frame.drop(columns="plan").dropna().reset_index(drop=True)
    table["y"] = table["dose"] + 1.0
    table.to_parquet(tmp_path / "table.parquet")
    text = (
        "data: {SOURCE, target: y}\nmodel: {kind: linear}\n"
        "interactions: {scheme: {kind: minipatches, n_patches: 60}}\n"
    )
    assert run("interactions", "parquet: table.parquet", text)[0] == 0
    X = table[["age", "dose"]]
    W = pd.DataFrame({"age": 0.0, "dose": X["dose"] - X["dose"].mean()}, X.index)
    W.to_parquet(tmp_path / "shap.parquet")
    X.to_parquet(tmp_path / "rows.parquet")
    text = (
        "data: {SOURCE, target: y}\nmodel: {kind: linear}\n"
        "audit: {attributions: shap.parquet, data: rows.parquet}\n"
    )
    assert run("audit", "parquet: table.parquet", text) == (0, "")
    told = json.loads((tmp_path / "out/file.json").read_text())
    assert "exact" in told["checks"].values()
    assert "wrong" not in told["checks"].values()
    assert {"shap.parquet", "rows.parquet", "table.parquet"} <= set(told["inputs"])


@pytest.mark.parametrize(("source", "message"), refusals(__file__, "parquet"))
def test_refusals_name_file_and_column(tmp_path, frame, run, source, message):
    frame.to_parquet(tmp_path / "t.parquet")
    frame.assign(note="a").to_parquet(tmp_path / "words.parquet")
    frame.assign(age=-np.inf).to_parquet(tmp_path / "inf.parquet")
    when = np.zeros(len(frame), "datetime64[us]")
    frame.assign(when=when).to_parquet(tmp_path / "dates.parquet")
    code, told = run("explain", source)
    key = "" if "exactly" in message else "data."
    assert (code, told.replace("data: ", "")) == (2, f"file.yaml:1: {key}{message}")


def test_texts_of_parquet_are_explained(tmp_path, run):
    notes = ["good service", "bad food", "good food", "bad service"] * 6
    table = pd.DataFrame({"note": notes, "y": ["yes", "no"] * 12})
    table.to_parquet(tmp_path / "t.parquet")
    text = (
        "data: {SOURCE, text: note, target: y, explain: 4}\n"
        "model: {kind: logistic}\nexplain: {}\n"
    )
    assert run("explain", "parquet: t.parquet", text) == (0, "")
    table.assign(note=1).to_parquet(tmp_path / "t.parquet")
    assert (
        "column 'note' holds int64; expected text"
        in run("explain", "parquet: t.parquet", text)[1]
    )


def test_a_large_table_of_attributions_is_written_as_parquet(
    tmp_path, frame, run, monkeypatch
):
    monkeypatch.setattr("propopt.problems.jobs.sweep._MOST_OF_A_TABLE", 1)
    frame.to_parquet(tmp_path / "t.parquet")
    assert run("sweep", "parquet: t.parquet")[0] == 0
    assert pd.read_parquet(tmp_path / "out/file_attributions.parquet").shape == (12, 3)
