"""From a config to a running Runner or a record; what the doctor checks.

May import: config, datasets, recording, safe_loading, stiffness, utils.
"""
