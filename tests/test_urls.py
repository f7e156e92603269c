"""Base URLs: what people paste, and what becomes of it."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from oaicompat import _urls

ENDPOINTS = ('/chat/completions', '/completions', '/responses', '/models', '/embeddings')


@pytest.mark.parametrize(
    ('pasted', 'meant'),
    [
        ('http://localhost:8000/v1', 'http://localhost:8000/v1'),
        ('http://localhost:8000/v1/', 'http://localhost:8000/v1'),
        ('http://localhost:8000/v1///', 'http://localhost:8000/v1'),
        ('  http://localhost:8000/v1\n', 'http://localhost:8000/v1'),
        ('localhost', 'http://localhost'),
        ('localhost:8000', 'http://localhost:8000'),
        ('localhost/v1', 'http://localhost/v1'),
        ('LOCALHOST:8000/v1/', 'http://localhost:8000/v1'),
        ('127.0.0.1:8000/v1', 'http://127.0.0.1:8000/v1'),
        ('127.8.9.10', 'http://127.8.9.10'),
        ('0.0.0.0:8000', 'http://0.0.0.0:8000'),
        ('[::1]:8000/v1', 'http://[::1]:8000/v1'),
        ('[::]:8000', 'http://[::]:8000'),
        ('http://[2001:DB8::1]:8000/v1', 'http://[2001:db8::1]:8000/v1'),
        ('http://[::1]/v1', 'http://[::1]/v1'),
        ('HTTPS://API.Example.COM/V1', 'https://api.example.com/V1'),
        ('https://api.example.com', 'https://api.example.com'),
        ('https://api.example.com:8443', 'https://api.example.com:8443'),
        ('https://api.example.com//openai//v1', 'https://api.example.com/openai/v1'),
        ('https://api.z.ai/api/paas/v4', 'https://api.z.ai/api/paas/v4'),
        ('https://api.example.com/v1?', 'https://api.example.com/v1'),
        ('http://my_gpu-box:8000/v1', 'http://my_gpu-box:8000/v1'),
        ('https://host/chatty/completionsist', 'https://host/chatty/completionsist'),
        ('https://host/api/models-v2', 'https://host/api/models-v2'),
    ],
)
def test_one_spelling_comes_out(pasted: str, meant: str) -> None:
    assert _urls.normalize(pasted) == meant


@pytest.mark.parametrize('slash', ['', '/', '//'])
@pytest.mark.parametrize('endpoint', ENDPOINTS)
@pytest.mark.parametrize('base', ['https://api.example.com/v1', 'https://api.example.com', 'http://localhost:1/a/b'])
def test_a_pasted_endpoint_is_taken_off(base: str, endpoint: str, slash: str) -> None:
    assert _urls.normalize(f'{base}{endpoint}{slash}') == base


@pytest.mark.parametrize(
    ('pasted', 'meant'),
    [
        ('localhost:11434', 'http://localhost:11434/v1'),
        ('http://localhost:11434/', 'http://localhost:11434/v1'),
        ('http://gpu.lan:8000', 'http://gpu.lan:8000/v1'),
        ('http://localhost:11434/v1', 'http://localhost:11434/v1'),
        ('http://localhost:11434/v1/', 'http://localhost:11434/v1'),
        ('http://localhost:8000/models', 'http://localhost:8000/v1'),
        ('localhost:8000/chat/completions', 'http://localhost:8000/v1'),
        ('localhost:8000/v1/chat/completions', 'http://localhost:8000/v1'),
        # Whoever writes a path has said where the API is.
        ('http://localhost:8000/v2', 'http://localhost:8000/v2'),
        ('http://gpu.lan/qwen', 'http://gpu.lan/qwen'),
        ('http://gpu.lan/qwen/chat/completions', 'http://gpu.lan/qwen'),
    ],
)
def test_a_runtime_known_to_serve_v1_gets_it_where_no_path_is(pasted: str, meant: str) -> None:
    assert _urls.normalize(pasted, versioned=True) == meant


@pytest.mark.parametrize(
    ('nonsense', 'error'),
    [
        ('', "'' is not an http or https URL such as http://localhost:8000/v1"),
        ('   ', "'' is not an http or https URL such as http://localhost:8000/v1"),
        ('nonsense', "'nonsense' is not an http or https URL such as http://localhost:8000/v1"),
        ('gpu:8000/v1', "'gpu:8000/v1' is not an http or https URL such as http://localhost:8000/v1"),
        ('ftp://host/v1', "'ftp://host/v1' is not an http or https URL such as http://localhost:8000/v1"),
        ('//host/v1', "'//host/v1' is not an http or https URL such as http://localhost:8000/v1"),
        (
            'api.example.com/v1',
            (
                "'api.example.com/v1' is not an http or https URL such as http://localhost:8000/v1; "
                'did you mean https://api.example.com/v1?'
            ),
        ),
        (
            '192.168.1.5:8000/v1',
            (
                "'192.168.1.5:8000/v1' is not an http or https URL such as http://localhost:8000/v1; "
                'did you mean http://192.168.1.5:8000/v1?'
            ),
        ),
        ('http://', "'http://' names no host; expected a URL such as http://localhost:8000/v1"),
        ('http:///v1', "'http:///v1' names no host; expected a URL such as http://localhost:8000/v1"),
        ('http://:8000/v1', "'http://:8000/v1' names no host; expected a URL such as http://localhost:8000/v1"),
        ('http:/localhost', "'http:/localhost' names no host; expected a URL such as http://localhost:8000/v1"),
        ('http://a b/v1', "'http://a b/v1' names no host; expected a URL such as http://localhost:8000/v1"),
        ('http://host/a b', "'http://host/a b' names no host; expected a URL such as http://localhost:8000/v1"),
        (
            'https://h/v1?a=b',
            "'https://h/v1' comes with a query or fragment; query parameters belong in the `query` of a config",
        ),
        (
            'https://h/v1#a',
            "'https://h/v1' comes with a query or fragment; query parameters belong in the `query` of a config",
        ),
        ('http://u:p@host/v1', 'credentials in a URL would show up in logs; pass them as `api_key` or as a header'),
        ('http://u@host/v1', 'credentials in a URL would show up in logs; pass them as `api_key` or as a header'),
    ],
)
def test_nonsense_is_one_clear_error(nonsense: str, error: str) -> None:
    with pytest.raises(ValueError, match=r'\S') as caught:
        _urls.normalize(nonsense)
    assert str(caught.value) == error


@pytest.mark.parametrize('url', ['http://host:port/v1', 'http://host:99999/v1', 'http://[::1/v1', 'http://[nope]/v1'])
def test_what_python_cannot_split_names_the_value_and_the_cure(url: str) -> None:
    with pytest.raises(ValueError, match=r'\S') as caught:
        _urls.normalize(url)
    assert str(caught.value).startswith(repr(url))
    assert str(caught.value).endswith('expected one such as http://localhost:8000/v1')


@pytest.mark.parametrize('value', [None, 8000, b'http://localhost', ['http://localhost']])
def test_a_value_that_is_no_text_is_told_by_its_type(value: object) -> None:
    with pytest.raises(ValueError, match=r'\S') as caught:
        _urls.normalize(value)  # type: ignore[arg-type]
    assert str(caught.value) == f'expected a URL such as http://localhost:8000/v1, got {type(value).__name__}'


def test_a_long_value_is_cut_in_the_error() -> None:
    with pytest.raises(ValueError, match='is not an http') as caught:
        _urls.normalize('x ' * 10_000)
    assert len(str(caught.value)) < 300


segments = st.lists(st.sampled_from(['v1', 'api', 'V4', '', 'models', *(end[1:] for end in ENDPOINTS)]), max_size=5)
hosts = st.sampled_from(['http://localhost:8000', 'localhost', '127.0.0.1:1', 'HTTPS://API.Example.com', '[::1]:80'])


@given(host=hosts, path=segments, versioned=st.booleans())
@example(host='http://h', path=['models', 'models'], versioned=False)
@example(host='http://h', path=['completions', 'chat', 'completions'], versioned=True)
def test_normalising_twice_changes_nothing(host: str, path: list[str], *, versioned: bool) -> None:
    once = _urls.normalize('/'.join([host, *path]), versioned=versioned)
    assert _urls.normalize(once, versioned=versioned) == once


@given(st.text(max_size=30))
def test_any_text_is_a_url_or_a_short_error(text: str) -> None:
    try:
        once = _urls.normalize(text)
    except ValueError as error:
        assert 'http://localhost:8000/v1' in str(error) or '`query`' in str(error) or '`api_key`' in str(error)  # noqa: PT017 - either is right
    else:
        assert once.startswith(('http://', 'https://'))
        assert _urls.normalize(once) == once


marks = st.text('abc0/:@?#[]%!\\\u2100 ', max_size=4)


@given(
    st.sampled_from(['http://', 'https://', 'ftp://', '//', '']), marks, marks, st.sampled_from(['', ':8000', ':no'])
)
@example('http://', 'pa@', 'x', ':no')
@example('http://', 'pa/', 'x', '')
@example('http://', 'pa?', 'x', '')
@example('http://', 'pa\u2100', 'x', '')
@example('', '', '', '')
def test_an_error_never_holds_the_password_of_a_url(scheme: str, before: str, after: str, port: str) -> None:
    """Nor a part of it, whatever unescaped marks make of the rest of the URL."""
    try:
        _urls.normalize(f'{scheme}user:{before}hunter2{after}@host.example.com{port}/v1')
    except ValueError as error:
        assert 'hunter2' not in str(error)  # noqa: PT017 - a password with a slash can make a URL, wrong but whole


@pytest.mark.parametrize(
    'url',
    [
        'https://h/v1?key=hunter2',
        'https://h/v1#hunter2',
        'api.example.com/v1?key=hunter2',
        'api.example.com?key=hunter2',
        'localhost:8000/v1?key=hunter2',
        'ftp://h/v1?key=hunter2',
    ],
)
def test_an_error_never_holds_a_query(url: str) -> None:
    with pytest.raises(ValueError, match=r'\S') as caught:
        _urls.normalize(url)
    assert 'hunter2' not in str(caught.value)


@pytest.mark.parametrize(
    ('url', 'name'),
    [
        ('http://localhost:8000/v1', 'localhost-8000'),
        ('https://api.example.com/v1', 'api.example.com'),
        ('https://API.Example.com', 'api.example.com'),
        ('http://my_box:1', 'my_box-1'),
        ('http://[::1]:8000/v1', '1-8000'),
        ('http://user:hunter2@host/v1', 'host'),
    ],
)
def test_a_server_without_a_row_is_named_by_its_host(url: str, name: str) -> None:
    assert _urls.name_of(url) == name


@pytest.mark.parametrize(
    ('url', 'other', 'same'),
    [
        ('https://api.x.ai/v1', 'https://api.x.ai/v1', True),
        ('https://api.x.ai', 'https://API.X.AI/other/path', True),
        ('https://api.x.ai:443/v1', 'https://api.x.ai/v1', True),
        ('http://h:80', 'http://h', True),
        ('https://api.x.ai:8443/v1', 'https://api.x.ai/v1', False),
        ('https://api.x.ai', 'https://x.ai', False),
        ('https://api.x.ai.evil.test', 'https://api.x.ai', False),
        ('https://api.x.ai@evil.test', 'https://api.x.ai', False),
        # A key must not go over the wire in the clear because somebody dropped the s.
        ('http://api.x.ai', 'https://api.x.ai', False),
        ('https://api.x.ai', None, False),
    ],
)
def test_a_host_is_the_same_with_its_scheme_and_port(url: str, other: str | None, same: bool) -> None:
    assert _urls.same_host(url, other) is same


@pytest.mark.parametrize(
    ('url', 'openai'),
    [
        ('https://api.openai.com/v1', True),
        ('https://eu.api.openai.com/v1', True),
        ('https://API.OPENAI.COM', True),
        ('https://openai.com', True),
        ('https://notopenai.com/v1', False),
        ('https://openai.com.evil.test', False),
        ('https://evil.test/api.openai.com', False),
        ('https://api.openai.com@evil.test', False),
        ('https://x.openai.azure.com', False),
        ('http://localhost:8000', False),
    ],
)
def test_openai_is_told_by_its_host_alone(url: str, openai: bool) -> None:
    assert _urls.is_openai(url) is openai


@pytest.mark.parametrize(
    ('url', 'root'),
    [
        ('http://localhost:8080/v1', 'http://localhost:8080'),
        ('http://localhost:8080/v1/', 'http://localhost:8080'),
        ('http://localhost:8080', 'http://localhost:8080'),
        ('http://gpu.lan/qwen/v1', 'http://gpu.lan/qwen'),
        ('http://gpu.lan/v1/qwen', 'http://gpu.lan/v1/qwen'),
    ],
)
def test_the_root_of_a_server_has_no_version(url: str, root: str) -> None:
    assert _urls.server_root(url) == root
