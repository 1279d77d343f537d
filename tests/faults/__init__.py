"""Faults of stores and disks, in one vocabulary for all tests."""
