"""propopt: explanations optimized for the properties that you choose, and certified.

Five terms to begin with:

- an *attribution* is a number for a row and a column: the effect of the column there;
- a *faithful* explanation is close to the effects that the model has at the row;
- a *robust* explanation is nearly the same for similar rows;
- the *gap* is a proved bound: no explanation is better by more than this share;
- the *sampling error* is the estimated error from sampling the model.

Begin here::

    best = po.explain(model, X, data=X_train)  # all rows of a table
    explainer = po.Explainer(model, data=X_train).fit()  # for rows that come later
    print(best)  # the largest contributions, their unit, and the certificate

Check attributions from another program, or compare two models::

    po.audit("shap.csv", model, X, data=X_train)  # are the values right?
    po.compare(old, new, X, data=X_train)  # which contributions changed?

Choose losses and weights yourself::

    function = po.wrap(model)
    objective = po.GradientMatching(function.estimate(X)) + 0.5 * po.PairwiseRobustness(
        po.graphs.knn_graph(X, 8)
    )
    po.solve(objective)  # one explanation
    po.sweep(objective, {"pairwise_robustness": [0.1, 1, 10]})  # po.TradeOffs, a curve

`po.Smoothness` and `po.Sparsity` are two more losses, and `po.Sampling` has the seed.
Everything else is in namespaces:

===================  =============================================================
`po.losses`          losses: properties to minimise, weight and bound
`po.graphs`          graphs of similar rows or columns
`po.explainers`      baselines: gradients, SHAP, LIME, main effects
`po.results`         explanations and other results, which can be saved
`po.proofs`          certificates for attributions from any solver
`po.plots`           charts as blocks, and `draw`; results have `plot()`
`po.lime`            limits of LIME without sampling, and its diagnosis
`po.interactions`    which columns matter jointly, with confidence intervals
`po.inductive`       explanations of new inputs by Gaussian processes
`po.null_models`     models that differ only by chance, for `po.compare`
`po.functions`       models as functions of tables, texts and images
`po.solvers`         solvers, and aims that choose weights
`po.problems`        YAML files, and the jobs of the command line
`po.shap`            the interface of the package shap, on exact trees
===================  =============================================================

Errors are in `po.errors`. ``help(po.explain)`` has the details of a name.
"""

import lazy_loader


# public names are in __init__.pyi; each module is imported when it is first used. There
# is no ``__all__``, because ``help(propopt)`` would print every class
_load, _names, _ = lazy_loader.attach_stub(__name__, __file__)
__version__ = "0.2.0"


def __getattr__(name: str) -> object:
    try:
        return _load(name)
    except AttributeError as error:
        from propopt.base.suggestions import missing_module_name

        raise missing_module_name("po", name, _names(), error) from None


def __dir__() -> list[str]:
    """The names for completion; errors are left out, but can be imported."""
    return [name for name in _names() if name != "errors"]
