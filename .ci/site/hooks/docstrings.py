"""Griffe extension: the roles and blocks of docstrings as Markdown."""
import re

import griffe


class Roles(griffe.Extension):
    """Docstrings here have Google's sections and Sphinx's roles."""

    def on_object(self, *, obj, **kwargs):
        """Convert an object's docstring."""
        if obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value)


def markdown(text: str) -> str:
    """``:func:`~.a.b``` -> code, ``:math:`` and ``.. math::`` -> dollars."""
    text = re.sub(r':math:`([^`]*)`', r'$\1$', text)
    text = re.sub(r':\w+:`~?\.?(?:\w+\.)*(\w+)`', r'`\1`', text)
    text = re.sub(r'^\.\. math::(.*\n(?:[ \t]+\S.*(?:\n|$))*)', _display,
                  text, flags=re.M)
    # A folder's docstring ends with a line for its authors.
    text = re.sub(r'^May import:[^.]*\.$', '', text, flags=re.M)
    return re.sub(r'^::$', '', text, flags=re.M)


def _display(match) -> str:
    return f'$$\n{" ".join(match[1].split())}\n$$\n'
