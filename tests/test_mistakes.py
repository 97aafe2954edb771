"""Fifty mistakes of people who know shap, lime and scikit-learn, and what each is told.

Each makes one of our errors, which names what came and what would do. Where the message
says how a thing is mended, the remedy is tried too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
import psutil
import pytest
import scipy.sparse as sp
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import propopt as po
from propopt import cli
from propopt.base.errors import InvalidInput, NoSuchName, ProblemFileError, PropoptError


rng = np.random.default_rng(0)
A = rng.normal(size=(40, 3))
X = pd.DataFrame(A, columns=["age", "bmi", "pressure"])
y = (A[:, 0] + A[:, 1] > 0).astype(int)
risk = 2 * A[:, 0] - A[:, 1]
stage = np.digitize(risk, [-1, 1])
TEXTS = ["good food", "bad food", "good service", "bad service here"]

classifier = LogisticRegression().fit(X, y)
regressor = LinearRegression().fit(X, risk)
forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, stage)
of_arrays = LogisticRegression().fit(A, y)
fitted_words = MultinomialNB().fit(np.array([[1, 0, 1], [0, 1, 1]]), [0, 1])
WORDS = ["good", "bad", "food"]

gradients = po.GradientMatching(po.wrap(regressor).gradient(X))
objective = gradients + 0.1 * po.Sparsity()
parts_of_classes = np.zeros((40, 3, 3))
"""What TreeExplainer.shap_values has of three classes: points, features, classes."""


def with_cell(value: object) -> pd.DataFrame:
    """X with another value in one cell."""
    table = X.astype({"bmi": object if isinstance(value, str) else float})
    table.iloc[3, 1] = value
    return table


def one_row(x: Any) -> float:
    """f of one row, as people write it first."""
    return 2.0 * x[0] - x[1]


def one_named_row(x: Any) -> float:
    """f of one row of a table with names."""
    return 1.0 if x["age"] > 0 else x["bmi"]


def waterfall(best: po.Explanation) -> object:
    """The picture that users of shap know."""
    package = pytest.importorskip("shap")
    return package.plots.waterfall(best.to_shap(X)[0], show=False)


def network() -> Any:
    """A torch module of three features."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 1))


def written(name: str, text: str) -> str:
    """The path of a file in the folder of the test."""
    Path(name).write_text(text)
    return name


def table_file() -> str:
    """The table with its target, as a CSV file."""
    X.assign(ill=y).to_csv("patients.csv", index=False)
    return "patients.csv"


def read(text: str) -> None:
    """Check a problem file as ``propopt check`` does."""
    table_file()
    po.problems.read_problem(written("mine.yaml", text)).check_data()


def pickled() -> str:
    """The path of a pickle."""
    joblib.dump(classifier, "model.npz")
    return "model.npz"


class Mistake(NamedTuple):
    """What somebody does, the class of our error, what came and what would do."""

    make: Callable[[], object]
    came: str
    would_do: str
    error: type[PropoptError] = InvalidInput


JOB = "model: {kind: logistic}\nexplain: {}\n"
MISTAKES = {
    # which model
    "a class for an instance": Mistake(
        lambda: po.explain(LogisticRegression, X),
        "LogisticRegression is a class",
        "expected a fitted instance",
    ),
    "an unfitted model": Mistake(
        lambda: po.explain(LogisticRegression(), X),
        "LogisticRegression is not fitted",
        "fit(X, y) first",
    ),
    "a fitted model behind a step that is not": Mistake(
        lambda: po.explain(make_pipeline(StandardScaler(), of_arrays), A),
        "its StandardScaler is not fitted",
        "fit(X, y) first",
    ),
    "a path for a model": Mistake(
        lambda: po.explain("model.pkl", X), "str gives no numbers", "load 'model.pkl'"
    ),
    "nothing for a model": Mistake(
        lambda: po.explain(None, X), "NoneType gives no numbers", "fit the model before"
    ),
    "the table before the model": Mistake(
        lambda: po.explain(X, classifier),
        "DataFrame gives no numbers",
        "the model comes first, then X",
    ),
    "an explainer of the table before the model": Mistake(
        lambda: po.Explainer(X, classifier).fit(),
        "DataFrame gives no numbers",
        "the model comes first",
    ),
    "predict of a classifier": Mistake(
        lambda: po.explain(classifier.predict, X),
        "predict of LogisticRegression gives labels",
        "give the fitted model itself",
    ),
    "predict_proba as it is": Mistake(
        lambda: po.explain(classifier.predict_proba, X),
        "has 2 outputs",
        "give the position of one",
    ),
    "a probability that the model has not": Mistake(
        lambda: po.explain(SVC().fit(X, y), X, output="probability"),
        "SVC has no 'probability'",
        "it has 'margin'",
    ),
    "a function of one row of an array": Mistake(
        lambda: po.explain(one_row, A),
        "returned shape (3,)",
        "lambda X: np.apply_along_axis(f, 1, X)",
    ),
    "a function of one row of a table": Mistake(
        lambda: po.explain(one_row, X),
        "raises KeyError: 0",
        "lambda X: np.apply_along_axis(f, 1, X.to_numpy())",
    ),
    "a function of one row by names": Mistake(
        lambda: po.explain(one_named_row, X),
        "raises ValueError: The truth value",
        "lambda X: X.apply(f, axis=1)",
    ),
    "a function of one number": Mistake(
        lambda: po.explain(lambda x: float(np.sum(np.asarray(x))), A),
        "returned shape ()",
        "returns one number for each",
    ),
    "a torch module of another width": Mistake(
        lambda: po.explain(network(), rng.normal(size=(10, 5))),
        "inputs of shape (3, 5)",
        "its first layer takes 3",
    ),
    "a vectoriser with words, and no idf": Mistake(
        lambda: po.lime.text_limits(
            make_pipeline(TfidfVectorizer(vocabulary=WORDS), fitted_words), TEXTS
        ),
        "its TfidfVectorizer is not fitted",
        "fit(X, y) first",
    ),
    # which output
    "labels of all rows as target": Mistake(
        lambda: po.explain(classifier, X, target=y),
        "ndarray of shape (40,)",
        "name one class, or leave it out",
    ),
    "the table as target": Mistake(
        lambda: po.wrap(classifier, X),
        "DataFrame of shape (40, 3)",
        "wrap(model, data=X)",
    ),
    "a class that there is not": Mistake(
        lambda: po.explain(classifier, X, target="ill"),
        "got 'ill'",
        "one of the classes 0, 1",
    ),
    "no class of three": Mistake(
        lambda: po.explain(forest, X), "target: choose one", "the classes 0, 1, 2"
    ),
    "a class of a regression": Mistake(
        lambda: po.explain(regressor, X, target=1),
        "no output at position 1",
        "leave target out",
    ),
    "an output of other words": Mistake(
        lambda: po.explain(classifier, X, output="proba"),
        "got 'proba'",
        "'probability', 'log_odds'",
    ),
    # which table
    "a path for a table": Mistake(
        lambda: po.explain(classifier, "patients.csv"),
        "X: expected a table, or a list of texts, got 'patients.csv'",
        "pandas.read_csv(path)",
    ),
    "a path for reference rows": Mistake(
        lambda: po.explain(classifier, X, data="patients.csv"),
        "data: expected a table, or a list of texts, got 'patients.csv'",
        "pandas.read_csv(path)",
    ),
    "a sparse table": Mistake(
        lambda: po.explain(classifier, sp.csr_matrix(A)),
        "X: expected a dense table, got a sparse csr_matrix",
        "toarray()",
    ),
    "sparse reference rows": Mistake(
        lambda: po.explain(classifier, X, data=sp.csr_matrix(A)),
        "data: expected a dense table, got a sparse csr_matrix",
        "toarray()",
    ),
    "a Series for a table": Mistake(
        lambda: po.explain(classifier, X.iloc[0]),
        "an array of shape (3,)",
        "X.to_frame().T is a table of one row",
    ),
    "one row without its second dimension": Mistake(
        lambda: po.explain(of_arrays, A[0]),
        "an array of shape (3,)",
        "reshape(1, -1)",
    ),
    "a dict for a table": Mistake(
        lambda: po.explain(classifier, X.to_dict("list")),
        "X: expected numbers, got a dict",
        "pandas.DataFrame(...)",
    ),
    "rows and labels in one": Mistake(
        lambda: po.explain(classifier, (X, y)), "several tables", "give one table"
    ),
    "one row alone": Mistake(
        lambda: po.explain(classifier, X.iloc[:1]), "there is one", "as data"
    ),
    "the target left in": Mistake(
        lambda: po.explain(classifier, X.assign(ill=y)),
        "X: the columns differ from those the model was fitted on",
        "X.drop(columns=['ill'])",
    ),
    "the target left in both tables": Mistake(
        lambda: po.explain(classifier, X.assign(ill=y), data=X.assign(ill=y)),
        "data: the columns differ from those the model was fitted on",
        "data.drop(columns=['ill'])",
    ),
    "the target left in an array": Mistake(
        lambda: po.explain(of_arrays, np.c_[A, y]),
        "fitted on 3 columns, got 4",
        "such as its target",
    ),
    "a column less": Mistake(
        lambda: po.explain(classifier, X[["age", "bmi"]]),
        "missing: 'pressure'",
        "give these too",
    ),
    "columns in another order": Mistake(
        lambda: po.explain(classifier, X[["bmi", "age", "pressure"]]),
        "in another order",
        "X[list(model.feature_names_in_)]",
    ),
    "numbers as text": Mistake(
        lambda: po.explain(classifier, X.astype(str)),
        "X: column 'age' holds numbers as text",
        "pandas.to_numeric",
    ),
    "text among numbers": Mistake(
        lambda: po.explain(classifier, with_cell("high")),
        "could not convert string to float: 'high'",
        "like the one that it was fitted on",
    ),
    "dates": Mistake(
        lambda: po.explain(classifier, X.assign(age=pd.Timestamp("2020-01-01"))),
        "X: column 'age' has dtype datetime64",
        "dt.total_seconds()",
    ),
    "an infinite number": Mistake(
        lambda: po.explain(classifier, with_cell(np.inf)),
        "X: column 'bmi', row 3",
        "expected a finite number, got inf",
    ),
    "missing values for a model that takes none": Mistake(
        lambda: po.explain(classifier, with_cell(np.nan)),
        "X has some in 'bmi'",
        "a pipeline that imputes them first",
    ),
    "one text for a list": Mistake(
        lambda: po.explain(classifier, "good food"), "got 'good food'", "[text]"
    ),
    # which settings
    "SHAP values of several classes": Mistake(
        lambda: po.certify(gradients, parts_of_classes),
        "shape (40, 3, 3)",
        "choose one, W[..., k]",
    ),
    "a list of SHAP values of several classes": Mistake(
        lambda: po.sweep(objective, baselines=[[A, A, A]]).distances(),
        "shape (3, 40, 3)",
        "choose one, baseline 1[k]",
    ),
    "a matrix for a graph": Mistake(
        lambda: po.explain(regressor, X, graph=np.eye(40)),
        "got ndarray",
        "po.graph_from_matrix(S)",
    ),
    "a graph of other rows": Mistake(
        lambda: po.explain(regressor, X, graph=po.chain_graph(7)),
        "got one of 7 nodes",
        "one of the 40 rows of X",
    ),
    "a list of losses": Mistake(
        lambda: po.solve([gradients, po.Sparsity()]), "got list", "sum(...) adds a list"
    ),
    "a loss that is misspelt": Mistake(
        lambda: po.sweep(objective, {"sparsty": [1.0]}),
        "no loss is called 'sparsty'",
        "did you mean 'sparsity'?",
    ),
    "weights of no loss": Mistake(
        lambda: po.sweep(objective, [0.1, 1.0]),
        "got list",
        "{'sparsity': [0.1, 1.0]}",
    ),
    "a weight below zero": Mistake(
        lambda: -1.0 * po.Sparsity(), "got -1.0", "expected a finite number >= 0"
    ),
    "a kernel of no width": Mistake(
        lambda: po.lime.TabularLaw.from_data(X, kernel_width=0),
        "kernel_width: expected a number > 0",
        "got 0",
    ),
    "no samples": Mistake(
        lambda: po.explainers.Lime(scale=1.0, n_samples=0),
        "n_samples: expected an integer >= 1",
        "got 0",
    ),
    # what is asked of an object
    "an explainer that is called": Mistake(
        lambda: po.Explainer(classifier, X)(X), "is not called", "explain(X)"
    ),
    "shap_values": Mistake(
        lambda: po.Explainer(classifier, X).fit().shap_values(X),
        "Explainer has no 'shap_values'",
        "explain(X).attributions",
        NoSuchName,
    ),
    "an explainer before its fit": Mistake(
        lambda: po.Explainer(classifier, X).explain(X),
        "not fitted",
        "call fit() first",
    ),
    "values of an explanation": Mistake(
        lambda: po.explain(regressor, X).values,
        "Explanation has no 'values'",
        "to_frame()",
        NoSuchName,
    ),
    "a waterfall of slopes": Mistake(
        lambda: waterfall(po.explain(regressor, X)),
        "these are slopes, which add up to no output",
        "po.explain(model, X, data=X, units='output').to_shap(X)",
    ),
    "a bound without a list": Mistake(
        lambda: po.solve(gradients, subject_to=po.Sparsity() <= 1.0),
        "expected a list of bounds, got one",
        "[sparsity <= 1]",
    ),
    "a function for its gradients": Mistake(
        lambda: po.GradientMatching(regressor),
        "G: expected numbers, got LinearRegression",
        "give an array or a DataFrame",
    ),
    "a picture of a row that there is not": Mistake(
        lambda: po.plots.plot_row(po.explain(regressor, X), 400),
        "there is no row 400",
        "from 0 to 39",
    ),
    # files
    "a table for a saved explanation": Mistake(
        lambda: po.Explanation.load(table_file()),
        "got 'patients.csv'",
        "expected the name of an .npz file, which save writes",
    ),
    "an explanation saved as a table": Mistake(
        lambda: po.explain(regressor, X).save("mine.csv"), "got 'mine.csv'", "to_csv"
    ),
    "a pickle for a saved explanation": Mistake(
        lambda: po.Explanation.load(pickled()),
        "model.npz: not a saved explanation",
        "its contents are cut off or make no sense",
    ),
    "a table for a problem file": Mistake(
        lambda: po.problems.read_problem(table_file()),
        "patients.csv:1: expected a mapping",
        "propopt explain --csv FILE --target COLUMN",
        ProblemFileError,
    ),
    "a problem file that there is not": Mistake(
        lambda: po.problems.read_problem("mien.yaml"),
        "mien.yaml: cannot be read",
        "No such file",
        ProblemFileError,
    ),
    "a key that is misspelt": Mistake(
        lambda: read(f"data: {{csv: patients.csv, tagret: ill}}\n{JOB}"),
        "mine.yaml:1: data.tagret: unknown key",
        "did you mean 'target'?",
        ProblemFileError,
    ),
    "a tab": Mistake(
        lambda: read("data:\n\tcsv: patients.csv\n"),
        "mine.yaml:2: not valid YAML: a tab",
        "indent with spaces",
        ProblemFileError,
    ),
    "a line that is not aligned": Mistake(
        lambda: read("data:\n  csv: patients.csv\n target: ill\n"),
        "mine.yaml:3: not valid YAML: other indentation",
        "keys of one section align",
        ProblemFileError,
    ),
    "a target that the table has not": Mistake(
        lambda: read(f"data: {{csv: patients.csv, target: il}}\n{JOB}"),
        "mine.yaml:1: data.target: patients.csv has no column 'il'",
        "did you mean 'ill'?",
        ProblemFileError,
    ),
    "a table that there is not": Mistake(
        lambda: read(f"data: {{csv: patient.csv, target: ill}}\n{JOB}"),
        "mine.yaml:1: data.csv",
        "there is no file patient.csv",
        ProblemFileError,
    ),
}


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """Files are looked for, and written, in a folder of the test."""
    monkeypatch.chdir(tmp_path)


def test_there_are_fifty():
    assert len(MISTAKES) >= 50


@pytest.mark.filterwarnings("ignore::propopt.base.errors.MissingPatternsWarning")
@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_what_came_and_what_would_do(mistake):
    with pytest.raises(mistake.error) as caught:
        mistake.make()
    message = str(caught.value)
    assert mistake.came in message
    assert mistake.would_do in message


# what messages say would do


@pytest.mark.parametrize(
    ("f", "table", "by_row"),
    [
        (one_row, A, lambda X: np.apply_along_axis(one_row, 1, X)),
        (one_row, X, lambda X: np.apply_along_axis(one_row, 1, X.to_numpy())),
        (one_named_row, X, lambda X: X.apply(one_named_row, axis=1)),
    ],
    ids=["array", "table", "names"],
)
def test_a_function_of_one_row_does_as_its_error_says(f, table, by_row):
    rows = table.to_dict("records") if f is one_named_row else A
    expected = [f(row) for row in rows]
    np.testing.assert_allclose(po.wrap(by_row).value(table), expected, rtol=1e-12)


REMEDIES = {
    "the target as table": lambda: po.wrap(classifier, data=X).value(X),
    "a path for a table": lambda: po.explain(
        classifier, pd.read_csv(table_file()).drop(columns="ill")
    ),
    "a sparse table": lambda: po.explain(of_arrays, sp.csr_matrix(A).toarray()),
    "a row": lambda: po.explain(classifier, X.iloc[0].to_frame().T, data=X),
    "a row of an array": lambda: po.explain(of_arrays, A[0].reshape(1, -1), data=A),
    "a dict": lambda: po.explain(classifier, pd.DataFrame(X.to_dict("list"))),
    "the target left in": lambda: po.explain(
        classifier, X.assign(ill=y).drop(columns=["ill"])
    ),
    "another order": lambda: po.explain(
        classifier,
        X[["bmi", "age", "pressure"]][list(classifier.feature_names_in_)],
    ),
    "numbers as text": lambda: po.explain(
        classifier, X.astype(str).apply(pd.to_numeric)
    ),
    "predict": lambda: po.explain(classifier, X, target=1),
    "predict_proba": lambda: po.explain(classifier.predict_proba, X, target=1),
    "several classes": lambda: po.certify(gradients, parts_of_classes[..., 1]),
    "a list of classes": lambda: po.certify(gradients, [A, A, A][1]),
    "a matrix of similarities": lambda: po.explain(
        regressor, X, graph=po.graph_from_matrix(np.ones((40, 40)) - np.eye(40))
    ),
    "a list of losses": lambda: po.solve(sum([gradients, po.Sparsity()])),
    "weights": lambda: po.sweep(objective, {"sparsity": [0.1, 1.0]}),
    "shap_values": lambda: po.Explainer(classifier, X).fit().explain(X).attributions,
    "a vectoriser with its words": lambda: po.lime.text_limits(
        make_pipeline(CountVectorizer(vocabulary=WORDS), fitted_words), TEXTS
    ),
    "a waterfall of parts": lambda: waterfall(
        po.explain(classifier, X, data=X, units="output")
    ),
    "a bound": lambda: po.solve(gradients, subject_to=[po.Sparsity() <= 1.0]),
    "a base value": lambda: (
        po.explain(classifier, X, data=X, units="output").base_value
    ),
}


@pytest.mark.parametrize("remedy", REMEDIES.values(), ids=REMEDIES)
def test_what_messages_say_would_do_does(remedy):
    assert remedy() is not None


def test_words_that_were_given_count_as_words_that_were_fitted():
    told = make_pipeline(CountVectorizer(vocabulary=WORDS), fitted_words)
    learned = make_pipeline(CountVectorizer(vocabulary=WORDS).fit(TEXTS), fitted_words)
    result, expected = (po.lime.text_limits(m, TEXTS[:2]) for m in (told, learned))
    for ours, theirs in zip(result.coefficients, expected.coefficients, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_other_errors_of_attributes_are_those_of_python():
    explainer = po.Explainer(classifier, X)
    with pytest.raises(AttributeError, match="has no attribute 'colour'") as caught:
        _ = explainer.colour
    assert not isinstance(caught.value, PropoptError)
    assert not hasattr(po.explain(regressor, X), "values")


def test_a_model_that_has_answered_fails_by_its_own_error():
    answers = iter([0, 0, 0])  # to the first rows, and to two trials

    def flaky(table):
        if next(answers, None) is None:
            raise ValueError("the service is gone")
        return table[:, 0]

    function = po.wrap(flaky)
    function.value(A[:5])
    with pytest.raises(ValueError, match="the service is gone") as caught:
        function.value(A[:5])
    assert not isinstance(caught.value, PropoptError)


# a table of one's own


def test_a_target_of_one_value_is_no_target(capsys):
    X.assign(ill=3.5).to_csv("same.csv", index=False)
    assert cli.main(["explain", "--csv", "same.csv", "--target", "ill"]) == 2
    message = "--target: column 'ill' has 3.5 in all rows; a model learns a column of"
    assert capsys.readouterr().err.startswith(message)


@pytest.mark.parametrize("task", ["logistic", "hist_gradient_boosting"])
def test_a_classifier_of_one_value_says_so(task):
    X.assign(ill=3.5).to_csv("same.csv", index=False)
    kind = f"{task}, task: classification" if task != "logistic" else task
    text = (
        f"data: {{csv: same.csv, target: ill}}\nmodel: {{kind: {kind}}}\nexplain: {{}}"
    )
    with pytest.raises(ProblemFileError, match=r"two classes.* have 3\.5 alone"):
        read(text)


def test_what_does_not_fit_into_memory_names_the_table(monkeypatch, capsys):
    free = SimpleNamespace(available=2**17)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: free)
    assert cli.main(["explain", "--csv", table_file(), "--target", "ill"]) == 2
    message = r"patients\.csv: model\.hidden: .* KiB and 128\.0 KiB are free; make .*\n"
    assert re.fullmatch(message, capsys.readouterr().err)


# all faults of a file in one run

FAULTY = """
data:
  csv: patients.csv
  csv: patients.csv
  target: ill
  categorical: [sex]
model: {kind: logistic, smooth: {scale: -1}}
objective: {gradient_matching: 1, sparsity: 0.1}
sweep: {sparsity: [-1]}
tolerence: 1
"""
UNFIT = """
data: {csv: patients.csv, target: il, categorical: [sex, agee]}
model: {kind: logistic}
objective: {gradient_matching: 1, sparsity: 0.1}
sweep: {sparsty: [1.0], smoothness: [1.0]}
plot: {x: sparsity, y: robustness}
solver: clarabell
"""


@pytest.mark.parametrize("command", ["check", "sweep"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            FAULTY,
            {
                (4, "data.csv: given twice"),
                (6, "data.categorical: there is no column 'sex'"),
                (7, "model.smooth.scale: expected a number > 0, got -1"),
                (9, "sweep.sparsity.0: expected a number >= 0, got -1"),
                (10, "tolerence: unknown key"),
            },
        ),
        (
            UNFIT,
            {
                (2, "data.target: patients.csv has no column 'il'"),
                (2, "data.categorical: there is no column 'sex'"),
                (2, "data.categorical: there is no column 'agee'"),
                (5, "sweep.sparsty: the objective has no 'sparsty'"),
                (5, "sweep.smoothness: the objective has no 'smoothness'"),
                (6, "plot.y: the objective has no 'robustness'"),
                (7, "solver: "),
            },
        ),
    ],
    ids=["keys", "names"],
)
def test_all_faults_of_a_file_are_told_in_one_run(command, text, expected, capsys):
    table_file()
    assert cli.main([command, written("mine.yaml", text)]) == cli.BAD_INPUT
    told = [
        re.fullmatch(r"mine\.yaml:(\d+): (.*)", line)
        for line in capsys.readouterr().err.splitlines()
    ]
    assert all(told)
    result = [(int(line[1]), line[2]) for line in told]
    assert [n for n, _ in result] == sorted(n for n, _ in result)
    matched = {
        (n, words)
        for n, words in expected
        for number, line in result
        if n == number and line.startswith(words)
    }
    assert matched == expected
    assert len(result) == len(expected)
