"""Libraries that are not installed, as a child process sees it."""

#: Begins the script of one: after ``hide(names)`` every finder answers "not
#: here" for these, as it does for a library that is absent.
HIDE = '''
import sys

class Without:
    def __init__(self, finder, names):
        self.finder, self.names = finder, names

    def __getattr__(self, name):
        return getattr(self.finder, name)

    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] not in self.names:
            return self.finder.find_spec(name, path, target)

def hide(names):
    sys.meta_path[:] = [Without(finder, names) for finder in sys.meta_path]
'''
