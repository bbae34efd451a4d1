"""The agenda: items take turns, each turn a solution of a keyed program."""
