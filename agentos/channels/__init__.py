"""Channels: messages of people come in, are taken once, answered for the principal that their sender is, and sent.

stored_messages.py   a message as a row, and what seals it
inbox.py             what came in: taken once, in order within a conversation
outbox.py            what is to be sent: once, again while it is certain that it was not, never when that is uncertain
running_channels.py  the channels of packs, started and stopped
channel_turns.py     answers by a turn with a model, and decisions on calls that wait
channel_events.py    what is told to the operator
channel_router.py    Channels: all of it together, which is `host.channels`
"""
