"""A turn with a model.

chat.py           run_turn: the plain case, for OpenAI-compatible clients
whole_turns.py    what `AgentOS.turn` and `AgentOS.resume` do
turn_run.py       a turn under way: ask, run the calls, answer, until it ends
turn_outcome.py   what comes of a turn: Turn, TurnEvent, and its limits
turn_guards.py    guardrails and response processors of a turn
model_requests.py requests to sync and async clients, whole and streamed
waiting_turns.py  turns that wait for a person, kept in the store
adapters/         the providers
"""
