"""Five models of one table, from five libraries, whose explanations should agree.

The table has a binary column, integers, a skewed column, a constant column, and a
column with one value in nearly all rows, on which no tree splits. Models of equal
quality should have similar explanations, and unused columns should get zero.
"""

from itertools import combinations

import numpy as np
import pandas as pd
import shap
from catboost import CatBoostRegressor
from lightgbm import LGBMRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from xgboost import XGBRegressor

import propopt as po


def customers(n, rng):
    """A table of n customers, and their risk."""
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 81, n),
            "complains": (rng.random(n) < 0.1).astype(int),
            "balance": rng.lognormal(7.0, 1.2, n).round(2),
            "products": rng.integers(1, 5, n),
            "score": rng.normal(650.0, 95.0, n).round(),
            "seldom": (np.arange(n) == 3).astype(int),
            "region": 1,
        }
    )
    risk = 0.035 * (X["age"] - 45) - 0.0006 * (X["age"] - 45) ** 2
    risk += 1.6 * X["complains"] + 0.5 * np.log(X["balance"] / 1100)
    risk += -0.5 * X["products"] + 0.004 * (650 - X["score"])
    risk += 0.5 * X["complains"] * (X["products"] > 2)
    return X, risk + rng.normal(0.0, 0.5, n)


rng = np.random.default_rng(0)
X, y = customers(3000, rng)
X_new, y_new = customers(1000, rng)
rows = X_new.iloc[:200]
models = {
    "LightGBM": LGBMRegressor(
        n_estimators=150, num_leaves=15, learning_rate=0.06, n_jobs=1, verbosity=-1
    ),
    "XGBoost": XGBRegressor(
        n_estimators=150, max_depth=4, learning_rate=0.06, min_child_weight=20, n_jobs=1
    ),
    "HistGB": HistGradientBoostingRegressor(
        max_iter=150, max_leaf_nodes=15, learning_rate=0.06, random_state=0
    ),
    "CatBoost": CatBoostRegressor(
        iterations=300,
        depth=5,
        learning_rate=0.06,
        random_strength=0,
        thread_count=1,
        verbose=0,
    ),
    "forest": RandomForestRegressor(
        100, min_samples_leaf=5, max_features=0.6, random_state=0
    ),
}

slopes, shapley = {}, {}
for name, model in models.items():
    model.fit(X, y)
    best = po.explain(model, rows, data=X, kind="slopes")
    slopes[name] = best.to_frame()
    background = X.sample(100, random_state=0)
    values = shap.TreeExplainer(model, background).shap_values(
        rows, check_additivity=False
    )
    shapley[name] = pd.DataFrame(values, columns=X.columns)
    print(f"{name}: R² {model.score(X_new, y_new):.3f}, {best.target.source}")

sizes = pd.DataFrame({name: W.abs().mean() for name, W in slopes.items()})
print("\nmean size of the attributions, per standard deviation")
print(sizes.map("{:.3f}".format).to_string())
zero = bool((sizes.loc[["seldom", "region"]] == 0.0).all(axis=None))
print(f"unused and constant columns are exactly zero: {zero}")


def agreement(explanations, one, other):
    """The correlation of all attributions of two models."""
    first, second = explanations[one].to_numpy(), explanations[other].to_numpy()
    return np.corrcoef(first.ravel(), second.ravel())[0, 1]


print("\ncorrelations between models")
pairs = pd.DataFrame(
    {
        f"{one}, {other}": {
            "propopt": agreement(slopes, one, other),
            "TreeSHAP": agreement(shapley, one, other),
        }
        for one, other in combinations(models, 2)
    }
).T
print(pairs.map("{:.4f}".format).to_string())
