"""Reports: chapters of every result on one page, escaped, with what each rests on."""

import re

import numpy as np
import pandas as pd
import pytest

import propopt as po
from propopt.base.errors import InvalidInput, MissingExtra
from propopt.results.report.chapters import KINDS, Chapter, Statement
from propopt.results.report.page import page_of


HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e&\n"


@pytest.fixture
def best():
    table = pd.DataFrame([[1.0, -2.0], [0.5, 3.0]], columns=[HOSTILE, "b"])
    robust = po.PairwiseRobustness(po.chain_graph(2))
    return po.solve(po.GradientMatching(table) + 0.25 * robust)


def test_a_page_escapes_names_and_asks_for_nothing(best, tmp_path):
    best.to_html(tmp_path / "best.html")
    page = (tmp_path / "best.html").read_text(encoding="utf-8")
    assert "&lt;script&gt;alert(1)" in page
    assert "alert(1)</script>" not in page
    assert "\u202e" not in page
    assert not re.search(r"""(src|href)=["']?(https?:|//)""", page)


def test_every_sentence_stands_with_what_it_rests_on():
    said = [Statement(f"This is {kind}.", kind) for kind in KINDS]
    page = page_of([[Chapter(title="All", statements=said)]])
    end = page[page.index("What is proved") :]
    for kind in KINDS:
        assert f'>{kind}</span> <span dir="auto">This is {kind}.<' in end
    with pytest.raises(InvalidInput, match="kind: expected one of"):
        Statement("So it is.", "certain")


def test_jinja_is_asked_for_by_its_extra(best, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    with pytest.raises(MissingExtra, match=r'pip install "propopt\[report\]"'):
        best.to_html(tmp_path / "best.html")
    assert list(tmp_path.iterdir()) == []
    assert np.isfinite(best.gap)
