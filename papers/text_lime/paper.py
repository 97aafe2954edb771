"""The figures by name."""

from pathlib import Path

from papers.engine.paper import Paper
from papers.text_lime import (
    bandwidth,
    bounds,
    constants,
    forests,
    linear,
    misprints,
    package,
    rule,
    sampling,
    trees,
    weights,
)


TEXT_LIME = Paper(
    name="text-lime",
    title="Mardaoui and Garreau, An Analysis of LIME for Text Data (AISTATS 2021)",
    figures={
        "fig1": forests.highlighted_figure,
        "fig2": sampling.sampling_figure,
        "fig3": weights.psi_figure,
        "fig4": bandwidth.widths_figure,
        "fig5": forests.forests_figure,
        "fig6": trees.tree_figure,
        "fig7": linear.linear_words_figure,
        "fig9": constants.constants_figure,
        "fig12": trees.bandwidths_figure,
        "fig13": trees.samples_figure,
        "fig14": trees.large_tree_figure,
        "fig15": linear.linear_bandwidths_figure,
        "fig16": linear.linear_samples_figure,
        "fig17": linear.larger_text_figure,
        "rule": rule.rule_figure,
        "bounds": bounds.bounds_figure,
        "errors": misprints.wrong_formulas_figure,
        "package": package.package_figure,
    },
    recorded=Path(__file__).with_name("recorded.csv"),
    values=Path(__file__).with_name("values.csv"),
    said=Path(__file__).with_name("sentences.csv"),
)
