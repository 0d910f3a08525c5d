"""From a config to a running Runner or a record; what the doctor checks.

May import: config, recording, safe_loading, stiffness, utils.
"""
