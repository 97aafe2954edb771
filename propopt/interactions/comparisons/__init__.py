"""Scores of pairs as others define them: of a fitted model, without intervals."""
