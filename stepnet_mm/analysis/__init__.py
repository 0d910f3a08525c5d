"""What several stiffness records say together.

May import: stiffness, utils.
"""
from ..lazy_exports import lazy_exports

__getattr__, __all__ = lazy_exports(
    __name__,
    dict(
        correlation=['STATISTICS', 'by_method', 'check_runs', 'correlate',
                     'correlate_within', 'group_means', 'method_of',
                     'rank_correlations'],
        intervals=['FEW_SEEDS', 'MethodTNS', 'group_seeds',
                   'tns_by_method'],
        runs=['Run', 'choose_definition', 'continued', 'read_run',
              'read_runs_table', 'read_stiffness_curve',
              'read_stiffness_curves'],
        selection=['check_block_count', 'pool_records', 'random_blocks',
                   'rank_blocks', 'step_blocks', 'stiffest_blocks',
                   'warn_of_no_area']))
