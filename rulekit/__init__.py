"""The rule kit: adding op rules for any dialect, and checking and showing them."""
