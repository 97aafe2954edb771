"""Fitted pipelines from texts to numbers, read as functions of sets of words."""
