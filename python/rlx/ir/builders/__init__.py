"""Builder mixins, one theme a file; ir/build.py composes them."""
