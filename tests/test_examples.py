"""The examples run, and warn of nothing; the gallery has short ones, with findings."""

import ast
import runpy
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import pytest


FOLDER = Path(__file__).parent.parent / "examples"
FILES = {str(path.relative_to(FOLDER)): path for path in sorted(FOLDER.rglob("*.py"))}
GALLERY = [name for name in FILES if not name.startswith("more/")]
NEEDS = {
    "interactions/shap_shows_zero.py": ("shap",),
    "lime/is_it_noise.py": ("lime",),
    "more/digits_cnn.py": ("torch",),
    "more/five_models.py": ("catboost", "lightgbm", "shap", "xgboost"),
    "more/log_to_mlflow.py": ("lightgbm", "mlflow"),
    "more/read_boosting_machines.py": ("interpret",),
}


@pytest.mark.parametrize("name", FILES)
def test_example_runs(name, capsys, monkeypatch, tmp_path):
    for package in NEEDS.get(name, ()):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)  # one writes a picture
    if name == "more/log_to_mlflow.py":  # its packages warn of themselves
        warnings.simplefilter("ignore")
    plt.close("all")
    runpy.run_path(str(FILES[name]), run_name="__main__")
    assert name not in GALLERY or plt.get_fignums()
    plt.close("all")
    printed = capsys.readouterr().out
    assert printed
    if name == "more/five_models.py":
        models_of_one_table_are_explained_alike(printed)
    if name == "more/log_to_mlflow.py":
        assert "the same attributions, loaded back: True" in printed
        assert "explanation.npz, page.html, table.csv" in printed


def test_what_a_title_of_the_gallery_says_is_asserted():
    assert len(GALLERY) >= 12
    for name in GALLERY:
        text = FILES[name].read_text("utf-8")
        tree = ast.parse(text)
        assert len(text.splitlines()) <= 80, name
        assert any(isinstance(node, ast.Assert) for node in ast.walk(tree)), name
        title, line = ast.get_docstring(tree).splitlines()[:2]
        assert line == "=" * len(title), name


def models_of_one_table_are_explained_alike(printed):
    assert "unused and constant columns are exactly zero: True" in printed
    pairs = printed.split("TreeSHAP\n")[1].splitlines()
    correlations = [list(map(float, pair.split()[-2:])) for pair in pairs]
    assert len(correlations) == 10
    assert all(ours >= theirs for ours, theirs in correlations)
