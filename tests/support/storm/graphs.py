"""Random graphs with their similarities, which the builders' sentences define."""

import itertools

import numpy as np

import propopt as po


def points(rng, n_points):
    """Inputs (N, d): spread, in clusters, doubled, on integers, or far from zero."""
    X = rng.normal(size=(n_points, int(rng.integers(1, 4))))
    match rng.integers(5):
        case 0:
            X += 50.0 * rng.integers(3, size=(n_points, 1))
        case 1:
            X = X[rng.integers(n_points, size=n_points)]
        case 2:
            X = np.round(2 * X)
        case 3:
            X += 1e4
    return X


def over_points(rng, X):
    """A graph of the points and its similarities (N, N)."""
    makers = [_gaussian, _cut, _threshold, _knn, _complete, _chain, _lattice]
    makers += [_groups, _signed, _stored, _grid, _scales]
    return makers[rng.integers(len(makers))](rng, X)


def over_features(rng, n_features):
    """A graph of the features and its similarities (D, D)."""
    match rng.integers(5):
        case 0:
            return po.graphs.chain_graph(n_features), path(n_features)
        case 1:
            return _complete(rng, np.zeros((n_features, 1)))
        case 2:
            return _groups(rng, np.zeros((n_features, 1)))
        case 3:
            height = max(h for h in (1, 2, 3) if n_features % h == 0)
            box = (height, n_features // height)
            return po.graphs.pixel_graph(*box), boxed(box)
    graph = po.graphs.correlation_graph(rng.normal(size=(20, n_features)))
    return graph, graph.similarities.toarray()


def path(n):
    return (np.abs(np.subtract.outer(range(n), range(n))) == 1).astype(float)


def boxed(box):
    """One where two places of a box differ by one step along one axis."""
    indices = np.array(list(itertools.product(*map(range, box))))
    steps = np.abs(indices[:, None] - indices[None]).sum(axis=2)
    return (steps == 1).astype(float)


def squared_distances(X):
    return ((X[:, None] - X[None]) ** 2).sum(axis=2)


def _kernel(X, lengthscale):
    S = np.exp(-squared_distances(X) / (2 * lengthscale**2))
    np.fill_diagonal(S, 0.0)
    return S


def _gaussian(rng, X):
    lengthscale = float(10.0 ** rng.uniform(-1, 1))
    return po.graphs.gaussian_graph(X, lengthscale), _kernel(X, lengthscale)


def _cut(rng, X):
    cutoff = float(rng.uniform(0.05, 0.9))
    S = _kernel(X, 1.0)
    return po.graphs.gaussian_graph(X, 1.0, cutoff=cutoff), np.where(
        cutoff <= S, S, 0.0
    )


def _threshold(rng, X):
    threshold = float(rng.choice([0.0, 0.3, 2.0, 1e4]))
    S = (squared_distances(X) <= threshold).astype(float)
    np.fill_diagonal(S, 0.0)
    return po.graphs.threshold_graph(X, threshold), S


def _knn(rng, X):
    # ties are the builder's to break
    if len(X) == 1:
        return _complete(rng, X)
    graph = po.graphs.knn_graph(X, int(rng.integers(1, min(6, len(X)))))
    return graph, graph.similarities.toarray()


def _complete(rng, X):
    del rng
    return po.graphs.complete_graph(len(X)), 1.0 - np.eye(len(X))


def _chain(rng, X):
    del rng
    return po.graphs.chain_graph(len(X)), path(len(X))


def _lattice(rng, X):
    n = len(X)
    sides = [h for h in range(1, n + 1) if n % h == 0]
    first = int(rng.choice(sides))
    second = int(rng.choice([h for h in sides if (n // first) % h == 0]))
    box = (first, second, n // first // second)
    return po.graphs.LatticeGraph(box), boxed(box)


def _groups(rng, X):
    labels = rng.integers(3, size=len(X))
    S = np.equal.outer(labels, labels).astype(float)
    np.fill_diagonal(S, 0.0)
    return po.graphs.group_graph(labels), S


def _signed(rng, X):
    """Off-diagonal entries of −L for a random L = CᵀC with zero row sums."""
    n = len(X)
    root = rng.normal(size=(n + 3, n))
    root -= root.mean(axis=1, keepdims=True)
    S = -(root.T @ root) / n
    S = (S + S.T) / 2
    np.fill_diagonal(S, 0.0)
    return po.graphs.graph_from_matrix(S), S


def _stored(rng, X):
    """Any symmetric matrix, over some decades, with isolated nodes."""
    n = len(X)
    S = 10.0 ** rng.uniform(-6, 6, size=(n, n)) * (rng.random((n, n)) < 0.3)
    S = np.triu(S, 1)
    return po.graphs.graph_from_matrix(S + S.T), S + S.T


def _scales(rng, X):
    """Two halves, not connected, of very different similarities; one heavy edge."""
    n = len(X)
    S = np.triu(10.0 ** rng.uniform(-1, 1, size=(n, n)), 1)
    half = n // 2
    S[:half, half:] = 0.0
    S[:half, :half] *= 1e-7
    S[half:, half:] *= 1e7
    if n > 1 and rng.random() < 0.3:
        S[0, 1] = 10.0 ** rng.uniform(8, 17)
    return po.graphs.graph_from_matrix(S + S.T), S + S.T


def _grid(rng, X):
    n = len(X)
    first = max(h for h in (1, 2, 3, 4) if n % h == 0)
    axes = [np.sort(rng.uniform(-3, 3, size)) for size in (first, n // first)]
    grid = np.array(list(itertools.product(*axes)))
    lengthscale = float(10.0 ** rng.uniform(-1.5, 0.5))
    return po.graphs.grid_gaussian_graph(grid, lengthscale), _kernel(grid, lengthscale)
