"""Packs in processes of their own: what they say crosses as messages, never as pickled objects.

workers.py            Workers: all of a host's, listed, restarted, and what they said
worker.py             PackWorker: mounts a process when it is needed, asks it, notes its deaths
worker_process.py     one process, from its start to its end
worker_events.py      what is told of workers
worker_log.py         what a worker prints and logs, bounded and masked
kept_declarations.py  what packs declared last time, so that a listing starts nothing
host_answers.py       what the host answers to a worker: secrets, by its own scope
declaration.py        a pack as JSON, and back as a pack of proxies
contexts.py           what the host says of the contexts that it gives to functions
wire_values.py        values as JSON and back
peer.py               requests and answers between two processes
frames.py             messages on a stream of bytes
launching.py          how a worker is started: interpreters.py, environments.py, confinement.py, process_limits.py
start.py              the first lines of a worker; child.py, channel.py and child_contexts.py are the rest of it
"""
