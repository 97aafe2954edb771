"""The figures by name: a new one is a file here, and an entry."""

from pathlib import Path

from papers.engine.paper import Paper, TableOption
from papers.properties.appendix import appendix_figure
from papers.properties.errors import figure_of_errors
from papers.properties.fig1 import figure_1
from papers.properties.fig2 import figure_2
from papers.properties.fig3 import figure_3
from papers.properties.fig4 import figure_4
from papers.properties.fig5 import figure_5
from papers.properties.fig6 import figure_6
from papers.properties.own_table import panel_of_table
from papers.properties.setups import PROBLEM_FILES
from papers.properties.tables import figure_of_tables
from papers.properties.trends import figure_of_trends


PROPERTIES = Paper(
    name="properties",
    title="Tadesse, Hüyük, Pan and Doshi-Velez, Directly Optimizing Explanations for "
    "Desired Properties (arXiv 2410.23880)",
    figures={
        "fig1": figure_1,
        "fig2": figure_2,
        "fig3": figure_3,
        "fig4": figure_4,
        "fig5": figure_5,
        "fig6": figure_6,
        "appendix": appendix_figure,
        "tables": figure_of_tables,
        "trends": figure_of_trends,
        "errors": figure_of_errors,
    },
    problems=PROBLEM_FILES,
    recorded=Path(__file__).with_name("recorded.csv"),
    said=Path(__file__).with_name("sentences.csv"),
    values=Path(__file__).with_name("values.csv"),
    own_table=TableOption(figure="tables", panel=panel_of_table),
)
