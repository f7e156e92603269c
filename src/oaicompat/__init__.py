"""Every OpenAI-compatible server, working in pydantic-ai as well as OpenAI itself does.

A name is imported when it is first asked for: `import oaicompat` by itself costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from threading import RLock as _RLock

TYPE_CHECKING = False  # importing `typing` takes longer than all else here; type checkers take this for true
if TYPE_CHECKING:
    from oaicompat.discovery import ListedModel, list_models
    from oaicompat.errors import is_retryable
    from oaicompat.models import OpenAICompatibleModel, OpenAICompatibleResponsesModel
    from oaicompat.profile import CompatibleModelProfile
    from oaicompat.routing import infer_model
    from oaicompat.servers import Server, register_server

    __version__: str

__all__ = [
    'CompatibleModelProfile',
    'ListedModel',
    'OpenAICompatibleModel',
    'OpenAICompatibleResponsesModel',
    'Server',
    'infer_model',
    'is_retryable',
    'list_models',
    'register_server',
]

_ROOMS = {
    'CompatibleModelProfile': 'profile',
    'ListedModel': 'discovery',
    'OpenAICompatibleModel': 'models',
    'OpenAICompatibleResponsesModel': 'models',
    'Server': 'servers',
    'infer_model': 'routing',
    'is_retryable': 'errors',
    'list_models': 'discovery',
    'register_server': 'servers',
}


_LOCK = _RLock()  # two threads that import pydantic-ai from two ends of its circle fail both

if not TYPE_CHECKING:  # a type checker would take any name for one

    def __getattr__(name: str) -> object:
        # `from oaicompat import _room` asks here first, in a room that is being imported, for which another may wait.
        if name != '__version__' and name not in _ROOMS and name not in _SUBMODULES:
            raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
        with _LOCK:
            if name == '__version__':
                from importlib.metadata import version  # takes longer than all else here

                return version('oaicompat')
            if name in _ROOMS:
                value: object = getattr(_import_module(f'oaicompat.{_ROOMS[name]}'), name)
                if str(getattr(value, '__module__', '')).startswith('oaicompat.'):  # and no test's stand-in for it
                    globals()[name] = value
                return value
            return _import_module(f'oaicompat.{name}')


# They were there after `import oaicompat` before names were imported one by one.
_SUBMODULES = frozenset(('discovery', 'errors', 'models', 'profile', 'repairs', 'routing', 'servers'))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, '__version__'} - {'TYPE_CHECKING'})
