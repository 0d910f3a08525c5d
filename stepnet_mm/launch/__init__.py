"""From a config to a running Runner.

May import: config, safe_loading, utils.
"""
