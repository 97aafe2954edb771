"""No gap is shown without the error of the target beside it, wherever it is shown."""

import json
import re

import numpy as np
from command_line import write

import propopt as po
from propopt.cli import main
from propopt.losses.faithfulness import Estimate


EXPLAINED = """\
data: {sklearn: iris, explain: 30}
model: {kind: logistic, target_class: setosa}
explain: {kind: slopes, scale: none}
"""


def test_the_table_says_errors_as_numbers():
    blocks = np.random.default_rng(0).normal(1.0, 0.1, (10, 9, 2))
    drawn = Estimate.of_blocks(blocks, source="noise", n_draws=200)
    exact = Estimate(values=drawn.values, source="exact", exact=True)
    robust = po.PairwiseRobustness(po.graphs.chain_graph(9))
    errors = []
    for target in (drawn, exact, drawn.values):
        objective = po.GradientMatching(target) + robust
        curve = po.sweep(objective, baselines=[drawn.values])
        errors.append(curve.to_frame()["sampling_excess"].tolist())
    assert errors[0][0] > 0.0
    assert errors[1][0] == 0.0
    assert np.isnan([errors[2][0], *(baseline for _, baseline in errors)]).all()


def test_what_is_not_known_is_null_in_json_and_a_word(tmp_path, capsys, monkeypatch):
    code = "import numpy as np\ndef curve(X):\n    return np.tanh(X).sum(axis=1)\n"
    (tmp_path / "steady.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    model = "{import: 'steady:curve'}"
    file = EXPLAINED.replace("{kind: logistic, target_class: setosa}", model)
    path = write(tmp_path, "look", file)
    assert main(["explain", path, "-o", str(tmp_path), "--allow-code"]) == 0
    picked = json.loads((tmp_path / "look.json").read_text())["picked"]
    error = picked["sampling_error"]
    assert re.search(r"sampling error +unknown", capsys.readouterr().out)
    assert "central differences" in error["source"]
    assert all(error[name] is None for name in ("excess", "interval", "rms"))
