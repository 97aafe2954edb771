"""Two chain graphs, weights 1, ½ and ¼, and what is known of that optimum to 1e-12."""

import numpy as np

import propopt as po


G = np.array([[1, -0.5, 0.25], [0.5, 0.75, -1], [0, 2, -0.5], [-1, 0.25, 0.5]])
POINTS, FEATURES = po.graphs.chain_graph(4), po.graphs.chain_graph(3)
A, B, C = 1.0, 0.5, 0.25


def objective(b: float = B, c: float = C) -> po.losses.Objective:
    """a‖W − G‖² + 2b tr(WᵀLW) + 2c tr(WMWᵀ) over the chains."""
    return (
        A * po.GradientMatching(G)
        + b * po.PairwiseRobustness(POINTS)
        + c * po.Smoothness(FEATURES)
    )


OPTIMUM = 5.530569322245734
INVERSE_DIAGONAL = np.array(
    [
        [0.486193004135, 0.410509531057, 0.486193004135],
        [0.380661048620, 0.326360803073, 0.380661048620],
        [0.380661048620, 0.326360803073, 0.380661048620],
        [0.486193004135, 0.410509531057, 0.486193004135],
    ]
)
SIGN_PRICES = np.array(
    [
        [0.122037580093, 0.001785142121, 0.000123944871],
        [0.076105272845, 0.086633863223, 0.026498416933],
        [0.008078182422, 0.260757130358, 0.000863811760],
        [0.030603836428, 0.040935186549, 0.022125483603],
    ]
)
"""Over the optimum."""
KEPT, ROUGHNESS_REMOVED, SMOOTHNESS_REMOVED = (
    0.539930947124,
    0.923726071123,
    0.895923109741,
)
