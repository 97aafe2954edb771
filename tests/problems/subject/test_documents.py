"""Documents in a problem file: what is read, what is refused, what models learn."""

import numpy as np
import pandas as pd
import pytest
from problem_texts import NOTES
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import propopt as po
from propopt.problems.subject import data


DATA = "data: {csv: notes.csv, text: note, target: label}\n"
MODEL = "model: {kind: logistic, regularization: 0.5, output: log_odds}\n"
SWEEP = "objective: {gradient_matching: 1, sparsity: 0.1}\n"
FILE = DATA + MODEL + SWEEP


@pytest.fixture
def file(write):
    """A file beside a table of notes."""

    def made(text=FILE, notes=NOTES):
        write(notes, "notes.csv")
        return write(text)

    return made


def subject_of(path):
    return po.problems.read_problem(path).subject


def test_documents_and_their_order_are_those_of_the_table(file):
    written = pd.read_csv(file().parent / "notes.csv", keep_default_na=False, dtype=str)
    points = subject_of(file()).points
    assert points.tolist() == written["note"].tolist()
    assert points[[2, 3, 4]].tolist() == ["NA", "1e3", "\n"]
    subject = subject_of(file(FILE.replace("label}", "label, explain: 3}")))
    order = np.random.default_rng(0).permutation(7).tolist()
    assert subject.points.index.tolist() == sorted(order[:3])
    assert subject.others.index.tolist() == sorted(order[3:])
    assert subject.others_target.index.tolist() == sorted(order[3:])


def test_a_model_learns_texts_behind_its_vectorizer(file):
    subject = subject_of(file())
    texts, labels = subject.others, subject.others_target
    given = make_pipeline(TfidfVectorizer(), LogisticRegression(C=2, max_iter=10_000))
    margin = given.fit(texts, labels).decision_function(texts)
    assert subject.function.value(texts) == pytest.approx(margin, abs=1e-12)
    counts = CountVectorizer().fit(texts)
    assert sorted(subject.words) == counts.get_feature_names_out().tolist()
    assert subject.n_features == 8
    order = [counts.vocabulary_[word] for word in subject.words]
    assert (subject.table == counts.transform(texts).toarray()[:, order]).all()


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        ("linear", "y"),
        ("mlp, task: classification, hidden: [2]", "label"),
        ("mlp, task: regression, hidden: [2], target: standardized", "y"),
        ("forest, task: classification, n_estimators: 3", "label"),
        ("forest, task: regression, n_estimators: 3", "y"),
        ("hist_gradient_boosting, task: classification, max_iter: 3", "label"),
        ("hist_gradient_boosting, task: regression, min_samples_leaf: 1", "y"),
    ],
)
@pytest.mark.parametrize("vectorizer", ["counts, binary: true", "tfidf, min_df: 1"])
@pytest.mark.sampled(4)
def test_every_model_of_tables_learns_documents(file, kind, target, vectorizer):
    text = FILE.replace("label", target).replace(
        MODEL, f"model: {{kind: {kind}, vectorizer: {{kind: {vectorizer}}}}}\n"
    )
    subject = subject_of(file(text))
    values = subject.function.value(subject.points)
    effects = np.asarray(subject.function.gradient(subject.points))
    assert np.ptp(values) > 0.0
    assert effects.shape == (7, subject.n_features)
    assert not effects[subject.table == 0.0].any()


def test_n_grams_are_those_of_the_file(file):
    vectorizer = "{kind: counts, ngram_range: [1, 2], max_features: 3, min_df: 2}"
    text = FILE.replace("log_odds}", f"log_odds, vectorizer: {vectorizer}}}")
    counted = subject_of(file(text)).estimator[0].get_feature_names_out()
    assert counted.tolist() == ["food", "food was", "good"]


def test_nothing_is_fitted_by_a_check(file, monkeypatch):
    text = FILE + "limits: {sparsity: [1]}\n"
    robust = "pairwise_robustness: {graph: {kind: knn, n_neighbors: 2}}"
    smooth = "smoothness: {graph: {kind: complete}}"
    path = file(text.replace("sparsity: 0.1", f"{robust}, {smooth}, sparsity: 1"))
    monkeypatch.setattr(data, "fit", lambda *_: pytest.fail("fitted"))
    po.problems.read_problem(path).check_data()


def test_documents_lie_where_tf_idf_of_their_words_does(file):
    subject = subject_of(file())
    vectorizer = TfidfVectorizer(token_pattern=r"(?u)\b\w+\b")
    given = vectorizer.fit_transform(subject.points).toarray()
    gram, result = given @ given.T, subject.coordinates
    assert result @ result.T == pytest.approx(gram, abs=1e-12)
    sizes = np.diag(gram)  # of which one is empty
    assert np.sort(sizes) == pytest.approx([0, *6 * [1]], abs=1e-12)


def test_an_empty_text_is_refused_with_its_row(write, complaint):
    write(NOTES.replace('"1e3"', "").replace("No good!", ""), "notes.csv")
    assert complaint(FILE) == (
        "file.yaml:1: data.text: notes.csv: note is empty in row 1 (the first is row "
        "0), and of 1 more; remove such rows"
    )


def test_columns_that_no_one_reads_may_hold_anything(file):
    notes = NOTES.replace('0,"Good', ',"Good').replace("1,No", "x,No")
    assert len(subject_of(file(notes=notes)).points) == 7


def test_a_sweep_of_documents_gives_absent_words_nothing(file, tmp_path):
    robust = "shared_robustness: {graph: {kind: threshold, threshold: 1}}"
    text = FILE.replace("sparsity: 0.1", robust)
    notes = NOTES.replace("the food was good", "the food was not good")
    path = file(text + "sweep: {shared_robustness: [1e-3, 1e3]}\n", notes)
    problem = po.problems.read_problem(path)
    result, problem = problem.run(tmp_path / "out", quiet=True), problem.build()
    assert result.certified(1e-6)
    page = (tmp_path / "out" / "file.html").read_text(encoding="utf-8")
    assert page.count("document ") >= 7
    assert "<b>good" not in page
    faithful, robust = result.optimized
    table = problem.subject.table
    for best in (faithful, robust):
        W = np.asarray(best.attributions)
        assert not W[table == 0.0].any()
        assert best.labels.features == problem.subject.words
        assert list(best.labels.points) == problem.points.index.tolist()
    effects = np.asarray(problem.function.gradient(problem.points))
    assert np.asarray(faithful.attributions) == pytest.approx(effects, abs=1e-2)
    rows = [list(problem.points.index).index(n) for n in (5, 6)]
    both = (table[rows] > 0.0).all(axis=0)
    assert both.sum() == 4  # the, food, was, good
    W = np.asarray(robust.attributions)[rows][:, both]
    assert W[0] == pytest.approx(W[1], abs=1e-3)
    assert np.ptp(effects[rows][:, both], axis=0).max() > 0.01  # they were not alike
