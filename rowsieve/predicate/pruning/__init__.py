"""Pruning lists of files by bounds that other systems collected: `prune`, and where bounds are."""
