"""What is explained: points, and a function or a model; sections and their builds."""
