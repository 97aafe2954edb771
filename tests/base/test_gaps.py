"""No gap is shown without the error of the target beside it, wherever it is shown."""

import json
import math
import re

import numpy as np
import pytest
import reproduction
from command_line import FILE, write

import propopt as po
from papers.engine.statements import certified
from propopt.cli import main
from propopt.losses.faithfulness import Estimate
from propopt.proofs.optimum import target_error_cell, targets_in_words


BLOCKS = np.random.default_rng(0).normal(1.0, 0.1, (10, 9, 2))
DRAWN = Estimate.of_blocks(BLOCKS, source="noise", n_draws=200)
TARGETS = {
    "drawn": DRAWN,
    "exact": Estimate(
        values=DRAWN.values, source="exact (computed from the model)", exact=True
    ),
    "differences": Estimate(values=DRAWN.values, source="central differences"),
    "numbers": DRAWN.values,
}
ROBUST = po.PairwiseRobustness(po.graphs.chain_graph(9))
EXPLAINED = """\
data: {sklearn: iris, explain: 30}
model: {kind: logistic, target_class: setosa}
explain: {kind: slopes, scale: none}
"""


def curve_of(target):
    objective = po.GradientMatching(target) + ROBUST
    return po.sweep(objective, {"pairwise_robustness": [0.1, 1.0]}, [DRAWN.values])


def test_the_table_says_errors_as_numbers_and_in_words():
    curves = {name: curve_of(target) for name, target in TARGETS.items()}
    own, _, baseline = curves["drawn"].to_frame().iloc
    assert own["target_error"] > 0.0
    assert own["target"].startswith("target error ")
    assert math.isnan(baseline["target_error"])
    assert curves["exact"].to_frame()["target_error"].tolist()[:2] == [0, 0]
    assert curves["numbers"].to_frame()["target_error"].isna().all()
    cells = [target_error_cell(curve.optimized[0]) for curve in curves.values()]
    assert float(cells[0].removesuffix(" %")) > 0.0
    assert cells[1:] == ["exact", "unknown", "unknown"]
    points = [*curves["drawn"].optimized, *curves["exact"].optimized]  # said once
    drawn, exact = targets_in_words(points)
    assert re.fullmatch(
        r"target error [\d.]+ to [\d.]+ % of its size \(noise, 200 draws\)", drawn
    )
    assert exact == "target exact (computed from the model)"
    assert targets_in_words([]) == []
    note = certified(reproduction.solved()).note  # of pages that reproduce figures
    assert note.endswith("optima; target exact")


@pytest.mark.parametrize(("job", "text"), [("sweep", FILE), ("explain", EXPLAINED)])
def test_a_command_prints_and_stores_both(job, text, tmp_path, capsys):
    assert main([job, write(tmp_path, "look", text), "-o", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    picked = json.loads((tmp_path / "look.json").read_text())["picked"]
    assert "target exact" in printed
    assert "gap" in picked
    assert picked["target_error"] == {
        "relative": 0.0,
        "interval": [0.0, 0.0],
        "rms": 0.0,
        "share": 0.0,
        "in_words": "target exact",
    }


def test_what_is_not_known_is_null_in_json_and_a_word(tmp_path, capsys, monkeypatch):
    code = "import numpy as np\ndef curve(X):\n    return np.tanh(X).sum(axis=1)\n"
    (tmp_path / "steady.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    model = "{import: 'steady:curve'}"
    file = EXPLAINED.replace("{kind: logistic, target_class: setosa}", model)
    path = write(tmp_path, "look", file)
    assert main(["explain", path, "-o", str(tmp_path), "--allow-code"]) == 0
    error = json.loads((tmp_path / "look.json").read_text())["picked"]["target_error"]
    line = error["in_words"]
    assert line.partition(",")[0] in capsys.readouterr().out
    assert "central differences" in line
    assert all(error[name] is None for name in ("relative", "interval", "rms"))
