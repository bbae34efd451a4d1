"""The rule kit: showing op rules, and checking that what they say is true.

Comes in: rules and ops. Goes out: tables, explanations of a rule, counter-examples.
"""
