"""Every OpenAI-compatible server, working in pydantic-ai as well as OpenAI itself does."""
