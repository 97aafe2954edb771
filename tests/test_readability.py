"""The script that measures how easily texts are read."""

import importlib.util
from pathlib import Path

import pytest


SCRIPT = Path(__file__).parent.parent / "tools" / "readability.py"
if not SCRIPT.is_file():
    pytest.skip("needs a checkout", allow_module_level=True)
SPEC = importlib.util.spec_from_file_location("readability", SCRIPT)
readability = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(readability)

LONG = "The gap " + "of one explanation and " * 8 + "another."
COUNTED = {
    "inverted": ("Of a black box the call draws samples.", "The call draws samples."),
    "banned": ("The model is told what came.", "The model gets the input."),
    "passive": ("Similarity is measured in metres.", "We measure similarity."),
    "long": (LONG, "The gap is short."),
}


@pytest.mark.parametrize("kind", COUNTED)
def test_a_figure_counts_what_it_is_for_and_nothing_else(kind):
    counted, plain = COUNTED[kind]
    for sentence, seen in ((counted, True), (plain, False)):
        figures = readability.Text("one", [("here", sentence)]).figures()
        assert bool(figures[kind]) == seen
    assert readability.Text("none").figures()["mean"] == 0
