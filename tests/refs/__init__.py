"""Tests of branches and tags."""
