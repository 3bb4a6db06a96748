"""App configuration of the interfaces."""

from django.apps import AppConfig


class InterfacesConfig(AppConfig):
    """Interfaces of other products. They have no tables of their own."""

    name = "konstruct.interfaces"
    label = "interfaces"
    verbose_name = "Interfaces"

    def ready(self) -> None:
        """Register the path and the error format of each interface."""
        # Models, which need the apps.
        from konstruct.api.http import problems
        from konstruct.interfaces.mcp import errors as mcp
        from konstruct.interfaces.mem0 import base as mem0
        from konstruct.interfaces.openai import errors as openai

        problems.register_error_format(mcp.ENDPOINT, mcp.error_response)
        problems.register_error_format("/mem0/", mem0.error_response)
        problems.register_error_format(openai.PREFIX, openai.error_response)
