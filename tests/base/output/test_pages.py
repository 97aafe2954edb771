"""Pages of figures: what a panel is called is no markup, and no formula."""

from __future__ import annotations

from functools import partial
from xml.etree import ElementTree

import matplotlib as mpl
import pandas as pd
from reproduction import paper

from papers.engine import reproduce_paper
from papers.engine.charts import draw_fronts
from papers.engine.figure import PaperFigure
from papers.engine.panels import Panel
from papers.properties.own_table import panel_of_table


FILE = """\
data: {grid: {low: -5, high: 5, per_dimension: 12, dimensions: 1}}
function: {name: power, degree: 3}
objective:
  gradient_matching: 1
  pairwise_robustness: {graph: {kind: gaussian, lengthscale: 1}}
sweep: {pairwise_robustness: [0.1, 1, 10]}
baselines:
  - {method: gradient}
  - {method: smoothgrad, scale: [0.5, 1, 2], n_samples: 50}
"""


def test_panels_are_named_as_text(tmp_path):
    file = tmp_path / "tiny.yaml"
    file.write_text(FILE)
    panel = Panel(column="<b>*x* $a$", row="$b$", problem=file, statements=())
    made = PaperFigure(
        title="A figure",
        about="What it shows.",
        panels=(panel,),
        draw=partial(draw_fronts, size=(2.0, 2.0)),
    )
    with mpl.rc_context({"svg.fonttype": "none"}):  # text, not outlines
        reproduce_paper(paper(made), ["tiny"], tmp_path, quiet=True)
    page = (tmp_path / "tiny.md").read_text("utf-8")
    assert r"### \<b>\*x\* \$a\$, \$b\$" in page
    drawn = ElementTree.fromstring((tmp_path / "tiny.svg").read_text("utf-8"))
    assert {"<b>*x* $a$", "$b$"} <= set(drawn.itertext())


def test_a_table_of_the_users_own_is_named_as_text(tmp_path):
    csv = tmp_path / "a\n\x1b[31m_b.csv"
    pd.DataFrame({"x": range(30), "y": [0, 1] * 15}).to_csv(csv, index=False)
    panel = panel_of_table(csv, "y", None)
    assert panel.column == r"a\n\x1b[31m b"
    assert panel.problem.schema.data.target == "y"
    assert list(tmp_path.iterdir()) == [csv]
