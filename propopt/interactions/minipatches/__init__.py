"""An ensemble of learners on random rows and features, fitted once."""
