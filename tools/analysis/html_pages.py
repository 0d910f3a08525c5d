"""Pages of one file each, from the templates beside this module."""
import base64
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def render(template: str, **values) -> str:
    """HTML5 of a file of ``templates/``; the values it names are escaped."""
    return TEMPLATES.get_template(template).render(values)


def data_url(png: bytes) -> str:
    """A picture inside a page."""
    return f'data:image/png;base64,{to_base64(png)}'


def to_base64(content: bytes) -> str:
    """Bytes as text."""
    return base64.b64encode(content).decode()


def number(value) -> str:
    """Of a table: four digits, but an int with all of its own."""
    text = str(value) if isinstance(value, int) else f'{value:#.4g}'
    return text.replace('nan', '–')


TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).with_name('templates')),
    autoescape=True, undefined=StrictUndefined, trim_blocks=True,
    lstrip_blocks=True)
TEMPLATES.filters['number'] = number
