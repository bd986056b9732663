"""Search GIPHY for animated pictures."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, get_args

import attrs
from agentos_pack_common import WebClient, WebError, WebPolicy, clip, is_base_url, parse_url, plain, service_policy

from agentos import Schema, ToolContext

Rating = Literal["g", "pg", "pg-13", "r"]

KEY = "giphy.apiKey"
BASE_URL = "https://api.giphy.com"
RATINGS: Final[tuple[Rating, ...]] = get_args(Rating)
MAX_QUERY = 50
MAX_RESULTS = 25
MAX_BYTES = 4_000_000
_TITLE = 200
_URL = 1_000
_REASON = 200
_SIZE = 20_000
_FOUND = 200

_PROBLEMS = {
    401: "the key is not accepted; set another giphy.apiKey",
    403: "the key is not accepted; set another giphy.apiKey",
    414: "the query is too long; use fewer words",
    429: "the key has used up its requests for now; try again later",
}


@attrs.frozen(kw_only=True)
class Options:
    """What a manifest may say."""

    base_url: str = attrs.field(default=BASE_URL, validator=is_base_url)
    rating: Rating = "g"
    max_rating: Rating = "r"
    timeout: float = attrs.field(default=15.0, validator=[attrs.validators.gt(0), attrs.validators.le(60)])

    def policy(self) -> WebPolicy:
        """Return a policy for GIPHY alone. Another address is the operator's own choice, so it may be private."""
        return service_policy(self.base_url, BASE_URL, max_bytes=MAX_BYTES, timeout=self.timeout)


@attrs.frozen(kw_only=True)
class Gif:
    """A picture. `url` is the picture itself, `page_url` its page at GIPHY; sizes are in pixels, 0 if not known."""

    id: str
    title: str
    url: str
    preview_url: str | None
    page_url: str | None
    width: int
    height: int
    rating: str


@attrs.frozen(kw_only=True)
class Gifs:
    """What was found, best first. `total` is GIPHY's count of all that fit; `truncated` says that there are more."""

    gifs: list[Gif]
    total: int
    truncated: bool


@attrs.frozen
class GiphyTools:
    """The tool on a client."""

    options: Options
    client: WebClient

    async def giphy_search(
        self,
        query: Annotated[
            str,
            "What the picture should show, in a few words, such as happy dance",
            Schema(minLength=1, maxLength=MAX_QUERY, pattern=r"\S"),
        ],
        limit: Annotated[int, "How many pictures to return at most", Schema(minimum=1, maximum=MAX_RESULTS)] = 5,
        rating: Annotated[
            Rating | None,
            "The most explicit rating to return: g (everybody), pg, pg-13, r (adults). Left out: the operator's choice",
        ] = None,
        offset: Annotated[
            int, "How many pictures to leave out first, to see more", Schema(minimum=0, maximum=4_999)
        ] = 0,
        *,
        context: ToolContext,
    ) -> Gifs:
        """Search GIPHY for animated pictures (GIFs) by words, and return their addresses, titles and sizes.

        It returns addresses to show or link to, not the pictures themselves. For facts or web pages use a web search.
        """
        params = {
            "api_key": context.secret(KEY),
            "q": query,
            "limit": limit,
            "offset": offset,
            "rating": self._rating(rating),
        }
        address = f"{self.options.base_url.rstrip('/')}/v1/gifs/search"
        response = await self.client.request("GET", address, params=params, headers={"Accept": "application/json"})
        if response.status != _FOUND:
            why = _PROBLEMS.get(response.status, "try again later")
            raise ValueError(f"GIPHY answered with status {response.status}: {why}")
        return _gifs(response.json(), limit, offset)

    def _rating(self, asked: Rating | None) -> Rating:
        most = RATINGS.index(self.options.max_rating)
        if asked is None:
            return RATINGS[min(RATINGS.index(self.options.rating), most)]
        if RATINGS.index(asked) > most:
            raise ValueError(f"rating: the operator allows {RATINGS[most]} at most")
        return asked


def _gifs(found: Any, limit: int, offset: int) -> Gifs:
    """Read GIPHY's answer, and leave out what is not as documented."""
    data = found.get("data") if isinstance(found, dict) else None
    if not isinstance(data, list):
        raise ValueError("GIPHY answered with something else than pictures; try again later")  # noqa: TRY004
    gifs = [gif for item in data[:limit] if (gif := _gif(item)) is not None]
    total = max(_whole(_inside(found, "pagination").get("total_count"), 10**12), offset + len(data))
    return Gifs(gifs=gifs, total=total, truncated=total > offset + min(len(data), limit))


def _gif(item: Any) -> Gif | None:
    if not isinstance(item, dict):
        return None
    images = _inside(item, "images")
    original = _inside(images, "original")
    url = _address(original.get("url"))
    if url is None:
        return None
    return Gif(
        id=_text(item.get("id"), _TITLE),
        title=_text(item.get("title"), _TITLE),
        url=url,
        preview_url=_address(_inside(images, "fixed_height_small").get("url")),
        page_url=_address(item.get("url")),
        width=_whole(original.get("width"), _SIZE),
        height=_whole(original.get("height"), _SIZE),
        rating=_text(item.get("rating"), 10),
    )


def _inside(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    inner = value.get(key)
    return inner if isinstance(inner, dict) else {}


def _text(value: Any, limit: int) -> str:
    return clip(" ".join(plain(value).split()), limit).text if isinstance(value, str) else ""


def _address(value: Any) -> str | None:
    """Return an address of a picture or page, if it is one: nothing that runs when it is clicked."""
    if not isinstance(value, str) or len(value) > _URL:
        return None
    try:
        target = parse_url(value)
    except WebError:
        return None
    return str(target) if target.scheme == "https" else None


def _whole(value: Any, most: int) -> int:
    """Return a count, which GIPHY writes as text or as a number."""
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    number = int(text) if text.isascii() and text.isdecimal() and len(text) <= len(str(most)) else 0
    return number if number <= most else 0
