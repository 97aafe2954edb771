"""Explanations, what is proved and concluded of them, and how they are saved."""
