"""Random modules, ops and shardings: what equality with Shardy is tested on."""
