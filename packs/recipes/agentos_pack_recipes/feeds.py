"""What stands in an RSS or Atom feed, and is new."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from xml.etree import ElementTree as ET

import attrs

MOST_ENTRIES = 20
_DECLARES = re.compile(r"<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)
_TAG = re.compile(r"<[^>]*>")


@attrs.frozen
class FeedEntry:
    """One entry of a feed."""

    title: str
    link: str
    at: datetime | None


def entries_of(text: str) -> list[FeedEntry] | None:
    """Return the entries of a feed; None if *text* is none. What declares entities of its own is not read."""
    if _DECLARES.search(text[:2_000]) or "<" not in text[:200]:
        return None
    try:
        root = ET.fromstring(text)  # noqa: S314 - without declarations there is nothing to expand
    except ET.ParseError:
        return None
    if _name(root) not in ("rss", "feed", "RDF"):
        return None
    return [_entry(one) for one in root.iter() if _name(one) in ("item", "entry")]


def new_entries(entries: list[FeedEntry], since: datetime) -> list[FeedEntry]:
    """Return the entries since a time, and those without a time, as far as they fit into a message."""
    return [one for one in entries if one.at is None or one.at >= since][:MOST_ENTRIES]


def _name(element: ET.Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _entry(element: ET.Element) -> FeedEntry:
    said = {_name(part): part for part in reversed(element)}
    link = said.get("link")
    address = "" if link is None else (link.get("href") or link.text or "")
    title = _line(said["title"].text or "") if "title" in said else ""
    times = [_time(said[name].text or "") for name in ("pubDate", "updated", "published", "date") if name in said]
    return FeedEntry(title or "(without a title)", address.strip()[:500], next(filter(None, times), None))


def _line(text: str) -> str:
    return " ".join(_TAG.sub("", text).split())[:200]


def _time(text: str) -> datetime | None:
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            found = read(text.strip())
        except (ValueError, TypeError):
            continue
        return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return None
