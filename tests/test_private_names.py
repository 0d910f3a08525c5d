"""Private names of other libraries that the package uses, each with a test.

A new one comes into this list with a test that fails where the library gives
it up.
"""
import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
USED = {*'''
_accumulative_counts _are_functorch_transforms_active _backward_hooks
_backward_pre_hooks _BatchNorm _compiled_call_impl _current_graph_task_id
_current_level _forward_hooks _forward_pre_hooks _freeze_stages _get_layout
_global_backward_hooks _global_backward_pre_hooks _global_forward_hooks
_global_forward_pre_hooks _imported _inner_count _input_metadata
_is_lazy_import _legacy_load _load _load_from _load_from_state_dict _locations
_make_stem_layer _max_epochs _max_iters _module_dict _modules _orig_mod
_parameters _rebuild_parameter _register_load_state_dict_pre_hook _resume
_run_exitfuncs _save_best_checkpoint _saved_alpha _schemes _swap_ema_parameters
_torchdynamo_orig_callable _train_loop _Unpickler _val_loop _version
_vis_backends
'''.split()}
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
    # What a library and we both have is asked of the library's objects. Only
    # overridden: _save_checkpoint_with_step (test_atomic_checkpoint_hook.py).
    both = {'_freeze_stages', '_load', '_load_from_state_dict',
            '_make_stem_layer', '_resume', '_save_best_checkpoint'}
    assert asked - (own - both) - NOT_MEANT == USED
