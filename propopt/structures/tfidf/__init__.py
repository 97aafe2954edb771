"""Fitted pipelines from texts to numbers, as exact functions of sets of words."""
