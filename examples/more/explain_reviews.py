"""Near-duplicate reviews: how far LIME and Shapley values are from the optimum.

Reviews that differ in one or two words should have explanations that differ as little
as the model allows. The trade-off curve shows how little is possible at each cost of
faithfulness, with certified optima. Runs of LIME, the limit of LIME, and Shapley values
are compared with it, by the same losses.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import propopt as po


folder = Path(po.__file__).parent.parent / "problems"
reviews = pd.read_csv(folder / "reviews.csv")
model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10.0))
model.fit(reviews["text"], reviews["sentiment"])

# words are split as in the lime package, so that its runs can be compared
words = po.functions.TextSchema.of(reviews["text"])
function = po.wrap(model, target="good", output="log_odds", data=words)
similar = po.graphs.document_graph(function.read(reviews["text"])[0])
nearest = similar.similarities.max(axis=1).toarray().ravel()
texts = reviews["text"][nearest > 0.5]
counts, _ = function.read(texts)
graph = po.graphs.document_graph(counts)
print(f"{len(texts)} reviews with a similar one, {graph.n_edges} similar pairs")

law = po.lime.TextLaw()
runs = {
    f"LIME, {count:,} samples": po.explainers.Lime(law=law, n_samples=count)
    for count in (200, 1000)
}
limit = po.explainers.ExactLime(law=law).explain(function, texts)
lime = {name: run.explain(function, texts, rng=0) for name, run in runs.items()}
lime["LIME's limit"] = limit
robust = po.losses.SharedRobustness(graph, counts)
weights = {robust.name: np.geomspace(1e-3, 1e2, 51)}
curve = po.sweep(po.GradientMatching(limit) + robust, weights, lime)


def at_the_knee(trade_offs: po.TradeOffs) -> list[float]:
    """The excess of each method over the optimum, for the weight at the knee."""
    knee = trade_offs.knee()
    costs = [
        sum(c * one.losses[name] for name, c in knee.weights.items())
        for one in trade_offs.baselines
    ]
    return [cost / knee.objective - 1.0 for cost in costs]


columns = ["method", "excess", "at the knee"]
print("\ncompared with the optima for the limit of LIME")
table = curve.distances().assign(**{"at the knee": at_the_knee(curve)})
print(table[columns].round(3).to_string(index=False))

# Shapley values add up in each review, and so do the optima on their curve
shapley = po.explainers.TreeShap().explain(function, texts)
total = function.value(texts) - function.value([""])
front = po.sweep(
    po.GradientMatching(shapley) + robust,
    weights,
    {"Shapley values": shapley},
    subject_to=[po.losses.Completeness(total, counts > 0)],
)
print("\ncompared with the optima that add up")
table = front.distances().assign(**{"at the knee": at_the_knee(front)})
print(table[columns].round(3).to_string(index=False))

best = front.knee()
irreducible = float(best.details["irreducible.shared_robustness"])
print(f"\nat the knee, gap {best.gap:.0e}; irreducible roughness {irreducible:.3g}:")
print(best.shares())
print(best.certain())

similarities = graph.similarities.toarray()
first, second = np.unravel_index(similarities.argmax(), similarities.shape)
pair = [texts.index[first], texts.index[second]]
print("\ntwo reviews, and the rms difference of the words in both")
print("\n".join(texts[pair]))
shared = (counts[[first, second]] > 0).all(axis=0)
for name, made in {**lime, "Shapley values": shapley, "robust": best}.items():
    one, other = made.attributions[[first, second]][:, shared]
    print(f"{name:20} {np.sqrt(((one - other) ** 2).mean()):.4f}")

figure, axes = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
curve.plot(ax=axes[0])
axes[0].set_title("faithful to the limit of LIME")
front.plot(ax=axes[1])
axes[1].set_title("faithful to Shapley values, with contributions that add up")
figure.savefig("explain_reviews.png", dpi=100)
plt.close(figure)
