"""The examples run, and warn of nothing."""

import runpy
import warnings
from pathlib import Path

import pytest


FOLDER = Path(__file__).parent.parent / "examples"
NEEDS = {
    "digits_cnn.py": ("torch",),
    "five_models.py": ("catboost", "lightgbm", "shap", "xgboost"),
    "log_to_mlflow.py": ("lightgbm", "mlflow"),
    "what_lime_tends_to.py": ("lime",),
}


@pytest.mark.parametrize("name", sorted(p.name for p in FOLDER.glob("*.py")))
def test_example_runs(name, capsys, monkeypatch, tmp_path):
    for package in NEEDS.get(name, ()):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)  # some write a picture
    if name == "log_to_mlflow.py":  # its packages warn of themselves
        warnings.simplefilter("ignore")
    runpy.run_path(str(FOLDER / name), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed
    if name == "five_models.py":
        models_of_one_table_are_explained_alike(printed)
    if name == "log_to_mlflow.py":
        assert "the same attributions, loaded back: True" in printed
        assert "explanation.npz, page.html, table.csv" in printed


def models_of_one_table_are_explained_alike(printed):
    assert "unused and constant columns are exactly zero: True" in printed
    pairs = printed.split("TreeSHAP\n")[1].splitlines()
    correlations = [list(map(float, pair.split()[-2:])) for pair in pairs]
    assert len(correlations) == 10
    assert all(ours >= theirs for ours, theirs in correlations)
