"""Ten smooth models and fourteen that jump, as callables that tell nothing."""

import warnings
from importlib.util import find_spec

import numpy as np
from estimators import sk
from quiet_boosters import booster
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline


def tables():
    """Three tables of scikit-learn and one generated: standardized, two classes."""
    rng = np.random.default_rng(3)
    generated = rng.normal(size=(300, 6))
    score = generated[:, 0] + generated[:, 1] * generated[:, 2] + rng.normal(size=300)
    diabetes, cancer, wine = (
        load(return_X_y=True) for load in (load_diabetes, load_breast_cancer, load_wine)
    )
    raw = {
        "diabetes": (diabetes[0], diabetes[1] > 140),
        "cancer": cancer,
        "wine": (wine[0], wine[1] == 0),
        "generated": (generated, score > 0),
    }
    scaled = sk.StandardScaler().fit_transform
    return {
        name: (scaled(X)[:300], np.asarray(y)[:300]) for name, (X, y) in raw.items()
    }


def probability(model):
    return lambda X: model.predict_proba(X)[:, 1]


def network(activation, X, y):
    model = sk.MLPClassifier((20, 10), activation, max_iter=100, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def in_single(model):
    """The scores of a perceptron, computed in single precision."""
    weights = [W.astype(np.float32) for W in model.coefs_]
    offsets = [b.astype(np.float32) for b in model.intercepts_]

    def evaluate(X):
        Z = X.astype(np.float32)
        for W, b in zip(weights[:-1], offsets[:-1], strict=True):
            Z = np.tanh(Z @ W + b)
        return (Z @ weights[-1] + offsets[-1])[:, 0]

    return evaluate


def smooth_models(X, y):
    logistic = sk.LogisticRegression().fit(X, y)
    process = sk.GaussianProcessClassifier(2.0 * RBF(3.0), optimizer=None)
    tanh = network("tanh", X, y)
    quadratic = make_pipeline(sk.PolynomialFeatures(2), sk.Ridge()).fit(X, 1.0 * y)
    return {
        "logistic": probability(logistic),
        "margin": logistic.decision_function,
        "tanh": probability(tanh),
        "relu": probability(network("relu", X, y)),
        "float32": in_single(tanh),
        "svc": sk.SVC(gamma="scale").fit(X, y).decision_function,
        "narrow svc": sk.SVC(gamma=5.0 / X.shape[1]).fit(X, y).decision_function,
        "process": probability(process.fit(X[::4], y[::4])),
        "kernel ridge": sk.KernelRidge(kernel="rbf", gamma=0.1).fit(X, 1.0 * y).predict,
        "quadratic": quadratic.predict,
    }


def noisy(X, y):
    """A logistic regression, with noise of 1e-3 that is the same for the same row."""
    clean = probability(sk.LogisticRegression().fit(X, y))

    def evaluate(Z):
        hashed = np.sin(1e6 * Z).sum(axis=1) * 43758.5453
        return clean(Z) + 1e-3 * (hashed - np.floor(hashed) - 0.5)

    return evaluate


def jumping_models(X, y, boosters):
    forest = sk.RandomForestClassifier(50, min_samples_leaf=3, random_state=0).fit(X, y)
    logistic = sk.LogisticRegression().fit(X, y)
    members = [("forest", forest), ("logistic", sk.LogisticRegression())]

    def vote(weights):
        return sk.VotingClassifier(members, voting="soft", weights=weights).fit(X, y)

    bins = sk.KBinsDiscretizer(8, strategy="uniform")
    binned = make_pipeline(bins, sk.LogisticRegression())
    fitted = {
        "forest": forest,
        "extra trees": sk.ExtraTreesClassifier(50, random_state=0).fit(X, y),
        "gradient boosting": sk.GradientBoostingClassifier(random_state=0).fit(X, y),
        "neighbors": sk.KNeighborsClassifier(9).fit(X, y),
        "vote": vote([0.5, 0.5]),
        "vote of a tenth": vote([0.1, 0.9]),
        "stack": sk.StackingClassifier(members, sk.LogisticRegression(), cv=2).fit(
            X, y
        ),
        "bins": binned.fit(X, y),
        **{name: kind.fit(X, y) for name, kind in boosters.items()},
    }
    return {name: probability(model) for name, model in fitted.items()} | {
        "lambda": lambda Z: np.log1p(forest.predict_proba(Z)[:, 1]) + 0.1 * Z[:, 0],
        "rounded": lambda Z: np.round(logistic.predict_proba(Z)[:, 1], 2),
        "noise": noisy(X, y),
    }


def boosters():
    """Those of packages, where they are installed, and scikit-learn's."""
    results = {
        "histogram": sk.HistGradientBoostingClassifier(max_iter=60, random_state=0)
    }
    for name in filter(find_spec, ("lightgbm", "xgboost")):
        results[name] = booster(name, "Classifier", n_estimators=60)
    return results
