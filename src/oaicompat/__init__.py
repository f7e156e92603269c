"""Every OpenAI-compatible server, working in pydantic-ai as well as OpenAI itself does."""

from __future__ import annotations

from importlib.metadata import version as _version

from oaicompat.discovery import ListedModel, list_models
from oaicompat.errors import is_retryable
from oaicompat.models import OpenAICompatibleModel, OpenAICompatibleResponsesModel
from oaicompat.profile import CompatibleModelProfile
from oaicompat.routing import infer_model
from oaicompat.servers import Server, register_server

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

__version__ = _version('oaicompat')
