"""Explanations of later inputs, beside other Gaussian processes; and of images.

Peers know no smoothness of features; scikit-learn is given rotated features, for which
smoothness is noise of their own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import propopt as po
from benchmarks.timing import OURS, Method, Row, Timed, race
from propopt.inductive import GaussianProcessExplainer


N_FEATURES, N_NEW, N_WEIGHTS, N_PEER = 10, 200, 25, 2
LENGTHSCALE = 4.3  # about the median distance


def data(n_points: int) -> tuple[Any, Any, Any]:
    """Points, gradients and new points, independent and standard normal."""
    rng = np.random.default_rng(0)
    X, G = rng.normal(size=(2, n_points, N_FEATURES))
    return X, G, rng.normal(size=(N_NEW, N_FEATURES))


def robustness(count: int = N_WEIGHTS) -> Any:
    """So many of the weights, spread over all."""
    weights = np.geomspace(1e-2, 1e2, N_WEIGHTS)
    return weights[:: N_WEIGHTS // count][:count]


def grid() -> list[tuple[float, float]]:
    """25 pairs of weights, with smoothness."""
    weights = np.geomspace(1e-2, 1e2, 5)
    return [(robust, smooth) for robust in weights for smooth in weights]


# ---- ours and the peers; seconds are for 25 weights, means (weights, new, features)


def ours(n_points: int, smooth: bool, std: bool) -> Any:
    """One fit, then 25 weights or pairs of weights."""
    X, G, new = data(n_points)
    explainer = GaussianProcessExplainer(
        lengthscale=LENGTHSCALE,
        mean="none",
        features=po.graphs.chain_graph(N_FEATURES) if smooth else None,
    )
    pairs = grid() if smooth else [(w, 0.0) for w in robustness()]
    path = explainer.fit(X, G).explain_path(new, pairs, std)
    return np.array([answer.attributions for answer in path])


def eigenbasis(n_points: int) -> Any:
    """Dense eigenvectors of the kernel matrix serve all weights."""
    X, G, new = data(n_points)
    values, U = np.linalg.eigh(RBF(LENGTHSCALE)(X))
    across, T = RBF(LENGTHSCALE)(new, X) @ U, U.T @ G
    scales = 0.5 / robustness()
    return np.array([across @ (s * T / (s * values + 1)[:, None]) for s in scales])


def smooth_eigenbasis(n_points: int) -> Any:
    """The same for the rotated features of :func:`scikit_learn_smooth`."""
    X, G, new = data(n_points)
    values, U = np.linalg.eigh(RBF(LENGTHSCALE)(X))
    across, T = RBF(LENGTHSCALE)(new, X) @ U, U.T @ G
    chain, V = np.linalg.eigh(
        2.0 * po.graphs.chain_graph(N_FEATURES).laplacian.toarray()
    )
    means = []
    for weight, smooth in grid():
        s, p = 0.5 / weight, 1 + smooth * chain
        inverse = 1 / (s * values[:, None] + 1 / p)  # (N, D)
        mean = s * across @ (inverse * (T @ V) / p)
        variance = s - s**2 * across**2 @ inverse
        means.append(mean / (1 + smooth * chain * variance) @ V.T)
    return np.array(means)


def scikit_learn(n_points: int, each_feature: bool) -> Any:
    """Fit and predict for a few weights, all features at once or one by one."""
    X, G, new = data(n_points)
    columns = [[j] for j in range(N_FEATURES)] if each_feature else [slice(None)]
    means = []
    for weight in robustness(N_PEER):
        kernel = ConstantKernel(0.5 / weight) * RBF(LENGTHSCALE)
        peer = GaussianProcessRegressor(kernel, alpha=1.0, optimizer=None)
        parts = [peer.fit(X, G[:, c]).predict(new) for c in columns]
        means.append(np.column_stack(parts))
    return np.array(means)


SMOOTH_PLACES = [12, 18]
"""Those of the 5 × 5 pairs of weights that a peer is asked for."""


def scikit_learn_smooth(n_points: int) -> Any:
    """With smoothness: one regression, with noise of its own, per rotated feature.

    In the eigenbasis V, ς of the chain, p_j = 1 + w_s ς_j: targets ĝ_j/p_j with noise
    1/p_j give m_j and v_j, and E_j = m_j / (1 + w_s ς_j v_j).
    """
    X, G, new = data(n_points)
    values, V = np.linalg.eigh(
        2.0 * po.graphs.chain_graph(N_FEATURES).laplacian.toarray()
    )
    rotated = G @ V
    means = []
    for place in SMOOTH_PLACES:
        weight, smooth = grid()[place]
        kernel = ConstantKernel(0.5 / weight) * RBF(LENGTHSCALE)
        columns = []
        for j, pull in enumerate(smooth * values):
            p = 1.0 + pull
            peer = GaussianProcessRegressor(kernel, alpha=1 / p, optimizer=None)
            peer.fit(X, rotated[:, j] / p)
            mean, deviation = peer.predict(new, return_std=True)
            columns.append(mean / (1.0 + pull * deviation**2))
        means.append(np.column_stack(columns) @ V.T)
    return np.array(means)


def gpytorch_exact(n_points: int) -> Any:
    """A batch of exact regressions, one per feature, by Cholesky in double precision.

    Needs GPyTorch: ``pip install "propopt[gp]"``.
    """
    import gpytorch
    import torch

    class Batch(gpytorch.models.ExactGP):
        """Independent features that share a kernel."""

        def __init__(self, X: Any, Y: Any, weight: float) -> None:
            noise = gpytorch.likelihoods.FixedNoiseGaussianLikelihood(
                torch.ones_like(Y)
            )
            super().__init__(X, Y, noise)
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(
                gpytorch.kernels.RBFKernel()
            )
            self.double().eval()  # before the numbers come, which keeps their digits
            scale, length = torch.tensor(
                [0.5 / weight, LENGTHSCALE], dtype=torch.float64
            )
            self.covar_module.outputscale = scale
            self.covar_module.base_kernel.lengthscale = length

        def forward(self, X: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(X), self.covar_module(X)
            )

    torch.set_num_threads(1)
    X, G, new = (torch.from_numpy(array) for array in data(n_points))
    batch = (N_FEATURES, 1, 1)
    means = []
    exact = gpytorch.settings.fast_computations(False, False, False)
    mean_alone = gpytorch.settings.skip_posterior_variances()
    cholesky = gpytorch.settings.max_cholesky_size(10 * n_points)
    with torch.no_grad(), exact, mean_alone, cholesky:
        for weight in robustness(N_PEER):
            model = Batch(X.repeat(batch), G.T.contiguous(), weight)
            means.append(model(new.repeat(batch)).mean.numpy().T)
    return np.array(means)


# ---- tables


def inductive(quick: bool) -> list[Row]:
    """25 weights at 200 new points, after one fit or by a fit for each."""
    n_points = 300 if quick else 2000
    some = slice(None, None, N_WEIGHTS // N_PEER)
    same, same_pairs = partial(_few, some), partial(_few, SMOOTH_PLACES)
    peers = {
        "scikit-learn, all features at once": partial(scikit_learn, n_points, False),
        "scikit-learn, one feature at a time": partial(scikit_learn, n_points, True),
    }
    if find_spec("gpytorch"):  # of the extra gp; the others come with the tests
        peers["GPyTorch, batch of features, Cholesky"] = partial(
            gpytorch_exact, n_points
        )
    size = f"200 new rows, from {n_points:,} gradients of 10 columns"
    return [
        *race(
            f"explanations for 25 weights: {size}",
            _ours(n_points, smooth=False, std=False, answer=same),
            _ours(n_points, smooth=False, std=True),
            Method(
                name="dense eigenvectors, NumPy",
                run=partial(eigenbasis, n_points),
                runs=3,
                answer=same,
                apart=partial(eigenbasis, n_points),
                note="no deviations",
            ),
            *(_peer(name, run) for name, run in peers.items()),
        ),
        *race(
            f"explanations for 5 × 5 weights with smoothness: {size}",
            _ours(
                n_points, smooth=True, std=False, answer=partial(_few, SMOOTH_PLACES)
            ),
            Method(
                name="dense eigenvectors, NumPy",
                run=partial(smooth_eigenbasis, n_points),
                runs=3,
                answer=same_pairs,
                apart=partial(smooth_eigenbasis, n_points),
                note="no deviations",
            ),
            _peer(
                "scikit-learn, one rotated feature at a time",
                partial(scikit_learn_smooth, n_points),
            ),
        ),
    ]


def _few(some: Any, means: Any) -> Any:
    return means[some][:N_PEER]


def _ours(n_points: int, *, smooth: bool, std: bool, answer: Any = None) -> Method:
    run = partial(ours, n_points, smooth, std)
    return Method(
        name=f"{OURS}, with deviations" if std else OURS,
        role="other" if std else "propopt",
        run=run,
        runs=3,
        answer=answer,
        apart=run,
    )


def _peer(name: str, run: Callable[[], Any]) -> Method:
    return Method(
        name=name,
        role="general",
        run=run,
        made=N_PEER,
        of=N_WEIGHTS,
        runs=1,
        answer=np.asarray,
        apart=run,
    )


def images(n_images: int, shape: po.functions.ImageShape, std: bool) -> Timed:
    """One fit on images, then a 5 × 5 grid of weights on one new image."""
    rng = np.random.default_rng(0)
    X = rng.random((n_images, shape.n_features))
    G = rng.standard_normal(X.shape)
    new = rng.random((1, shape.n_features))
    explainer = GaussianProcessExplainer(features=shape)
    began = time.process_time()
    explainer.fit(X, G)
    explainer.explain_path(new, grid(), std)
    return Timed(time.process_time() - began, None)


def inductive_images(quick: bool) -> list[Row]:
    """1,000 images of one channel; the data are part of the peak."""
    n_images, side = (50, 32) if quick else (1000, 244)
    shape = po.functions.ImageShape(1, side, side)
    runs = [partial(images, n_images, shape, std) for std in (False, True)]
    return race(
        f"one new image of 1 × {side} × {side} under 25 weights, from {n_images:,}",
        Method(name=OURS, role="propopt", run=runs[0], runs=1, apart=runs[0]),
        Method(name=f"{OURS}, with deviations", role="other", run=runs[1], runs=1),
    )
