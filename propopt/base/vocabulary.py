"""The vocabulary: each label of a card with its definition, formula and basis.

A label has one meaning in all results. Its definition is the tooltip of notebooks and
pages, the glossary of a page, and the table of terms in the documentation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias


Basis: TypeAlias = Literal["computed", "proved", "estimated", "assumed"]
"""The basis of a number; cards write it unless it is computed."""

BASES: Final[Mapping[Basis, str]] = {
    "computed": "Without sampling; not written on cards.",
    "proved": "A bound or an identity.",
    "estimated": "From samples, refits or a fit, which vary.",
    "assumed": "A setting or a default.",
}
"""The meaning of each basis."""


class Definition(NamedTuple):
    """The definition of a label, its formula if it has a short one, and its basis."""

    definition: str
    formula: str = ""
    basis: Basis = "computed"

    @property
    def text(self) -> str:
        """Definition and formula on one line."""
        return f"{self.definition} {self.formula}".rstrip()


TERMS: Final[Mapping[str, Definition]] = {
    # ---- columns of tables
    "mean size": Definition("Mean absolute value over the rows.", "(1/N) Σ_n |w_nd|"),
    "share": Definition("Share of the sum of mean sizes."),
    "from pairs": Definition(
        "Share of the contributions that comes from pairs of features, by sums of "
        "sizes: what both together change, halved between them.",
        "Σ|h| / Σ(|m| + |h|), h_d = Σ_v I_dv/2, m_d = φ_d − h_d",
    ),
    "share of squares": Definition(
        "Share of the sum of the squares of all parts, of pairs and of single "
        "features.",
        "Σ_n I_uv² / Σ_n (Σ m_d² + Σ I_uv²)",
    ),
    "highest for": Definition(
        "The values with the highest contributions: high, low or mixed; the category "
        "with the highest mean, of those in over 5% of rows; missing or present, if "
        "the mean of missing values lies outside the middle 80% of the others; empty "
        "if nothing varies.",
        "sign of Spearman's ρ(x_d, w_d) if |ρ| ≥ 0.5",
    ),
    "sign": Definition("+ or − if all nonzero values have it, else the share with +."),
    "value": Definition("The value of the feature in this row."),
    "contribution": Definition(
        "The part of prediction − base that belongs to a feature.",
        "Σ_d w_nd = f(x_n) − base",
    ),
    "slope": Definition("Change of the output per unit, or per step, of the feature."),
    "SHAP value": Definition(
        "Shapley value of the feature, before optimization.", "φ_nd"
    ),
    "together": Definition(
        "Sum of the contributions of a group of features that data hardly ever has "
        "apart: only the sum is backed by data.",
        "Σ_{d in group} w_nd",
    ),
    "most often": Definition(
        "The features that most often have this rank, with their shares of the rows "
        "with a reason of this rank."
    ),
    "clear": Definition(
        "A small change of the attributions does not turn it: the sign (of reasons "
        "also the rank, or only the direction), which the SHAP value and the sum of "
        "its group share. It does not say that another training sample agrees. Of "
        "scores: those whose interval excludes 0."
    ),
    "clear rows": Definition("Share of the rows with a clear sign (rank)."),
    "stable": Definition(
        "Yes if the reason stays among the first in models of other training samples, "
        "or even as the first; by a rule that holds in 95 % of fresh retrainings.",
        "κ_a φ_a − κ_b φ_b > z √((1 + κ) ṽ_ab)",
        "estimated",
    ),
    "retrained models": Definition(
        "Refits on bootstrap samples with other seeds; of a reason, how many of them "
        "have it among as many first ones as are listed."
    ),
    "listed": Definition("Share of the rows with the feature among the first reasons."),
    "stable rows": Definition(
        "Share of the rows in which the feature (of a rank: the reason) is a stable "
        "reason.",
        "",
        "estimated",
    ),
    "stably first": Definition(
        "Share of the rows in which the first reason stably stays the first.",
        "",
        "estimated",
    ),
    "stable reasons": Definition(
        "Share of the reasons that are stable, and of the rows that have one.",
        "",
        "estimated",
    ),
    "signal": Definition(
        "Share of the squared contributions of a feature that is not noise.",
        "κ = max(0, 1 − v̄ / mean φ²)",
        "estimated",
    ),
    "clearly +": Definition("Share of the rows in which the sign is clearly +."),
    "clearly −": Definition("Share of the rows in which the sign is clearly −."),
    "clearly first": Definition(
        "Share of the rows in which no small change of the row gives another feature "
        "the largest size (value)."
    ),
    # ---- facts of explanations
    "base": Definition(
        "Mean prediction over the background, for LIME over its samples; in an audit "
        "the distance from that mean.",
        "E f(X)",
    ),
    "prediction": Definition("Output of the model for this row.", "f(x)"),
    "gap to optimum": Definition(
        "The objective (distance from SHAP values, weighted differences of similar "
        "rows) is at most this share above its minimum.",
        "(objective − lower bound) / scale",
        "proved",
    ),
    "sampling error": Definition(
        "Root mean square error of sampled values, relative to their size; 0 if exact."
    ),
    "95% intervals": Definition(
        "Intervals of sampled values, of which 95 % hold the value without sampling.",
        "",
        "estimated",
    ),
    "model evaluations": Definition(
        "Rows that the model was given, in the fit too, and the seconds that it took."
    ),
    "additivity error": Definition(
        "Largest distance of a row sum from prediction − base.",
        "max_n |Σ_d w_nd − (f(x_n) − base)|",
    ),
    "differs from SHAP": Definition(
        "Mean distance from the SHAP values, relative to their size.",
        "Σ|w − φ| / Σ|φ|",
    ),
    "top feature as SHAP": Definition(
        "Share of the rows with the same largest feature as the SHAP values."
    ),
    "signs against SHAP": Definition(
        "Values with another sign than the SHAP value, of those that are large: above "
        "10% of the mean over rows of the largest one.",
        "|φ| > 0.1 mean_n max_d |φ_nd|",
    ),
    "mixtures never seen in data": Definition(
        "Share of the mixtures of two rows, of which Shapley values are means, that "
        "data never has although it should: a lower bound, with the features that most "
        "of them separate.",
        "",
        "estimated",
    ),
    "clear signs": Definition("Share of the nonzero values with a clear sign."),
    "certain signs": Definition(
        "Share of the values with the same sign in all near-optimal explanations.",
        "",
        "proved",
    ),
    "certain rows": Definition(
        "Share of the rows in which all near-optimal explanations have this sign.",
        "",
        "proved",
    ),
    "small change": Definition(
        "Length of a change of one row that clear and certain results survive.",
        "5 % of the root mean square length of a row",
        "assumed",
    ),
    # ---- audits
    "row sums": Definition("Largest error of a row sum.", "max |Σ w − (f − base)|"),
    "values": Definition(
        "Largest difference from the exact values for the background; of sampled ones "
        "the share of the values beyond their intervals, which hold together in 99 %.",
        "max |w − φ|",
    ),
    "power": Definition(
        "Share of the values that would be beyond their interval with another sign.",
        "",
        "estimated",
    ),
    "R² with exact": Definition(
        "Squared cosine of values and exact values, if they are not reproduced.",
        "(Σ w φ)² / (Σ w² Σ φ²)",
    ),
    "slope with exact": Definition(
        "Factor of the exact values next to values that are not reproduced.",
        "Σ w φ / Σ φ²",
    ),
    "large signs": Definition(
        "Share of other signs among large values: above 10% of the mean over rows of "
        "the largest one.",
        "max(|w|, |φ|) > 0.1 mean_n max_d |w_nd|",
    ),
    "top 3 features": Definition(
        "Share of the rows with other three largest features."
    ),
    "unused features": Definition(
        "Largest value of a feature that the model does not use.", "max |w|"
    ),
    "main effects": Definition(
        "Share of the squared differences of similar rows that main effects explain; "
        "below 0 if rows differ more without them.",
        "1 − roughness / plain",
    ),
    "required": Definition(
        "Share of the squared differences of similar rows that predictions require, "
        "beyond main effects.",
        "least / plain",
    ),
    "removable differences": Definition(
        "Share of the squared differences of similar rows that neither main effects "
        "nor predictions require.",
        "(roughness − least) / plain",
    ),
    "change to halve them": Definition(
        "Root mean square change of the values that halves the removable differences.",
        "‖v − w‖ / ‖w‖",
        "proved",
    ),
    "change with half background": Definition(
        "Root mean square change of the values with half of the background rows.",
        "‖φ' − φ‖ / ‖φ‖",
        "estimated",
    ),
    "tolerance": Definition(
        "Largest error that passes, with the number of rows that fail.", "", "assumed"
    ),
    # ---- two versions, two groups
    "distance": Definition(
        "Root mean square change of contributions in the same rows; for groups the "
        "difference of the means."
    ),
    "× level": Definition(
        "The distance or the change of mean size, over the largest by chance."
    ),
    "level": Definition(
        "Models that differ by chance: refits of both versions, or random divisions.",
        "",
        "estimated",
    ),
    "total size": Definition("Sum of the mean sizes of all features.", "Σ_d size_d"),
    "false alarms": Definition(
        "Largest share of comparisons without a change in which anything is flagged.",
        "",
        "assumed",
    ),
    # ---- trade-offs
    "faithfulness kept": Definition(
        "Share of the faithfulness of the SHAP values or slopes."
    ),
    "differences removed": Definition(
        "Share of the squared (largest) differences of neighbours that is gone."
    ),
    "feature differences removed": Definition(
        "Share of the squared differences of similar features that is gone."
    ),
    "size removed": Definition("Share of the sum of absolute values that is gone."),
    "removed": Definition("Share of the loss of the target that is gone."),
    "nearest baseline": Definition(
        "The baseline with the lowest objective at these weights, and its excess over "
        "the optimum."
    ),
    "front error": Definition(
        "Mixtures of the optima match any explanation in each loss to within this "
        "share of the range of the loss.",
        "",
        "proved",
    ),
    "between weights": Definition(
        "Largest gap to the optimum at any weight between those tried.", "", "proved"
    ),
    "rows shown": Definition("Rows to choose from, of all rows."),
    "similar rows": Definition(
        "The pairs of rows that are compared.",
        "",
        "assumed",
    ),
    # ---- LIME and iLOCO
    "coefficient": Definition("LIME's coefficient for infinitely many samples."),
    "findings": Definition(
        "Numbers beyond the limit of their rule, with a severity of at least 0.25."
    ),
    "score": Definition(
        "Joint importance of two features, from the rises Δ of the error without "
        "them; of one feature its Δ.",
        "Δ_a + Δ_b − Δ_ab",
        "estimated",
    ),
    "patches": Definition(
        "Learners of random rows and features; their error is a share of that of a "
        "constant prediction.",
    ),
    "interval of runs": Definition(
        "Range of the coefficients of single runs of LIME, with its level.",
        "",
        "estimated",
    ),
    "interval": Definition("Range of the estimate, with its level.", "", "estimated"),
}
"""The labels, in the order of the table of terms."""
