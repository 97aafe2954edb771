"""``propopt explain``: one explanation of a file, or of a table by its name."""

import json

import numpy as np
import pandas as pd
import pytest
from command_line import names, sweep, write
from exact_csv import read_csv
from interaction_scores import made_up_scores
from sklearn.datasets import load_iris

import propopt as po
from papers.__main__ import main as reproduce
from propopt.base.text import Reason
from propopt.cli import main
from propopt.problems.file import sections_of_table
from propopt.problems.subject.subject import Subject


LOOK = """\
data: {sklearn: iris, explain: 30}
model: {kind: logistic, target_class: setosa}
explain: {kind: slopes, robustness: 0.5, scale: none}
"""


@pytest.fixture
def look(tmp_path):
    return write(tmp_path, "look", LOOK)


@pytest.fixture
def table(tmp_path, rng):
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["age", "=dose"])
    frame["plan"] = np.where(frame["age"] > 0, "long", "short")
    frame["y"] = 3 * frame["age"] + (frame["plan"] == "long")
    path = tmp_path / "patients.csv"
    frame.to_csv(path, index=False)
    return path


def explain(*arguments):
    return main(["explain", *map(str, arguments)])


def test_a_file_is_explained_as_the_library_would(done):
    look = done(LOOK)
    assert names(look.folder) == ["file.json", "file.npz", "file_attributions.csv"]
    subject, stored, printed = look.subject, look.stored, look.printed
    points, settings = subject.points, {"robustness": 0.5, "scale": None}
    settings["kind"] = "slopes"
    best = po.explain(subject.function, points, data=subject.others, **settings)
    np.testing.assert_array_equal(look.load().attributions, best.attributions)
    csv = look.table("_attributions", index_col=0)
    np.testing.assert_array_equal(csv, best.attributions)
    assert list(csv) == list(points)
    assert list(csv.index) == list(points.index)
    X, y = load_iris(return_X_y=True, as_frame=True)
    classes = load_iris().target_names[y[points.index]]
    right = (subject.estimator.predict(X.loc[points.index]) == classes).mean()
    assert stored["score"]["value"] == right
    assert f"the model: accuracy {right:.3f} on 30 held-out rows" in printed
    assert " matter most to the " in printed
    assert "weight rule: given" in printed
    picked = stored["picked"]
    assert picked["shares"].keys() == picked["losses"].keys()
    removed = 100 * picked["shares"]["pairwise_robustness"]
    assert f"; {removed:.1f} % removed\n" in printed


def test_a_table_of_ones_own_needs_no_file(table, out, capsys):
    asked = ("--csv", table, "-o", out, "--target")
    explain(*asked, "plan", "--task", "regression")
    assert "a regression needs numbers, and some are text" in capsys.readouterr().err
    assert not out.exists() or names(out) == []
    assert explain(*asked, "y") == 0
    printed = capsys.readouterr().out
    assert "20 rows × 3 features" in printed
    assert "model: mlp, output auto, task regression, hidden [32, 16]" in printed
    assert "on 20 held-out rows" in printed
    csv = read_csv(out / "patients_attributions.csv", index_col=0)
    assert list(csv) == ["age", "'=dose", "plan"]
    assert set(csv.index) < set(range(60))
    assert json.loads((out / "patients.json").read_text())["job"] == "explain"


TOGETHER = "explain: --csv and --target belong together\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "explain: give a problem file, or --csv and --target\n"),
        ("--csv a.csv", TOGETHER),
        ("--target y", TOGETHER),
        ("--text note", TOGETHER),
        ("--csv a.csv --target y", "--csv: there is no file a.csv\n"),
    ],
)
def test_what_is_missing_is_said(arguments, message, capsys):
    assert explain(*arguments.split()) == 2
    assert capsys.readouterr().err == message


def test_each_command_runs_its_own_job(look, file, tmp_path, out, capsys):
    ends = {"lime": "lime: {rows: 3}", "interactions": "interactions: {}"}
    rows = "data: {sklearn: diabetes}\nmodel: {kind: linear}\n"
    others = [write(tmp_path, job, f"{rows}{end}\n") for job, end in ends.items()]
    for path in (look, *others):
        assert sweep(path, "-o", out) == 2
    assert explain(file, "-o", out) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"{look}:3: explain: is run by propopt explain",
        f"{others[0]}:3: lime: is run by propopt lime",
        f"{others[1]}:3: interactions: is run by propopt interactions",
        f"{file}:4: objective: is run by propopt sweep",
    ]


def test_the_graph_and_the_units_are_those_of_the_file(done):
    text = LOOK.replace("scale: none", "graph: {kind: chain}, scale: std")
    parameters = done(text, "-q").stored["picked"]["parameters"]
    assert parameters["graph"].startswith("<chain graph: 30 nodes")
    assert parameters["scale"] == "std"


TREES = """\
data: {sklearn: breast_cancer, explain: 40}
model: {kind: hist_gradient_boosting, target_class: malignant, max_iter: 20}
explain: {}
"""


def test_parts_of_the_output_add_up_to_what_is_written(done):
    trees = done(TREES.replace("{}", "{kind: contributions, metric: effects}"))
    stored, subject = trees.stored, trees.subject
    W = trees.table("_attributions", index_col=0)
    totals = np.array(stored["prediction"]) - stored["base_value"]
    np.testing.assert_allclose(W.sum(axis=1), totals, atol=1e-9)
    margins = subject.estimator.decision_function(subject.points)
    np.testing.assert_allclose(np.abs(stored["prediction"]), np.abs(margins))
    settings = {"data": subject.others, "kind": "contributions", "metric": "effects"}
    best = po.explain(
        subject.function, subject.points, sampling=po.Sampling(rng=0), **settings
    )
    np.testing.assert_array_equal(W, best.attributions)
    assert stored["units"].startswith("contribution of each feature to the log-odds of")
    assert stored["units"].endswith("; every row adds up to f(x) − base")
    assert f"attributions: {stored['units']}\n" in trees.printed
    assert f"\n{trees.load().card(12).text()}\n" in trees.printed
    exact = "target exact (TreeSHAP, 529 background rows)"
    assert f", proved · {exact}" in trees.printed
    assert stored["gradient"] == exact.removeprefix("target ")


@pytest.mark.parametrize(
    ("rows", "reference"), [("explain: 1", ""), ("explain: 9", ", reference: 60")]
)
def test_rows_by_themselves_add_up_to_what_is_written(done, rows, reference):
    text = TREES.replace("{}", f"{{kind: contributions, metric: effects{reference}}}")
    trees = done(text.replace("explain: 40", rows))
    result, subject = trees.load(), trees.subject
    assert result.solver == "conditional"
    total = subject.function.value(subject.points) - result.base_value
    np.testing.assert_allclose(result.attributions.sum(axis=1), total, atol=1e-12)
    settings = {"kind": "contributions", "metric": "effects"}
    settings["graph"] = po.graphs.Nearest(n_reference=60 if reference else 500)
    explainer = po.Explainer(subject.function, subject.others, **settings).fit()
    alone = explainer.explain(subject.points.iloc[[0]]).attributions[0]
    np.testing.assert_array_equal(result.attributions[0], alone)


def test_the_law_and_the_precision_are_those_of_the_file(done):
    text = TREES.replace("max_iter: 20", "max_iter: 5, output: probability")
    precision = "{kind: slopes, precision: 0.5, max_evaluations: 200000}"
    of_data, gaussian, precise = (
        done(own, *quiet)
        for own, *quiet in (
            (TREES.replace("{}", "{kind: slopes}"),),
            (text.replace("{}", "{kind: slopes, law: gaussian}"), "-q"),
            (text.replace("{}", precision), "-q"),
        )
    )
    stored = of_data.stored
    assert stored["picked"]["target_error"]["relative"] == 0
    assert stored["picked"]["parameters"]["graph"] == "8 nearest of 500 reference rows"
    assert stored["units"] == (
        "change of the log-odds of malignant per standard deviation of each feature"
    )
    assert "gap" in of_data.printed
    assert "target exact (read from the model)" in of_data.printed
    assert "pairs" in gaussian.stored["picked"]["target_error"]["in_words"]
    assert 0 < precise.stored["picked"]["target_error"]["relative"] <= 0.5


def test_smooth_chooses_the_slopes_of_an_explanation(done):
    text = TREES.replace("max_iter: 20", "max_iter: 5, smooth: {scale: 1}")
    trees = done(text.replace("explain: {}", "explain: {kind: slopes}"), "-q")
    subject, result = trees.subject, trees.load().gradient
    sizes = subject.others.std(ddof=0).to_numpy()
    mean = po.functions.smoothed(subject.function.function, sizes, 500, 0)
    expected = mean.gradient(subject.points) * sizes
    np.testing.assert_allclose(result, expected, atol=1e-12)
    assert np.abs(result).max() > 0.1


# ---- reasons
REASONS = "{reasons: {k: 3, groups: {radius: [mean radius, worst area]}}}"


def test_reasons_are_printed_row_by_row_and_written_for_letters(done):
    trees = done(TREES.replace("{}", REASONS).replace("40", "12"))
    best = po.explain(
        trees.subject.function,
        trees.subject.points,
        data=trees.subject.others,
        kind="contributions",
        sampling=po.Sampling(rng=0),
    )
    groups = {"radius": ["mean radius", "worst area"]}
    reasons = best.reasons(k=3, groups=groups)
    table = trees.table("_reasons", dtype={"value": str})
    pd.testing.assert_frame_equal(table, reasons.to_frame(), check_dtype=False)
    printed = [reasons.sheet(name) for name in reasons.names]
    assert all(sheet in trees.printed for sheet in printed[:10])
    assert not any(sheet in trees.printed for sheet in printed[10:])
    assert "\n2 more rows are in the file\n" in trees.printed
    assert trees.printed.index(printed[9]) < trees.printed.index(reasons.card().title)
    stored = trees.stored["reasons"]
    assert stored["clear"] == list(reasons.shares)
    assert (stored["k"], stored["towards"]) == (3, "higher")
    # the option alone takes all defaults, and adds nothing where they are asked for
    plain = done(TREES.replace("{}", "{kind: contributions}"), "--reasons", "-q")
    assert (plain.printed, plain.stored["reasons"]["k"]) == ("", 4)
    assert (
        plain.table("_reasons")["words"]
        .str.contains("log-odds .*, (?:direction (?:not )?)?clear")
        .all()
    )


def test_reasons_of_ones_own_table_have_its_numbers_and_words(table, out, look, capsys):
    asked = ("--csv", table, "--target", "y", "-o", out, "--reasons")
    assert explain(*asked) == 0
    reasons, own = read_csv(out / "patients_reasons.csv"), pd.read_csv(table)
    assert set(reasons["feature"]) == {"age", "'=dose", "plan"}
    for row, name, value in reasons[["row", "feature", "value"]].to_numpy():
        cell = own[name.removeprefix("'")][row]
        told = value if isinstance(cell, str) else float(value)
        assert told == (
            cell if isinstance(cell, str) else pytest.approx(cell, rel=1e-3)
        )
    sheet = "reasons for a higher predicted y\n  1. age = "
    assert sheet in capsys.readouterr().out
    # slopes are none, and told so before anything is fitted
    assert explain(look, "-o", out, "--reasons") == 2
    assert capsys.readouterr().err == (
        f"{look}:3: explain: reasons are contributions to the output, and "
        "these are slopes; write kind: contributions\n"
    )


# ---- with scores of interactions: what matters jointly
JOINTLY = (
    LOOK.partition("explain: {")[0] + "explain:\n  interactions: found/scores.npz\n"
)


def scores(**fields):
    """Of the columns of iris, of which the last two clearly matter jointly."""
    estimates = np.array([0.1, 0.1, 0.1, 0.1, 0.1, 9.0])
    columns = tuple(load_iris().feature_names)
    own = {"names": columns, "estimates": estimates, **fields}
    return made_up_scores(np.random.default_rng(0), 4, **own)


@pytest.fixture
def jointly(tmp_path):
    (tmp_path / "found").mkdir()
    scores().save(tmp_path / "found" / "scores.npz")
    return write(tmp_path, "jointly", JOINTLY)


@pytest.mark.parametrize("settings", ["robustness: 0.5", "reference: 40"])
def test_a_sentence_names_what_matters_jointly(
    tmp_path, jointly, out, capsys, settings
):
    text = JOINTLY + f"  {settings}\n"
    write(tmp_path, "jointly", text)
    assert main(["check", jointly]) == 0
    assert explain(jointly, "-o", out) == 0
    told = "petal length (cm) × petal width (cm) (9) matter jointly, which no additive"
    assert told in capsys.readouterr().out
    stored = json.loads((out / "jointly.json").read_text())
    saved = po.results.Explanation.load(out / "jointly.npz")
    assert told in saved.parameters["notes"]
    assert stored["picked"]["parameters"]["notes"] == saved.parameters["notes"]
    # without the file nothing is said, and numbers are the same
    plain = write(tmp_path, "plain", text.replace("found/scores.npz", "null"))
    assert explain(plain, "-o", out, "-q") == 0
    other = po.results.Explanation.load(out / "plain.npz")
    np.testing.assert_array_equal(saved.attributions, other.attributions)
    assert "notes" not in other.parameters


ONES = dict.fromkeys(("estimates", "standard_errors", "monte_carlo", "counts"))
SINGLE = {name: np.ones(4) for name in ONES} | {"sets": np.arange(4)[:, None]}
OTHERS = {
    "their columns": {"names": ("a", "b", "c", "d")},
    "expected scores of pairs or larger sets, got those of si": SINGLE,
}


@pytest.mark.parametrize("told", OTHERS)
@pytest.mark.parametrize("command", ["explain", "check"])
def test_scores_of_something_else_are_refused_before_anything_is_fitted(
    tmp_path, jointly, out, capsys, monkeypatch, told, command
):
    monkeypatch.setattr(Subject, "function", property(lambda _: pytest.fail("fitted")))
    scores(**OTHERS[told]).save(tmp_path / "found" / "scores.npz")
    output = ["-o", str(out)] if command == "explain" else []
    assert main([command, jointly, *output]) == 2
    place = f"{jointly}:4: explain.interactions: "
    assert capsys.readouterr().err.startswith(place + told)


def test_what_is_no_file_of_scores_is_refused(tmp_path, jointly, capsys):
    (tmp_path / "odd.npz").write_bytes(b"PK\x03\x04")
    for name, told in [
        ("nowhere.npz", "there is no file "),
        ("jointly.yaml", "path: expected the "),
        ("odd.npz", ""),
        ("..", "path: expected the name of a file, got "),
    ]:
        write(tmp_path, "jointly", JOINTLY.replace("found/scores.npz", name))
        assert main(["check", jointly]) == 2
        place = f"{jointly}:4: explain.interactions: "
        assert capsys.readouterr().err.startswith(place + told)
    # nor is what is read written over
    (tmp_path / "found" / "scores.npz").rename(tmp_path / "jointly.npz")
    write(tmp_path, "jointly", JOINTLY.replace("found/scores", "jointly"))
    assert explain(jointly, "-o", tmp_path) == 2
    assert "it is read here; choose another folder" in capsys.readouterr().err


# ---- a table of one's own that holds documents
TEXTS = [
    "a good meal with good wine",
    "we liked the warm bread",
    "a lovely warm place",
    "the soup was cold and bad",
    "a rude waiter and bad wine",
    "never again, so cold",
]


@pytest.fixture
def notes(tmp_path):
    """Twelve texts, none of them twice."""
    texts = [f"{text} on day {k}" for k in range(2) for text in TEXTS]
    table = pd.DataFrame({"note": texts, "mood": (["good"] * 3 + ["bad"] * 3) * 2})
    path = tmp_path / "notes.csv"
    table.to_csv(path, index=False)
    return path


def with_column(path, name, values):
    pd.read_csv(path).assign(**{name: values}).to_csv(path, index=False)


def subject_of(sections):
    return po.problems.read_sections(sections | {"explain": {}}).subject


def test_documents_are_explained_word_by_word(notes, out, capsys):
    asked = ("--csv", notes, "-o", out, "--target", "mood")
    assert explain(*asked) == 0
    said = capsys.readouterr().out
    assert "4 documents × " in said
    assert "vectorizer (tfidf, " in said
    assert {"notes.html", "notes_attributions.csv"} < set(names(out))
    table = pd.read_csv(out / "notes_attributions.csv", index_col=0)
    assert {"wine", "cold"} < set(table)
    assert json.loads((out / "notes.json").read_text())["n_features"] == len(table.T)
    # beside other columns they have to be asked for
    with_column(notes, "stars", range(12))
    no_column = "--text: notes.csv has no column '{}'"
    for other, told in [
        ((), "--csv: column 'note' holds documents, which are no categories; explain "),
        (("--text", "notes"), no_column.format("notes") + " (did you mean "),
        (("--text", "mood"), no_column.format("mood") + "; it has note"),
    ]:
        assert explain(*asked, *other) == 2
        assert capsys.readouterr().err.startswith(told)
    assert explain(*asked, "--text", "note", "-q") == 0
    assert "stars" not in pd.read_csv(out / "notes_attributions.csv", index_col=0)


def test_what_is_said_of_words_is_exact(notes):
    with_column(notes, "stars", np.arange(12.0))
    for target in ("mood", "stars"):
        subject = subject_of(sections_of_table(notes, target, text="note"))
        for document in subject.function.documents_of(subject.points):
            read = subject.function.subsets(document)
            assert not isinstance(read, Reason), read.reason


def test_short_texts_and_repeated_ones_are_categories(notes):
    with_column(notes, "plan", ["the long and dear plan", "the short one"] * 6)
    with_column(notes, "name", [f"Ann {k}" for k in range(12)])
    table = pd.read_csv(notes).drop(columns="note")
    table.to_csv(notes, index=False)
    sections = sections_of_table(notes, "mood")
    assert sections["data"]["categorical"] == ["plan", "name"]
    assert not sections["data"]["standardize"]  # there is no number
    subject = subject_of(sections)
    assert np.isfinite(subject.function.value(subject.points)).all()


def test_a_paper_about_tables_refuses_documents(notes, tmp_path, capsys):
    asked = ["tables", "--csv", str(notes), "--target", "mood", "-o", str(tmp_path)]
    assert reproduce(asked) == 2
    assert "the paper is about tables of numbers" in capsys.readouterr().err
