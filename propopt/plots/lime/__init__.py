"""Pictures of what LIME tends to."""
