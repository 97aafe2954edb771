"""Where inputs are drawn near each row, and what is made of the draws."""
