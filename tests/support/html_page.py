"""An HTML page, taken apart."""
from html.parser import HTMLParser

VOID = {'meta', 'img', 'br', 'source', 'input'}


class HTMLPage(HTMLParser):
    """Asserts that elements are closed in order and ids are unique.

    Attributes:
        tags (list[tuple]): each element's tag and attributes, in order.
        texts (list[tuple[str, str]]): tag and text, in order.
    """

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts, self._open = [], [], []
        self.feed(text)
        self.close()
        assert not self._open
        ids = self.values('id')
        assert len({*ids}) == len(ids)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open:
            self.texts.append((self._open[-1], data))

    def within(self, tag):
        """The texts directly in elements of a kind."""
        return [text for name, text in self.texts if name == tag]

    def attributes(self, tag):
        """Of each element of a kind."""
        return [found for name, found in self.tags if name == tag]

    def values(self, key):
        """Of an attribute, wherever it is."""
        return [found[key] for _, found in self.tags if key in found]
