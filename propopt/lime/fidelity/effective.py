"""How many samples are left once they are weighted."""

from __future__ import annotations

import numpy as np

from propopt._typing import Points, Values
from propopt.lime.laws import LimeLaw


def effective_share(
    law: LimeLaw, points: Points, widths: Values | None = None
) -> Values:
    """The effective sample size over n, (E π)² / E π², in n situations.

    Weights are exp(−distance² / (2 ν²)), so π² is the weight of the width ν / √2, and
    the share is C(ν)² / C(ν / √2). Near 1 all samples count alike, however far from the
    row they are; near 0 few samples decide.

    Parameters
    ----------
    law : LimeLaw
        Of the samples and weights.
    points : array (n, D)
        Encoded rows.
    widths : array (n,), optional
        Kernel widths, one for each row; by default the law's.

    Returns
    -------
    array (n,)
    """
    own = law.widths(points, widths)
    log_squares = law.log_weights(points, law.squared_widths(own))
    return np.asarray(np.exp(2.0 * law.log_weights(points, own) - log_squares))
