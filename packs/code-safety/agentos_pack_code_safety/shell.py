"""Command lines: rules about their words, and about how commands are joined."""

import re
from collections.abc import Callable, Iterator, Sequence

import attrs

from agentos.rules.commands import commands_of, parse
from agentos.rules.launchers import launches, name_of
from agentos_pack_code_safety.dangers import Danger, Severity

_DEPTH = 3
_PARTS = 200
_EVERYTHING = re.compile(
    r"^(?:/|/\*|~|~/|~/\*|\*|\.|\./|\./\*|\.\.|\.\./?\*?|\$HOME/?\*?|/(?:bin|boot|dev|etc|home|lib\w*|opt|proc|root|sbin|srv|sys|usr|var|Users|System)(?:/\*?)?)$"
)
_DEVICE = re.compile(r"^/dev/(?:sd|hd|nvme|vd|xvd|mmcblk|disk|mapper/|dm-)")
_SECRETS = re.compile(
    r"(?:^|/)(?:etc/(?:shadow|gshadow|sudoers)|\.ssh/(?:id_\w+|authorized_keys|config)|\.aws/credentials|\.netrc|\.pgpass|\.git-credentials"
    r"|\.docker/config\.json|\.kube/config|\.npmrc|\.pypirc|\.env(?:\.\w+)?|proc/\d+/environ|proc/self/environ)$"
)
_FETCHERS = frozenset({"curl", "wget", "fetch", "aria2c", "http", "lwp-download"})
_INTERPRETERS = frozenset(
    {"sh", "bash", "zsh", "dash", "ksh", "fish", "python", "python3", "perl", "ruby", "node", "php", "pwsh", "source"}
)

_IN_TEXT: tuple[tuple[str, Severity, str, re.Pattern[str]], ...] = (
    ("fork-bomb", "block", "starts processes without end", re.compile(r":\s*\(\s*\)\s*\{[^}]{0,60}:\s*\|\s*:|\b(\w+)\s*\(\)\s*\{\s*\1\s*\|\s*\1\s*&")),
    ("reverse-shell", "block", "gives a shell to another machine", re.compile(r"/dev/(?:tcp|udp)/|\bnc(?:at)?\b[^|;\n]{0,80}\s-\w*[ec]\b|\bsocat\b[^|;\n]{0,120}\bexec:|\bmkfifo\b[^\n]{0,120}\bnc\b", re.IGNORECASE)),
    ("overwrite-device", "block", "writes over a disk", re.compile(r">\s*/dev/(?:sd|hd|nvme|vd|xvd|mmcblk|disk)")),
    ("overwrite-system-file", "block", "writes over a file of the system", re.compile(r">{1,2}\s*/(?:etc|boot|bin|sbin|lib\w*|usr)/")),
    ("add-login-key", "block", "lets somebody log in", re.compile(r">{1,2}[^|;&\n]{0,80}authorized_keys")),
    ("run-decoded", "block", "runs what was made unreadable", re.compile(r"\b(?:base64|base32|xxd|openssl\s+enc|uudecode)\b[^|;\n]{0,120}\|\s*(?:sudo\s+)?(?:ba|z|da|k)?sh\b|\becho\b[^|\n]{0,4000}\|\s*base64\s+(?:-d|--decode|-D)[^|\n]{0,40}\|\s*(?:ba|z|da|k)?sh\b")),
    ("hide-traces", "flag", "hides what was done", re.compile(r"\bhistory\s+-c\b|\bunset\s+HISTFILE\b|>\s*~?/?[\w/.]*_history\b|\bHISTSIZE=0\b")),
)  # fmt: skip


def dangers_of_shell(value: object) -> list[Danger]:
    """Return what is dangerous in a command line or a list of words."""
    text = value if isinstance(value, str) else " ".join(map(str, value)) if isinstance(value, list | tuple) else ""
    found = [_danger(rule, severity, reason) for rule, severity, reason, pattern in _IN_TEXT if pattern.search(text)]
    commands = list(_commands(value, _DEPTH))[:_PARTS]
    for words in commands:
        found += _of_words(words)
    found += _of_pipes([name_of(words[0]) for words in commands if words], text)
    return sorted(set(found))


def _danger(rule: str, severity: Severity, reason: str) -> Danger:
    return Danger(f"shell.{rule}", severity, reason)


def _commands(value: object, depth: int) -> Iterator[Sequence[str]]:
    """Yield every simple command, and what each of them is given to run."""
    for words in commands_of(value).parts:
        yield words
        for launch in launches(words):
            if launch.line is not None and depth:
                yield from _commands(launch.line, depth - 1)
            elif launch.start is not None:
                yield words[launch.start :]


def _of_pipes(names: Sequence[str], text: str) -> Iterator[Danger]:
    fetched = next((place for place, name in enumerate(names) if name in _FETCHERS), len(names))
    is_piped = "|" in text and any(name in _INTERPRETERS for name in names[fetched + 1 :])
    if is_piped or _RUN_SUBSTITUTED.search(text):
        yield _danger("run-download", "block", "runs what it fetches from the network")


_RUN_SUBSTITUTED = re.compile(
    r"\b(?:ba|z|da|k)?sh\s+(?:-c\s+)?[\"']?(?:<\(|\$\(|`)\s*(?:curl|wget)\b|\beval\s+[\"']?(?:\$\(|`)\s*(?:curl|wget)\b"
)


@attrs.frozen
class _Simple:
    """A simple command."""

    words: Sequence[str]

    @property
    def name(self) -> str:
        return name_of(self.words[0]).partition(".")[0]

    @property
    def operands(self) -> list[str]:
        return [word for word in self.words[1:] if not word.startswith("-")]

    @property
    def is_recursive(self) -> bool:
        short = "".join(word for word in self.words[1:] if word.startswith("-") and not word.startswith("--"))
        return "r" in short.lower() or "--recursive" in self.words

    def has(self, *words: str) -> bool:
        return any(word in self.words for word in words)

    def has_everything(self, first: int = 0) -> bool:
        """Tell whether an operand, from the one with the number *first* on, is a whole system, home or folder."""
        return any(_EVERYTHING.match(one) for one in self.operands[first:])


_Test = Callable[[_Simple], bool]
_ALWAYS: _Test = lambda _: True  # noqa: E731 - a value of the table


def _gives_machine(one: _Simple) -> bool:
    mounts = re.compile(r"^(?:--volume=|-v=?|--mount=)?(?:/:|type=bind,source=/,)")
    return one.has("--privileged") or any(mounts.match(word) for word in one.words[1:])


def _deletes_what_it_finds(one: _Simple) -> bool:
    return one.has("-delete") or any(name_of(word) == "rm" for word in one.words[1:])


_OPEN_RIGHTS = re.compile(r"0?777|a\+rwx|[ugo]*\+s|[24]7\d\d")
_DELETING = "rm unlink rmdir shred srm"
_RULES: tuple[tuple[str, _Test, str, Severity, str], ...] = (
    (_DELETING, _Simple.has_everything, "delete-everything", "block", "deletes a whole system, home or folder"),
    (_DELETING, lambda one: one.is_recursive and not one.has_everything(), "delete-recursively", "flag", "deletes folders with all that is in them"),
    ("find", lambda one: _deletes_what_it_finds(one) and one.has_everything(), "delete-everything", "block", "deletes what it finds"),
    ("find", lambda one: _deletes_what_it_finds(one) and not one.has_everything(), "delete-recursively", "flag", "deletes what it finds"),
    ("mv cp", lambda one: one.operands[-1:] == ["/dev/null"], "delete-recursively", "flag", "throws files away"),
    ("dd", lambda one: any(_DEVICE.match(word.removeprefix("of=")) for word in one.words if word.startswith("of=")), "overwrite-device", "block", "writes over a disk"),
    ("mkfs wipefs fdisk parted sfdisk sgdisk blkdiscard mkswap", _ALWAYS, "overwrite-device", "block", "writes over a disk"),
    ("chmod chown chgrp", lambda one: one.is_recursive and one.has_everything(1), "change-rights-of-everything", "block", "changes the rights of a whole system"),
    ("chmod", lambda one: any(_OPEN_RIGHTS.fullmatch(mode) for mode in one.operands[:1]), "open-rights", "flag", "gives everybody all rights, or a program those of its owner"),
    ("shutdown reboot halt poweroff init telinit", _ALWAYS, "stop-machine", "block", "stops the machine"),
    ("kill", lambda one: one.words[-1] == "-1" and len(one.words) > 1, "kill-everything", "block", "ends all processes"),
    ("sudo su doas pkexec", _ALWAYS, "more-rights", "flag", "runs with more rights"),
    ("crontab at systemctl launchctl", lambda one: bool(one.operands) or one.has("-"), "start-later", "flag", "starts something later, or with the machine"),
    ("iptables ip6tables nft ufw", lambda one: one.has("-F", "--flush", "flush", "disable"), "open-firewall", "block", "turns the firewall off"),
    ("useradd adduser usermod passwd chpasswd visudo", _ALWAYS, "change-users", "block", "changes who may log in"),
    ("docker podman", _gives_machine, "leave-container", "block", "gives a container the machine"),
    ("git", lambda one: one.has("push") and one.has("--force", "-f", "--mirror", "--delete"), "rewrite-history", "flag", "replaces what others have"),
    ("eval source", lambda one: parse(" ".join(one.words)).opaque, "run-unknown", "flag", "runs a text that only shows when it runs"),
)  # fmt: skip
"""The programs, when it is dangerous, the rule, how bad it is and why."""


def _of_words(words: Sequence[str]) -> Iterator[Danger]:
    if not words:
        return
    if any(_SECRETS.search(word.partition("=")[2] or word) for word in words[1:]):
        yield _danger("read-credentials", "block", "reads credentials")
    one = _Simple(words)
    for programs, is_dangerous, rule, severity, reason in _RULES:
        if one.name in programs.split() and is_dangerous(one):
            yield _danger(rule, severity, reason)
