"""The smallest program that is recursive: the paths of a graph; and what reads its edges from a file and
writes its paths to another."""

PATHS = """\
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
PATHS_OF_FILES = (
    PATHS
    + """\
.input edge
.output path
.printsize path
"""
)
