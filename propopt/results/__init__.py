"""Results: explanations, and what every result of propopt can do."""
