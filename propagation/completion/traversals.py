"""The orders in which completion visits ops."""

from __future__ import annotations

# By name: the directions of the sweeps over a function, one after the other. -1 is backward.
TRAVERSALS = {
    "backward": (-1,),
    "forward": (1,),
    "backward-forward": (-1, 1),
    "forward-backward": (1, -1),
}
