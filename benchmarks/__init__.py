"""Peers side by side: ``python -m benchmarks`` writes tables, ratios and plots."""
