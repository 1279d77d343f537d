"""Retention: delete the files of expired versions, and files that no version ever had."""
