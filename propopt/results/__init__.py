"""What a job gives: explanations, saved and loaded, and those made elsewhere."""
