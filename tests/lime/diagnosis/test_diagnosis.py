"""The result of a diagnosis: table, text, card, file."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from crafted_archives import header_of, members_of, signed, with_header, write
from exact_csv import read_csv
from lime_cases import explained, grid, product, tabular

from propopt.base.errors import InvalidInput, Refused
from propopt.lime import LimeDiagnosis, LimeExplanation, limits


@pytest.fixture(scope="module")
def lime() -> LimeExplanation:
    X = grid(2)
    return explained(
        product(X), [0.9, 0.1], X, tabular(X, kernel_width=0.5), n_samples=500
    )


@pytest.fixture(scope="module")
def diagnosis(lime) -> LimeDiagnosis:
    return lime.diagnose()


def test_the_table_has_what_was_found_and_what_was_not(diagnosis):
    frame = diagnosis.to_frame()
    assert frame["found"].sum() == len(diagnosis.findings)
    assert len(frame) == len(diagnosis.told) + len(diagnosis.quiet)
    kinds = {"finding": diagnosis.findings, "note": diagnosis.notes}
    for kind, items in kinds.items():
        assert (frame["kind"] == kind).sum() == len(items) > 0
    assert all(item.severity >= 0.25 for item in diagnosis.findings)
    assert all(item.severity < 0.25 for item in diagnosis.notes)
    assert set(diagnosis.rules) == set(frame.loc[frame["found"], "rule"])
    assert (frame.loc[frame["found"], "remedy"] != "").all()


def test_it_is_loaded_as_it_was_saved(diagnosis, tmp_path):
    diagnosis.save(tmp_path / "found")
    same = LimeDiagnosis.load(tmp_path / "found.npz")
    own = diagnosis.to_frame()
    pd.testing.assert_frame_equal(same.to_frame(), own, check_exact=True)
    assert repr(same) == repr(diagnosis)
    assert same.source == "exact"
    assert (same.findings, same.notes) == (diagnosis.findings, diagnosis.notes)


def test_a_file_of_version_2_is_read(diagnosis, tmp_path):
    path = tmp_path / "found.npz"
    diagnosis.save(path)
    members = members_of(path)
    header = header_of(members) | {"version": 2}
    for item in header["quiet"]:
        del item["remedy"], item["severity"]
    write(path, signed(with_header(members, header)))
    own = diagnosis.to_frame()
    pd.testing.assert_frame_equal(
        LimeDiagnosis.load(path).to_frame(), own, check_exact=True
    )
    assert own.loc[own["kind"] == "quiet", "severity"].isna().all()


def test_numbers_of_the_file_read_back(diagnosis, tmp_path):
    diagnosis.to_csv(tmp_path / "found.csv")
    table = read_csv(tmp_path / "found.csv")
    assert table["number"].to_numpy() == pytest.approx(
        diagnosis.to_frame()["number"].to_numpy(), abs=0.0, nan_ok=True
    )


def test_another_file_is_refused(lime, tmp_path):
    lime.save(tmp_path / "lime")
    with pytest.raises(InvalidInput, match="not a saved diagnosis"):
        LimeDiagnosis.load(tmp_path / "lime.npz")


def test_a_loaded_explanation_has_no_model_to_diagnose(lime, tmp_path):
    lime.save(tmp_path / "lime")
    with pytest.raises(Refused, match="make it anew"):
        LimeExplanation.load(tmp_path / "lime").diagnose()


def test_text_and_card_have_every_rule_that_found_something(diagnosis):
    text, card = repr(diagnosis), diagnosis._repr_html_()
    for rule in diagnosis.rules:
        assert rule in text
        assert rule in card
    assert max(map(len, text.split("\n"))) < 120


def test_a_card_says_first_what_misleads_most(diagnosis):
    worst, text = diagnosis.findings[0], str(diagnosis)
    title = diagnosis.card().title
    assert title.startswith(f"What misleads most: {worst.rule}, of the coefficient of")
    assert text.startswith(title)
    assert text == diagnosis.card().text()
    assert max(map(len, text.split("\n"))) < 120
    assert worst.sentence[:40] in text
    for item in (*diagnosis.notes, *diagnosis.quiet):
        near = f"{item.rule}: " if item in diagnosis.notes else item.sentence
        assert near.split(":")[0] in diagnosis._repr_html_() or np.isnan(item.number)
    nothing = replace(diagnosis, findings=(), notes=())
    assert nothing.card().title.startswith("Nothing was found that misleads")
    assert "None" not in nothing.card().html()


FORGED = {
    "row: there is no row 1": ("findings", {"row": 1}),
    "column: there is no column 2": ("quiet", {"column": 2}),
    "findings: notes are what is below 0.25": ("findings", {"severity": 0.2}),
    "notes: notes are what is below 0.25": ("notes", {"severity": 0.25}),
    "findings: expected the largest severity first": ("findings", {"severity": 0.26}),
    "findings.0.severity: expected a finite number from 0 to 1": (
        "findings",
        {"severity": 1.5},
    ),
    "findings.0.number: expected a number": ("findings", {"number": "many"}),
    "quiet.0.sentence: expected text": ("quiet", {"sentence": None}),
}


@pytest.mark.parametrize("message", FORGED)
def test_a_file_that_contradicts_itself_is_refused(diagnosis, tmp_path, message):
    path = tmp_path / "found.npz"
    diagnosis.save(path)
    members, (key, change) = members_of(path), FORGED[message]
    header = header_of(members)
    header[key][0] |= change
    write(path, signed(with_header(members, header)))
    with pytest.raises(InvalidInput, match=f"not a saved diagnosis: {message}"):
        LimeDiagnosis.load(path)


def test_rules_that_found_nothing_share_a_line_and_are_told_in_full_by_the_card(
    diagnosis,
):
    *_, notes, others = repr(diagnosis).split("\n")
    assert others == f"- {len(diagnosis.quiet)} other rules found nothing"
    assert all(item.rule in notes for item in diagnosis.notes)
    whole = diagnosis._repr_html_()
    for item in (*diagnosis.notes, *diagnosis.quiet):
        assert item.rule in whole or np.isnan(item.number)
    assert whole.count("nothing found; ") > 5
    assert "nothing found; " not in repr(diagnosis)
    assert "<details" in diagnosis._repr_html_()


def test_names_are_no_markup():
    X = pd.DataFrame(grid(2), columns=["<b>x</b>", "y\x1b[31m"])
    lime = explained_frame(X)
    result = lime.diagnose()
    assert "<b>x</b>" not in result._repr_html_()
    assert "\x1b" not in repr(result)


def explained_frame(X: pd.DataFrame) -> LimeExplanation:
    def product_of(Z: pd.DataFrame) -> np.ndarray:
        return np.asarray(Z).prod(axis=1)

    return limits(product_of, X.iloc[:1], data=X, n_samples=200)
