"""Measures of speed, memory and allocations."""
