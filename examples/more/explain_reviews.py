"""Near-duplicate reviews: how far LIME and Shapley values are from the best possible.

Reviews that differ in a word or two should have explanations that differ as little as
the model allows. How little is possible at each cost of faithfulness is a curve, and
each optimum on it is certified: a run of LIME, what LIME tends to, and Shapley values
are measured against it, by the same losses.
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

# the words are those of the lime package, so that its runs can be compared
words = po.functions.TextSchema.of(reviews["text"])
function = po.wrap(model, target="good", output="log_odds", data=words)
similar = po.graphs.document_graph(function.read(reviews["text"])[0])
nearest = similar.similarities.max(axis=1).toarray().ravel()
texts = reviews["text"][nearest > 0.5]
counts, _ = function.read(texts)
graph = po.graphs.document_graph(counts)
print(f"{len(texts)} reviews that resemble another, {graph.n_edges} pairs of them")

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
    """How much more each method costs than the optimum for the weight at the knee."""
    knee = trade_offs.knee()
    costs = [
        sum(c * made.losses[name] for name, c in knee.weights.items())
        for made in trade_offs.baselines
    ]
    return [cost / knee.objective - 1.0 for cost in costs]


columns = ["method", "excess", "at the knee"]
print("\nbeside the optima for what LIME tends to")
table = curve.distances().assign(**{"at the knee": at_the_knee(curve)})
print(table[columns].round(3).to_string(index=False))

# Shapley values add up in each review, and so do the explanations on their curve
shapley = po.explainers.TreeShap().explain(function, texts)
total = function.value(texts) - function.value([""])
front = po.sweep(
    po.GradientMatching(shapley) + robust,
    weights,
    {"Shapley values": shapley},
    subject_to=[po.losses.Completeness(total, counts > 0)],
)
print("\nbeside the optima that add up")
table = front.distances().assign(**{"at the knee": at_the_knee(front)})
print(table[columns].round(3).to_string(index=False))

best = front.knee()
left = float(best.details["irreducible.shared_robustness"])
print(f"\nat the knee, proved to {best.gap:.0e}; {left:.3g} of roughness stays:")
print(best.shares(), best.stability(), sep="\n\n")
print(best.certain())

similarities = graph.similarities.toarray()
first, second = np.unravel_index(similarities.argmax(), similarities.shape)
pair = [texts.index[first], texts.index[second]]
print("\ntwo reviews, and how far their explanations of one word are apart")
print("\n".join(texts[pair]))
shared = (counts[[first, second]] > 0).all(axis=0)
for name, made in {**lime, "Shapley values": shapley, "robust": best}.items():
    one, other = made.attributions[[first, second]][:, shared]
    print(f"{name:20} {np.sqrt(((one - other) ** 2).mean()):.4f}")

figure, axes = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
curve.plot(ax=axes[0])
axes[0].set_title("faithful to what LIME tends to")
front.plot(ax=axes[1])
axes[1].set_title("faithful to Shapley values, adding up")
figure.savefig("explain_reviews.png", dpi=100)
plt.close(figure)
