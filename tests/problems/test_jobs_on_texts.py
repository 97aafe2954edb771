"""Documents in problem files: what ``propopt explain`` and ``lime`` tell, baselines."""

import re

import numpy as np
import pytest
from command_line import done

import propopt as po
from propopt.base.cards import to_text
from propopt.explaining.explainers import (
    ExactLime,
    ExactShap,
    Gradient,
    Lime,
    LimePackage,
    Shap,
    TreeShap,
)
from propopt.lime import TextLaw
from propopt.tables.documents import PatternWords


NOTES = """\
text,label
Good food at a good price,yes
Good food at a good price here,yes
bad food at a bad price,no
no good food here,no
a good price,yes
the worst food and price,no
"""
SUBJECT = """\
data: {csv: notes.csv, text: text, target: label}
model: {kind: logistic, regularization: 1, output: log_odds, target_class: 'yes'}
"""
FILE = f"""{SUBJECT}\
objective: {{gradient_matching: 1, shared_robustness: {{graph: {{kind: complete}}}}}}
sweep: {{shared_robustness: [0.1, 1]}}
"""


@pytest.fixture
def run(tmp_path, write):
    """What is written and printed, of documents with markup."""
    write(NOTES.replace("a good price,yes", "a good <i>café</i>,yes"), "notes.csv")
    return lambda explain, *how: done(tmp_path, f"{SUBJECT}explain: {explain}\n", *how)


@pytest.mark.parametrize(
    ("output", "settings"),
    [
        ("{}", {}),
        ("{law: lime, robustness: 2}", {"law": TextLaw(), "robustness": 2.0}),
        ("{kind: contributions}", {"kind": "contributions"}),
    ],
)
def test_files_hold_what_the_library_finds(run, output, settings):
    made = run(output)
    subject, table = made.subject, made.table("_attributions", index_col=0)
    best = po.explain(
        subject.function, subject.points, sampling=po.Sampling(rng=0), **settings
    )
    assert table.columns.tolist() == list(subject.words)
    assert table.index.tolist() == subject.points.index.tolist()
    assert table.to_numpy() == pytest.approx(np.asarray(best.attributions), abs=1e-12)
    assert not table.to_numpy()[subject.table == 0.0].any()
    assert made.stored["n_features"] == len(table.T)
    page = (made.folder / "file.html").read_text(encoding="utf-8")
    assert "&lt;" in page
    assert "<i>" not in page


@pytest.fixture
def problem(write):
    def made(baselines):
        write(NOTES, "notes.csv")
        path = write(f"{FILE}baselines: [{baselines}]\n")
        return po.problems.read_problem(path).build()

    return made


MADE = {
    "{method: gradient}": Gradient(),
    "{method: exact_lime}": ExactLime(law=TextLaw()),
    "{method: exact_lime, bandwidth: 0.5}": ExactLime(law=TextLaw(0.5)),
    "{method: lime, n_samples: 300}": Lime(law=TextLaw(), n_samples=300),
    "{method: lime, bandwidth: 2, ridge: 1, first_row: true, fit_intercept: false}": (
        Lime(law=TextLaw(2.0), ridge=1.0, first_row=True, fit_intercept=False)
    ),
    "{method: lime_package, bandwidth: 0.5, n_samples: 50}": LimePackage(
        kernel_width=50.0, n_samples=50
    ),
    "{method: shap, algorithm: permutation, n_permutations: 3}": Shap(
        algorithm="permutation", n_permutations=3
    ),
    "{method: tree_shap}": TreeShap(),
    "{method: exact_shap}": ExactShap(),
}


@pytest.mark.parametrize("printed", MADE)
def test_a_baseline_is_that_of_the_library_by_the_law_of_texts(problem, printed):
    package = {"shap": "shap", "lime_package": "lime"}.get(MADE[printed].method)
    if package is not None:
        pytest.importorskip(package)
    file = problem(printed)
    (result,) = file.baselines()
    expected = MADE[printed].explain(file.function, file.points, rng=0, progress=False)
    np.testing.assert_allclose(result.attributions, expected.attributions, atol=1e-12)
    assert result.parameters == expected.parameters
    assert result.units == "output"
    assert not np.asarray(result.attributions)[file.subject.table == 0.0].any()


def test_a_sweep_tells_what_is_kept_and_of_a_family_the_nearest_to_the_front(problem):
    limits = "{method: exact_lime, bandwidth: [2, 0.01, 0.5]}"
    file = problem(f"{limits}, {{method: gradient}}")
    curve = file.sweep(file.baselines(), progress=False)
    message = curve.distances().query("method == 'exact_lime'")
    assert message["parameter.bandwidth"].tolist() == [2.0, 0.01, 0.5]
    assert (message["excess"] > 0.0).all()
    assert "not_compared" not in message
    nearest = message["parameter.bandwidth"][message["excess"].idxmin()]
    assert nearest == 0.01
    assert (
        message["loss.gradient_matching"].idxmin() == 1
    )  # it is nearly leaving one out
    assert (curve.units, curve.knee().units) == ("output", "output")
    faithful, robust, *_, gradient = curve.to_frame()["faithfulness_kept"]
    assert 0.0 < robust < faithful < gradient == 1.0


MARKED = """\
text,label
Good food <b>good</b> price 😀,yes
bad food bad price,no
no good food here,no
yes,yes
good café,yes
the worst [food] and price,no
"""
LIMITS = f"""{SUBJECT}\
lime:
  rows: [0, 2, 3]
  bandwidth: 0.5
  path: [0.1, 0.5, 2]
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "notes.csv").write_text(MARKED, encoding="utf-8")
    return tmp_path


def test_files_and_pages_hold_what_the_library_finds(folder):
    made = done(folder, LIMITS)
    stored, printed, subject = made.stored, made.printed, made.subject

    def limits(bandwidth, *rows):
        texts, law = subject.points.loc[list(rows)], po.lime.TextLaw(bandwidth)
        return po.lime.text_limits(subject.function, texts, law, words=PatternWords())

    available = limits(0.5, 0, 2, 3)
    table = made.table("_lime", keep_default_na=False, na_values=[""])
    assert table["word"].tolist() == [w for words in available.words for w in words]
    assert table["document"].unique().tolist() == [0, 2, 3]
    message = np.concatenate(available.coefficients)
    np.testing.assert_allclose(table["coefficient"], message, rtol=0, atol=1e-12)
    saved = made.load(po.lime.LimeExplanation)
    assert saved.as_list(0) == available.as_list(0)
    assert stored["job"] == "lime"
    assert stored["lime"]["rows"] == [0, 2, 3]
    given = {"rows": [0, 2, 3], "bandwidth": 0.5, "path": [0.1, 0.5, 2.0]}
    others = {"words": "lime", "n_samples": 5000, "diagnose": True}
    assert stored["lime"]["settings"] == given | others
    assert stored["lime"]["n_words"] == [5, 4, 1]
    assert stored["lime"]["intercept"][2] is None
    assert stored["lime"]["prediction"] == pytest.approx(available.values.tolist())
    path = made.table("_path")
    assert len(path) == 3 * (5 + 4)  # one word alone has no coefficient
    for width in (0.1, 0.5, 2.0):
        result = path.loc[path["bandwidth"] == width, "coefficient"]
        message = np.concatenate(limits(width, 0, 2).coefficients)
        np.testing.assert_allclose(result, message, atol=1e-10)
    page = (made.folder / "file.html").read_text(encoding="utf-8")
    assert "<b>good</b>" not in page
    for message in (
        "6 documents × ",
        *(f"\n\n{to_text(available.document(row))}\n" for row in (0, 2, 3)),
        f"\n\n{available.diagnose()}\n",
        "LIME has no coefficients for document 3: ",
        ".html, .npz and .json in",
    ):
        assert message in printed


def test_rows_of_the_command_line_and_words_of_the_model_come_instead(folder):
    text = LIMITS.replace("bandwidth: 0.5", "words: model")
    table = done(folder, text, "-q").table("_lime")
    words = table.loc[table["document"] == 0, "word"].tolist()
    assert words == ["good", "food", "price"]
    assert table.loc[table["word"] == "good", "count"].max() == 2
    output = done(folder, LIMITS, "--rows", "5").printed
    assert "document 5 · coefficients" in output
    assert "document 0" not in output


def test_words_that_are_not_known_are_refused(folder, said, monkeypatch):
    lime = "lime", "-o", str(folder / "out")
    code, message = said(LIMITS.replace("[0, 2, 3]", "[3]"), *lime)
    assert code == 2
    assert re.match("file.yaml:3: lime: .*no coefficients for any", message)
    monkeypatch.syspath_prepend(folder)
    (folder / "long_texts.py").write_text(
        "import numpy as np\n"
        "def model(texts):\n"
        "    return np.array([len(text) for text in texts], float)\n"
    )
    text = re.sub("model: .*", "model: {import: 'long_texts:model'}", LIMITS)
    stored = done(folder, text, "--allow-code").stored["lime"]
    assert stored["prediction"][0] == 29.0
    text = text.replace("bandwidth: 0.5", "words: model")
    assert said(text, *lime, "--allow-code") == (
        2,
        "file.yaml:5: lime.words: words of the model are not available: it does not "
        "begin with a vectoriser of scikit-learn; use lime",
    )
