"""What fitted models are made of; it knows nothing of explanations."""
