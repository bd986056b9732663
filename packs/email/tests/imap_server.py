"""A small IMAP server on loopback: one account with one folder, real in what it does, and made to fail on request."""

import asyncio
import contextlib
import datetime as dt
import re
import ssl

TOKENS = re.compile(rb'"((?:[^"\\]|\\.)*)"|([^\s()\[\]"]*\[[^\]]*\])|([()])|([^\s()"]+)')
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


class Kept:
    """A mail in the folder."""

    def __init__(self, uid, data, day):
        self.uid = uid
        self.data = data
        self.day = day
        self.flags = set()

    @property
    def head(self):
        return self.data.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"

    def field(self, name):
        lines = re.sub(rb"\r\n[ \t]+", b" ", self.head).split(b"\r\n")
        found = [one.partition(b":")[2].strip() for one in lines if one.lower().startswith(name.lower() + b":")]
        return found[0] if found else None

    def fields(self, names):
        lines = re.split(rb"\r\n(?![ \t])", self.head)
        return b"".join(one + b"\r\n" for one in lines if one.partition(b":")[0].upper() in names) + b"\r\n"


class ImapServer:
    """The account `robot` with the folder INBOX."""

    def __init__(self, password="pass-word-9", *, idles=True, tls=None, is_implicit=False):
        self.user, self.password = "robot", password
        self.mails = []
        self.validity = 7
        self.next_uid = 1
        self.idles = idles
        self.tls, self.is_implicit = tls, is_implicit
        self.port = 0
        self.commands = []
        """What clients asked for, passwords left out."""
        self.logins = 0
        self.encrypted_logins = 0
        self.troubles = []
        """Functions of a command's name that say, by True, to cut the connection before it is answered."""
        self.flood = ()
        """What is said before each FETCH is answered."""
        self.is_silent = False
        """Whether no FETCH is answered."""
        self.changed = asyncio.Condition()
        self.talks = {}

    # -- for tests -----------------------------------------------------------------------------------------------

    async def add(self, data, *, day=None):
        """Put a mail into the folder, and tell those who idle."""
        kept = self.put(data, day=day)
        await self._tell()
        return kept

    def put(self, data, *, day=None):
        """Put a mail into the folder; whoever is connected is told with the answer to the next command."""
        kept = Kept(self.next_uid, data, day or dt.datetime.now(dt.UTC).date())
        self.next_uid += 1
        self.mails.append(kept)
        return kept

    async def renumber(self):
        """Give the folder another UIDVALIDITY, and every mail another UID; whoever is connected has to come again."""
        self.validity += 1
        for kept in self.mails:
            kept.uid = self.next_uid = self.next_uid + 10
        self.next_uid += 1
        self.cut()
        await self._tell()

    def recreate(self):
        """Make the folder anew and empty: its UIDs begin again, under another UIDVALIDITY."""
        self.validity += 1
        self.mails, self.next_uid = [], 1
        self.cut()

    def cut(self):
        """Break every connection."""
        for writer in list(self.talks.values()):
            writer.transport.abort()

    async def until(self, condition):
        """Wait until something is so; looked at whenever something happens here."""
        async with asyncio.timeout(30), self.changed:
            await self.changed.wait_for(condition)

    async def _tell(self):
        async with self.changed:
            self.changed.notify_all()

    @contextlib.asynccontextmanager
    async def serving(self):
        def begin(reader, writer):
            task = asyncio.ensure_future(self._talk(reader, writer))
            self.talks[task] = writer
            task.add_done_callback(self.talks.pop)

        context = self.tls if self.is_implicit else None
        server = await asyncio.start_server(begin, "127.0.0.1", 0, ssl=context, limit=1_000_000)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            tasks = list(self.talks)
            self.cut()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await server.wait_closed()

    # -- the protocol --------------------------------------------------------------------------------------------

    async def _talk(self, reader, writer):
        session = Session(self, reader, writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, ssl.SSLError):
            await session.run()
        writer.close()
        with contextlib.suppress(OSError, ssl.SSLError):
            await writer.wait_closed()


class Session:
    """One connection."""

    def __init__(self, server, reader, writer):
        self.server = server
        self.reader, self.writer = reader, writer
        self.is_open = True
        self.is_encrypted = server.is_implicit
        self.can_write = False
        self.told = None

    def news(self):
        """Return the line that tells how many mails there are, if that was not told yet; before SELECT it is not."""
        number = len(self.server.mails)
        if self.told in (None, number):
            return []
        self.told = number
        return [f"* {number} EXISTS"]

    def say(self, *lines):
        self.writer.write(b"".join((line if isinstance(line, bytes) else line.encode()) + b"\r\n" for line in lines))

    async def run(self):
        self.say("* OK ready")
        while self.is_open and (line := await self.reader.readuntil(b"\r\n")):
            tag, _, rest = line.strip().partition(b" ")
            words = parse(rest)
            name = words[0].upper().decode()
            if name == "UID":
                words = words[1:]
                name = "UID " + words[0].upper().decode()
            self.server.commands.append(name if name == "LOGIN" else rest.decode())
            if any(trouble(name) for trouble in self.server.troubles):
                self.writer.transport.abort()
                return
            known = getattr(self, "do_" + name.lower().replace(" ", "_"), None)
            said = "BAD unknown" if known is None else await known(words[1:])
            self.say(*self.news(), tag + b" " + said.encode())
            await self.writer.drain()
            if said == "OK begin TLS":
                await self.encrypt()
            await self.server._tell()

    async def encrypt(self):
        await self.writer.start_tls(self.server.tls)
        self.is_encrypted = True

    def capabilities(self):
        offered = ["IMAP4rev1"]
        offered += ["IDLE"] if self.server.idles else []
        offered += ["STARTTLS"] if self.server.tls is not None and not self.is_encrypted else []
        return " ".join(offered)

    async def do_capability(self, _):
        self.say("* CAPABILITY " + self.capabilities())
        return "OK done"

    async def do_starttls(self, _):
        return "OK begin TLS"

    async def do_login(self, words):
        self.server.logins += 1
        self.server.encrypted_logins += self.is_encrypted
        is_right = words == [self.server.user.encode(), self.server.password.encode()]
        return "OK logged in" if is_right else "NO invalid user or password " + words[1].decode()

    async def do_select(self, words, *, can_write=True):
        if words[0] != b"INBOX":
            return "NO there is no such folder"
        self.can_write, self.told = can_write, len(self.server.mails)
        self.say(
            r"* FLAGS (\Seen \Deleted)", f"* {self.told} EXISTS", f"* OK [UIDVALIDITY {self.server.validity}] valid"
        )
        return "OK [READ-WRITE] open" if can_write else "OK [READ-ONLY] open"

    async def do_examine(self, words):
        return await self.do_select(words, can_write=False)

    async def do_noop(self, _):
        return "OK done"

    async def do_logout(self, _):
        self.say("* BYE")
        self.is_open = False
        return "OK done"

    async def do_idle(self, _):
        self.say("+ idling", *self.news())
        await self.writer.drain()
        done = asyncio.ensure_future(self.reader.readuntil(b"\r\n"))
        await self.server._tell()
        try:
            while not done.done():
                self.say(*self.news())
                await self.writer.drain()
                news = asyncio.ensure_future(self._changed())
                await asyncio.wait([done, news], return_when=asyncio.FIRST_COMPLETED)
                news.cancel()
                await asyncio.gather(news, return_exceptions=True)
            return "OK done" if done.result().strip() == b"DONE" else "BAD expected DONE"
        finally:
            done.cancel()
            await asyncio.gather(done, return_exceptions=True)

    async def _changed(self):
        async with self.server.changed:
            await self.server.changed.wait_for(lambda: len(self.server.mails) != self.told)

    async def do_uid_search(self, words):
        if words[:1] == [b"CHARSET"]:
            words = words[2:]
        found = [kept.uid for kept in self.server.mails if fits(kept, list(words))]
        self.say("* SEARCH " + " ".join(map(str, found)))
        return "OK done"

    async def do_uid_fetch(self, words):
        wanted = {int(uid) for uid in words[0].split(b",")}
        for chunk in self.server.flood:
            self.writer.write(chunk)
            await self.writer.drain()
        if self.server.is_silent:
            await asyncio.Event().wait()
        for number, kept in enumerate(self.server.mails, 1):
            if kept.uid in wanted:
                parts = [self._part(kept, item) for item in words[1]]
                self.say(b"* %d FETCH (" % number + b" ".join(parts) + b")")
        return "OK done"

    def _part(self, kept, item):
        upper = item.upper()
        if upper == b"UID":
            return b"UID %d" % kept.uid
        if upper == b"FLAGS":
            return b"FLAGS (" + " ".join(sorted(kept.flags)).encode() + b")"
        if upper == b"RFC822.SIZE":
            return b"RFC822.SIZE %d" % len(kept.data)
        if not upper.startswith(b"BODY.PEEK"):
            kept.flags.add("\\Seen")
        names = upper.partition(b"(")[2].partition(b")")[0].split()
        data = kept.fields(names) if names else kept.head if b"HEADER" in upper else kept.data
        return b"BODY" + item[item.index(b"[") :] + b" {%d}\r\n" % len(data) + data

    async def do_uid_store(self, words):
        if not self.can_write:
            return "NO the folder is open for reading"
        for kept in self.server.mails:
            if kept.uid == int(words[0]):
                kept.flags |= {flag.decode() for flag in words[2]}
        return "OK done"

    async def do_expunge(self, _):
        self.server.mails = [kept for kept in self.server.mails if "\\Deleted" not in kept.flags]
        return "OK done"


def parse(text):
    """Return the words of a command; those in parentheses are lists, in brackets parts of a word."""
    stack = [[]]
    for quoted, section, bracket, atom in TOKENS.findall(text):
        if bracket == b"(":
            stack.append([])
        elif bracket == b")":
            inner = stack.pop()
            stack[-1].append(inner)
        else:
            stack[-1].append(section or atom or re.sub(rb"\\(.)", rb"\1", quoted))
    return stack[0]


def fits(kept, keys):
    """Tell whether a mail fits all keys of a search."""
    while keys:
        if not one_fits(kept, keys):
            return False
    return True


def one_fits(kept, keys):
    key = keys.pop(0)
    if isinstance(key, list):
        return fits(kept, list(key))
    name = key.upper().decode()
    if name == "NOT":
        return not one_fits(kept, keys)
    if name in ("ALL", "SEEN", "UNSEEN"):
        return name == "ALL" or ("\\Seen" in kept.flags) == (name == "SEEN")
    value = keys.pop(0)
    if name in ("SINCE", "BEFORE"):
        day, month, year = value.decode().split("-")
        asked = dt.date(int(year), MONTHS.index(month) + 1, int(day))
        return kept.day >= asked if name == "SINCE" else kept.day < asked
    if name == "TEXT":
        return value.lower() in kept.data.lower()
    wanted = keys.pop(0) if name == "HEADER" else value
    field = kept.field(value if name == "HEADER" else name.encode())
    return field is not None and wanted.lower() in field.lower()
