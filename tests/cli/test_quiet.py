"""With ``-q`` nothing is printed but warnings, however long work takes."""

from __future__ import annotations

import pytest

from propopt.base.terminal import is_silent, silent
from propopt.cli import main
from propopt.functions import cost, models
from propopt.functions.cost import Cost


FILE = """\
data: {sklearn: iris, explain: 20}
model: {import: 'smooth_model:model'}
"""
JOBS = {
    "sweep": "objective: {gradient_matching: 1, pairwise_robustness: 1}\n"
    "baselines: [{method: lime, scale: [1]}]\n",
    "explain": "explain: {}\n",
}


@pytest.mark.parametrize("job", JOBS)
def test_the_cost_of_a_long_test_for_jumps_is_said_but_not_quietly(
    tmp_path, out, capsys, monkeypatch, job
):
    monkeypatch.setattr(cost, "WORTH_SAYING", 0.0)
    monkeypatch.setattr(models, "WORTH_TIMING", 0.0)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "smooth_model.py").write_text(
        "import numpy as np\n"
        "def model(table):\n"
        "    return np.tanh(np.asarray(table, float).sum(axis=1) - 10.0)\n"
    )
    path = tmp_path / "smooth.yaml"
    path.write_text(FILE + JOBS[job])
    arguments = [job, "--allow-code", "-o", str(out), str(path)]
    assert main(arguments) == 0
    assert "jumps (if so, about " in capsys.readouterr().err
    assert main([*arguments, "-q"]) == 0
    assert capsys.readouterr() == ("", "")


def test_silence_ends_and_is_no_answer_to_what_is_asked_for(capsys):
    long = Cost(10**9, 1.0)
    with silent(False):
        assert not is_silent()
    with silent():
        long.announce("work")
        with silent(False):
            long.announce("work")
        assert capsys.readouterr().err == ""
        long.announce("work", wanted=True)
    assert "work: " in capsys.readouterr().err
    long.announce("work")
    assert "work: " in capsys.readouterr().err
