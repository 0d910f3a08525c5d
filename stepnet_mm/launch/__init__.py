"""From a config to a running Runner or a record.

May import: config, datasets, recording, safe_loading, stiffness, utils.
"""
