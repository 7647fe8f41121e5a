"""The tests of rlx; helpers are imported as tests.<name>."""
