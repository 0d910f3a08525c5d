"""Private names of other libraries that the package uses are all tested.

A test of the file named here fails where the library gives such a name up or
no longer asks for it.
"""
import ast
import re
from pathlib import Path

import mmengine.hooks
import pytest

from stepnet_mm.resume import AtomicCheckpointHook

ROOT = Path(__file__).resolve().parents[1]
USED = {
    'tests/hooks/test_load_report_hook.py': [
        '_register_load_state_dict_pre_hook'],
    'tests/hooks/test_tns_hook.py': ['_vis_backends'],
    'tests/models/test_any_network.py': ['_input_metadata', '_saved_alpha'],
    'tests/models/test_backbone.py': ['_freeze_stages', '_modules'],
    'tests/models/test_fusion.py': [
        '_are_functorch_transforms_active', '_backward_hooks',
        '_backward_pre_hooks', '_current_level', '_forward_hooks',
        '_forward_pre_hooks', '_global_backward_hooks',
        '_global_backward_pre_hooks', '_global_forward_hooks',
        '_global_forward_pre_hooks'],
    'tests/models/test_preact.py': ['_make_stem_layer'],
    'tests/models/test_pretrained_start.py': ['_load_from_state_dict'],
    'tests/recording/test_blocks.py': ['_version'],
    'tests/recording/test_trajectory_recorder.py': [
        '_compiled_call_impl', '_current_graph_task_id', '_orig_mod',
        '_torchdynamo_orig_callable'],
    'tests/resume/test_atomic_checkpoint_hook.py': [
        '_load_from', '_resume', '_save_best_checkpoint', '_train_loop'],
    'tests/resume/test_resumable_loops.py': [
        '_max_epochs', '_max_iters'],
    'tests/resume/test_non_finite_loss_hook.py': [
        '_accumulative_counts', '_inner_count'],
    'tests/resume/test_preemption_hook.py': [
        '_swap_ema_parameters', '_val_loop'],
    'tests/safe_loading/test_malicious_checkpoints.py': [
        '_Unpickler', '_legacy_load', '_load'],
    'tests/safe_loading/test_safe_loading.py': [
        '_get_layout', '_rebuild_parameter', '_schemes'],
    'tests/steps/test_pooling.py': ['_BatchNorm'],
    'tests/test_registration.py': ['_imported', '_locations', '_module_dict'],
    'tests/tools/test_interrupts.py': ['_run_exitfuncs'],
    'tests/utils/test_direct_calls.py': ['_parameters'],
    'tests/tools/test_to_stepnet.py': ['_is_lazy_import'],
}
#: Modules, documented functions, and names that are set by other means.
NOT_MEANT = {'_C', '_utils', '_exit', '_make', '_replace', '_dataset', '_seed',
             '_origin'}


def names_in(source):
    """Those that a file gives to something of its own, that it asks for."""
    own, asked = set(), set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                own.add(name)
            case ast.Name(name, ast.Store()) | ast.Attribute(
                    ast.Name('self' | 'cls'), name, ast.Store()):
                own.add(name)
            case ast.Attribute(attr=name):
                asked.add(name)
            case ast.ImportFrom(level=0, names=aliases):
                asked |= {alias.name for alias in aliases}
            case ast.Call(ast.Name('getattr' | 'hasattr' | 'ReplacedMethod'),
                          args=arguments):
                asked |= {getattr(a, 'value', None) for a in arguments}
    return own, {name for name in asked if re.match('_[^_]', str(name))}


def test_every_private_name_of_another_library_has_its_test():
    own, asked = (set().union(*names) for names in zip(*(
        names_in(path.read_text())
        for path in (ROOT / 'stepnet_mm').rglob('*.py'))))
    # What a library and we both have is asked of the library's objects.
    both = {'_freeze_stages', '_load', '_load_from_state_dict',
            '_make_stem_layer', '_resume', '_save_best_checkpoint'}
    assert asked - (own - both) - NOT_MEANT == {
        name for group in USED.values() for name in group}
    assert all((ROOT / path).is_file() for path in USED)


@pytest.mark.core
def test_methods_that_are_overridden_are_still_there():
    names = {'_save_best_checkpoint', '_save_checkpoint_with_step'}
    for kind in (AtomicCheckpointHook, mmengine.hooks.CheckpointHook):
        assert names <= vars(kind).keys()
