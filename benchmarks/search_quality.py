"""How often a search finds what was meant: `make search-quality`, with public sets of tools and questions.

The sets are read from `shared/data` beside the project, or from the file named as the argument; they belong to nobody's
repository. Recall@10 is the share of the wanted tools that are among the first ten, in the mean over the questions.
It is measured with the core alone and, where the extra `search` is installed, with it.
"""

import gzip
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from agentos import PUBLIC
from agentos.stacks.entry import EntryState
from agentos.tools.fused_search import FusedToolIndex, word_vectors
from agentos.tools.listing import ToolInfo
from agentos.tools.search import ToolIndex

SETS = Path(__file__).resolve().parents[2] / "shared/data/toolsearch.json.gz"
GOAL, GOAL_WITH_EXTRA = 0.80, 0.83
GOAL_MS = 2.0


def _info(tool: dict[str, Any]) -> ToolInfo:
    return ToolInfo(
        name=tool["name"],
        description=tool["description"] or "",
        input_schema=tool["input_schema"] or {},
        output_schema=None,
        effect="read",
        required_access=PUBLIC,
        display_name=tool["name"],
        category=None,
        source="extension",
        fully_qualified_id=f"p:{tool['name']}",
        aliases=(),
        state=EntryState.ACTIVE,
    )


def measure(name: str, content: dict[str, Any], make: Callable[[Iterable[ToolInfo]], ToolIndex]) -> tuple[float, float]:
    """Print and return recall@10 of one set, and the CPU time of a query in milliseconds."""
    index = make(map(_info, content["tools"]))
    recalls, began = [], time.process_time()
    for query in content["queries"]:
        wanted = set(query["wanted"])
        recalls.append(len(wanted & {hit.info.name for hit in index.search(query["text"], 10)}) / len(wanted))
    milliseconds = (time.process_time() - began) / len(recalls) * 1_000
    recall = statistics.mean(recalls)
    size = f"{len(index):6,} tools {len(recalls):5} queries"
    print(f"{name:24} {size}   recall@10 {recall:.3f}   {milliseconds:5.2f} ms a query")
    return recall, milliseconds


def main() -> int:
    """Measure every set; 1 if a goal is missed."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else SETS
    if not path.exists():
        print(f"skipped: {path.name} is not here; name the file with the sets")
        return 0
    with gzip.open(path) as file:
        sets = json.load(file)
    is_reached = _measure_all(sets, "the core alone", ToolIndex, GOAL)
    if (vectors := word_vectors()) is None:
        print("skipped: the extra `search` is not installed")
    else:
        is_reached &= _measure_all(sets, "the extra", lambda infos: FusedToolIndex(infos, vectors), GOAL_WITH_EXTRA)
    return 0 if is_reached else 1


def _measure_all(sets: dict[str, Any], what: str, make: Callable[[Iterable[ToolInfo]], ToolIndex], goal: float) -> bool:
    print(f"with {what}:")
    found = [measure(name, content, make) for name, content in sets.items()]
    recall, slowest = statistics.mean(one for one, _ in found), max(took for _, took in found)
    print(f"mean recall@10 {recall:.3f} (goal {goal:.2f}), slowest set {slowest:.2f} ms a query (goal {GOAL_MS:.1f})")
    return recall >= goal and slowest <= GOAL_MS


if __name__ == "__main__":
    sys.exit(main())
