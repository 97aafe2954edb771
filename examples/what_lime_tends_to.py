"""LIME for one patient: two runs, what both scatter around, and what that hides.

The lime package draws 5,000 samples, and another seed gives other coefficients. What
they tend to is computed exactly here, without a seed. It is not the end of doubt: the
diagnosis says where a coefficient is made by bins and not by the model.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import propopt as po


data = load_breast_cancer(as_frame=True)
X, X_new, y, y_new = train_test_split(data.data, data.target == 0, random_state=0)
model = RandomForestClassifier(100, max_depth=8, random_state=0).fit(X, y)
print(f"a forest for malignant tumours, accuracy {model.score(X_new, y_new):.3f}\n")

function = po.wrap(model, target=True, data=X)
patient = X_new.iloc[[5]]
package = po.explainers.LimePackage(background=X)
runs = [package.explain(function, patient, rng=seed).attributions[0] for seed in (0, 1)]
lime = po.lime.limits(function, patient, data=X)
noise, mean = lime.noise()[0], lime.expected()[0]

name = patient.index[0]
print(f"{'feature and bin':45}    run 1    run 2    exact  sd of a run")
for (words, exact), (j, _) in zip(
    lime.as_list(name)[:8], lime.as_map(name)[1], strict=False
):
    numbers = (runs[0][j], runs[1][j], exact, noise[j])
    print(f"{words:45}", *(f"{number:8.4f}" for number in numbers))
z = np.abs(runs - mean) / noise
print(f"runs are {z.mean():.2f} sd from their mean on average, at most {z.max():.1f}")
unsure = np.abs(lime.coefficients[0]) < 2 * noise
print(f"{unsure.sum()} of 30 coefficients are within 2 sd of zero in one run")

print("\nWhat the exact coefficients hide")
diagnosis = lime.diagnose()
for rule in diagnosis.rules[:5]:
    print(f"- {rule}: {diagnosis.of(rule)[0].sentence}")

# the whole family of LIME, one member for each kernel width, without a sample
widths = np.geomspace(0.5, 50.0, 50)
family = [
    po.explainers.ExactLime(kernel_width=width, background=X)
    .explain(function, patient)
    .attributions[0]
    for width in widths
]
turned = (np.sign(family) != np.sign(family[-1])).any(axis=0)
print(f"\n{turned.sum()} of 30 coefficients have another sign at a narrower kernel")
