"""Finds where a run departs from a reference, and which decision of rlx is to blame."""
