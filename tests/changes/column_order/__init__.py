"""Tests of an event order by column."""
