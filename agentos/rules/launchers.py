"""Programs that run others: which, and where in their words the other command is. One table, as data.

The table is about common programs on POSIX systems. It makes a fence, not a wall: a program that it does not know, a
configuration file, a script or a variable can run anything.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

import attrs

MOST_LAUNCHERS: Final = 32
"""How many launchers within one command are looked through; with more it is not understood."""
MOST_LOOKS: Final = 2_000
"""How many words are looked at for options that run others, a word counted once for each launcher."""
_MOST_VALUES: Final = 16
"""How many words behind an option may be its value, where others are in one word with it."""
_LONGEST_CODE: Final = 1_000
"""How many characters of code are searched for what runs others; longer ones count as such."""

Words = tuple[str, ...]
Operands = Literal["command", "line", "code", "other"]


def _split(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


@attrs.frozen(kw_only=True)
class Launcher:
    """A program that runs others, and how its words say which.

    operands: what stands behind its options. A `command` of several words, a `line` for a shell, `code`, or something
    `other` that shows no command: files, say. None if the program runs others by its options alone.
    valued: options that take a value, and skip: how many operands come before the command. assigns: whether operands
    such as `NAME=value` come before it too.
    commands, lines, settings, code, deletes: options, or plain words, behind which there is a command of several words,
    one word that is a command line, one that is `name=line`, code in some language, or nothing, since they remove
    files. `word:-x` is an option behind that word alone, `:-x` one before all operands.
    hint: what among its words runs others, where not every code does. reads_input: whether it takes code from its input
    if no operand says something else. bundled: whether its first word may have options without a dash.
    """

    name: str
    operands: Operands | None
    valued: frozenset[str]
    skip: int
    assigns: bool
    commands: frozenset[str]
    lines: frozenset[str]
    settings: frozenset[str]
    code: frozenset[str]
    deletes: frozenset[str]
    hint: re.Pattern[str] | None
    reads_input: bool
    bundled: bool

    @property
    def has_options(self) -> bool:
        """Tell whether single words of it can run others."""
        return bool(self.commands or self.lines or self.settings or self.code or self.deletes or self.hint)


def _rows(
    names: str,
    operands: Operands | None = None,
    *,
    valued: str = "",
    skip: int = 0,
    assigns: bool = False,
    commands: str = "",
    lines: str = "",
    settings: str = "",
    code: str = "",
    deletes: str = "",
    hint: str | None = None,
    reads_input: bool = False,
    bundled: bool = False,
) -> Iterator[tuple[str, Launcher]]:
    for name in names.split():
        yield (
            name,
            Launcher(
                name=name,
                operands=operands,
                valued=_split(valued),
                skip=skip,
                assigns=assigns,
                commands=_split(commands),
                lines=_split(lines),
                settings=_split(settings),
                code=_split(code),
                deletes=_split(deletes),
                hint=None if hint is None else re.compile(hint),
                reads_input=reads_input,
                bundled=bundled,
            ),
        )


_TABLE: Final[tuple[Iterator[tuple[str, Launcher]], ...]] = (
    # the same command, otherwise: priority, limits, time, terminal
    _rows("nice", "command", valued="-n --adjustment"),
    _rows("ionice", "command", valued="-c --class -n --classdata -p --pid -P --pgid -u --uid"),
    _rows("nohup setsid builtin catchsegv unbuffer entr tini dumb-init catatonit ldd", "command"),
    _rows("time", "command", valued="-f --format -o --output"),
    _rows("stdbuf", "command", valued="-i --input -o --output -e --error"),
    _rows("timeout", "command", valued="-k --kill-after -s --signal", skip=1),
    _rows("chrt", "command", valued="-T --sched-runtime -P --sched-period -D --sched-deadline", skip=1),
    _rows("taskset", "command", skip=1),
    _rows("numactl", "command", valued="-i --interleave -m --membind -N --cpunodebind -C --physcpubind -p --preferred"),
    _rows("choom", "command", valued="-n --adjust -p --pid"),
    _rows("uclampset", "command", valued="-m -M -p --pid"),
    _rows("prlimit", "command", valued="-p --pid -o --output"),
    _rows("setarch", "command", skip=1),
    _rows("linux32 linux64 i386 x86_64 uname26", "command"),
    _rows("cpulimit", "command", valued="-l --limit -p --pid -e --exe -P --path"),
    _rows("rlwrap", "command", valued="-b -C -D -e -f -H -l -M -O -P -q -S -s -t -w -z"),
    _rows(
        "hyperfine", "line", valued="-w --warmup -r --runs -m -M -n --export-json", lines="-p --prepare -s --setup -c"
    ),
    _rows("watch", "line", valued="-n --interval -q --equexit -s --shotsdir"),
    _rows("script", "other", lines="-c --command"),
    # another user, root folder, namespace, machine
    _rows(
        "setpriv",
        "command",
        valued="--ambient-caps --inh-caps --bounding-set --ruid --euid --rgid --egid --reuid --regid --groups "
        "--securebits --pdeathsig --selinux-label --apparmor-profile --landlock-access --landlock-rule --ptracer",
    ),
    _rows(
        "sudo",
        "command",
        valued="-u --user -g --group -C --close-from -p --prompt -D --chdir -R --chroot -T --command-timeout -h --host "
        "-r --role -t --type -U --other-user",
        assigns=True,
    ),
    _rows("doas", "command", valued="-u -C"),
    _rows("pkexec", "command", valued="--user"),
    _rows("su", "other", skip=1, lines="-c --command --session-command", reads_input=True),
    _rows("runuser", "command", valued="-u --user -g --group -G --supp-group -s --shell", lines="-c --command"),
    _rows("sg newgrp", "line", skip=1, lines="-c", reads_input=True),
    _rows("gosu su-exec setuidgid s6-setuidgid envdir s6-envdir", "command", skip=1),
    _rows("chpst", "command", valued="-u -U -e -/ -n -l -L -m -d -o -p -f -c -r -t"),
    _rows("softlimit s6-softlimit", "command", valued="-a -c -d -f -l -m -o -p -r -s -t"),
    _rows("chroot", "command", valued="--groups --userspec", skip=1),
    _rows(
        "unshare", "command", valued="-R --root -w --wd -S --setuid -G --setgid --map-user --map-group --propagation"
    ),
    _rows("nsenter", "command", valued="-t --target -S --setuid -G --setgid"),
    _rows("runcon", "command", valued="-t --type -u --user -r --role -l --range", skip=1),
    _rows("capsh", "other", lines="-c", commands="--"),
    _rows("cgexec", "command", valued="-g"),
    _rows("flock", "command", valued="-w --wait --timeout -E --conflict-exit-code", skip=1, lines="-c --command"),
    _rows("systemd-run", "command", valued="-u --unit -p --property -E --setenv -M --machine -H --host -t --slice -d"),
    _rows("systemd-inhibit", "command"),
    _rows("start-stop-daemon", "other", commands="-x --exec -a --startas"),
    _rows("firejail bwrap proot fakechroot torsocks proxychains proxychains4 daemonize dtach abduco", "command"),
    _rows("fakeroot", "command", valued="-l --lib -s -i -b --faked"),
    _rows("dbus-run-session dbus-launch xvfb-run ssh-agent gpg-agent", "command", valued="-s -n -e -f -p -w -t -a"),
    _rows("ip", None, commands="exec"),
    _rows(
        "docker podman nerdctl ctr lxc kubectl oc machinectl buildah",
        None,
        commands="run exec create shell --",
        lines="--entrypoint",
    ),
    _rows("lxc-attach lxc-execute", "command", valued="-n --name"),
    _rows("adb", None, commands="shell exec-out"),
    _rows("vagrant", None, lines="-c --command"),
    _rows(
        "ssh slogin mosh autossh",
        "line",
        valued="-B -b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -P -Q -R -S -W -w",
        skip=1,
        settings="-o",
        reads_input=True,
    ),
    _rows("sshpass", "command", valued="-p -f -d -P"),
    _rows("tmux screen", "line", valued="-L -S -f -c -t -s -n -e -x -y -p", lines="-X", reads_input=True),
    # what is left of the command is given by other means: variables, input, files
    _rows("env", "command", valued="-u --unset -C --chdir -a --argv0", assigns=True, lines="-S --split-string"),
    _rows(
        "xargs",
        "command",
        valued="-I -L -n -P -s -d -E -a --max-lines --max-args --max-procs --max-chars --delimiter --arg-file",
    ),
    _rows(
        "parallel sem", "line", valued="-j --jobs -n -N -L -S --sshlogin -a --arg-file -I --delay --joblog --timeout"
    ),
    _rows("find gfind", "other", commands="-exec -execdir -ok -okdir", deletes="-delete"),
    _rows("fd fdfind", None, commands="-x --exec -X --exec-batch"),
    _rows("fzf sk", None, lines="--preview --bind"),
    _rows("busybox toybox", "command"),
    _rows("exec", "command", valued="-a"),
    _rows("command", "command"),
    _rows("eval trap alias", "line"),
    _rows("at batch crontab", "other", reads_input=True),
    _rows("npx bunx pnpx uvx", "command", valued="-p --package --with --from --python", lines="-c --call"),
    _rows("npm pnpm yarn bun", None, commands="exec x dlx", lines="-c --call"),
    _rows("uv poetry pipenv pipx bundle conda mamba hatch pdm rye", None, commands="exec run"),
    _rows("go", None, lines="-exec -toolexec"),
    _rows("nix-shell nix", None, lines="--run --command", commands="-c run"),
    _rows("make gmake bmake", "other", code="--eval", assigns=True),
    _rows("cmake", None, commands="-E"),
    # the loader, and those who look over a program's shoulder
    _rows("ld.so", "command", valued="--library-path --preload --audit --inhibit-rpath --argv0 --glibc-hwcaps-prepend"),
    _rows("strace", "command", valued="-e -o -p -s -u -E -a -b -I -O -P -S -X --trace --output --attach"),
    _rows("ltrace", "command", valued="-a -e -l -n -o -p -s -u -x -A -D -F -w"),
    _rows("perf rr", None, commands="record stat trace top test bench"),
    _rows("valgrind heaptrack", "command"),
    _rows("gdb lldb", "other", commands="--args -args", code="-ex --eval-command -iex -x --command -o --one-line"),
    _rows("expect", "other", code="-c", reads_input=True),
    # shells and languages
    _rows("sh bash dash ash zsh ksh mksh pdksh yash fish csh tcsh rbash", "other", lines="-c", reads_input=True),
    _rows("python pypy", "other", code="-c", reads_input=True),
    _rows("perl", "other", code="-e -E", reads_input=True),
    _rows("ruby lua luajit", "other", code="-e", reads_input=True),
    _rows("node nodejs deno", "other", code="-e -p --eval --print eval", reads_input=True),
    _rows("php", "other", code="-r -R -B -E --run", reads_input=True),
    _rows("Rscript R julia groovy osascript", "other", code="-e -E --eval", reads_input=True),
    _rows("guile racket pwsh powershell", "other", code="-c -e -Command -EncodedCommand", reads_input=True),
    _rows("tclsh wish irb ghci jshell", "other", reads_input=True),
    _rows("awk gawk mawk nawk", "code", hint=r"system|\||getline|@|/inet"),
    _rows(
        "sed gsed", None, hint=r"^e\b|(?!^-)[\s;{}/$\d!]e(?:$|[\s;}])|(?!^-)[^\w\s][gpiImM\d]*e[gpiImM\d]*(?:$|[\s;}])"
    ),
    _rows("vi vim nvim view vimdiff gvim ex rvim", "other", hint=r"^\+|^-(?:-cmd|[cSs])"),
    _rows("emacs", "other", code="--eval -eval --execute -execute -f --funcall -l --load"),
    _rows("ed red", "other", hint="^!", reads_input=True),
    _rows("less more most", None, hint=r"^\+|!"),
    _rows(
        "sqlite3 psql mysql mariadb", None, hint=r"\.(?:shell|system)|\\!|system|\||\\copy|[Pp][Rr][Oo][Gg][Rr][Aa][Mm]"
    ),
    # those that run others by an option
    _rows(
        "tar bsdtar gtar",
        None,
        lines="-I -F --use-compress-program --to-command --info-script --new-volume-script --rsh-command --rmt-command",
        settings="--checkpoint-action",
        bundled=True,
    ),
    _rows(
        "git",
        None,
        valued="-C -c --git-dir --work-tree --namespace --super-prefix --config-env",
        settings=":-c clone:-c clone:--config submodule:-c",
        lines="rebase:-x --exec difftool:-x --extcmd clone:-u --upload-pack --receive-pack grep:-O "
        "--open-files-in-pager submodule:foreach --tree-filter --index-filter --msg-filter --env-filter "
        "--commit-filter --parent-filter --tag-name-filter",
        commands="bisect:run submodule:foreach",
        hint=r"^ext::|^--exec-path=|^--config-env|^!|=!",
    ),
    _rows("hg", None, settings="--config"),
    _rows("svn", None, settings="--config-option", lines="--diff-cmd --editor-cmd --diff3-cmd"),
    _rows("rsync", None, lines="-e --rsh --rsync-path"),
    _rows("scp sftp", None, lines="-S -D", settings="-o"),
    _rows("sort", None, lines="--compress-program"),
    _rows("split", None, lines="--filter"),
    _rows("cpio", None, lines="--rsh-command"),
    _rows("zip", None, lines="-TT --unzip-command"),
    _rows("man", None, lines="-P --pager -H --html"),
    _rows("tcpdump", None, lines="-z"),
    _rows("wget", None, lines="-e --execute --use-askpass"),
    _rows("apt apt-get aptitude", None, settings="-o --option"),
    _rows("rpm rpmbuild", None, lines="--pipe", code="-E --eval"),
    _rows("socat", "line", hint=r"(?i)^(?:exec|system|shell):"),
    _rows("nc ncat netcat", None, lines="-e -c --exec --sh-exec --lua-exec"),
)
LAUNCHERS: Final[Mapping[str, Launcher]] = {name: row for rows in _TABLE for name, row in rows}

PLAIN: Final = _split(
    "[ arch b2sum base32 base64 basename bg bunzip2 bzcat bzip2 cal cat cd chgrp chmod chown cksum clear cmp comm",
    "continue cp cut date dd df diff diff3 dig dir dirname dirs du echo egrep exit expand export expr factor false fg",
    "fgrep file fmt fold free getent gpg grep groups gunzip gzip head help hexdump history host hostname iconv id jobs",
    "join jq kill killall last link ln local locate logname ls lsof md5sum mkdir mkfifo mknod mktemp mv nl nm nproc",
    "nslookup numfmt objdump od paste patch pathchk pgrep ping pip pkill popd pr printenv printf ps pushd pwd read",
    "readelf readlink realpath return rev rg rm rmdir seq set sha1sum sha224sum sha256sum sha384sum sha512sum shift",
    "shred shuf size sleep ss stat strings stty sum sync tac tail tee test top touch tr tree true truncate tsort tty",
    "type ulimit umask unalias uname unexpand uniq unlink unset unxz unzip uptime users vdir w wait wc whereis which",
    "who whoami xxd xz xzcat yes yq zcat zgrep zstd curl systemctl journalctl tldr apropos whatis",
)
"""Programs that are known to run no others: what stands among their words is no command."""

_LOADER: Final = re.compile(r"ld(?:-[\w.-]+)?\.so(?:\.\d+)?")
_VERSION: Final = re.compile(r"[-.]?\d[\d.]*$|\.(?:basic|tiny|nox|gtk3?)$")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_PLACEHOLDER: Final = re.compile(r"\{[\w./#%+=-]*\}")
_ASKS_ABOUT_ITSELF: Final = _split("--version --help -V -v -h -version -help --usage")


def name_of(word: str) -> str:
    """Return the name of the program that a command word says, without its folder."""
    return word.rpartition("/")[2]


def launcher_of(word: str) -> Launcher | None:
    """Return what is known of a program that runs others: of `/usr/bin/python3.11` as of `python`."""
    name = name_of(word)
    if _LOADER.fullmatch(name):
        return LAUNCHERS["ld.so"]
    return LAUNCHERS.get(name) or LAUNCHERS.get(_VERSION.sub("", name))


def is_unknown(word: str) -> bool:
    """Tell whether a program may run what stands among its words, for all that is known here."""
    name = name_of(word)
    return not name.startswith("-") and name not in PLAIN and launcher_of(word) is None


@attrs.frozen
class Launch:
    """A command that another runs. `place` is the last of the words that say so, or past them all if that is unclear.

    line: the text that a shell takes apart. start: where a command of several words begins. Neither: it can't be
    understood.
    """

    place: int
    line: str | None = None
    start: int | None = None


def launches(words: Words) -> Iterator[Launch]:
    """Yield what a command runs besides itself, and what that runs in its turn."""
    waiting, seen, launchers, looks = [0], {0}, 0, 0
    for place in waiting:
        launcher = launcher_of(words[place])
        if launcher is None:
            continue
        launchers, looks = launchers + 1, looks + (len(words) - place if launcher.has_options else 0)
        if launchers > MOST_LAUNCHERS or looks > MOST_LOOKS:
            yield Launch(len(words))
            return
        for launch in _launches_of(launcher, words, place):
            yield launch
            if launch.start is not None and launch.start not in seen:
                seen.add(launch.start)
                waiting.append(launch.start)


def _launches_of(launcher: Launcher, words: Words, place: int) -> Iterator[Launch]:
    operand, is_sure = _operand(launcher, words, place)
    yield from _by_options(launcher, words, place, operand)
    if launcher.hint is not None:
        yield from (Launch(at) for at in range(place + 1, len(words)) if _is_hinted_at(launcher.hint, words[at]))
    if launcher.assigns:
        yield from _assigned(words, place)
    if launcher.operands in ("command", "line"):
        yield from _by_operands(launcher, words, operand if is_sure else place + 1, is_sure=is_sure)
    if launcher.reads_input and _is_left_to_input(words[place + 1 :], has_operands=operand < len(words)):
        yield Launch(len(words))


def _is_hinted_at(hint: re.Pattern[str], word: str) -> bool:
    return len(word) > _LONGEST_CODE or hint.search(word) is not None


@attrs.frozen
class _View:
    """One word of a launcher's, among the others."""

    words: Words
    place: int
    operand: int
    at: int
    bundled: bool

    @property
    def word(self) -> str:
        word = self.words[self.at]
        return f"-{word}" if self.bundled and self.at == self.place + 1 and word[:1] != "-" else word

    def values_of(self, options: frozenset[str]) -> Iterator[tuple[str, str]]:
        """Yield each of *options* that the word may be, with the value that is in one word with it."""
        for given in options:
            before, _, option = given.rpartition(":")
            value = _value_in(self.word, option)
            if value is not None and (":" not in given or self._stands_behind(before)):
                yield option, value

    def is_one_of(self, options: frozenset[str]) -> bool:
        """Tell whether the word may be one of *options*."""
        return any(True for _ in self.values_of(options))

    def _stands_behind(self, word: str) -> bool:
        if not word:
            return self.at < self.operand
        return word in self.words[self.operand : min(self.at, self.operand + _MOST_VALUES)]


def _by_options(launcher: Launcher, words: Words, place: int, operand: int) -> Iterator[Launch]:
    if not launcher.has_options:
        return
    first_command = None
    for at in range(place + 1, len(words)):
        view = _View(words, place, operand, at, launcher.bundled)
        yield from _by_option(launcher, view)
        if at + 1 < len(words) and view.is_one_of(launcher.commands):
            yield Launch(at + 1, start=at + 1)
            first_command = first_command or at + 1
    if first_command is not None:
        yield from (Launch(start, start=start) for start in _starts(words, first_command))


def _by_option(launcher: Launcher, view: _View) -> Iterator[Launch]:
    if view.is_one_of(launcher.deletes):
        yield Launch(view.at, line="rm -r -- .")
    for found in view.values_of(launcher.lines):
        yield from (Launch(at, line=value) for at, value in _values(view, *found))
    for found in view.values_of(launcher.settings):
        yield from (Launch(at, line=_set_by(value)) for at, value in _values(view, *found))
    if launcher.hint is None and view.is_one_of(launcher.code):
        yield Launch(min(view.at + 1, len(view.words)))


def _values(view: _View, option: str, value: str) -> Iterator[tuple[int, str]]:
    """Yield what may be the value of an option, and where it is: glued to it, or behind it."""
    if value:
        yield view.at, value
    if value and not _is_letter(option):
        return
    behind = view.words[view.at + 1 : view.at + 1 + _MOST_VALUES]
    is_next = option == view.word and behind[:1] and behind[0][:1] != "-"
    yield from enumerate(behind[:1] if is_next else behind, view.at + 1)


def _set_by(value: str) -> str:
    """Return the command line in a setting: `exec=rm x`, `alias.x=!rm x`, `ProxyCommand rm x`."""
    name, sign, line = value.partition("=")
    return (line if sign else value.partition(" ")[2] or name).lstrip("!")


def _starts(words: Words, first: int) -> Iterator[int]:
    """Yield where a command may begin from *first* on: there, and at each program further on that runs others."""
    for start in range(first, len(words)):
        if start == first or launcher_of(words[start]) is not None:
            yield start


def _by_operands(launcher: Launcher, words: Words, first: int, *, is_sure: bool) -> Iterator[Launch]:
    if first == len(words):
        return
    if launcher.operands == "line":
        plain = [_PLACEHOLDER.sub("x", word) for word in words[first:]]
        yield from (Launch(len(words), line=line) for line in (*plain, " ".join(plain)))
    for start in [first] if is_sure else _starts(words, first):
        yield Launch(start if is_sure else len(words), start=start)


def _assigned(words: Words, place: int) -> Iterator[Launch]:
    """Yield the values of variables: those of `PAGER` and `SHELL` are commands for whoever reads them."""
    for at in range(place + 1, len(words)):
        name = _ASSIGNMENT.match(words[at])
        if name is not None:
            yield Launch(at, line=words[at][name.end() :])


def _operand(launcher: Launcher, words: Words, place: int) -> tuple[int, bool]:
    """Return where the operands of a launcher begin, those skipped that come before, and whether that is sure."""
    at, skip, is_sure, has_options = place + 1, launcher.skip, True, True
    while at < len(words):
        word = words[at]
        if has_options and word == "--":
            has_options = False
        elif has_options and word[:1] == "-" and word != "-":
            takes = _takes_value(launcher, word)
            is_sure = is_sure and takes is not None
            at += 1 if takes else 0
        elif skip:
            skip -= 1
        elif not (launcher.assigns and _ASSIGNMENT.match(word)):
            break
        at += 1
    return min(at, len(words)), is_sure


def _takes_value(launcher: Launcher, word: str) -> bool | None:
    """Tell whether the next word is the value of an option; None if that is not known."""
    if word in launcher.valued:
        return True
    if word.startswith("--"):
        return False if "=" in word else None
    letters = [f"-{letter}" in launcher.valued for letter in word[1:]]
    return letters.index(True) == len(letters) - 1 if True in letters else None


def _is_letter(option: str) -> bool:
    return len(option) == 2 and option[0] == "-" and option[1] != "-"  # noqa: PLR2004 - a dash and a letter


def _value_in(word: str, option: str) -> str | None:
    """Return the value that is in one word with an option, empty if there is none; None if it is another word."""
    if word == option:
        return ""
    if word[:1] != "-":
        return None
    if word.startswith("--"):
        name, _, value = word.partition("=")
        return value if len(name) > len("--x") and option.startswith(name) else None
    if _is_letter(option):
        return word[word.index(option[1]) + 1 :] if option[1] in word[1:] else None
    return word[len(option) :].lstrip("=") if option[:1] == "-" and word.startswith(option) else None


def _is_left_to_input(arguments: Sequence[str], *, has_operands: bool) -> bool:
    """Tell whether no operand says what to run, and no option asks for the version or for help."""
    if any(word in _ASKS_ABOUT_ITSELF for word in arguments):
        return False
    return not has_operands or "-s" in arguments or all(word[:1] == "-" for word in arguments)
