"""A table without random numbers, a sum of boxes on it, and its contrasts."""

import numpy as np

from propopt.structures.boxes.boxes import Boxes
from propopt.structures.boxes.sets import Sets


I = np.arange(60)  # noqa: E741  # the index i of the table's formulas
TABLE = np.stack(
    [
        (7 * I % 20) / 10,
        I % 8 == 0,
        I * I % 7,
        np.exp((I % 15) / 5),
        np.full(60, 3.0),
        np.where(I % 6 == 0, np.nan, I % 10),
    ],
    axis=1,
)

ROWS = np.array(
    [*TABLE[[1, 8, 14, 6]], [0.8, 1, 2, 50, 3, 5], [-3, 0, 4, 1, 3, np.nan]]
)

_CONTRASTS_0_TO_3 = [
    [-3.722112977324, -0.834510333604, 0.217035234968, 0.060229263663],
    [-0.001293248659, 0.296571958633, 0.003474021169, 0.000130505983],
    [-0.008620460926, 0.299639511738, 0.054310691021, 0.000000000129],
    [-3.492865691210, -1.631700538885, 0.315619213915, 0.037497407146],
    [-0.642388776990, -0.559918730745, 0.349412253917, 0.000000005635],
    [-0.000009176128, -1.700000000000, 0.001974080404, 0.266592556235],
]
_CONTRASTS_5 = [
    -0.002044815465, 0.128422233942, 0.035069647127,
    -0.127434407226, -0.047028110103, -0.011175492216,
]  # fmt: skip
CONTRASTS = np.column_stack([_CONTRASTS_0_TO_3, np.zeros(6), _CONTRASTS_5])

MEANS = np.array([
    -0.036070358329, -0.592238096037, -1.357833070561,
    1.565558340337, -0.695168536429, 2.413739431946,
])  # fmt: skip

SPREADS = np.array(
    [0.576628129734, 0.339934634240, 1.419996087632, 4.639263125449, 0, 2.870540018881]
)

CUTS = {0: [0.35, 0.75], 1: [0.5], 2: [1.0, 3.0], 3: [2.2], 5: [4.0, 6.5]}
"""The thresholds of the function in each column, none of them a value of the table."""


def function(points):
    """The function itself."""
    x0, x1, x2, x3, _, x5 = points.T
    return (
        0.1
        + 2.0 * (x0 <= 0.75) * (x1 <= 0.5)
        - 1.5 * (x0 > 0.35) * (x2 <= 3)
        + 0.8 * (x3 > 2.2) * (x2 > 1) * ((x5 <= 4) | np.isnan(x5))
        + 0.6 * (x5 > 6.5)
        + 0.3 * (x1 > 0.5)
    )


def boxes(cuts=CUTS):
    """The function as boxes, with its thresholds or others in the same gaps."""
    (a, b), (c,), (d, e), (f,), (g, h) = cuts.values()
    i = np.inf
    columns, missing = [0, 1, 0, 2, 3, 2, 5, 5, 1], np.arange(9) == 6
    low, high = [-i, -i, a, -i, f, d, -i, h, c], [b, c, i, e, i, i, g, i, i]
    paths = np.array([[0, 1, -1], [2, 3, -1], [4, 5, 6], [7, -1, -1], [8, -1, -1]])
    values = np.array([2.0, -1.5, 0.8, 0.6, 0.3])
    part = Sets.of_numbers(columns, low, high, missing)
    return Boxes(0.1, values, paths, (part,), 6).deduplicate()
