"""propopt: explanations optimized for the properties you choose, with proof.

Five words are enough to begin:

- an *attribution* is one number per row and column: how much the column matters there;
- a *faithful* one is near to what the model does at the row;
- a *robust* one is nearly the same for similar rows;
- the *gap* is the proved share by which any explanation could still be better;
- the *target error* is the estimated share that sampling the model may have moved it.

Begin here::

    best = po.explain(model, X, data=X_train)  # one table, once
    one = po.Explainer(model, data=X_train).fit()  # one customer, and again tomorrow
    print(best)  # what matters, in which unit, and what of it is proved

Check numbers that you have::

    po.audit("shap.csv", model, X, data=X_train)  # are they right, and do they add up?
    po.compare(old, new, X, data=X_train)  # what changed between two versions?

In your own proportions::

    function = po.wrap(model)
    objective = po.GradientMatching(function.estimate(X)) + 0.5 * po.PairwiseRobustness(
        po.graphs.knn_graph(X, 8)
    )
    po.solve(objective)  # one explanation
    po.sweep(objective, {"pairwise_robustness": [0.1, 1, 10]})  # po.TradeOffs

`po.Smoothness` and `po.Sparsity` are two more losses, and `po.Sampling` has the seed.
All else is in namespaces:

===================  =============================================================
`po.losses`          all properties that can be minimised, weighed and bounded
`po.graphs`          who is similar to whom
`po.explainers`      what others compute: gradients, SHAP, LIME, main effects
`po.metrics`         metrics of the literature, under their public names
`po.results`         what comes back, and how it is saved
`po.proofs`          what is proved of attributions, of any solver
`po.plots`           pictures; each takes `ax`
`po.lime`            what LIME tends to, without a sample, and what it hides
`po.interactions`    which columns matter jointly, with confidence intervals
`po.inductive`       explanations of inputs to come
`po.null_models`     models that differ by chance alone, for `po.compare`
`po.functions`       models as functions of tables, texts and images
`po.solvers`         how to minimise, and what to reach
`po.problems`        YAML files, and what the command line does
===================  =============================================================

Errors are in `po.errors`. ``help(po.explain)`` has the details of a name.
"""

import lazy_loader


# the public names stand in __init__.pyi; each module is imported when first used. There
# is no ``__all__``: ``help(propopt)`` would print every class behind it
_load, _names, _ = lazy_loader.attach_stub(__name__, __file__)
__version__ = "0.2.0"


def __getattr__(name: str) -> object:
    try:
        return _load(name)
    except AttributeError as error:
        from propopt.base.suggestions import missing_module_name

        raise missing_module_name("po", name, _names(), error) from None


def __dir__() -> list[str]:
    """What is completed; errors are met in tracebacks, and found all the same."""
    return [name for name in _names() if name != "errors"]
