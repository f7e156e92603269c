"""A key in another argument's place: what is shown of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError
from pydantic_ai.exceptions import UserError

from oaicompat import OpenAICompatibleModel, Server, infer_model
from oaicompat._secrets import unkeyed
from oaicompat.config import StringModelConfig, load_models

REST = 'Zq9' * 8
KEYS = {
    f'{begin}{REST}': f'{begin}...'
    for begin in (
        *('sk-', 'sk_', 'rk_', 'pk-', 'gsk_', 'xai-', 'hf_', 'nvapi-', 'pplx-', 'csk-', 'tgp_', 'fw_', 'r8_', 'sess-'),
        *('ghp_', 'gho_', 'ghu_', 'ghs_', 'github_pat_', 'AIza', 'eyJ'),
    )
}


@pytest.mark.parametrize(('key', 'shown'), [*KEYS.items(), (f'sk-proj-{REST}_{REST}', 'sk-...')])
def test_no_more_is_shown_than_whose_it_is(key: str, shown: str) -> None:
    assert unkeyed(key) == shown
    assert unkeyed(f'x {key}, {key}:m') == f'x {shown}, {shown}:m'


@pytest.mark.parametrize(
    'text',
    [
        *('', 'glm-5', 'claude-sonnet-4-5-20250929', 'anthropic/claude-3-5-sonnet-20241022', 'hf.co/org/model:Q4_K_M'),
        *('https://task-sk-12.example.com/v1', 'risk-assessment-model-large-2026', 'sk-short', 'fw', 'deepseek-r8-x'),
    ],
)
def test_names_and_urls_are_shown(text: str) -> None:
    assert unkeyed(text) == text


@pytest.mark.parametrize(
    'use',
    [
        pytest.param(lambda key: OpenAICompatibleModel('m', base_url=key), id='base_url'),
        pytest.param(lambda key: OpenAICompatibleModel('m', base_url=f'{key}.example.com/v1'), id='host'),
        pytest.param(lambda key: OpenAICompatibleModel('m', provider=key), id='provider'),
        pytest.param(infer_model, id='model'),
        pytest.param(lambda key: infer_model(f'{key}:m'), id='prefix'),
        pytest.param(lambda key: infer_model(f'{key}:'), id='no name'),
        pytest.param(lambda key: infer_model(f':{key}'), id='no prefix'),
        pytest.param(lambda key: infer_model(f'{key},'), id='several'),
        pytest.param(lambda key: infer_model(f'https://{key}/v1'), id='url'),
        pytest.param(lambda key: load_models(f'models:\n  a: {key}\n'), id='file'),
        pytest.param(lambda key: load_models(f'models:\n  a: {{identifier: m, base_url: {key}}}\n'), id='file, url'),
        pytest.param(lambda key: StringModelConfig(identifier=key).get_model(), id='config'),
        pytest.param(lambda key: StringModelConfig(identifier='m', base_url=key).get_model(), id='config, url'),
        pytest.param(
            lambda key: load_models(f'models:\n  a: {{type: string, identifier: vllm:m, top_p: {key}}}\n'), id='fault'
        ),
        pytest.param(lambda key: Server(prefix=f'{key}:'), id='row'),
        pytest.param(lambda key: Server(prefix='a', key_vars=key), id='variables of a row'),
        pytest.param(lambda key: Server(prefix='a', base_url=key), id='url of a row'),
    ],
)
def test_no_error_shows_it(use: Callable[[str], Any]) -> None:
    with pytest.raises((UserError, ValidationError)) as caught:
        use(f'sk-{REST}')
    assert REST not in str(caught.value)
    assert 'sk-...' in str(caught.value)
