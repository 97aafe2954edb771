"""
Text: words with similar contributions in similar reviews
=========================================================

Some reviews are near-duplicates, so a word should contribute nearly the same to each.
Shapley values vary. The robust explanation varies less, and the words of each review
still add up to its prediction.
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
# Contributions of words to the log-odds of "good". Shapley values are exact here,
# because reviews have few words.
best = po.explain(model, reviews, target="good", kind="contributions")
total = best.prediction - best.base_value
error = np.abs(best.attributions.sum(axis=1) - total).max()
print(f"words add up to f(review) - f(no word), with an error of {error:.0e}")
best.plot.text(reviews, rows=[0, 1, 8, 9], n_words=4)

# %%
# Each dot is a review that contains the word.
names = best.to_frame().columns
words = ["hot", "kind", "good", "breakfast", "staff", "and", "the", "rude", "cold"]
inside = {
    word: [n for n, text in enumerate(reviews) if word in text.split()]
    for word in words
}
figure, ax = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
spread = {}
for label, W, shift, color in (
    ("Shapley values", best.contributions, -0.15, "0.55"),
    ("robust", best.attributions, 0.15, "#0072b2"),
):
    parts = {word: W[inside[word], names.get_loc(word)] for word in words}
    spread[label] = np.mean([np.ptp(values) for values in parts.values()])
    x = np.concatenate(list(parts.values()))
    y = np.repeat(np.arange(len(words)), [len(values) for values in parts.values()])
    ax.plot(x, y + shift, "o", ms=5, alpha=0.8, color=color, label=label)
ax.axvline(0, color="0.6", lw=1, zorder=0)
ax.set_yticks(range(len(words)), [f'"{word}"' for word in words])
ax.invert_yaxis()
ax.set_xlabel('contribution to the log-odds of "good"')
ax.legend()
print({label: f"mean range {width:.3f}" for label, width in spread.items()})
assert spread["robust"] < 0.7 * spread["Shapley values"]

# %%
# Read on: :doc:`/guide/text`.
