"""The text of a config in a checkpoint, which the libraries would run."""
import ast
import warnings

#: Where mmengine takes them from: an inferencer without a config, a resume.
PLACES = (('message_hub', 'runtime_info', 'cfg'), ('meta', 'cfg'),
          ('meta', 'config'))
#: What settings are written with.
_DATA = (ast.Constant, ast.Dict, ast.List, ast.Tuple, ast.Set, ast.Load,
         ast.UnaryOp, ast.USub, ast.keyword)
_CALLS = ('dict', 'set', 'tuple', 'list')


def without_code(checkpoint, filename: str):
    """Take config texts out of a checkpoint that are more than settings.

    Args:
        checkpoint: what was loaded; changed in place.
        filename (str): for the warning.
    """
    for *path, key in PLACES:
        holder = checkpoint
        for name in path:
            holder = holder.get(name) if isinstance(holder, dict) else None
        if isinstance(holder, dict) and not is_data(holder.get(key)):
            del holder[key]
            warnings.warn(
                f'checkpoint {filename}: the text in {".".join(path)}.{key} '
                'is more than settings; it was left out, for the libraries '
                'would run it', stacklevel=2)
    return checkpoint


def is_data(text) -> bool:
    """Whether the text of a config sets plain values and does nothing else.

    As mmengine writes it; ``_base_`` is no part of that, and would read
    another file. Nor are double braces: mmengine replaces what stands in
    them before it reads the text as Python, by text that may be code.
    """
    if not isinstance(text, str):
        return True
    if '{{' in text:
        return False
    try:
        lines = ast.parse(text).body
    except Exception:  # too deep, or no Python
        return False
    return all(isinstance(line, ast.Assign) and _is_name(line.targets)
               and all(map(_is_plain, ast.walk(line.value))) for line in lines)


def _is_name(targets: list) -> bool:
    return [type(target) for target in targets] == [ast.Name] and (
        targets[0].id != '_base_')


def _is_plain(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in _CALLS
    return isinstance(node, _DATA) or (
        isinstance(node, ast.Name) and node.id in _CALLS)
