"""Pictures of interactions: scores of sets of features with their intervals."""
