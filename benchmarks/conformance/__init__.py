"""Conformance of TreeSHAP: ``python -m benchmarks.conformance``.

Small tree models, each in a situation that is known to be difficult, are explained by
every installed library that computes interventional Shapley values. The reference is
the definition: all coalitions of columns, evaluated by the model's own predictions.
"""
