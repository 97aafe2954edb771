"""Random gradients (N, D): of any scale, offset, zero, constant, and of any storage."""

import numpy as np


def gradients(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """A target of gradient matching; its scale runs over twelve decades."""
    G = rng.normal(size=shape)
    match rng.integers(8):
        case 0:
            G[:] = 0.0
        case 1:
            G[:] = G[:1]
        case 2:
            G += 10.0 ** rng.uniform(0, 6)
        case 3:
            G += rng.normal(size=shape[1]) * 10.0 ** rng.uniform(0, 6)
        case 4:
            G[:, rng.integers(shape[1])] *= 1e4
        case 5:
            G = np.round(3 * G)
    return stored(rng, G * 10.0 ** rng.uniform(-6, 6))


def stored(rng: np.random.Generator, G: np.ndarray) -> np.ndarray:
    """The same numbers, or nearly, as people keep them."""
    match rng.integers(6):
        case 0:
            return np.asfortranarray(G)
        case 1:
            return G.astype(np.float32)
        case 2 if np.abs(G).max() < 2**62:
            return np.round(G).astype(np.int64)
        case 3:
            return np.repeat(G, 2, axis=0)[::2]
    return G
