"""GSPMD's notation: ``mhlo.sharding`` attributes and the custom calls that go with them."""
