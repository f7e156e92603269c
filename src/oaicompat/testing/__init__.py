"""Test agents and clients against a scripted HTTP server that plays exact bytes, pauses and broken connections.

The server is plain asyncio on a loopback port, so the code under test keeps its real client, its real pool and its
real timeouts. `Reply` says what goes over the wire, `ScriptedServer` plays it and records what came in, and
`completion`, `chunk` and `tool_call` write the JSON values of the OpenAI API.

With pytest, `pytest_plugins = ['oaicompat.testing.plugin']` adds the fixture `scripted_server`.
"""

from .reply import Ending, Framing, Reply, ReplyOptions
from .request import BadRequestError, RecordedRequest
from .server import Handler, Script, ScriptedServer, ScriptUsedUpError
from .wire import chunk, completion, tool_call

__all__ = [
    'BadRequestError',
    'Ending',
    'Framing',
    'Handler',
    'RecordedRequest',
    'Reply',
    'ReplyOptions',
    'Script',
    'ScriptUsedUpError',
    'ScriptedServer',
    'chunk',
    'completion',
    'tool_call',
]
