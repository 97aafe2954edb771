"""Conclusions: what is certain of explanations, what they keep, what lasts."""
