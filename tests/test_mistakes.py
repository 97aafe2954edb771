"""Mistakes of people who know shap, lime or cvxpy, and what each is told.

Each makes one of our errors, which says what would do. Where the message
says how a thing is mended, the remedy is tried too.
"""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import situations
from situations import (
    TEXTS,
    WORDS,
    A,
    X,
    classifier,
    fitted_words,
    iloco,
    regressor,
    table_file,
    written,
)
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

import propopt as po
from propopt import cli
from propopt.base import errors
from propopt.base.errors import PropoptError


TOLD = Path(__file__).with_name("mistakes.txt").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """Files are looked for, and written, in a folder of the test."""
    monkeypatch.chdir(tmp_path)


MISTAKES = [
    dict(zip(("line", "told", "remedy"), lines, strict=False), id=name)
    for name, *lines in (
        re.split(r"\n    (?:→ )?", part) for part in TOLD.strip().split("\n\n")[1:]
    )
]
REMEDIES = [mistake for mistake in MISTAKES if "remedy" in mistake]


@pytest.mark.filterwarnings("ignore::propopt.base.errors.MissingPatternsWarning")
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake["id"])
def test_a_mistake_is_told_what_would_do(mistake):
    error, _, part = mistake["told"].partition(": ")
    with pytest.raises(getattr(errors, error)) as caught:
        eval(mistake["line"], vars(situations))
    assert part in str(caught.value)


@pytest.mark.parametrize("mistake", REMEDIES, ids=lambda mistake: mistake["id"])
def test_what_messages_say_would_do_does(mistake):
    assert eval(mistake["remedy"], vars(situations)) is not None


# what messages say would do


def test_words_that_were_given_count_as_words_that_were_fitted():
    told = make_pipeline(CountVectorizer(vocabulary=WORDS), fitted_words)
    learned = make_pipeline(CountVectorizer(vocabulary=WORDS).fit(TEXTS), fitted_words)
    result, expected = (po.lime.text_limits(m, TEXTS[:2]) for m in (told, learned))
    for ours, theirs in zip(result.coefficients, expected.coefficients, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_other_errors_of_attributes_are_those_of_python():
    explainer = po.Explainer(classifier, X, kind="slopes")
    with pytest.raises(AttributeError, match="has no attribute 'colour'") as caught:
        _ = explainer.colour
    assert not isinstance(caught.value, PropoptError)
    assert not hasattr(po.explain(regressor, X, kind="slopes"), "values")


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


def test_a_fitted_estimator_says_what_to_ask_next():
    explainer = po.Explainer(regressor, X).fit()
    slopes = po.inductive.GaussianProcessExplainer().fit(X, gradients=A)
    lime = po.lime.LimeExplainer(classifier, X)
    assert str(iloco) == str(iloco.result_)
    for name, fitted in [
        ("explainer", explainer),
        ("explainer", slopes),
        ("explainer", lime),
    ]:
        line = re.findall(r"; next: (.*?)(?:, or|$)", str(fitted))[0]
        assert eval(line, {name: fitted, "X": X, "print": str})
    assert str(po.Explainer(regressor, X)).endswith("next: fit()")
    assert str(po.interactions.ILOCO(regressor)).endswith("next: fit(X, y)")


# a table of one's own


def test_a_network_that_does_not_fit_into_memory_names_its_key(monkeypatch, capsys):
    free = SimpleNamespace(available=2**17)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: free)
    text = f"data: {{csv: {table_file()}, target: ill}}\nmodel: {{kind: mlp}}\n"
    assert cli.main(["explain", written("mine.yaml", f"{text}explain: {{}}")]) == 2
    message = r"mine\.yaml:2: model: .* KiB and 128\.0 KiB are free; make .*\n"
    assert re.fullmatch(message, capsys.readouterr().err)


# all faults of a file in one run

UNFIT = """
# data.categorical: there is no column 'sex'
# data.categorical: there is no column 'agee'
data: {csv: patients.csv, target: il, categorical: [sex, agee]}  # data.target: patient
model: {kind: logistic}
objective: {gradient_matching: 1, sparsity: 0.1}
sweep: {sparsity: [1.0]}
plot: {x: sparsity, y: robustness}  # plot.y: the objective has no 'robustness'
solver: clarabell  # solver:
"""


@pytest.mark.parametrize("command", ["check", "sweep"])
def test_all_faults_of_a_file_are_told_in_one_run(command, capsys):
    """A comment has what is told of its line, or of the next that is not a comment."""
    table_file()
    assert cli.main([command, written("mine.yaml", UNFIT)]) == cli.BAD_INPUT
    parts = [line.partition("# ")[::2] for line in UNFIT.splitlines()]
    places = [n for n, (yaml, _) in enumerate(parts, start=1) if yaml]
    expected = [
        (min(n for n in places if n >= own), said)
        for own, (_, said) in enumerate(parts, start=1)
        if said
    ]
    told = capsys.readouterr().err.splitlines()
    matches = [re.fullmatch(r"mine\.yaml:(\d+): (.*)", line) for line in told]
    result = [(int(match[1]), match[2]) for match in matches]
    assert [n for n, _ in result] == sorted(n for n, _ in result)
    for (n, line), (place, said) in zip(sorted(result), sorted(expected), strict=True):
        assert (n, line[: len(said)]) == (place, said)
