"""Eight CPU devices, set before anything imports JAX, for the tests that run what they lower."""

from __future__ import annotations

import os

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
