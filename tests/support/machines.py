"""A description of a machine: how fast it is is left open."""

MACHINE = """\
name = "test"
flops = {flops}
memory_bandwidth = {bandwidth}
memory = 1
[links]
bandwidth = 1000
latency = 0.5
[links.model]
bandwidth = 10
"""
