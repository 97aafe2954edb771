"""``propopt audit``: numbers from elsewhere, in files and in print."""

import hashlib

import numpy as np
import pandas as pd
import pytest
from command_line import ROOT, names
from refusals import refusals

import propopt as po
from propopt.cli import main
from propopt.problems.file import read_problem


pytest.importorskip("lightgbm")
FILE = ROOT / "problems" / "audit.yaml"
FOLDER = FILE.parent
WHOLE = [
    *("audit.json", "audit.npz", "audit_causes.csv", "audit_exact.csv"),
    "audit_findings.csv",
]


def run(folder, *arguments):
    return main(["audit", *map(str, arguments), "-o", str(folder)])


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audit")
    assert run(folder, FILE, "-q") == 0
    return folder


def test_the_shipped_file_is_audited_as_the_library_does(done, tmp_path):
    assert names(done) == WHOLE
    saved = po.results.Audit.load(done / "audit.npz")
    customers = pd.read_csv(FOLDER / "audit_customers.csv").drop(columns="Churn")
    import lightgbm

    booster = lightgbm.Booster(model_file=str(FOLDER / "audit_model.txt"))
    own = po.audit(
        FOLDER / "audit_shap.csv",
        booster,
        customers,
        output="log_odds",
        outcome="Churn",
    )
    for finding in own.findings:
        assert saved[finding.name].verdict == finding.verdict
        assert saved[finding.name].number == pytest.approx(finding.number, rel=1e-6)
    np.testing.assert_array_equal(
        saved.explanation.attributions, own.explanation.attributions
    )
    shown = own.document().blocks[0].frame.set_index("check").loc["values"]
    assert (shown["verdict"], shown["error"]) == ("exact", "0")  # of another game
    assert own["values"].number > 0.1  # from the values for the background
    own.to_html(tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text("utf-8")
    assert "largest difference from values of the background" in page
    table = pd.read_csv(done / "audit_findings.csv")
    assert table["check"].tolist() == [finding.name for finding in own.findings]
    causes = pd.read_csv(done / "audit_causes.csv")
    assert len(causes) == 10
    assert not causes.columns.str.startswith("Unnamed").any()
    assert set(causes["feature"]) <= set(customers)
    exact = pd.read_csv(done / "audit_exact.csv", index_col=0)
    np.testing.assert_allclose(exact[list(customers)], own.exact, rtol=1e-9)
    base = own.explanation.prediction - own.exact.sum(axis=1)
    np.testing.assert_allclose(exact["base_value"], base, rtol=1e-9)


def test_the_command_line_names_other_numbers(tmp_path, capsys, monkeypatch):
    wrong = pd.read_csv(FOLDER / "audit_shap.csv")
    wrong.loc[5, "Status"] += 0.5
    wrong.to_csv(tmp_path / "wrong.csv", index=False)
    monkeypatch.chdir(tmp_path)
    assert run("out", FILE, "wrong.csv") == 4
    assert run("out", FILE, "wrong.csv", "--resume") == 4  # it is audited again
    printed = capsys.readouterr().out
    assert "Row 5, Status: " in " ".join(printed.split())
    assert po.results.Audit.load("out/audit.npz")["row sums"].verdict == "wrong"
    assert run("out", FILE, "none.csv") == 2
    assert "there is no file" in capsys.readouterr().err


def audited(folder, booster, X, own, data="", model="", audit=""):
    """The audit of a table of numbers of a booster, by a problem file."""
    booster.save_model(folder / "model.txt")
    X.to_csv(folder / "table.csv", index=False)
    own.to_csv(folder / "own.csv")
    (folder / "audit.yaml").write_text(
        f"data: {{csv: table.csv{data}}}\nmodel: {{booster: model.txt{model}}}\n"
        f"audit: {{attributions: own.csv{audit}}}\n"
    )
    assert run(folder / "out", folder / "audit.yaml", "-q") == 0
    return po.results.Audit.load(folder / "out/audit.npz")


@pytest.mark.parametrize(
    ("objective", "words"),
    [
        ("regression", "predicted quality"),
        ("poisson", "log of predicted quality"),
        ("cross_entropy", "log-odds of predicted quality"),
    ],
)
def test_the_file_of_a_regression_predicts_its_column(tmp_path, objective, words):
    import lightgbm

    X = pd.DataFrame(np.random.default_rng(0).normal(size=(90, 2)), columns=["a", "b"])
    model = lightgbm.LGBMRegressor(objective=objective, n_estimators=4, verbosity=-1)
    model.fit(X, np.minimum(X["a"] ** 2, 1.0))
    phi = model.predict(X, pred_contrib=True)[:, :2]
    own = pd.DataFrame(phi, columns=["a", "b"])
    table = X.assign(quality=1.0)
    found = audited(tmp_path, model.booster_, table, own, data=", target: quality")
    assert found.explanation.quantity.in_words() == words
    assert found["row sums"].verdict == "exact"


def test_another_background_is_named_in_the_file(tmp_path):
    customers = pd.read_csv(FOLDER / "audit_customers.csv")
    customers.iloc[:50].to_csv(tmp_path / "background.csv", index=False)
    text = FILE.read_text().replace(": audit_", f": {FOLDER}/audit_")
    text = text.replace("}\naudit: {", "}\naudit: {data: background.csv, ")
    (tmp_path / "audit.yaml").write_text(text)
    assert run(tmp_path / "out", tmp_path / "audit.yaml", "-q") == 0
    assert (
        po.results.Audit.load(tmp_path / "out/audit.npz").settings["background"]
        == "50 rows"
    )


@pytest.mark.parametrize(("change", "told"), refusals(__file__, "audits"))
def test_what_cannot_be_audited_is_refused(tmp_path, capsys, change, told):
    before, after = eval(change)
    text = FILE.read_text()
    assert before in text
    text = text.replace(before, after)
    for name in ("customers.csv", "model.txt", "shap.csv"):
        (tmp_path / f"audit_{name}").write_bytes(
            (FOLDER / f"audit_{name}").read_bytes()
        )
    (tmp_path / "audit.yaml").write_text(text)
    assert run(tmp_path / "out", tmp_path / "audit.yaml", "-q") == 2
    assert told in capsys.readouterr().err


def test_the_audit_job_is_resumed_and_its_files_are_named(done, capsys):
    file = read_problem(FILE)
    assert {path.name for path in file.job.extra_files(file)} == {"audit_shap.csv"}
    assert {path.name for path in file.files} >= {"audit_model.txt"}
    assert main(["audit", str(FILE), "-o", str(done), "--resume"]) == 0
    assert "already finished" in capsys.readouterr().out


def test_a_class_of_several_in_a_lightgbm_file_is_explained(tmp_path):
    import lightgbm

    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(90, 2)), columns=["a b", "c"])
    y = np.digitize(X["a b"] * X["c"], [-0.5, 0.5])
    model = lightgbm.LGBMClassifier(n_estimators=4, verbosity=-1).fit(X, y)
    phi = model.predict(X, pred_contrib=True).reshape(90, 3, 3)[:, 2]
    own = pd.DataFrame(phi, columns=["a b", "c", "base_value"])
    settings = {"model": ", target_class: 2", "audit": ", output: margin"}
    found = audited(tmp_path, model.booster_, X, own, **settings)
    assert found["row sums"].verdict == "exact"
    assert found["values"].cause == "path-dependent"
    assert found.explanation.quantity.in_words() == "margin of class 2"


def test_a_page_has_the_tolerance_the_decision_and_digests_of_all_files(tmp_path):
    settings = "tolerance: 1e-6, decision: {threshold: 0.0, below: stays, above: goes}"
    text = FILE.read_text(encoding="utf-8")
    for name in ("audit_customers.csv", "audit_model.txt", "audit_shap.csv"):
        (tmp_path / name).write_bytes((FOLDER / name).read_bytes())
    own = text.replace("output: log_odds", f"output: log_odds, {settings}")
    assert own != text
    file = tmp_path / "own.yaml"
    file.write_text(own, encoding="utf-8")
    assert run(tmp_path / "out", file, "--report", "-q") == 0
    page = (tmp_path / "out" / "own.html").read_text(encoding="utf-8")
    for said in ("1e-06", ">goes</td>", ">stays</td>"):
        assert said in page.replace("−", "-")
    digest = hashlib.sha256((tmp_path / "own.yaml").read_bytes()).hexdigest()
    assert f"sha256:{digest[:12]}" in page
    record = po.results.Audit.load(tmp_path / "out" / "own.npz").record
    assert record.model.startswith("lightgbm.")
    assert {"model", "X", "file audit_shap.csv"} <= record.digests.keys()
