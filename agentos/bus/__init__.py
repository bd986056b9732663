"""The bus: packs and hosts tell one another something, by topic; at most once, in the order of each sender.

bus_messages.py      topics and messages: what is refused, and how they are written
subscriptions.py     one listener: its queue, its calls, its end
store_link.py        messages to and from the other hosts of a PostgreSQL store
carriers.py          what carries messages: the built-in way, or a channel of a pack
bus_events.py        what is told to the operator
message_bus.py       MessageBus: all of it together, which is `host.bus`
"""
