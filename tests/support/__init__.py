"""Support for tests: programs to run, generators of random ones, and oracles to compare with."""
