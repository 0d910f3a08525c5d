"""What several stiffness records say together: correlation, stiff blocks.

May import: stiffness.
"""
from ..lazy_exports import lazy_exports

__getattr__, __all__ = lazy_exports(
    __name__,
    dict(
        correlation=['STATISTICS', 'by_method', 'check_runs', 'correlate',
                     'correlate_within', 'group_means', 'method_of',
                     'rank_correlations'],
        runs=['Run', 'read_run', 'read_runs_table'],
        selection=['pool_records', 'rank_blocks', 'step_blocks']))
