"""The bars: promises of a release about speed and safety, measured against peers where possible."""
