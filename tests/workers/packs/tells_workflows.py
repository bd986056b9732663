"""A pack that offers a workflow as data, and what does one of its tasks."""

from agentos import Descriptor, ExtensionPack, Task, WorkflowDefinition


class Doubling:
    async def execute(self, task, inputs, context):
        return {"doubled": 2 * inputs["n"], "for": context.principal.id}


def create_extension_pack():
    tasks = [Task(id="double", executor="doubling", arguments={"n": "${inputs.n}"})]
    inputs = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    definition = WorkflowDefinition("twice", "1", tasks=tasks, inputs=inputs, output="${double.output}")
    return ExtensionPack("p", "1", [definition, Descriptor("workflow-executor", "doubling", Doubling())])
