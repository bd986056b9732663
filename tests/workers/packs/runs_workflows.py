"""A pack that offers a workflow as a function."""

from agentos import ExtensionPack, workflow


@workflow()
async def onboard(flow):
    return await flow.now()


def create_extension_pack():
    return ExtensionPack("p", "1", [onboard])
