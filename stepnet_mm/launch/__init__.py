"""From a config to a running Runner; what the doctor checks beforehand.

May import: config, datasets, safe_loading, utils.
"""
