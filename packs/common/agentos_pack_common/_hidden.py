"""Which files are hidden: those that usually hold secrets, and those that are run by whoever finds them."""

import fnmatch
import re
import unicodedata
from collections.abc import Iterable, Sequence

DEFAULT_HIDDEN: tuple[str, ...] = (
    # environments and credentials of tools
    *(".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".mylogin.cnf", ".htpasswd"),
    *(".npmrc", ".yarnrc.yml", ".pypirc", ".dockercfg", ".boto", ".s3cfg", ".vault-token", "rclone.conf"),
    *(
        ".git-credentials",
        "credentials.json",
        "client_secret*.json",
        "*service-account*.json",
        "*service_account*.json",
    ),
    *(".ssh/", ".aws/", ".azure/", ".gnupg/", ".kube/", ".docker/", ".password-store/", ".terraform.d/"),
    *(".config/gcloud/", ".config/gh/", ".streamlit/secrets.toml", ".cargo/credentials*", ".gem/credentials"),
    *("*.tfstate", "*.tfstate.backup", "secrets.yml", "secrets.yaml", "secrets.json", "secrets.toml"),
    # keys and vaults
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.p8", "*.ppk", "*.jks", "*.keystore", "*.kdb", "*.kdbx", "*.agekey"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.keychain", "*.keychain-db", "*.keytab"),
    # what was typed
    *(".bash_history", ".zsh_history", ".python_history", ".psql_history", ".mysql_history", ".node_repl_history"),
    # version control's own: a hook or a setting written there is run by the next command of a person
    *(".git/", ".hg/"),
)
"""Patterns of names, of any case. A slash joins names that follow each other; one at the end is for the reader."""

_IGNORED = re.compile("[\u00ad\u034f\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]")


class Hidden:
    """Patterns, ready to be asked."""

    def __init__(self, patterns: Iterable[str]) -> None:
        if isinstance(patterns, str):
            raise TypeError("hidden: expected several patterns, got one text")
        self.patterns = tuple(patterns)
        split = [[_regex(name) for name in pattern.strip("/").split("/")] for pattern in self.patterns]
        self._names = re.compile("|".join(names[0] for names in split if len(names) == 1) or r"(?!)")
        self._paths = [[re.compile(name) for name in names] for names in split if len(names) > 1]

    def hides(self, parts: Sequence[str]) -> bool:
        """Tell whether the last of *parts* is hidden, given that those before it are not."""
        folded = [_folded(part) for part in parts[-self._depth :]]
        return self._names.fullmatch(folded[-1]) is not None or any(_ends(folded, path) for path in self._paths)

    def begins(self, parts: Sequence[str]) -> bool:
        """Tell whether something beneath *parts* is hidden by their names: to rename them would bring it to light."""
        folded = [_folded(part) for part in parts[-self._depth :]]
        return any(_ends(folded, path[:count]) for path in self._paths for count in range(1, len(path)))

    @property
    def _depth(self) -> int:
        return max([1, *map(len, self._paths)])


def _ends(parts: Sequence[str], path: Sequence[re.Pattern[str]]) -> bool:
    last = parts[len(parts) - len(path) :] if len(parts) >= len(path) else ()
    return len(last) == len(path) and all(name.fullmatch(part) for name, part in zip(path, last, strict=True))


def _regex(pattern: str) -> str:
    return fnmatch.translate(_folded(pattern))


def _folded(name: str) -> str:
    """Return *name* as the most forgiving file system would compare it."""
    if name.isascii():
        return name.lower().rstrip(". ")
    return _IGNORED.sub("", unicodedata.normalize("NFKC", name)).casefold().rstrip(". ")
