"""The rules of diagnosis, one file for each kind."""

from __future__ import annotations

from typing import Final

from propopt.lime.diagnosis.rule import Rule
from propopt.lime.diagnosis.rules.alignment import ALIGNMENT
from propopt.lime.diagnosis.rules.cancellation import CANCELLATION
from propopt.lime.diagnosis.rules.collapse import FIRST_ROW, RIDGE, SAMPLES
from propopt.lime.diagnosis.rules.edges import EDGE_PROXIMITY
from propopt.lime.diagnosis.rules.fragility import FRAGILITY
from propopt.lime.diagnosis.rules.gaussian import (
    CRITICAL_WIDTH,
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
    MERGED,
    OUT_OF_RANGE,
    POINT_MASS,
    SHARES,
)


LIME_RULES: Final[tuple[Rule, ...]] = (
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
    MERGED,
    INTERCEPT,
    SWITCHED_OFF,
    CRITICAL_WIDTH,
    OPPOSITE_SIGN,
    NONE_OUTSIDE,
    FAR_FROM_MEAN,
)
"""All of them; of a law to which one does not apply it says so."""
