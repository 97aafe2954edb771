"""Tables 1 and A1, as they are printed."""

from __future__ import annotations

from typing import Final


FAITH_SHAP_TOP: Final = (
    ("Med Price", "Low Maint"),
    ("4d", "5d+"),
    ("4p", "5p+"),
    ("Sm Trunk", "Med Safety"),
    ("5d+", "Med Trunk"),
    ("3d", "4d"),
    ("Hi Price", "Hi Maint"),
    ("4p", "Low Safety"),
    ("Med Trunk", "Sm Trunk"),
    ("Hi Price", "3d"),
)
ILOCO_TOP: Final = (
    ("4p", "5p+"),
    ("Sm Trunk", "Med Safety"),
    ("Med Price", "Low Maint"),
    ("4d", "5d+"),
    ("Hi Price", "Hi Maint"),
    ("5d+", "Med Trunk"),
    ("Med Trunk", "Sm Trunk"),
    ("4p", "Low Safety"),
    ("3d", "4d"),
    ("Hi Price", "3d"),
)
"""Table A1: the ten pairs with the largest scores on Car Evaluation, in order."""

SIZES: Final = ((250, 10), (500, 20), (1000, 100), (10_000, 500))
"""N and M of table 1."""

SECONDS: Final = {
    "H-statistic": (285.4, 97201.2, float("inf"), float("inf")),
    "Faith-Shap": (70.2, 72801.3, float("nan"), float("nan")),
    "Iterative Forest": (14.1, 17.8, 20.3, 76.8),
    "iLOCO-Split (p)": (16.8, 144.7, 738.3, 5481.2),
    "iLOCO-MP (p)": (24.3, 27.2, 38.7, 193.5),
}
"""Table 1: seconds on 24 cores, (p) with 11 processes; more than six days is ∞."""
