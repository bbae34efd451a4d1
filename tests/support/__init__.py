"""What tests share: programs to run, generators of random ones, and oracles to compare with."""
