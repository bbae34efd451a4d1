"""What commands have in common, whatever they do, and the command for Datalog.

In: arguments, documents, warnings and errors. Out: text on a terminal, JSON with its schema, and an exit
status.
"""
