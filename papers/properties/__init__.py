"""Directly optimizing explanations for desired properties: fronts of losses."""
