"""From a config to a running Runner: arguments, process group, trial.

May import: config, resume, safe_loading.
"""
