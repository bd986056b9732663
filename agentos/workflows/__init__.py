"""Workflows that survive their process.

flow.py            Flow: what a workflow's function does its steps by
host_workflows.py  Workflows: what a host starts, looks at and decides on, which is `host.workflows`
definition_flow.py run_definition(definition, flow, inputs): a WorkflowDefinition as a function over a Flow
"""
