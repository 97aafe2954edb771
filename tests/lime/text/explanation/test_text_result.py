"""The result on documents: tables, cards, files, runs, paths."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from crafted_archives import (
    craft,
    header_of,
    members_of,
    npy,
    signed,
    with_header,
    write,
)
from exact_csv import read_csv
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from propopt.base.errors import InvalidInput, Refused
from propopt.lime import TextLaw, TextLimeExplanation, text_limits
from propopt.results.explanation import Result
from propopt.tables.documents import PatternWords


TEXTS = pd.Series(
    [
        "good good food, <b>fair</b> price",
        "",
        "so a long, quite cold and bad meal of odd food that \u202ewe had had, all in",
        "bad food",
    ],
    index=["p", "q", "r", "s"],
)


@pytest.fixture(scope="module")
def model():
    texts = [
        "good food",
        "bad food",
        "cold meal",
        "fair price",
        "good meal",
        "bad price",
    ]
    pipeline = make_pipeline(CountVectorizer(), LogisticRegression())
    return pipeline.fit(texts, [1, 0, 0, 1, 1, 0])


@pytest.fixture(scope="module")
def lime(model):
    """One document by all sets, one that LIME says nothing of, one estimated."""
    return text_limits(model, TEXTS, n_samples=300, max_enumerated=7)


def test_it_is_a_result(lime):
    assert isinstance(lime, Result)
    assert lime.shape == (4, 20)
    assert lime.names == ("p", "q", "r", "s")


def test_the_table_has_a_line_for_each_word_of_each_document(lime):
    frame = lime.to_frame()
    assert frame["document"].tolist() == ["p"] * 5 + ["r"] * 16 + ["s"] * 2
    assert frame["word"].tolist()[:5] == ["good", "food", "b", "fair", "price"]
    assert frame["count"].tolist()[0] == 2
    own = frame[frame["document"] == "r"]
    assert own["standard_error"].tolist() == lime.rows[2].errors.tolist()
    assert (own["standard_error"] > 0.0).any()
    assert (frame[frame["document"] == "p"]["standard_error"] == 0.0).all()


def test_csv_reads_back(lime, tmp_path):
    lime.to_csv(tmp_path / "lime.csv")
    same = read_csv(tmp_path / "lime.csv")
    assert same["coefficient"].tolist() == lime.to_frame()["coefficient"].tolist()


def test_what_is_exact_and_what_is_estimated_stands_in_text_and_card(lime):
    for text in (repr(lime), lime._repr_html_()):
        assert "exact in 2 of 4 documents" in text
        assert "1 document estimated, standard errors up to" in text
        assert "log_odds" in text
        assert "units of the output" in text
    card = lime._repr_html_()
    assert "no coefficients: there is no word in it" in card
    assert "1 more document not shown" in card
    assert "&lt;" in card
    assert "<b>fair" not in card
    assert "\u202e" not in card
    assert "RIGHT-TO-LEFT OVERRIDE" in card


def test_a_path_at_the_bandwidth_of_the_law_is_the_explanation(lime):
    for name in ("p", "r"):
        path = lime.path(name, [0.1, 0.25])
        np.testing.assert_allclose(
            path.coefficients[1],
            lime.rows[lime.position(name)].coefficients,
            atol=1e-13,
        )
    assert lime.path("p").standard_errors is None
    errors = lime.path("r", [0.25]).standard_errors
    np.testing.assert_allclose(errors[0], lime.rows[2].standard_errors, rtol=1e-12)


def test_runs_near_the_limit_with_more_samples(lime):
    apart = [
        np.abs(lime.expected(n)[row] - lime.coefficients[row]).max()
        for row in (0, 2)
        for n in (40, 40_000)
    ]
    assert apart[1] < 0.02 * apart[0]
    assert apart[3] < 0.02 * apart[2]
    noise = [own[0] for own in (lime.noise(400)[0], lime.noise(1600)[0])]
    assert noise[0] / noise[1] == pytest.approx(2.0, rel=0.1)
    n = lime.required_n(0.001)[0]
    np.testing.assert_allclose(n, np.ceil(300 * (lime.noise()[0] / 0.001) ** 2))


@pytest.mark.slow
def test_estimated_noise_is_that_of_the_package(model):
    """40 runs: ratios of deviations within 4.5 of theirs, once in 1e4 seeds."""
    explainers = pytest.importorskip("lime.lime_text")
    text = TEXTS["r"] + " and a good price, fair or not"
    ours = text_limits(model, [text], n_samples=600, max_enumerated=0)
    runs = []
    for seed in range(40):
        explainer = explainers.LimeTextExplainer(
            kernel_width=25, feature_selection="none", random_state=seed
        )
        result = explainer.explain_instance(
            text, model.predict_proba, num_features=50, num_samples=600
        )
        runs.append([weight for _, weight in sorted(result.as_map()[1])])
    deviations = np.std(runs, axis=0, ddof=1)
    z = (np.mean(runs, axis=0) - ours.expected()[0]) / np.hypot(
        deviations / np.sqrt(40), ours.rows[0].errors
    )
    assert np.abs(z).max() < 4.8
    assert 0.6 < np.sqrt(np.mean(z**2)) < 1.5
    ratios = np.log(deviations / ours.noise()[0])
    assert np.abs(ratios).max() < 4.5 / np.sqrt(78) + 0.05


def test_a_loaded_explanation_is_the_same_and_says_what_needs_the_model(lime, tmp_path):
    lime.save(tmp_path / "lime")
    loaded = TextLimeExplanation.load(tmp_path / "lime")
    assert loaded.law == lime.law
    ours, theirs = lime.rows[2].document, loaded.rows[2].document
    assert theirs.without([False] * 16) == ours.without([False] * 16)
    assert loaded.of_rows(["r"]).to_frame().equals(lime.of_rows(["r"]).to_frame())
    with pytest.raises(Refused, match="make it anew"):
        loaded.expected(7)


def test_an_infinite_bandwidth_is_saved(model, tmp_path):
    lime = text_limits(model, ["good food"], TextLaw(np.inf))
    lime.save(tmp_path / "lime")
    assert TextLimeExplanation.load(tmp_path / "lime").law == TextLaw(np.inf)


def test_half_a_character_is_saved(model, tmp_path):
    rule = PatternWords(r"[\w\ud800-\udfff]+")
    lime = text_limits(model, ["good \ud800 food", "bad food"], words=rule)
    assert "\\ud800" in lime._repr_html_()
    lime.save(tmp_path / "lime")
    loaded = TextLimeExplanation.load(tmp_path / "lime")
    assert loaded.words == lime.words == (("good", "\ud800", "food"), ("bad", "food"))
    assert loaded.rows[0].document.text == "good \ud800 food"


def test_halves_side_by_side_would_be_read_as_one_character(model, tmp_path):
    lime = text_limits(model, ["good \ud83d\udc4d food"])
    with pytest.raises(
        InvalidInput, match=r"cannot be saved: rows.document.text.0: two"
    ):
        lime.save(tmp_path / "lime")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def sound(lime, tmp_path_factory):
    path = tmp_path_factory.mktemp("sound") / "sound.npz"
    lime.save(path)
    return path


def is_sound(path):
    """Whether it is loaded; else it is refused in one sentence."""
    try:
        result = TextLimeExplanation.load(path)
    except InvalidInput as error:
        refusal = str(error)
    else:
        refusal = ""
    if refusal:
        assert refusal.startswith(f"{path}: ")
        assert "\n" not in refusal
        return False
    assert len(result.to_frame()) == sum(map(len, result.words))
    assert result._repr_html_().encode()
    return True


@pytest.mark.parametrize("seed", range(3))
def test_a_mutated_file_is_refused_in_one_sentence_or_sound(seed, sound, tmp_path):
    rng, path, outcomes = np.random.default_rng(seed), tmp_path / "crafted.npz", []
    for _ in range(80):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # zipfile: two of one name
            mutation = craft(rng, sound, path)
        try:
            outcomes.append(is_sound(path))
        except Exception as error:
            raise AssertionError(mutation) from error
    assert 0 < sum(outcomes) < 80


def forged(path, sound, header=(), arrays=()):
    """A file that is signed again; keys of the header are paths in it."""
    members = members_of(sound)
    members |= {f"{name}.npy": npy(array) for name, array in dict(arrays).items()}
    whole = header_of(members)
    for keys, value in dict(header).items():
        inner, (*outer, last) = whole, keys.split()
        for key in outer:
            inner = inner[int(key) if isinstance(inner, list) else key]
        inner[int(last) if isinstance(inner, list) else last] = value
    write(path, signed(with_header(members, whole)))


def array_of(sound, name):
    with np.load(sound) as archive:
        return archive[name]


ODD = {
    "n_samples: expected an integer >= 1": {"n_samples": 0},
    r"rows.document.text: expected a list": {"rows document text": "good"},
    "rows: expected as many of each field": {"rows source": ["exact"]},
    "rows.document: expected as many of each field": {"rows document text": ["a"]},
    "starts, ends: expected words": {"rows document text": ["x", "", "y", "z"]},
    "places: expected each word": {"rows document words 0 0": "food"},
    "law: bandwidth: expected a finite number >= 0": {"law bandwidth": -1.0},
    "law.bandwidth: expected a number": {"law bandwidth": None},
    "document 0: coefficients: expected finite": {"rows value 0": None},
    "document 1: coefficients: expected finite": {"rows source 1": "exact"},
    "document 2: standard_errors: expected none": {"rows source 2": "exact"},
    "names: expected one for each of 4": {"names": ["a"]},
    "scatter: it is that of other documents or runs": {"scatter n_samples": 7},
}
ODD_ARRAYS = {
    "rows.standard_errors: expected numbers >= 0": lambda own: {
        "rows.standard_errors": -own("rows.standard_errors")
    },
    "rows.document.starts: expected as many": lambda own: {
        "rows.document.starts": own("rows.document.starts")[1:]
    },
    "it also has the array 'more'": lambda own: {"more": own("rows.coefficients")},
    "document 0: starts, ends, places: expected one": lambda own: {
        "rows.document.places.sizes": np.roll(own("rows.document.places.sizes"), 1)
    },
    "document 0: coefficients: expected one for each word": lambda own: {
        "rows.coefficients.sizes": np.roll(own("rows.coefficients.sizes"), 1)
    },
    "scatter: it is that of other documents": lambda own: {
        "scatter.means.sizes": np.roll(own("scatter.means.sizes"), 1)
    },
    "document 0: starts, ends: expected words one behind": lambda own: {
        "rows.document.starts": own("rows.document.starts")[::-1]
    },
    "document 0: places: expected each word": lambda own: {
        "rows.document.places": own("rows.document.places")[::-1]
    },
}


@pytest.mark.parametrize("match", [*ODD, *ODD_ARRAYS])
def test_a_file_with_something_wrong_is_refused(sound, tmp_path, match):
    arrays = {}
    if match in ODD_ARRAYS:
        arrays = ODD_ARRAYS[match](lambda name: array_of(sound, name))
    forged(tmp_path / "wrong.npz", sound, ODD.get(match, {}), arrays)
    with pytest.raises(InvalidInput, match=match):
        TextLimeExplanation.load(tmp_path / "wrong.npz")


def test_a_file_has_as_many_members_however_many_documents(lime, sound, tmp_path):
    lime.of_rows(["p"]).save(tmp_path / "one")
    assert members_of(tmp_path / "one.npz").keys() == members_of(sound).keys()


def test_a_card_says_what_is_explained_of_whom_and_where_runs_fall(lime):
    row, (first, *rest) = lime.rows[0], str(lime).split("\n")
    assert first == (
        f"Why the probability of class 1 is {row.value:.4g} for document p "
        f"({row.intercept:.4g} without its words)"
    )
    low, high = lime.intervals()[0][0]
    good = dict(lime.as_list("p"))["good"]
    told = [" ".join(line.split()) for line in rest]
    assert f"good {good:+.3g} {low:+.3g} to {high:+.3g}" in told
    assert rest[-1].endswith("where 95 % of single runs of 300 samples fall")
    nothing = lime.card("q")
    assert nothing.title == ("LIME says nothing of document q: there is no word in it")
    assert not nothing.rows
    assert len(lime.card("r").rows) == 10
    assert "s</b>" in lime.card("s").html()  # its text too, beyond the first three


def test_a_diagnosis_is_of_what_lime_says_something_of(lime):
    result = lime.diagnose(progress=False)
    assert result.shape == lime.shape
    assert {finding.row for finding in result.findings} <= {0, 2, 3, None}
    with pytest.raises(Refused, match="says nothing of these documents"):
        lime.diagnose(rows=["q"])
