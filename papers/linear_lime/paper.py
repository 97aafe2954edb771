"""The figures by name."""

from pathlib import Path

from papers.engine.paper import Paper
from papers.linear_lime import columns, errors, normals, tables


LINEAR_LIME = Paper(
    name="linear-lime",
    title="Garreau and von Luxburg, Explaining the Explainer: A First Theoretical "
    "Analysis of LIME (AISTATS 2020)",
    figures={
        "fig2": columns.coordinate_figure,
        "fig3": columns.quartiles_figure,
        "fig4": normals.recovered_figure,
        "fig5": tables.linear_models_figure,
        "fig6": tables.kernel_figure,
        "fig7": normals.switched_off_figure,
        "fig8": normals.local_error_figure,
        "errors": errors.false_statements_figure,
    },
    recorded=Path(__file__).with_name("recorded.csv"),
    values=Path(__file__).with_name("values.csv"),
    said=Path(__file__).with_name("sentences.csv"),
)
