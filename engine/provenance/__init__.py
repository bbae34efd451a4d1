"""Proofs: why a tuple holds, and checks of proofs against the text of the rules."""
