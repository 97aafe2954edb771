"""What the paper states of its baselines: they are not optimal."""

from __future__ import annotations

from typing import Final

from papers.engine.findings import Claim
from papers.engine.panels import Solved
from papers.engine.statements import named


_BASELINES: Final = ("smoothgrad", "lime")
_LEAST: Final = 1e-3
"""Of the faithfulness loss; a tenth of the width to which the front is enclosed."""


def baselines_are_not_optimal(solved: Solved, *, difference: str = "") -> Claim:
    """Each SmoothGrad and LIME gives away some of its faithfulness."""
    pairs = zip(solved.enclosures, solved.trade_offs.baselines, strict=True)
    shares = [
        (enclosure.saved, one)
        for enclosure, one in pairs
        if enclosure.cost > 0 and one.method in _BASELINES
    ]
    saved, closest = min(shares, key=lambda pair: pair[0])
    return Claim(
        statement="SmoothGrad and LIME are not optimal: least share of its "
        "faithfulness loss that the optimum at equal other losses saves",
        value=saved,
        sense=">=",
        limit=_LEAST,
        note=named(closest),
        difference=difference,
    )
