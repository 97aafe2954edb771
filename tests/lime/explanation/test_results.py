"""What limits tell: tables, cards, intervals, runs; of rows and of documents.

The contract of results (``tests/results``) has their files, copies and forgeries.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from crafted_archives import header_of, members_of, npy, signed, with_header, write
from lime_cases import explained, grid, linear, product, tabular
from refusals import refusals
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from propopt.base.errors import InvalidInput, Refused
from propopt.lime import (
    GlimeLaw,
    LimeExplanation,
    LimeRows,
    TextLaw,
    limits,
    text_limits,
)
from propopt.results.result import Result
from propopt.tables.documents import PatternWords


def exact_rows():
    X = grid(2)
    law = tabular(X, kernel_width=0.8)
    return limits(product(X), X[[36, 7, 120]], law, data=X)


def estimated_rows():
    X = pd.DataFrame(grid(3), columns=list("abc"), index=[f"r{n}" for n in range(400)])
    return limits(lambda Z: Z["a"] ** 2 - Z["b"], X.iloc[:3], data=X, n_samples=200)


def many_columns():
    X = grid(12)
    return limits(linear(np.arange(12.0), X), X[:2], data=X, n_samples=300)


TEXTS = pd.Series(
    [
        "good good food, <b>fair</b> price",
        "",
        "so a long, quite cold and bad meal of odd food that \u202ewe had had, all in",
        "bad food",
    ],
    index=["p", "q", "r", "s"],
)


def text_model():
    texts = ["good food", "bad food", "cold meal", "fair price", "good meal", "bad"]
    model = make_pipeline(CountVectorizer(), LogisticRegression())
    return model.fit([*texts[:5], "bad price"], [1, 0, 0, 1, 1, 0])


def documents():
    """One document by all sets, one that LIME says nothing of, one estimated."""
    return text_limits(text_model(), TEXTS, n_samples=300)


@pytest.fixture(
    scope="module", params=[exact_rows, estimated_rows, many_columns, documents]
)
def either(request):
    return request.param()


@pytest.fixture(scope="module")
def lime():
    X = grid(2)
    return explained(product(X), [0.9, 0.1], X, tabular(X, kernel_width=0.8))


@pytest.fixture(scope="module")
def words():
    return documents()


def assert_all_close(actual, expected, **tolerance):
    """Of all rows, or of one document after the other."""
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one, other, **tolerance)


def test_the_surrogate_is_the_sum_and_the_table_has_a_line_for_each_number(either):
    assert isinstance(either, Result)
    assert either.shape[0] == len(either.row_names) == len(either.values)
    sums = [beta.sum() for beta in either.coefficients]
    np.testing.assert_allclose(either.at_row, either.intercept + sums, rtol=1e-13)
    gap = either.values - either.at_row
    np.testing.assert_allclose(either.local_gap, gap, rtol=1e-13)
    frame, noun = either.to_frame(), either.to_frame().columns[0]
    for n, name in enumerate(either.row_names):
        lines = frame[frame[noun] == name]
        assert lines["coefficient"].tolist() == either.coefficients[n].tolist()
        assert lines["single_run_sd"].tolist() == either.noise()[n].tolist()
        assert lines["expected"].tolist() == either.expected()[n].tolist()
        for column, values in (
            ("intercept", either.intercept),
            ("prediction", either.values),
            ("surrogate_at_row", either.at_row),
        ):
            assert set(lines[column]) <= {values[n]}
    assert (frame["n_samples"] == either.n_samples).all()
    assert (frame["units"] == "units of the output").all()


def test_lists_and_the_top_have_the_largest_first(either):
    noun, feature = either.to_frame().columns[:2]
    for n, name in enumerate(either.row_names):
        order = either.as_map(name)[1]
        assert [either.coefficients[n][j] for j, _ in order] == [w for _, w in order]
        assert sorted(j for j, _ in order) == list(range(len(either.coefficients[n])))
        sizes = [abs(weight) for _, weight in order]
        assert sizes == sorted(sizes, reverse=True)
        assert [w for _, w in either.as_list(name)] == [w for _, w in order]
        top = either.top(2, name)
        assert top[noun].tolist() == [name] * len(top)
        assert top["coefficient"].tolist() == [w for _, w in order[:2]]
        pairs = zip(either.as_list(name), top[feature], strict=False)
        assert all(full.startswith(column) for (full, _), column in pairs)
    assert either.as_list() == either.as_list(either.row_names[0])
    with pytest.raises(InvalidInput, match="k: expected"):
        either.top(0)
    with pytest.raises(InvalidInput, match="there is no row 'z'"):
        either.as_list("z")


def test_intervals_are_the_ranges_of_single_runs(either):
    both = zip(either.intervals(0.6827, n_samples=250), either.noise(250), strict=True)
    for ends, noise in both:
        assert ends.shape == (*noise.shape, 2)
        np.testing.assert_allclose(np.diff(ends)[..., 0], 2.0 * noise, rtol=1e-4)
    centres = [ends.mean(axis=-1) for ends in either.intervals(n_samples=250)]
    assert_all_close(centres, either.expected(250), rtol=1e-12, atol=1e-15)
    for wrong in ({"level": 1.0}, {"level": "high"}):
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            either.intervals(**wrong)
    # runs of other samples are those of an explanation of as many
    other = replace(either, n_samples=250, scatter=None)
    assert_all_close(either.noise(250), other.noise(), rtol=0.0)
    assert_all_close(either.expected(250), other.expected(), rtol=0.0)
    pairs = zip(other.noise(), either.noise(), strict=True)
    assert any((np.abs(a - b) > 0.0).any() for a, b in pairs)
    squares = [(square / 0.01) ** 2 for square in either.noise()]
    needed = [np.maximum(1.0, np.ceil(either.n_samples * square)) for square in squares]
    assert_all_close(either.required_n(0.01), needed)
    with pytest.raises(InvalidInput, match="se: expected"):
        either.required_n(0.0)


def test_some_rows_are_those_of_all(either):
    either.noise()
    names = [either.row_names[-1], either.row_names[0]]
    some, whole = either.loc[names], either.to_frame()
    assert list(some.row_names) == names
    parts = [whole[whole[whole.columns[0]] == name] for name in names]
    again = pd.concat(parts, ignore_index=True)
    pd.testing.assert_frame_equal(some.to_frame(), again, check_dtype=False)
    assert_all_close(
        some.expected(50), [either.expected(50)[either.position(n)] for n in names]
    )
    # and so is their diagnosis
    name = either.row_names[0]
    among = either.diagnose(500, rows=[name], progress=False)
    alone = either.loc[[name]].diagnose(500, progress=False)
    assert among.n_samples == 500
    assert among.to_frame().equals(alone.to_frame())
    assert among.labels.points == (name,)


def test_a_loaded_one_says_what_needs_the_model(either, tmp_path):
    either.save(tmp_path / "lime")
    loaded = LimeExplanation.load(tmp_path / "lime")
    assert type(loaded) is type(either)
    assert loaded.subject is None
    assert loaded.explained_in_words == either.explained_in_words != "output"
    assert_all_close(loaded.noise(), either.noise(), rtol=0.0)
    calls = [loaded.diagnose, loaded.path, lambda: loaded.noise(7)]
    calls.append(lambda: loaded.law)
    if isinstance(either, LimeRows):
        assert_all_close(loaded.expected(70), either.expected(70), rtol=0.0)
        assert loaded.r2 == pytest.approx(either.r2, abs=0)
    else:
        calls.append(lambda: loaded.expected(7))
    for ask in calls:
        with pytest.raises(Refused, match="compute it again"):
            ask()


def test_a_card_has_the_largest_and_where_their_runs_fall(either):
    document, ends = either.document(either.row_names[0]), either.intervals()[0]
    table = document.blocks[0]
    order = either.as_map()[1]
    spans = table.bars["coefficient"]
    assert [low + high for low, high, _ in spans] == [w for _, w in order[:15]]
    lines = [line for *_, line in spans]
    np.testing.assert_allclose(lines, ends[[j for j, _ in order[:15]]], rtol=1e-9)
    assert table.total == len(order)
    names = [name for name, _ in either.as_list()][: len(table.frame)]
    pairs = zip(names, table.frame.index, strict=True)
    assert all(name.startswith(shown) for name, shown in pairs)
    record = either.records[0]
    values = {label: fact.value for label, fact in document.facts.items()}
    assert values == {
        "prediction": record.value,
        "base": record.base,
        "sampling error": record.sampling_error,
        "interval of runs": "95% of runs",
    }
    of_row = either.top(1, either.row_names[0])
    assert of_row["base"].tolist() == [either.base[0]]
    assert record.base == pytest.approx(either.base[0], rel=1e-12)


def test_sampling_errors_are_relative_to_the_coefficients():
    exact = exact_rows()
    assert exact.sampling_error == exact.records[0].sampling_error == 0.0
    rows = estimated_rows()
    size = np.linalg.norm(rows.standard_errors) / np.linalg.norm(rows.coefficients)
    assert rows.sampling_error == pytest.approx(size, rel=1e-12)
    assert 0.0 < rows.sampling_error < 0.2
    fact = rows.document().facts["sampling error"]
    assert fact.shown_basis == "estimated"


def test_profiles_paths_and_runs_are_those_of_the_explanation(lime):
    subject = lime.subject
    for j, (means,) in enumerate(subject.profiles(lime.points)):
        row_bin = lime.law.columns[j].bin_index(lime.points[:, j])[0]
        others = np.delete(means, row_bin).mean()  # bins have equal shares
        assert means[row_bin] - others == pytest.approx(
            lime.coefficients[0, j], rel=1e-9
        )
    path = lime.path(widths=[0.4, 0.8])
    assert path.coefficients[1] == pytest.approx(lime.coefficients[0], rel=1e-12)
    # the mean of runs nears the limit, and r2 is what least squares explains
    apart = [np.abs(lime.expected(n) - lime.coefficients).max() for n in (50, 5000)]
    assert 0.0 < apart[1] < 0.05 * apart[0]
    # of even draws of Q: within 1 %, with 4096 for the variance and 40,000 here
    row, rng = np.array([[0.9, 0.1]]), np.random.default_rng(2)
    draws = GlimeLaw(lime.law).draw(row, 40_000, rng)
    y = product(grid(2)).predict(draws.samples[0])
    fit = lime.intercept[0] + draws.bits[0] @ lime.coefficients[0]
    assert lime.r2[0] == pytest.approx(1.0 - np.var(y - fit) / np.var(y), abs=0.01)


def test_a_card_of_many_rows_has_the_runs_of_one_row():
    lime = exact_rows()
    name = lime.row_names[0]
    card = lime._repr_html_()
    assert "runs" not in vars(lime)
    assert lime._repr_html_() == card
    alone = lime.document().blocks[0].bars["coefficient"]
    _ = lime.runs
    assert lime.document(name).blocks[0].bars["coefficient"] == alone


def test_tables_texts_and_cards_of_documents(words):
    assert words.shape == (4, 20)
    assert words.labels.points == ("p", "q", "r", "s")
    frame = words.to_frame()
    assert frame["document"].tolist() == ["p"] * 5 + ["r"] * 16 + ["s"] * 2
    assert frame["word"].tolist()[:5] == ["good", "food", "b", "fair", "price"]
    assert frame["count"].tolist()[0] == 2
    errors = frame[frame["document"] == "r"]["standard_error"]
    assert errors.tolist() == words.records[2].errors.tolist()
    assert (errors > 0.0).any()
    assert (frame[frame["document"] == "p"]["standard_error"] == 0.0).all()
    assert list(words.document("q").facts) == ["prediction"]
    assert "document q" in words.document("q").dangers[0]


def test_paths_runs_and_diagnoses_of_documents(words):
    for name in ("p", "r"):
        path = words.path(name, [0.1, 0.25]).coefficients[1]
        beta = words.records[words.position(name)].coefficients
        np.testing.assert_allclose(path, beta, rtol=0, atol=1e-13)
    assert words.path("p").standard_errors is None
    errors = words.path("r", [0.25]).standard_errors
    np.testing.assert_allclose(errors[0], words.records[2].errors, rtol=1e-12)
    few, many = (words.expected(n) for n in (40, 40_000))
    for n in (0, 2):
        beta = words.coefficients[n]
        assert np.abs(many[n] - beta).max() < 0.02 * np.abs(few[n] - beta).max()
    noise = [words.noise(n)[0][0] for n in (400, 1600)]
    assert noise[0] / noise[1] == pytest.approx(2.0, rel=0.1)
    result = words.diagnose(progress=False)
    assert result.shape == words.shape
    assert {finding.row for finding in result.findings} <= {0, 2, 3, None}
    with pytest.raises(Refused, match="no coefficients for these documents"):
        words.diagnose(rows=["q"])


def test_odd_laws_and_letters_are_saved(words, tmp_path):
    path, model = tmp_path / "lime.npz", text_model()
    words.save(path)
    loaded = LimeExplanation.load(path)
    ours, theirs = words.documents[2], loaded.documents[2]
    assert theirs.without([False] * 16) == ours.without([False] * 16)
    assert loaded.loc[["r"]].to_frame().equals(words.loc[["r"]].to_frame())
    # as many members, however many documents
    words.loc[["r"]].save(tmp_path / "one")
    assert members_of(tmp_path / "one.npz").keys() == members_of(path).keys()
    text_limits(model, ["good food"], TextLaw(np.inf)).save(path)
    assert "bandwidth=inf" in LimeExplanation.load(path).law_in_words
    # half a character
    rule = PatternWords(r"[\w\ud800-\udfff]+")
    lime = text_limits(model, ["good \ud800 food", "bad food"], words=rule)
    assert "\\ud800" in lime._repr_html_()
    lime.save(path)
    loaded = LimeExplanation.load(path)
    assert loaded.words == lime.words == (("good", "\ud800", "food"), ("bad", "food"))
    assert loaded.documents[0].text == "good \ud800 food"
    # halves side by side would be read as one character
    lime, before = text_limits(model, ["good \ud83d\udc4d food"]), [*tmp_path.iterdir()]
    message = r"cannot be saved: documents.text.0: the text has two"
    with pytest.raises(InvalidInput, match=message):
        lime.save(tmp_path / "halves")
    assert [*tmp_path.iterdir()] == before


# ---- files that say what cannot be, beside those of the contract


def forged(path, result, bin_index, value):
    """A file that is signed again; a place is a path in the header, or an array's."""
    result.save(path)
    members = members_of(path)
    whole = header_of(members)
    if f"{bin_index}.npy" in members:
        with np.load(path) as archive:
            array = value(archive[bin_index]) if callable(value) else value
        members[f"{bin_index}.npy"] = npy(array)
    else:
        inner, (*outer, last) = whole, bin_index.split()
        for key in outer:
            inner = inner[int(key) if isinstance(inner, list) else key]
        inner[int(last) if isinstance(inner, list) else last] = value
    write(path, signed(with_header(members, whole)))


@pytest.mark.parametrize(("change", "message"), refusals(__file__, "documents"))
def test_a_file_of_documents_with_something_wrong_is_refused(
    words, tmp_path, change, message
):
    forged(tmp_path / "wrong.npz", words, *eval(change))
    with pytest.raises(InvalidInput, match=message):
        LimeExplanation.load(tmp_path / "wrong.npz")
