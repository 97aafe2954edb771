"""Long lists of parameters in groups: by page the title of each group and its names."""

GROUPS = {
    "propopt.Explainer": {
        "What is explained": "model data target output outcome kind scale groups",
        "What is optimized": "robustness contributions offset metric graph",
        "How it is computed": "sample_weight law sampling",
    },
    "propopt.audit": {
        "What is audited": "attributions model X target output outcome base",
        "What it is compared with": "data sample_weight graph n_neighbors rng",
    },
    "propopt.compare": {
        "What is compared": "before after X rows data",
        "How large a change by chance may be": "level n_permutations",
        "How it is computed": "progress **settings",
    },
    "propopt.sweep": {
        "What is solved": "objective weights limits error baselines",
        "How it is computed": "solver subject_to tolerance n_jobs progress",
    },
    "propopt.wrap": {
        "What is explained": "model target output outcome",
        "What the model takes": "data input_shape batch_rows",
        "How it is differentiated": "step gradient",
    },
    "propopt.explainers.ExactLime": {
        "Where inputs are drawn": "law data kernel_width n_bins weights units",
        "How it is computed": "n_samples precision max_evaluations",
    },
    "propopt.shap.Explainer": {
        "What is explained": "model masker model_output feature_perturbation",
        "What shap has besides": "link algorithm linearize_link seed",
        "Names": "output_names feature_names",
    },
    "propopt.inductive.GaussianProcessExplainer": {
        "Properties of the function": "robustness smoothness features mean",
        "Its kernel": "kernel lengthscale scale jitter optimize",
        "How it is computed": "inducing random_state",
    },
    "propopt.interactions.ILOCO": {
        "What is scored": "estimator order sets groups error",
        "How it is computed": "scheme n_jobs random_state progress",
    },
    "propopt.lime.LimeExplainer": {
        "What is explained": "model target output outcome",
        "Where inputs are drawn": "data law",
        "How it is computed": "n_samples precision max_evaluations rng",
    },
    "propopt.lime.limits": {
        "What is explained": "function X target output outcome",
        "Where inputs are drawn": "law data",
        "How it is computed": "n_samples precision max_evaluations rng progress",
    },
    "propopt.lime.text_limits": {
        "What is explained": "function documents words target output outcome",
        "How it is computed": "law n_samples precision max_evaluations rng progress",
    },
    "propopt.problems.subject.subject.Subject": {
        "The rows": "points others columns target others_target sample_weight unscaled",
        "The model": "make make_learner seed",
    },
    # ---- fields of results
    "propopt.TradeOffs": {
        "Explanations": "optimized baselines",
        "Their losses": "losses units ends bounds error",
        "The run": "failures interrupted problem_data",
    },
    "propopt.results.Explanation": {
        "The numbers": "attributions labels units standard_errors base_value "
        "prediction points categories together",
        "What they are compared with": "gradient contributions effects target "
        "quantity background",
        "The optimum": "losses weights certificate multipliers metric row_size",
        "How it was made": "method parameters details solver seconds evaluations "
        "model_seconds problem_data program scaled_program",
    },
    "propopt.results.Reasons": {
        "The reasons": "names rows ranks features values contributions attributions "
        "best_ranks worst_ranks partners more bases predictions",
        "What retrained models say": "votes stable n_models",
        "What a reason is": "k towards are_groups n_features least_share small_change",
        "What is explained": "together quantity unit sampling_error drawn_from",
    },
    "propopt.results.Stable": {
        "What is stable": "directions lines first votes",
        "Noise of features": "contributions signal noise",
        "By which rule": "n_models n_rows k towards",
        "What is explained": "labels quantity",
    },
    "propopt.results.NearOptimalConclusions": {
        "What is certain": "attributions signs half_widths prices best_ranks "
        "worst_ranks order order_prices",
        "Among which explanations": "small_change rate optimum are_bounds",
        "What is explained": "labels present quantity unit sampling_error",
    },
    "propopt.results.Clear": {
        "What is clear": "attributions signs best_ranks worst_ranks",
        "After which changes": "by small_change",
        "What is explained": "labels quantity unit sampling_error",
    },
    "propopt.results.Comparison": {
        "What was compared": "kind names before after labels units quantity "
        "base_values",
        "How large changes are": "level optimized prices",
        "How it was made": "sources parameters",
    },
    "propopt.results.ExplainedTable": {
        "What was explained": "folder header",
        "Sums over all rows": "sums sizes squares raises lowers",
        "Means, the largest gap, errors and new categories": "base_value prediction "
        "gap target n_new new",
    },
    "propopt.plots.Steps": {
        "The bars": "names parts start sign",
        "What is marked": "intervals hatched hatching marks",
        "Words": "title caption",
    },
    "propopt.plots.Scatter": {
        "The feature": "name values attributions categories",
        "The colours": "color_name color_values color_categories",
        "Words": "title caption",
    },
    "propopt.plots.Lines": {
        "What is drawn": "lines bands points others marks",
        "The axes": "name caption scales",
        "Words": "title",
    },
    "propopt.interactions.InteractionScores": {
        "The scores": "sets names scores standard_errors main not_used",
        "What they are scores of": "method error units quantity columns error_range",
        "How they were computed": "monte_carlo counts n_rows n_candidates n_patches "
        "n_row_groups n_groups effective_rows patch_error",
    },
    "propopt.lime.LimeExplanation": {
        "The numbers": "flat_coefficients flat_errors flat_alpha intercept "
        "log_weight effective_share",
        "What is explained": "labels values quantity subject",
        "How they were computed": "sources reasons law_in_words n_samples "
        "evaluations scatter",
    },
}
"""Each page with more than eight parameters has an entry here, which a test checks."""
