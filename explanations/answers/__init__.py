"""Answers as people read them: text that fits a screen, HTML for notebooks, graphs, pictures."""
