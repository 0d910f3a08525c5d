"""MkDocs hook: an API page for each folder of the package.

The public names are read from the source, as mkdocstrings reads it: nothing
is imported, so that torch need not be there.
"""
import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[3] / 'stepnet_mm'
#: Modules whose classes are public as registered names, by folder.
BINDINGS = {
    'stepnet_mm.models': tuple(
        f'stepnet_mm.models.{name}' for name in (
            'cifar_resnet', 'mmdet_binding', 'self_attention_net', 'vit')),
    'stepnet_mm.datasets': ('stepnet_mm.datasets.cifar_stl10', ),
}
#: A folder's own docstring, above its names.
ABOUT = ('    options: {members: false, show_root_heading: false, '
         'show_root_toc_entry: false}\n')


def packages() -> list[str]:
    """The package and its folders."""
    return ['stepnet_mm', *(f'stepnet_mm.{path.parent.name}'
                            for path in sorted(PACKAGE.glob('*/__init__.py')))]


def public_names(package: str) -> dict[str, str]:
    """Name -> its place, as in `from PACKAGE import NAME`.

    Args:
        package (str): ``'stepnet_mm'`` or a folder, ``'stepnet_mm.steps'``.

    Returns:
        dict: what its ``__all__`` has, without what comes from another
        folder; places as ``'stepnet_mm.steps.adaptor.StepAdaptor'``.
    """
    tree = _tree(f'{package}.__init__')
    names, public = {}, None
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            names |= {alias.name: node.module for alias in node.names}
        elif isinstance(node, ast.Call) and _name(node.func) == 'dict':
            names |= {name: lazy.arg for lazy in node.keywords
                      for name in ast.literal_eval(lazy.value)}
        elif (isinstance(node, ast.Assign)
              and _name(node.targets[0]) == '__all__'):
            public = ast.literal_eval(node.value)
    return {name: '.'.join(filter(None, (package, module, name)))
            for name, module in sorted(names.items())
            if not public or name in public}


def _tree(module: str) -> ast.Module:
    path = PACKAGE.parent / f'{module.replace(".", "/")}.py'
    return ast.parse(path.read_text())


def _name(node: ast.AST) -> str | None:
    return node.id if isinstance(node, ast.Name) else None


def page(package: str) -> str:
    """The Markdown of a folder's page, or '' if nothing of it is public."""
    names = [*public_names(package).values()]
    names += [f'{module}.{name}' for module in BINDINGS.get(package, ())
              for name in _classes(module)]
    if not names:
        return ''
    return f'# {package}\n\n::: {package}\n{ABOUT}' + ''.join(
        f'\n::: {name}\n' for name in names)


def _classes(module: str) -> list[str]:
    return [node.name for node in _tree(module).body
            if isinstance(node, ast.ClassDef) and node.name[0] != '_']


def on_files(files, config):
    """Add the pages."""
    from mkdocs.structure.files import File  # the tests do without
    for package in packages():
        if text := page(package):
            files.append(File.generated(
                config, f'api/{package}.md', content=text))
    return files
