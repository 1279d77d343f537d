"""Whole tables under a scheduler that owns every request, all time and all random numbers."""
