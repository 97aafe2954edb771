"""As faithful as possible with a bound on robustness, instead of a weight to guess."""

import propopt as po


X = po.graphs.grid(-5, 5, per_dimension=100, dimensions=1)
function = po.functions.Power(degree=3)
faithfulness = po.GradientMatching(function.gradient(X))
robustness = po.PairwiseRobustness(po.graphs.gaussian_graph(X, lengthscale=0.5))

gradients = faithfulness.G
limit = 0.1 * robustness.value(gradients)  # a tenth of what plain gradients have
best = po.solve(faithfulness, subject_to=[robustness <= limit])
print(best)

# the multiplier of the bound is the weight that one would have had to guess
weight = best.multipliers["pairwise_robustness"]
same = po.solve(faithfulness + weight * robustness)
print(f"weight {weight:.5f}: robustness {same.losses['pairwise_robustness']:.2f}, "
      f"limit {limit:.2f}")  # fmt: skip

# limits are swept by name like weights: the loss leaves the sum and becomes a bound
limits = [limit, 2 * limit, 4 * limit]
curve = po.sweep(faithfulness + robustness, limits={"pairwise_robustness": limits})
print(curve.to_frame()[["weight.pairwise_robustness", "loss.gradient_matching"]])

try:
    po.solve(robustness, subject_to=[faithfulness <= 1.0, po.Sparsity() <= 100.0])
except po.errors.Infeasible as error:
    print("infeasible:", error)
