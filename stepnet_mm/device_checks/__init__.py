"""What the doctor tries on a device, each check in a process of its own.

:mod:`.series` runs them; a check is a module with a function ``check(report,
device)``, which ``series.CHECKS`` names.

May import: config, datasets, launch, ops, profiling, steps, utils.
"""
