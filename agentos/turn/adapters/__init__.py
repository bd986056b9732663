"""One small protocol for the models of all providers, and who speaks it.

model_adapter.py       the protocol: a request out, a response or the parts of one in
openai_chat.py         chat completions, of OpenAI and every endpoint that speaks its language
openai_responses.py    OpenAI's responses
anthropic_messages.py  Anthropic
gemini_contents.py     Gemini, by google-genai
client_kinds.py        which of them a client needs
"""
