"""The default program of contributions, by brute force and dense linear algebra."""

import math

import numpy as np


def partial_dependences(f, X, B):
    """Centred: the mean of f with the value of each column, less the mean of f."""
    G = np.empty(X.shape)
    for n, j in np.ndindex(X.shape):
        rows = B.copy()
        rows[:, j] = X[n, j]
        G[n, j] = f(rows).mean() - f(B).mean()
    return G


def winsorised_places(X, data):
    """X in standard deviations of columns of data, tails of .5 % cut."""
    tail = math.ceil(0.005 * (len(data) - 1) - 0.5)
    scales = []
    for values in np.sort(data.T, axis=1):
        inside = values.clip(values[tail], values[len(values) - 1 - tail])
        spread = inside.std() if inside.std() > 0.0 else values.std()
        scales.append(spread)
    return X / np.where(np.array(scales) > 0.0, scales, np.inf)


def nearest_of(apart, k, reach=None):
    """Similarity to each of rows at distances: ties share the last places."""
    there = np.flatnonzero(apart > 0.0)
    last = np.sort(apart[there])[:k][-1]
    inside = there[apart[there] < last * (1 - 1e-9)]
    tied = there[np.abs(apart[there] / last - 1) <= 1e-9]
    share = np.zeros(len(apart))
    share[inside], share[tied] = 1.0, min((k - len(inside)) / len(tied), 1.0)
    if reach is None:
        return share, last
    falls = np.ones(len(apart))
    falls[there] = np.minimum(1.0, (reach / apart[there]) ** 4)
    return share * falls, last


def reach_of(places, k):
    """The 90 % quantile of distances to the k-th neighbour."""
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    lasts = [nearest_of(row, k)[1] for row in apart]
    return np.quantile(lasts, 0.9)


def similarities_of(places, k=8):
    """S (N, N): the union of neighbours, falling, of mean degree k before it falls."""
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    reach = reach_of(places, k)
    plain = np.array([nearest_of(row, k)[0] for row in apart])
    falling = np.array([nearest_of(row, k, reach)[0] for row in apart])
    degree = np.maximum(plain, plain.T).sum(axis=1).mean()
    return np.maximum(falling, falling.T) * (k / degree)


def joint_optimum(phi, G, omega, S, b, totals):
    """The stationary point of the program, by one linear system."""
    N = len(phi)
    L = np.diag(S.sum(axis=1)) - S
    moves = np.flatnonzero(omega > 0.0)
    n = N * len(moves)
    K, right = np.zeros((n + N, n + N)), np.zeros(n + N)
    for position, d in enumerate(moves):
        own = slice(position * N, (position + 1) * N)
        # each unordered pair counts twice: half the gradient
        K[own, own] = (np.eye(N) + 2.0 * b * L) / omega[d]
        K[own, n:] = K[n:, own] = np.eye(N)
        right[own] = (phi[:, d] + 2.0 * b * L @ G[:, d]) / omega[d]
    rest = np.delete(phi, moves, axis=1).sum(axis=1)
    right[n:] = totals - rest
    W = phi.copy()
    W[:, moves] = np.linalg.solve(K, right)[:n].reshape(len(moves), N).T
    return W


def row_optimum(phi, g, omega, s, left, b, total):
    """One row beside fixed ones: w − g of these, (n, D), and similarities (n,)."""
    sigma = s.sum()
    u = phi.copy()
    moves = omega > 0.0
    if sigma > 0.0:
        c = 2.0 * b * sigma
        m = g + s @ left / sigma
        u = np.where(moves, (phi + c * m) / (1.0 + c), phi)
    return u + omega * (total - u.sum()) / omega.sum()
