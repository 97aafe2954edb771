"""What fitted models are made of; it knows nothing of functions and explanations."""
