"""The command `agentos`. Everything here needs the extra `cli`.

main.py         the door: help costs nothing, a command's code is imported when it is named (_commands.py, _app.py)
_app.py         what every command gets: configuration, a host, a way to say things, one way to end badly
output.py       what is said, to people and as JSON (_drawing.py, _text.py, _logging.py, _held.py)
config.py       one manifest, layered with what is beside it, in the environment and on the command line
files.py        folders that appear complete or not at all
editing.py      edits of a person's manifest that keep comments and order (_toml.py, _yaml.py, _json.py)
probe.py        loading packs in a process of their own (_child.py, _probing.py, _looking.py): a bad one harms nobody
_leaving.py     what packs in this process may not do: end it without a word
remembered.py   what the store remembers of packs; storage.py says what may be wrong with it

setup.py        init, new, config (scaffolding.py, scaffold/)
packs.py        packs list, info, add, remove, enable, disable, accept, reload (_entries.py)
lock.py, lint.py, doctor.py (_folders.py), watch.py, completion.py
stacks.py       stacks, why
tools.py        tools list, show, call (_arguments.py, _calling.py, _progress.py, _approving.py)
secrets.py, approvals.py, grants.py, audit.py, serve.py, chat.py
"""
