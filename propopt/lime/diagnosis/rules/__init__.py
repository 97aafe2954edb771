"""The rules of diagnosis, one file for each kind."""

from __future__ import annotations

from typing import Final

from propopt.lime.diagnosis.case import Case
from propopt.lime.diagnosis.rule import Rule
from propopt.lime.diagnosis.rules.alignment import ALIGNMENT
from propopt.lime.diagnosis.rules.cancellation import CANCELLATION, CONTRAST
from propopt.lime.diagnosis.rules.collapse import FIRST_ROW, RIDGE, SAMPLES
from propopt.lime.diagnosis.rules.edges import EDGE_PROXIMITY
from propopt.lime.diagnosis.rules.fragility import FRAGILITY
from propopt.lime.diagnosis.rules.gaussian import (
    FAR_FROM_MEAN,
    NONE_OUTSIDE,
    OPPOSITE_SIGN,
    SWITCHED_OFF,
)
from propopt.lime.diagnosis.rules.low_fidelity import LOCAL_GAP, R2
from propopt.lime.diagnosis.rules.mismatch import BIN_MEAN, CORRELATION, SUPPORT
from propopt.lime.diagnosis.rules.noise import NOISE, RANKING
from propopt.lime.diagnosis.rules.nonlocal_weights import NON_LOCAL
from propopt.lime.diagnosis.rules.quirks import (
    INTERCEPT,
    OUT_OF_RANGE,
    POINT_MASS,
    SHARES,
)


# What misleads most: weights of rules times what is at stake, from 0 to 1. A sign or a
# size that is read wrongly changes what is concluded about the model, however stable
# the number is: a sign against the profile 0.96 and more, so that it comes first;
# alignment, cancellation and switched off columns 0.95, fragile and
# turned signs 0.9, noise and collapsed weights 0.85, a surrogate that is not f 0.7 to
# 0.8. Ranks, and weights that are not local, say less of any one number: 0.4. Cautions
# that leave the reading of this row as it is, such as a near edge, and samples unlike
# the data, have less, so that they come after a misreading with half of the largest
# coefficient at stake; what only matters beside other tools has 0.2 and less. What has
# less than 0.25 in the end is a note. What depends on law, width and D alone, weights
# that are not local or collapse, is told once, of the worst row.
LIME_RULES: Final[tuple[Rule[Case], ...]] = (
    CONTRAST,
    ALIGNMENT,
    FRAGILITY,
    CANCELLATION,
    EDGE_PROXIMITY,
    NOISE,
    RANKING,
    RIDGE,
    FIRST_ROW,
    SAMPLES,
    NON_LOCAL,
    R2,
    LOCAL_GAP,
    BIN_MEAN,
    CORRELATION,
    SUPPORT,
    OUT_OF_RANGE,
    POINT_MASS,
    SHARES,
    INTERCEPT,
    SWITCHED_OFF,
    OPPOSITE_SIGN,
    NONE_OUTSIDE,
    FAR_FROM_MEAN,
)
"""All of them; of a law to which one does not apply it says so."""
