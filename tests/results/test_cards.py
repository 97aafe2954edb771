"""Cards: what was found first, then the proof; how it was made is folded."""

import re

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import propopt as po
from propopt.base.document import cell_text
from propopt.base.text import value_in_words


# ---- values of cells: one text by each renderer
CELLS = {  # the value of the first row, and its text for readers
    "owner": ([False, True], "False"),
    "amount": ([33424, 33425], "33424"),
    "income": ([33424.0, 0.5], "33424"),
    "change": ([-0.97162, 0.1], "−0.9716"),
    "debt": ([-1234567, -3], "−1234567"),
    "score": ([np.nan, 2.0], "missing"),
    "kind": (["a-1", "b"], "a-1"),
    "none": ([None, "x"], "missing"),
    "level": (pd.Categorical([3, 4]), "3"),
}
ROWS = pd.DataFrame({name: cells for name, (cells, _) in CELLS.items()})


def of_cells(table: pd.DataFrame) -> np.ndarray:
    """A model that uses each column, so that each has a bar."""
    others = (table[name] == ROWS[name].iloc[1] for name in table)
    return 2.5 + sum(
        (-1) ** k * k * np.asarray(other, float) for k, other in enumerate(others, 1)
    )


@pytest.mark.filterwarnings("ignore::propopt.base.errors.JumpsWarning")
def test_the_value_of_a_cell_has_one_text(tmp_path):
    best = po.explain(of_cells, ROWS.iloc[:1], data=ROWS)
    card, notebook = best.document().blocks[0].frame, best._repr_html_()
    page = tmp_path / "page.html"
    best.to_html(page)
    axes = best.plot(ax=Figure().subplots())
    plot = "\n".join(label.get_text() for label in axes.get_yticklabels())
    sides = [best.reasons(k=9, towards=side) for side in ("higher", "lower")]
    listed = [side.document().blocks[0].frame["value"] for side in sides]
    letter = "\n".join(f"{x} = {value}" for each in listed for x, value in each.items())
    for name, (_, text) in CELLS.items():
        cell = f"{name} = {text}"
        assert card["value"][name] == text
        assert f">{text}<" in notebook
        assert f">{text}<" in page.read_text()
        for shown in (plot, letter):
            assert re.search(rf"{re.escape(cell)}(?![\w.])", shown), cell
        assert best.value_of(0, list(CELLS).index(name)) == text.replace("−", "-")
    # readers have one sign, and files the other
    for shown in (str(best), letter, plot, notebook.partition("<table")[0]):
        assert not re.search(r"(?<![\w_])-\d", shown)
    for write in (best.to_csv, best.to_json, sides[1].to_csv):
        write(tmp_path / "file")
        given = (tmp_path / "file").read_text()
        assert re.search(r"-\d", given)
    reasons = pd.read_csv(tmp_path / "file").set_index("feature")["value"]
    assert reasons["change"] == "-0.9716"


def test_whole_numbers_keep_their_digits():
    cells = [33424.0, 33424, np.int64(-1234567890123), 2.0**53, 0.123456, 1e-7, 1e20]
    texts = ["33424", "33424", "−1234567890123", "9007199254740992", "0.123"]
    assert [*map(cell_text, cells)] == [*texts, "1e−07", "1e+20"]
    assert cell_text(pd.Timestamp("2024-01-05")) == "2024-01-05"
    assert value_in_words(pd.NaT) == value_in_words(pd.NA) == "missing"
