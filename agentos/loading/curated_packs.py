"""The curated packs: their names, categories, and what they need. A test holds this table against the packs."""

import attrs

from agentos.model.descriptor import SecretRequirement, as_requirements

CHANNELS = "channels"
"""The category of packs that send to people: they are chosen by name or not at all."""


@attrs.frozen
class CuratedPack:
    """What is known of a curated pack before anything of it is imported, or even installed."""

    name: str
    category: str
    summary: str
    secrets: tuple[str | SecretRequirement, ...] = ()
    optional_secrets: tuple[str | SecretRequirement, ...] = ()
    permissions: tuple[str, ...] = ()
    secrets_in_options: tuple[str, ...] = ()
    """Where its options name more secrets that it can use: keys on the way there, `*` for any."""
    secrets_unless: str = ""
    """The option that takes the place of *secrets*: with it, the pack neither needs nor declares them."""

    @property
    def required(self) -> tuple[SecretRequirement, ...]:
        """Return the secrets that it needs; those that the catalog does not know describe themselves."""
        return as_requirements(self.secrets)

    @property
    def optional(self) -> tuple[SecretRequirement, ...]:
        """Return the secrets that it can use."""
        return as_requirements(self.optional_secrets)

    @property
    def distribution(self) -> str:
        """Return the name to install it by."""
        return f"agentos-pack-{self.name}"

    @property
    def module(self) -> str:
        """Return the name to import it by."""
        return f"agentos_pack_{self.name.replace('-', '_')}"


CURATED: tuple[CuratedPack, ...] = (
    CuratedPack("calculator", "knowledge", "arithmetic, units of measurement, statistics"),
    CuratedPack("datetime", "knowledge", "the time in any zone, dates, calendars"),
    CuratedPack(
        "web-search",
        "web",
        "search the web through Brave, Serper, Tavily or SearXNG",
        optional_secrets=("brave.apiKey", "serper.apiKey", "tavily.apiKey", "searxng.url"),
    ),
    CuratedPack("web-extract", "web", "the text and the links of pages, the text of PDF files"),
    CuratedPack(
        "http-request",
        "web",
        "requests to the hosts that the operator allows",
        secrets_in_options=("hosts", "*", "secret"),
    ),
    CuratedPack("giphy", "web", "animated pictures", secrets=("giphy.apiKey",)),
    CuratedPack("files", "system", "read, search and change the files of one folder"),
    CuratedPack("archive", "system", "make, list and unpack archives in one folder"),
    CuratedPack("shell", "system", "programs that the operator allows, without a shell"),
    CuratedPack("git-repo", "system", "look into a git repository, commit, branch, reset"),
    CuratedPack("sqlite-memory", "data", "a memory that lasts, with full-text search"),
    CuratedPack(
        "sql-query",
        "data",
        "questions to a database, reading only",
        secrets=("db.url",),
        secrets_unless="files",
    ),
    CuratedPack("tasks", "work", "tasks with dependencies"),
    CuratedPack("contacts", "work", "people and how to reach them", permissions=("tools:register",)),
    CuratedPack("incidents", "work", "incidents, opened, updated, resolved and purged"),
    CuratedPack("secret-guard", "safety", "tokens and passwords kept from leaving"),
    CuratedPack("pii-guard", "safety", "personal data that has a format kept from leaving"),
    CuratedPack("injection-guard", "safety", "instructions in what tools return, and destinations from there"),
    CuratedPack("code-safety", "safety", "dangerous commands, SQL and Python kept from tools that execute"),
    CuratedPack("provenance-ed25519", "safety", "the audit log signed with a key", secrets=("provenance.key",)),
    CuratedPack("planning", "calls", "plans for turns: a checklist, or one that the model makes"),
    CuratedPack("cache", "calls", "answers of tools that only read, kept for a while"),
    CuratedPack("retry", "calls", "tools that fail now and then tried again, those that go on failing left alone"),
    CuratedPack("recipes", "work", "workflows: research with citations, a digest, triage of incidents"),
    CuratedPack("webchat", CHANNELS, "a page to talk to an agent on", permissions=("http:public",)),
    CuratedPack("notify", CHANNELS, "messages to the targets that the operator names", secrets=("apprise.urls",)),
    CuratedPack(
        "email",
        CHANNELS,
        "a mailbox that people write to, and tools to read it and to send mail",
        secrets=("email.smtpHost", "email.imapHost", "email.imapUser", "email.imapPassword"),
        optional_secrets=("email.smtpUser", "email.smtpPassword"),
    ),
    CuratedPack("telegram", CHANNELS, "a bot on Telegram that people write to", secrets=("telegram.botToken",)),
    CuratedPack(
        "slack",
        CHANNELS,
        "an app on Slack that people write to",
        secrets=("slack.botToken", "slack.signingSecret"),
        permissions=("http:public",),
    ),
)
