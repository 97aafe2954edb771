"""Explaining the explainer: LIME with normal samples, on linear functions."""
