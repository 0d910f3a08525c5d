"""From a config to a running Runner.

May import: config, resume, utils.
"""
