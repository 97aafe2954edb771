"""Functions of the paper, and what their gradients are under noise of width δ."""

import numpy as np

from propopt.functions import PAPER_FUNCTIONS, Power, Sine


LIMITS = {
    "x³": (Power(3), lambda x, d: 3 * x**2 + 3 * d**2),
    "sin x": (Sine(), lambda x, d: np.cos(x) * np.exp(-(d**2) / 2)),
    "eˣ": (PAPER_FUNCTIONS["exponential"](), lambda x, d: np.exp(x + d**2 / 2)),
    "x²/10 + sin 3x": (
        PAPER_FUNCTIONS["quadratic_plus_sine"](),
        lambda x, d: x / 5 + 3 * np.cos(3 * x) * np.exp(-9 * d**2 / 2),
    ),
    "x + sin 3x": (
        PAPER_FUNCTIONS["linear_plus_sine"](),
        lambda x, d: 1 + 3 * np.cos(3 * x) * np.exp(-9 * d**2 / 2),
    ),
}
"""f, and E ∇f(x + δ ε) of x and δ."""
