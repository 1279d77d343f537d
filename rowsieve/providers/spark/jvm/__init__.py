"""The JVM of a session: which Java there is, its file systems, objects by reflection."""
