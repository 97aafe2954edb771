"""A model has one unit and one explanation, whatever only forwards to it.

Values are those of brute force over all sets of columns, of the margin or the
probabilities that the whole model answers with.
"""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from coalitions import shapley_by_definition
from estimators import sk
from quiet_boosters import booster
from refusals import refusals
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline, make_pipeline

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.base.text import Reason


RNG = np.random.default_rng(39)
N = 150
X = pd.DataFrame(RNG.normal(size=(N, 4)), columns=list("abcd"))
X["d"] = RNG.integers(0, 4, N).astype(float)
SIGNAL = X.a * X.b + X.d - 1.5
Y = (SIGNAL + 0.5 * RNG.normal(size=N) > 0).to_numpy().astype(int)
LABELS = np.stack([Y, X.c > 0, SIGNAL > 1], axis=1).astype(int)
ROWS, BACKGROUND = X[:3], X[:12]

# sums of a few trees in float32, whose logistic function is inverted
ROUNDING = {"xgboost": 2e-6}
EXACT = 1e-6

xgb, light, cat = map(partial, [booster] * 3, ["xgboost", "lightgbm", "catboost"])
FEW = {"n_estimators": 5}


def numbers(answer, columns):
    """A function of rows of numbers, of one that takes the table."""
    return lambda rows: np.asarray(
        answer(pd.DataFrame(rows, columns=columns)), dtype=np.float64
    )


def log_odds_of(model):
    def log_odds(table):
        p = np.asarray(model.predict_proba(table), dtype=np.float64)
        return np.log(p[:, 1]) - np.log(p[:, 0])

    return log_odds


def probability_of(model, position=1):
    return lambda table: model.predict_proba(table)[:, position]


def agrees(model, answer, *, exact, data=X, target=None, tolerance=EXACT):
    """Contributions of a model are those of brute force; whether it is read."""
    function = po.wrap(model, target, data=data)
    assert (not isinstance(function.products, Reason)) == exact
    settings = {"robustness": 0.0, "progress": False, "target": target}
    best = po.explain(model, data[:3], data=data[:12], **settings)
    assert best.quantity == function.quantity
    points = data.to_numpy(dtype=np.float64)
    phi = shapley_by_definition(numbers(answer, data.columns), points[:3], points[:12])
    size = np.abs(phi).max()
    assert size > 1e-3  # the model does something
    if exact:
        assert best.sampling_excess == 0.0
        np.testing.assert_allclose(
            best.contributions, phi, rtol=0, atol=tolerance * size
        )
        return best
    # of few columns all sets are asked; else 6 standard errors of 12 numbers, each of
    # ten blocks: a false alarm in 2,000 runs at most (t with 9 degrees of freedom)
    errors = best.target_standard_errors if best.sampling_excess else 0.0
    assert (np.abs(best.contributions - phi) <= 6 * errors + tolerance * size).all()
    return best


# ---- Boosted classifiers with log-odds for a margin, and what only forwards to them


BOOSTED = {
    "xgboost": lambda: xgb("Classifier", **FEW),
    "xgboost, dart": lambda: xgb("Classifier", booster="dart", rate_drop=0.3, **FEW),
    "xgboost, linear": lambda: xgb("Classifier", booster="gblinear", **FEW),
    "xgboost, forest": lambda: xgb("RFClassifier", **FEW),
    "xgboost, a number is missing": lambda: xgb("Classifier", missing=-999.0, **FEW),
    "lightgbm": lambda: light("Classifier", **FEW),
    "lightgbm, linear trees": lambda: light("Classifier", linear_tree=True, **FEW),
    "catboost": lambda: cat("Classifier", **FEW),
    "histograms": lambda: sk.HistGradientBoostingClassifier(max_iter=5),
    "gradient boosting": lambda: sk.GradientBoostingClassifier(n_estimators=5),
    "gradient boosting, init": lambda: sk.GradientBoostingClassifier(
        n_estimators=5, init=sk.LogisticRegression()
    ),
}
SAMPLED = "xgboost, linear", "lightgbm, linear trees", "gradient boosting, init"
"""Whose margins are sampled: they are no sums of trees with numbers in their leaves."""


def imblearn(*steps):
    return pytest.importorskip("imblearn.pipeline").make_pipeline(*steps)


def sampler():
    over = pytest.importorskip("imblearn.over_sampling")
    return over.RandomOverSampler(random_state=0)


def fitted(model):
    return clone(model).fit(X, Y)


FORWARDING = {
    "bare": lambda m: m,
    "scaled": lambda m: make_pipeline(sk.StandardScaler(), m),
    "frozen": lambda m: FrozenEstimator(fitted(m)),
    "behind a frozen step": lambda m: make_pipeline(
        FrozenEstimator(sk.StandardScaler().fit(X)), m
    ),
    "tuned threshold": lambda m: sk.TunedThresholdClassifierCV(m, cv=2),
    "fixed threshold": lambda m: sk.FixedThresholdClassifier(m, threshold=0.3),
    "search": lambda m: sk.GridSearchCV(m, {}, cv=2),
    "search of a search behind steps": lambda m: sk.GridSearchCV(
        make_pipeline(
            sk.StandardScaler(), sk.RandomizedSearchCV(m, {}, n_iter=1, cv=2)
        ),
        {},
        cv=2,
    ),
    "chosen columns": lambda m: sk.RFE(
        m, n_features_to_select=3, importance_getter=_importance
    ),
    "imblearn": lambda m: imblearn(sampler(), sk.StandardScaler(), m),
    "imblearn within steps, a threshold": lambda m: sk.FixedThresholdClassifier(
        imblearn(sk.StandardScaler(), sampler(), make_pipeline(sk.StandardScaler(), m))
    ),
}
MIXING = {
    "principal components": lambda m: make_pipeline(sk.PCA(), m),
    "a function": lambda m: make_pipeline(sk.FunctionTransformer(np.sinh), m),
}


def _importance(model):
    return np.array([3.0, 2.0, 0.0, 1.0])[: model.n_features_in_]


@pytest.mark.parametrize("name", BOOSTED)
def test_the_unit_is_that_of_the_final_estimator_however_it_is_wrapped(name):
    model = BOOSTED[name]()
    kinds = set()
    for wrap in (*FORWARDING.values(), *MIXING.values()):
        whole = wrap(model).fit(X, Y)
        function = po.wrap(whole, data=X)
        kinds.add((function.quantity.kind, function.quantity.model))
        values, truth = function.value(X), log_odds_of(whole)(X)
        np.testing.assert_allclose(values, truth, rtol=1e-4, atol=1e-4)
    assert kinds == {("log_odds", type(model).__name__)}


@pytest.mark.parametrize("name", BOOSTED)
def test_boosted_classifiers_agree_with_brute_force_behind_wrappers(name):
    model = FORWARDING["search of a search behind steps"](BOOSTED[name]()).fit(X, Y)
    tolerance = ROUNDING.get(name.partition(",")[0], EXACT)
    answer = log_odds_of(model)
    agrees(model, answer, exact=name not in SAMPLED, tolerance=tolerance)


@pytest.mark.parametrize("wrapper", [*FORWARDING, *MIXING])
def test_wrapped_models_agree_with_brute_force(wrapper):
    model = sk.HistGradientBoostingClassifier(max_iter=5)
    model = {**FORWARDING, **MIXING}[wrapper](model).fit(X, Y)
    agrees(model, model.decision_function, exact=wrapper in FORWARDING)


def test_a_stack_that_ends_in_a_logistic_regression_is_explained_in_log_odds():
    forest = FrozenEstimator(sk.RandomForestClassifier(3).fit(X, Y))
    for member, exact in ((forest, True), (sk.KNeighborsClassifier(), False)):
        model = sk.StackingClassifier([("a", member)], sk.LogisticRegression(), cv=2)
        best = agrees(model.fit(X, Y), model.decision_function, exact=exact)
        assert best.quantity.kind == "log_odds"
    last = sk.GradientBoostingClassifier(n_estimators=5)
    model = sk.StackingClassifier([("a", forest)], last, cv=2).fit(X, Y)
    assert agrees(model, log_odds_of(model), exact=False).quantity.kind == "log_odds"


# ---- Subclasses: known as long as they answer as the class does


class Renamed(sk.GradientBoostingClassifier):
    pass


class Sharper(sk.GradientBoostingClassifier):
    def predict_proba(self, X):
        p = super().predict_proba(X) ** 2
        return p / p.sum(axis=1, keepdims=True)


class RenamedSearch(sk.GridSearchCV):
    pass


class SharperPipeline(Pipeline):
    def predict_proba(self, X):
        return super().predict_proba(X)[:, ::-1]


def test_a_subclass_with_an_answer_of_its_own_is_neither_read_nor_unwrapped():
    for model, kind, exact in (
        (Renamed(n_estimators=5), "log_odds", False),
        (RenamedSearch(Renamed(n_estimators=5), {}, cv=2), "log_odds", False),
        (RenamedSearch(BOOSTED["histograms"](), {}, cv=2), "log_odds", True),
        (Sharper(n_estimators=5), "probability", False),
        (SharperPipeline([("m", Sharper(n_estimators=5))]), "probability", False),
    ):
        model.fit(X, Y)
        answer = log_odds_of(model) if kind == "log_odds" else probability_of(model)
        assert agrees(model, answer, exact=exact).quantity.kind == kind
        requested = po.wrap(model, output="log_odds", data=X).value(X)
        np.testing.assert_allclose(
            requested, log_odds_of(model)(X), rtol=1e-9, atol=1e-9
        )


# ---- Readers: numbers that are missing, vectors in leaves, rankers, scores


GAPS = X.assign(
    a=X.a.where(np.arange(N) % 3 > 0, -999.0),
    b=X.b.where(np.arange(N) % 4 > 0, np.nan),
    c=X.c.where(np.arange(N) % 5 > 0, -999.0),
)


@pytest.mark.parametrize("missing", [-999.0, 0.0, 2.0, float(np.float32(X.a[1]))])
def test_a_number_that_is_missing_to_xgboost_goes_where_nan_goes(missing):
    model = xgb("Classifier", missing=missing, max_depth=4, n_estimators=10)
    margin = partial(model.fit(GAPS, Y).predict, output_margin=True)
    agrees(model, margin, exact=True, data=GAPS, tolerance=2e-6)
    boxes = po.wrap(model, data=GAPS).boxes
    # next to it, and what float32 makes of it
    close = np.nextafter(np.float32(missing), np.float32([-np.inf, np.inf]))
    rows = np.tile(BACKGROUND.to_numpy(), (4, 1))
    rows[:, 0] = np.repeat([missing, missing * (1 + 1e-12), *map(float, close)], 12)
    table = pd.DataFrame(rows, columns=X.columns)
    np.testing.assert_allclose(boxes.value(rows), margin(table), rtol=0, atol=2e-6)
    behind = make_pipeline(sk.StandardScaler(), clone(model)).fit(X, Y)
    assert po.wrap(behind, data=X).boxes is not None


def _residuals(y, score):
    return score - y, np.ones_like(score)


def _halved(y, score):
    return 0.5 / (1.0 + np.exp(-score)) - 0.5 * y, np.ones_like(score)


def test_scores_of_objectives_of_the_user_are_what_is_predicted():
    for make in (light, xgb):
        model = make("Regressor", objective=_residuals, **FEW).fit(X, SIGNAL)
        agrees(model, model.predict, exact=True, tolerance=2e-6)
    for make, how in ((light, "raw_score"), (xgb, "output_margin")):
        model = make("Classifier", objective=_halved, **FEW).fit(X, Y)
        margin = partial(model.predict, **{how: True})
        best = agrees(model, margin, exact=True, tolerance=2e-6)
        assert best.quantity.kind == "margin"  # of which it says nothing
        with pytest.raises(InvalidInput, match="no 'probability'; it has 'margin'"):
            po.wrap(model, output="probability")


def test_native_boosters_of_classes_have_the_unit_of_their_estimators():
    xgboost = pytest.importorskip("xgboost")
    for objective, target, kind in (
        ("binary:logistic", None, "log_odds"),
        ("binary:logitraw", None, "log_odds"),
        ("multi:softprob", 2, "margin"),
        ("multi:softmax", 2, "margin"),
        ("count:poisson", None, "value"),
    ):
        labels, more = (Y, {}) if target is None else (X.d, {"num_class": 4})
        settings = {"objective": objective, "nthread": 1, **more}
        native = xgboost.train(settings, xgboost.DMatrix(X, labels), 4)
        assert po.wrap(native, target).quantity.kind == kind


def test_ensembles_of_imblearn_are_read_as_what_they_are_subclasses_of():
    ensemble = pytest.importorskip("imblearn.ensemble")
    bare = {"random_state": 0, "n_estimators": 3}
    forest = ensemble.BalancedRandomForestClassifier(**bare).fit(X, Y)
    bag = ensemble.BalancedBaggingClassifier(sk.DecisionTreeClassifier(), **bare)
    for model in (forest, bag.fit(X, Y)):
        best = agrees(model, probability_of(model), exact=True)
        assert best.quantity.kind == "probability"
    easy = ensemble.EasyEnsembleClassifier(**bare).fit(X, Y)
    assert isinstance(po.wrap(easy, data=X).products, Reason)
    margin = po.wrap(easy, output="margin", data=X)
    points = X.to_numpy()
    np.testing.assert_allclose(
        margin.boxes.value(points), easy.decision_function(X), rtol=0, atol=1e-12
    )
    rus = ensemble.RUSBoostClassifier(**bare).fit(X, Y)
    assert agrees(rus, rus.decision_function, exact=True).quantity.kind == "margin"


def test_stumps_in_single_precision_add_up_though_no_column_moves():
    model = xgb("Classifier", max_depth=1, n_estimators=20).fit(X, Y)
    for data in (X, None):
        best = po.explain(model, X[:20], data=data, progress=False)
        answer = numbers(log_odds_of(model), X.columns)
        phi = shapley_by_definition(
            answer, X[:20].to_numpy(), X[: N if data is X else 20].to_numpy()
        )
        np.testing.assert_allclose(best.attributions, phi, rtol=0, atol=1e-5)


# ---- Several labels at once


def test_each_of_several_labels_is_chosen_by_its_position():
    forest = sk.RandomForestClassifier(4, random_state=0).fit(X, LABELS)
    for model, exact in (
        (forest, True),
        (FrozenEstimator(sk.ExtraTreesClassifier(3).fit(X, LABELS)), True),
        (make_pipeline(sk.StandardScaler(), sk.DecisionTreeClassifier()), True),
        (sk.KNeighborsClassifier(), False),
    ):
        model.fit(X, LABELS)
        for k in (0, 2):

            def share(table, model=model, k=k):
                return model.predict_proba(table)[k][:, 1]

            best = agrees(model, share, exact=exact, target=k)
            assert best.quantity.in_words() == f"probability of class 1 of output {k}"
    chain = sk.ClassifierChain(sk.LogisticRegression()).fit(X, LABELS)
    agrees(chain, probability_of(chain, 1), exact=False, target=1)


def test_boosted_labels_are_explained_in_log_odds():
    inner = xgb("Classifier", **FEW)
    for model in (
        inner,
        sk.MultiOutputClassifier(inner),
        sk.GridSearchCV(inner, {}, cv=2),
    ):
        model.fit(X, LABELS)

        def log_odds(table, model=model):
            p = model.predict_proba(table)
            p = p[2][:, 1] if isinstance(p, list) else p[:, 2]
            return np.log(p.astype(float)) - np.log1p(-p.astype(float))

        best = agrees(model, log_odds, exact=True, target=2, tolerance=2e-6)
        expected = "log-odds of class 1 of output 2, by XGBClassifier"
        assert str(best.quantity) == expected
    model = cat("Classifier", loss_function="MultiLogloss", **FEW).fit(X, LABELS)
    raw = partial(model.predict, prediction_type="RawFormulaVal")
    agrees(model, lambda table: raw(table)[:, 2], exact=True, target=2)


def test_a_label_that_is_not_there_or_has_more_classes_is_refused():
    model = sk.DecisionTreeClassifier().fit(X, np.stack([Y, X.d], axis=1))
    assert po.wrap(model, 0).quantity.kind == "probability"
    for line, message in refusals(__file__, "labels"):
        with pytest.raises(InvalidInput, match=message):
            eval(line, {"po": po, "model": model})


# ---- Tables of columns of several kinds, and targets in other units


def test_samplers_between_columns_of_several_kinds_do_nothing():
    table = X.assign(kind=np.array(["u", "v", "w"])[np.arange(N) % 3])
    parts = [
        ("n", sk.StandardScaler(), list("abcd")),
        ("k", sk.OneHotEncoder(), ["kind"]),
    ]
    model = imblearn(sk.ColumnTransformer(parts), sampler(), BOOSTED["lightgbm"]())
    model = sk.FixedThresholdClassifier(model).fit(table, Y)
    function = po.wrap(model, data=table)
    points, _ = function.read(table)
    truth = log_odds_of(model)(table)
    np.testing.assert_allclose(function.boxes.value(points), truth, atol=1e-12)


def test_targets_in_other_units_are_read_through_searches():
    search = sk.GridSearchCV(sk.GradientBoostingRegressor(n_estimators=5), {}, cv=2)
    scaled = sk.TransformedTargetRegressor(search, transformer=sk.StandardScaler())
    agrees(scaled.fit(X, SIGNAL), scaled.predict, exact=True)
    functions = {"func": np.exp, "inverse_func": np.log}
    bent = sk.TransformedTargetRegressor(search, check_inverse=False, **functions)
    agrees(bent.fit(X, SIGNAL), bent.predict, exact=False)
