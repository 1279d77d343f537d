"""Tests of the writer."""
