"""
Text: words that count alike wherever they stand
================================================

Some reviews are near-duplicates. How much a word counts should then depend little on
which of them it stands in. Shapley values vary; the robust explanation varies less, and
the words of each review still add up to its prediction.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import propopt as po


good = [
    "the soup was hot and the staff were kind",
    "the soup was hot and the staff were so kind",
    "a lovely room and a quiet night",
    "a lovely room, a quiet night and a good breakfast",
    "good food, kind staff, fair price",
    "good food, kind staff and a fair price for the town",
    "we slept well and the breakfast was good",
    "the view is lovely and the bed is soft",
]
bad = [
    "the soup was cold and the staff were rude",
    "the soup was cold and the staff were so rude",
    "a dirty room and a noisy night",
    "a dirty room, a noisy night and a bad breakfast",
    "bad food, rude staff, high price",
    "bad food, rude staff and a high price for the town",
    "we slept badly and the breakfast was cold",
    "the view is a wall and the bed is hard",
]
reviews = good + bad
model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10.0))
model.fit(reviews, ["good"] * len(good) + ["bad"] * len(bad))

# %%
# Contributions of words to the probability of "good". Shapley values are exact here, as
# reviews have few words.
best = po.explain(model, reviews, target="good", kind="contributions")
total = best.prediction - best.base_value
missed = np.abs(best.attributions.sum(axis=1) - total).max()
print(f"words miss f(review) - f(no word) by at most {missed:.0e}")
po.plots.highlight(best, reviews, rows=[0, 1, 8, 9], n_words=4)

# %%
# A dot is a review in which the word stands.
names = best.to_frame().columns
shown = ["hot", "kind", "good", "breakfast", "staff", "and", "the", "rude", "cold"]
inside = {
    word: [n for n, text in enumerate(reviews) if word in text.split()]
    for word in shown
}
figure, ax = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
spread = {}
for label, W, shift, color in (
    ("Shapley values", best.contributions, -0.15, "0.55"),
    ("robust", best.attributions, 0.15, "#0072b2"),
):
    parts = {word: W[inside[word], names.get_loc(word)] for word in shown}
    spread[label] = np.mean([np.ptp(values) for values in parts.values()])
    x = np.concatenate(list(parts.values()))
    y = np.repeat(np.arange(len(shown)), [len(values) for values in parts.values()])
    ax.plot(x, y + shift, "o", ms=5, alpha=0.8, color=color, label=label)
ax.axvline(0, color="0.6", lw=1, zorder=0)
ax.set_yticks(range(len(shown)), [f'"{word}"' for word in shown])
ax.invert_yaxis()
ax.set_xlabel("contribution to the probability of good")
ax.legend()
print({label: f"{width:.3f} from least to most" for label, width in spread.items()})
assert spread["robust"] < 0.7 * spread["Shapley values"]

# %%
# Read on: :doc:`/guide/text`.
