"""The bars: what a release promises about speed and safety, each measured beside its peer."""
