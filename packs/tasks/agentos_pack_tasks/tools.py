"""The tools. What each may do is said once, where it is made: effect, access, dry run, and when to ask."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import attrs
from agentos_pack_common import plain
from agentos_pack_common.sqlite import Database, StorageError

from agentos import Batch, Schema, Tool, ToolContext, ToolResult, Toolset, tool
from agentos_pack_tasks import batches, previews, records, runs
from agentos_pack_tasks.arguments import (
    LARGEST,
    MAX_BATCH,
    MAX_TITLE,
    Arguments,
    Edit,
    Id,
    Member,
    Needs,
    New,
    NewArguments,
    NewNeeds,
    NewNotes,
    NewResult,
    NewStatus,
    NewTitle,
    NewTool,
    Notes,
    Target,
    Title,
    ToolName,
    Version,
)
from agentos_pack_tasks.values import Actor, Asked, Changed, Deleted, Lines, Preview, Question, Task, TaskError

_TIMEOUT: Final = 20
_RUN_TIMEOUT: Final = 300
_PROMPT: Final = """\
Tasks. task_list finds tasks and shows each in one line; task_view reads a single one whole, with notes, arguments, \
dependencies and result. task_run starts a task: it calls the tool that the task names, or, if it names none, marks it \
as running for you to do. task_edit calls nothing: its status done only writes down that the work has been done, so it \
is no way to get a task done, and it can't start one. When you have done a task that names no tool, end it with \
task_edit, status done and a result. A task can be run when all that it depends on is done; task_list with ready_only \
shows which can. Every change names the version that you read, and is refused if the task has changed since. For more \
than one task use the tools that end in _many; tasks created together can depend on each other by keys. task_delete \
destroys a task and is no way to finish it: a finished task is done, and stays."""


@attrs.frozen(kw_only=True)
class Options:
    """What an operator says of the pack."""

    path: Path | None = None
    max_tasks: int = attrs.field(default=10_000, validator=[attrs.validators.ge(1), attrs.validators.le(1_000_000)])


@attrs.frozen
class TaskTools:
    """The tools on one book of tasks."""

    book: Database
    max_tasks: int

    # -- reading -----------------------------------------------------------------------------------------------

    async def task_list(
        self,
        status: Annotated[Asked, "Which to list; unfinished: all but those that are done"] = "unfinished",
        ready_only: Annotated[bool, "Only open tasks whose dependencies are all done: those that can be run"] = False,
        text: Annotated[str, "Only those with this in title or notes", Schema(maxLength=MAX_TITLE)] = "",
        after: Annotated[
            int,
            "Only tasks with a larger number, for the next page: the last number of the page before",
            Schema(minimum=0, maximum=LARGEST),
        ] = 0,
        limit: Annotated[int, "How many to list at most", Schema(minimum=1, maximum=100)] = 20,
        *,
        context: ToolContext,
    ) -> Lines:
        """List your tasks, the oldest first, each in one line: number, version, title, status, what it waits for.

        Use it to find tasks, or to see what can be run. For notes, arguments and result of one task use task_view.
        `text` is searched as it is, without wildcards; case does not matter for A to Z.
        """
        question = Question(status=status, ready_only=ready_only, text=plain(text), after=after, limit=limit)
        return await self.book.read(lambda db: records.search(db, question, _actor(context)))

    async def task_view(self, id: Id, *, context: ToolContext) -> Task:
        """Read one task whole: notes, tool and arguments, dependencies both ways, result, problem and version.

        Use it before you change, run or delete a task, since that has to name the version that it was decided on. To
        look through several tasks use task_list.
        """
        return await self.book.read(lambda db: records.get(db, id, _actor(context)))

    # -- one task ----------------------------------------------------------------------------------------------

    async def task_create(
        self,
        title: Title,
        notes: Notes = "",
        depends_on: Needs = [],  # noqa: B006 - read only
        tool: ToolName = None,
        arguments: Arguments = None,
        *,
        context: ToolContext,
    ) -> Changed:
        """Create a task, with status open and version 1. It does nothing until task_run starts it.

        A task with a `tool` is done by task_run calling that tool with `arguments`; whether there is such a tool is
        seen only then. For several tasks, also such that depend on each other, use task_create_many.
        """
        new = New(title=title, notes=notes, depends_on=depends_on, tool=tool, arguments=arguments)
        return await self.book.write(lambda db: records.add(db, new, _actor(context), self.max_tasks))

    async def task_edit(  # noqa: PLR0917 - called by keywords
        self,
        id: Id,
        version: Version,
        title: NewTitle = None,
        notes: NewNotes = None,
        status: NewStatus = None,
        result: NewResult = None,
        depends_on: NewNeeds = None,
        tool: NewTool = None,
        arguments: NewArguments = None,
        *,
        context: ToolContext,
    ) -> Changed:
        """Change what is written down about a task: title, notes, dependencies, tool, or that it is done or open again.

        It calls no tool: to have a task done by its tool, or to start it, use task_run. What is left out stays. A
        dependency that would make a cycle is refused, and so is status done while dependencies are not done.
        """
        wanted = Edit(
            id=id,
            version=version,
            title=title,
            notes=notes,
            status=status,
            result=result,
            depends_on=depends_on,
            tool=tool,
            arguments=arguments,
        )
        return await self.book.write(lambda db: records.edit(db, wanted, _actor(context)))

    async def task_delete(self, id: Id, version: Version, *, context: ToolContext) -> Deleted:
        """Delete a task for good, with its notes and result.

        It is refused while other tasks depend on it, and while it is running. To finish a task use task_edit with
        status done instead.
        """
        return await self.book.write(lambda db: records.delete(db, id, version, _actor(context)))

    async def task_run(self, id: Id, version: Version, *, context: ToolContext) -> ToolResult:
        """Start an open task whose dependencies are done. If it names a tool, call that and keep what comes of it.

        When the tool succeeds the task is done; when it fails, the task is open again and this call fails with the
        tool's error. A task without a tool is only marked as running: do it, then end it with task_edit. The tool is
        called for you, with your rights, and may have to wait for approval.
        """
        return await self._run(Target(id, version), context)

    async def _run(self, target: Target, context: ToolContext) -> ToolResult:
        actor = _actor(context)
        started = await self.book.write(lambda db: runs.start(db, target.id, target.version, actor))
        if started.tool is None:
            return ToolResult.ok(attrs.asdict(started.ran))
        answer = await context.call(started.tool, started.arguments)
        ended = _actor(context)
        try:
            ran = await self.book.write(lambda db: runs.settle(db, started, answer, ended))
        except StorageError as error:
            state = "succeeded" if answer.success else "failed"
            raise TaskError(f"{started.tool} {state}, but task {target.id} stays running, because {error}") from None
        return runs.answered(ran, answer)

    # -- many tasks --------------------------------------------------------------------------------------------

    async def task_create_many(
        self,
        tasks: Annotated[list[Member], "The tasks to create", Schema(minItems=1, maxItems=MAX_BATCH)],
        *,
        context: ToolContext,
    ) -> ToolResult:
        """Create several tasks in one call. They can depend on each other by `key` and `depends_on_keys`, in any order.

        Each is created or refused by itself; what depends on a refused one is refused too. `results` has one entry for
        each, in the order of `tasks`. For a single task use task_create.
        """
        actor = _actor(context)
        outcomes = await self.book.write(lambda db: batches.create(db, tasks, actor, self.max_tasks))
        return _batch(outcomes, "tasks")

    async def task_edit_many(
        self,
        edits: Annotated[list[Edit], "The changes, one for each task", Schema(minItems=1, maxItems=MAX_BATCH)],
        *,
        context: ToolContext,
    ) -> ToolResult:
        """Change several tasks in one call, one after another in the order of `edits`; what is null stays.

        Each is changed or refused by itself, as task_edit does it; `results` says which. No tool is called.
        """
        outcomes = await self.book.write(lambda db: batches.edit_each(db, edits, _actor(context)))
        return _batch(outcomes, "edits")

    async def task_delete_many(
        self,
        tasks: Annotated[
            list[Target], "Which to delete, each with the version that you read", Schema(minItems=1, maxItems=MAX_BATCH)
        ],
        *,
        context: ToolContext,
    ) -> ToolResult:
        """Delete several tasks for good. Tasks that depend on each other can go together, whatever their order.

        Each is deleted or stays by itself; `results` says which. One that a task not named here depends on stays.
        """
        outcomes = await self.book.write(lambda db: batches.delete_each(db, tasks, _actor(context)))
        return _batch(outcomes, "tasks")

    async def task_run_many(
        self,
        tasks: Annotated[
            list[Target], "Which to run, each with the version that you read", Schema(minItems=1, maxItems=MAX_BATCH)
        ],
        *,
        context: ToolContext,
    ) -> ToolResult:
        """Run several tasks in one call, one after another, each after those that it depends on.

        Each is run or refused by itself, as task_run does it; `results` has one entry for each, in the order of
        `tasks`. One that depends on a task that is not done by then is refused. All together have five minutes; what
        has not begun by then stays open. For a single task use task_run.
        """
        order = await self.book.read(lambda db: batches.order_of_runs(db, tasks))
        outcomes = {one.id: await self._attempted(one, context) for one in order}
        return _batch([outcomes[one.id] for one in tasks], "tasks")

    async def _attempted(self, target: Target, context: ToolContext) -> ToolResult | TaskError:
        """Run a task; that it could not be started or written down is told for it alone."""
        try:
            return await self._run(target, context)
        except TaskError as error:
            return error
        except StorageError as error:
            return TaskError(str(error))

    # -- dry runs ----------------------------------------------------------------------------------------------

    async def preview_create(self, args: Mapping[str, Any], context: ToolContext) -> Preview:
        """Say what task_create would do."""
        new, actor = New(**args), _actor(context)
        return await self.book.rehearse(lambda db: previews.of_create(db, new, actor, self.max_tasks))

    async def preview_edit(self, args: Mapping[str, Any], context: ToolContext) -> Preview:
        """Say what task_edit would do."""
        wanted, actor = Edit(**args), _actor(context)
        return await self.book.rehearse(lambda db: previews.of_edit(db, wanted, actor))

    async def preview_delete(self, args: Mapping[str, Any], context: ToolContext) -> Preview:
        """Say what task_delete would do."""
        actor = _actor(context)
        return await self.book.rehearse(lambda db: previews.of_delete(db, args["id"], args["version"], actor))

    async def preview_run(self, args: Mapping[str, Any], context: ToolContext) -> Preview:
        """Say what task_run would do."""
        actor = _actor(context)
        return await self.book.rehearse(lambda db: previews.of_run(db, args["id"], args["version"], actor))

    async def preview_create_many(self, args: Mapping[str, Any], context: ToolContext) -> Preview:
        """Say what task_create_many would do."""
        members, actor = [Member(**one) for one in args["tasks"]], _actor(context)
        return await self.book.rehearse(lambda db: previews.of_create_each(db, members, actor, self.max_tasks))

    async def preview_edit_many(self, args: Mapping[str, Any], context: ToolContext) -> Preview:
        """Say what task_edit_many would do."""
        edits, actor = [Edit(**one) for one in args["edits"]], _actor(context)
        return await self.book.rehearse(lambda db: previews.of_edit_each(db, edits, actor))

    async def preview_delete_many(self, args: Mapping[str, Any], context: ToolContext) -> Preview:
        """Say what task_delete_many would do."""
        targets, actor = [Target(**one) for one in args["tasks"]], _actor(context)
        return await self.book.rehearse(lambda db: previews.of_delete_each(db, targets, actor))

    async def preview_run_many(self, args: Mapping[str, Any], context: ToolContext) -> Preview:
        """Say what task_run_many would do."""
        targets, actor = [Target(**one) for one in args["tasks"]], _actor(context)
        return await self.book.rehearse(lambda db: previews.of_run_each(db, targets, actor))

    # -- when to ask -------------------------------------------------------------------------------------------

    async def asking(self, args: Mapping[str, Any], context: ToolContext) -> str | None:
        """Say `never` where a task names a tool, whose call is asked about by itself, or where it can't be run."""
        actor = _actor(context)
        try:
            started = await self.book.rehearse(lambda db: runs.start(db, args["id"], args["version"], actor))
        except TaskError:
            return "never"
        return None if started.tool is None else "never"

    async def asking_many(self, args: Mapping[str, Any], context: ToolContext) -> str | None:
        """Say `never` if every task names a tool or is not there: one without a tool is changed by nothing else."""
        targets, actor = [Target(**one) for one in args["tasks"]], _actor(context)
        return await self.book.read(lambda db: None if runs.any_without_tool(db, targets, actor) else "never")


def create_tools(book: Database, max_tasks: int) -> Toolset:
    """Return the tools on *book*, under one prompt that tells them apart."""
    tools = TaskTools(book, max_tasks)
    reads = _declared("read", "tasks:read", idempotent=True)
    create = _declared("mutate", "tasks:write", dry_run=tools.preview_create)(tools.task_create)
    delete = _declared("destructive", "tasks:write", dry_run=tools.preview_delete)(tools.task_delete)
    runs_it = _declared(
        "mutate",
        "tasks:write",
        timeout=_RUN_TIMEOUT,
        dry_run=tools.preview_run,
        intervention=tools.asking,
        output_schema=_RAN,
    )
    changed, deleted = _batch_schema(create.output_schema), _batch_schema(delete.output_schema)
    creates_many = _declared("mutate", "tasks:write", dry_run=tools.preview_create_many, output_schema=changed)
    edits_many = _declared("mutate", "tasks:write", dry_run=tools.preview_edit_many, output_schema=changed)
    deletes_many = _declared("destructive", "tasks:write", dry_run=tools.preview_delete_many, output_schema=deleted)
    runs_many = _declared(
        "mutate",
        "tasks:write",
        timeout=_RUN_TIMEOUT,
        dry_run=tools.preview_run_many,
        intervention=tools.asking_many,
        output_schema=_batch_schema(_RAN),
    )
    made = (
        reads(tools.task_list),
        reads(tools.task_view),
        create,
        _declared("mutate", "tasks:write", dry_run=tools.preview_edit)(tools.task_edit),
        delete,
        runs_it(tools.task_run),
        creates_many(tools.task_create_many),
        edits_many(tools.task_edit_many),
        deletes_many(tools.task_delete_many),
        runs_many(tools.task_run_many),
    )
    return Toolset("tasks", made, system_prompt=_PROMPT)


def _declared(effect: Any, access: str, **fields: Any) -> Callable[[Callable[..., Awaitable[Any]]], Tool]:
    return tool(effect=effect, required_access=access, category="tasks", **{"timeout": _TIMEOUT, **fields})


def _actor(context: ToolContext) -> Actor:
    return Actor.of(context.principal)


def _batch(outcomes: Sequence[Changed | Deleted | ToolResult | TaskError], place: str) -> ToolResult:
    return Batch.of([_part(outcome, f"{place}[{index}]") for index, outcome in enumerate(outcomes)])


def _part(outcome: Changed | Deleted | ToolResult | TaskError, place: str) -> ToolResult:
    if isinstance(outcome, TaskError):
        return ToolResult.fail(type(outcome).__name__, f"{place}: {outcome}")
    return outcome if isinstance(outcome, ToolResult) else ToolResult.ok(attrs.asdict(outcome))


# -- what comes back where a tool makes its own result --------------------------------------------------------------


def _closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _batch_schema(output: Any) -> dict[str, Any]:
    text = {"type": "string"}
    result = _closed(success={"type": "boolean"}, output={"anyOf": [output, {"type": "null"}]})
    result["properties"]["error"] = _closed(type=text, message=text)
    return _closed(
        succeeded={"type": "integer"}, failed={"type": "integer"}, results={"type": "array", "items": result}
    )


_TEXT_OR_NONE: Final = {"type": ["string", "null"]}
_RAN: Final = _closed(
    id={"type": "integer"},
    version={"type": "integer"},
    title={"type": "string"},
    status={"enum": ["open", "running", "done"]},
    called=_TEXT_OR_NONE,
    result=_TEXT_OR_NONE,
    result_truncated={"type": "boolean"},
    problem=_TEXT_OR_NONE,
    proposal=_TEXT_OR_NONE,
    kept={"type": "boolean"},
)
