"""A real llama.cpp server in this process, on a free loopback port, with the tiny model of the demo."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

DATA = files('oaicompat._demo') / 'data'


@contextmanager
def tiny_server(template: str | None = None) -> Iterator[str]:
    """Start the server; it stops when the block ends.

    Args:
        template: A chat template to use in place of the tiny model's own.

    Yields:
        Its base URL, such as `http://127.0.0.1:40123/v1`. The model's name there is `tiny`.

    Raises:
        ImportError: If the extra `demo` is not installed.
    """
    try:
        import xllamacpp
    except ImportError as error:
        raise ImportError(f'the demo needs {error.name}; install the extra: pip install "oaicompat[demo]"') from None
    with as_file(DATA / 'tiny.gguf') as gguf, _quiet():
        server = xllamacpp.Server(_parameters(xllamacpp, gguf, template or (DATA / 'chat_template.jinja').read_text()))
        try:
            yield f'{server.listening_address}/v1'
        finally:
            # Deleting the object stops the native server; it writes a last log line when it does.
            del server


def _parameters(xllamacpp: Any, gguf: Path, template: str) -> Any:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(gguf)
    parameters.model_alias = 'tiny' if isinstance(parameters.model_alias, str) else ['tiny']
    parameters.chat_template = template
    parameters.use_jinja = True
    parameters.port = 0
    parameters.n_ctx = 8192
    parameters.n_parallel = 2
    parameters.warmup = False
    parameters.fit_params = False
    parameters.verbosity = -1  # its last line is written by a thread that may outlive the redirection
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 2
    return parameters


@contextmanager
def _quiet() -> Iterator[None]:
    """Send what native code writes to standard error to a file: the server's log is not the demo's output."""
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
