"""From a config to a running Runner.

May import: config, datasets, safe_loading, utils.
"""
