"""Answers as data, and as people read them: text that fits a screen, HTML, graphs, pictures."""
