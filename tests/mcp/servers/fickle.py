"""A server that is another one the next time it is started: a file says which time it is."""

import os
import sys
from pathlib import Path

from wire import greet, requests, send, text, tool

flag = Path(sys.argv[1])
was_there = flag.exists()
if "--second-time" in sys.argv and not was_there:
    flag.touch()
    sys.exit("come back later")

TOOLS = [tool("go", description="Another description." if was_there else "A description."), tool("pid")]
for request in requests():
    if "id" not in request or greet(request):
        continue
    result = {"tools": TOOLS} if request["method"] == "tools/list" else text(str(os.getpid()))
    send({"id": request["id"], "result": result})
