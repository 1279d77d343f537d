"""Providers, which let engines read and write our tables; one folder per engine."""
