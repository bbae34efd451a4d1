"""The language: text to a syntax tree, with a place for every error."""
