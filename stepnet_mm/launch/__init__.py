"""From a config to a running Runner; what the doctor checks beforehand.

May import: config, safe_loading, utils.
"""
