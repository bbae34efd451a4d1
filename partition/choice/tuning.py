"""The constants that steer the choice, each with its unit and where its value comes from.

Most are guesses that work for the programs of the tests. ``python -m shardlog.tests.bench.tuning [NAME
...]`` partitions these with half of each value, and with twice the value, and prints what that changes.

What steers the ways of a single op stands in rules: ``most_spare`` in ``rules/partition/candidates.dl``,
and the discount of small work in ``choice.dl``. The prices without a machine are in
``reshards/prices.py``, and the weights of messages in ``least/sums.py``.
"""

from __future__ import annotations

# ---- What layouts cost -----------------------------------------------------------------------------------

TILE = 4096
"""Bytes of a value that a loop may carry without a price. TPUs allocate tiles of 8 by 128 elements of 4
bytes, also for fewer elements. In the sweep half of it sends 1.3 % more, and twice as much holds 0.4 %
more."""

LATE = 1 / 128
"""Bytes, the cost of leaving a partial sum for later. It only breaks ties: in the sweep half of it, and
twice as much, send as much."""

CARRIED = 1 / 4
"""Bytes sent for each byte that a loop carries beyond propagation's layout. A guess."""

BRIEFLY = 1 / 4
"""The part of the price of a byte of memory that counts where only one op needs it. A guess."""

HANDED_ON = 1 - 1e-6
"""The weight of an op that only hands its operand on. It only breaks ties: values are resharded before
such ops, where the reshard can be combined with others."""

# ---- How many candidates ---------------------------------------------------------------------------------

LAYOUTS = 11
"""Layouts of a value. A guess."""

LAYOUTS_IF_SMALL = 24
"""Layouts of a value in a small program. With 11 the train step of a LLaMA of 32 layers on 64 H100s takes up
to 15 % longer."""

SMALL = 700
"""Ops of a small program, of which equal ones count once: train steps of most models of equal layers are. A
guess."""

STEPS = 5
"""Steps from op to op up to which the surroundings of two values are equal if they have one variable. With 8
the first and the last layers have more variables of their own, and the choice takes up to twice as long for
the same plans."""

STEPS_IF_BOUNDED = 8
"""The same if a lower bound is asked for, which holds for layers that differ, too: with fewer it is up to
10 % lower. A guess."""

TINY = 40
"""Ops of a program that is small enough for ways with spare axes with each layout. A guess."""

COPIES = 6
"""Layouts in which the uses of a value can share a copy. A guess."""

WAYS = 96
"""Ways to compute an op. A guess: in the sweep twice as many change nothing, and half send as much."""

WIDENINGS = 2
"""Rounds of adding layouts: in each, ops see the layouts that their neighbours would like. A guess."""

OPEN_STEPS = 3
"""STEPS if the boundary is open. With 8 the search takes two to three times as long for no better plan, and
with 2 some sums are 0.1 % larger."""

OPEN_LAYOUTS = 40
"""Layouts of a value if the boundary is open. A guess."""

OPEN_COPIES = 4
"""Layouts of copies if the boundary is open. A guess."""

OPEN_WAYS = 160
"""Ways to compute an op if the boundary is open. A guess."""

OPEN_NAMED = 4
"""The next best layouts of a value at an open boundary for which the op that decides is found. A
guess."""

# ---- How long the search for the least sum goes on -------------------------------------------------------

SWEEPS = 40
"""Sweeps of messages in a round. A guess."""

PROOFS = 12
"""Rounds of sweeps that share equally, for a lower bound. A guess."""

OPEN_PROOFS = 40
"""Rounds of sweeps for a lower bound at an open boundary. With 12 the gap of a model that scans was 1.1 %
where it is 0.8 % now; most need two."""

ROUNDS = 30
"""Rounds that carry on what messages know, at most. A guess."""

ALIKE = 1e-5
"""Relative difference of sums up to which there is no gain. A guess."""

STALLED = 3e-4
"""Relative rise of a lower bound below which it is taken as it is. A guess."""

NEAR = 0.002
"""Relative gap of the lower bound up to which a choice counts as the best. A guess."""

NEARLY = 0.03
"""Relative gap of the lower bound up to which hardly anything better is expected. A guess."""

OPEN_NEARLY = 0.01
"""NEARLY if the boundary is open. With 0.03 the search for a LLaMA on 32 x 32 devices ended 2 % above."""

SETTLED = 2
"""Rounds without a gain after which the search ends if the gap is below NEARLY. A guess."""

PATIENCE = 16
"""Rounds without a gain after which it ends otherwise. A guess."""

# ---- Collectives, memory and loops -----------------------------------------------------------------------

COLLECTIVES = 8
"""Collectives whose fixed cost equals the mean bytes that one sends. A guess."""

UNKNOWN_TRIPS = 8
"""Iterations of a loop of unknown trip count. A guess."""

PRICES = 8
"""Steps of the bisection of the price of memory, within a bound. A guess."""

FEW_PRICES = 4
"""The same without a bound. A guess."""

GROWTH = 1.25
"""Memory relative to that of propagation's layouts; programs that need more must send much less. A
guess."""

NOTED = 1.15
"""Estimated memory, relative to that of propagation's layouts, above which the exact memory is computed:
below GROWTH, because estimates can be too low. A guess."""

TRIFLE = 16384
"""Bytes of additional memory that never matter: four tiles of a TPU. A guess."""

DEAR = 16
"""Exponent: n times the memory of GROWTH is as bad as n to this power times the bytes sent. A guess."""

DEAREST = 1e3
"""Bytes sent for a byte of memory, the highest price that is tried. A guess."""

# ---- Copies of XLA for CPUs ------------------------------------------------------------------------------

COMPUTED = 3.0
"""The cost of an element that XLA computes while it transposes, relative to one that it copies. About the
ratio of the times on one machine; there is no command that measures it again."""
