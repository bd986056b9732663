"""Workflows that survive their process.

flow.py               Flow: what a workflow's function does its steps by
host_workflows.py     Workflows: what a host starts, looks at and decides on, which is `host.workflows`
live_flow.py          the flow of a run that is under way
run_execution.py      one run on this host, from when it is taken until it is let go
run_watch.py          which runs can go on here, and which hosts are gone
run_views.py          runs and steps as they are shown; schedules.py what starts them by the clock
run_store.py          runs in the store, and the fence of each
dbos_engine.py        DBOS, which records the steps
definition_checks.py  everything that is wrong with a definition, before it starts
definition_flow.py    run_definition(definition, flow, inputs): a WorkflowDefinition as a function over a Flow
task_references.py    ${inputs.x} and ${task.output}; conditions.py what `when` says; task_order.py what waits for what
schema_paths.py       whether a reference can lead anywhere in an output
graphs.py             definitions and runs as graphs; graph_text.py and graph_pictures.py draw them
"""
