"""Engines that read and write our tables, one folder each."""
