"""How people are shown the calls of these tools."""

from agentos import Display

DISPLAYS = {
    "task_list": Display(
        "table",
        title="Tasks",
        fields=(
            *("tasks[].id", "tasks[].status", "tasks[].ready", "tasks[].title", "tasks[].tool", "tasks[].owner"),
            *("tasks[].updated_at", "total"),
        ),
    ),
    "task_view": Display(
        "table",
        title="Task {args.id}: {output.title}",
        fields=(
            *("status", "ready", "notes", "tool", "result", "problem", "owner", "depends_on[].id"),
            *("depends_on[].title", "depends_on[].status"),
        ),
    ),
    "task_create": Display("table", title="New task: {args.title}", fields=("id", "status", "ready", "title")),
    "task_edit": Display("table", title="Change task {args.id}", fields=("id", "status", "ready", "title")),
    "task_delete": Display("table", title="Delete task {args.id}", fields=("id", "title")),
    "task_run": Display(
        "table",
        title="Run task {args.id}",
        fields=("id", "title", "status", "called", "result", "problem"),
    ),
    "task_create_many": Display(
        "table",
        title="New tasks",
        fields=(
            *("succeeded", "failed", "results[].success", "results[].output.id", "results[].output.title"),
            *("results[].error.message",),
        ),
    ),
    "task_edit_many": Display(
        "table",
        title="Change tasks",
        fields=(
            *("succeeded", "failed", "results[].success", "results[].output.id", "results[].output.title"),
            *("results[].error.message",),
        ),
    ),
    "task_delete_many": Display(
        "table",
        title="Delete tasks",
        fields=(
            *("succeeded", "failed", "results[].success", "results[].output.id", "results[].output.title"),
            *("results[].error.message",),
        ),
    ),
    "task_run_many": Display(
        "table",
        title="Run tasks",
        fields=(
            *("succeeded", "failed", "results[].success", "results[].output.id", "results[].output.title"),
            *("results[].error.message",),
        ),
    ),
}
