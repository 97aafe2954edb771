"""Oracles of LIME: columns of all kinds, weighted fits, normal samples with weights."""

import numpy as np

from propopt.lime.laws.gaussian_law import NormalColumn
from propopt.structures.products.families import Pieces


def mixed_columns(rng):
    """Four columns of a table: skewed, tied, some missing, codes."""
    skewed = rng.lognormal(size=300)
    tied = rng.choice([0.0, 1.0, 2.0], p=[0.6, 0.1, 0.3], size=300)
    some = np.where(rng.random(300) < 0.2, np.nan, rng.normal(size=300))
    codes = rng.choice([0.0, 1.0, 5.0], p=[0.5, 0.3, 0.2], size=300)
    return skewed, tied, some, codes


def least_squares(bits, weights, values, ridge=0.0, retained=None):
    """β with the intercept first, which has no penalty; 0 of columns left out."""
    used = np.ones(1 + bits.shape[1], bool)
    used[1:] = True if retained is None else retained
    Z = np.column_stack([np.ones(len(bits)), bits])[:, used]
    penalty = ridge * np.eye(Z.shape[1])
    penalty[0, 0] = 0.0
    beta = np.zeros(len(used))
    beta[used] = np.linalg.solve(
        (Z.T * weights) @ Z + penalty, Z.T @ (weights * values)
    )
    return beta


def weighted_fit(bits, weights, values):
    """β with the intercept first, and its sandwich standard errors."""
    Z = np.column_stack([np.ones(len(bits)), bits])
    beta = least_squares(bits, weights, values)
    scores = Z * (weights * (values - Z @ beta))[:, None]
    inverse = np.linalg.inv((Z.T * weights) @ Z)
    covariance = inverse @ (scores.T @ scores) @ inverse
    return beta, np.sqrt(np.diagonal(covariance))


def with_intercept(limits, n=0):
    """β of one situation, the intercept first."""
    return np.append(limits.intercept[n], limits.coefficients[n])


def plain_lime(law, function, row, n_samples, rng, ridge=0.0, first_row=False):
    """(b_0, ..., b_D) of one run of LIME, by its normal equations."""
    draws = law.draw(row, n_samples, rng, first_row=first_row)
    values = function(draws.samples[0])
    return least_squares(draws.bits[0], draws.weights[0], values, ridge)


def plain_runs(law, function, row, n_samples, n_runs, **settings):
    """Runs with the seeds 0, 1, ..., (R, 1 + D)."""
    seeds = map(np.random.default_rng, range(n_runs))
    run = [plain_lime(law, function, row, n_samples, rng, **settings) for rng in seeds]
    return np.array(run)


def weighted_grid(law, point, nodes=60):
    """Nodes of a product rule for E π h, their bits, and weights that have π in them.

    Each bin has its own nodes, so that bits do not jump between them.
    """
    t, w = np.polynomial.legendre.leggauss(nodes)
    axes = []
    for column, x in zip(law.columns, point, strict=True):
        assert isinstance(column, NormalColumn)
        width = law.kernel_width * column.unit
        ends = np.clip(column.ends, *_reach(column, x, width))
        own = np.searchsorted(column.edges, x, side="right")
        values = ends[:-1, None] + 0.5 * np.diff(ends)[:, None] * (t + 1.0)
        logs = -0.5 * ((values - column.mean) / column.scale) ** 2
        logs -= 0.5 * ((values - x) / width) ** 2
        scale = column.scale * np.sqrt(2.0 * np.pi)
        weights = 0.5 * np.diff(ends)[:, None] * w * np.exp(logs) / scale
        bits = np.repeat(np.arange(len(ends) - 1) == own, nodes)
        axes.append((values.ravel(), bits.astype(float), weights.ravel()))
    samples, bits, weights = product_rule(axes)
    return samples, bits, weights.prod(axis=1)


def product_rule(axes):
    """Each part of each column at all nodes, (nodes, D)."""
    return tuple(
        np.stack([g.ravel() for g in np.meshgrid(*part, indexing="ij")], axis=1)
        for part in zip(*axes, strict=True)
    )


def _reach(column, x, width):
    """Where the weighted density is more than e^{-50} of its top."""
    share = 1.0 / (1.0 + (column.scale / width) ** 2)
    mean, sd = share * column.mean + (1.0 - share) * x, np.sqrt(share) * column.scale
    return mean - 10.0 * sd, mean + 10.0 * sd


def pieces_of(normals):
    """Truncated normals (B,) as the pieces of bins."""
    none = np.zeros(normals.shape[0], dtype=bool)
    return Pieces(none, normals.mean, normals.sd, normals.low, normals.high)
