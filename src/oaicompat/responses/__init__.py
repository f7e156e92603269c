"""The Responses API's input items: typed, to pydantic-ai's messages and back."""

from oaicompat.responses.convert import parse_input, to_input
from oaicompat.responses.losses import Loss, loss_report

__all__ = ('Loss', 'loss_report', 'parse_input', 'to_input')
