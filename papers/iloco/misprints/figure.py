"""Misprints, and what scores do not mean, as one figure."""

from __future__ import annotations

from functools import partial

from papers.engine.figure import PaperFigure
from papers.engine.studies import draw_charts
from papers.iloco.misprints.designs import designs_study
from papers.iloco.misprints.ideal import ideal_study
from papers.iloco.misprints.patches import patches_study, triples_study
from papers.iloco.propositions import propositions_study


def misprints_figure() -> PaperFigure:
    """What is printed, and what is true."""
    return PaperFigure(
        title="What is misprinted, and what scores do not mean",
        about="Scores of ideal learners are closed forms. Beside what is checked: "
        "H(X_{I,F}, Y_F) should have Y_I, I(l ∈ F) is l ∈ I, σ̂ lacks its square in the "
        "proof of appendix B, which says MP for the split; third moments need absolute "
        "values; assumption 13 of appendix D is 14; and u = ∅ is to be left out of "
        "E g_u = 0. Propositions 1 to 3 are checked by enumeration of independent "
        "features.",
        panels=(
            ideal_study(),
            patches_study(),
            triples_study(),
            designs_study(),
            propositions_study(),
        ),
        draw=partial(draw_charts, size=(6.0, 3.2)),
    )
