"""Footers of other writers: checked by our own Thrift pass before a decoder sees them."""
