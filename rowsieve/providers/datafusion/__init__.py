"""Lets DataFusion read our tables."""
