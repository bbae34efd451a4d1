"""Short notations for rules of users: op rules of a line each, and lists of op priorities.

Comes in: their text. Goes out: the Datalog that they stand for, with the places of errors in them.
"""
