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
        from konstruct.interfaces import errors

        problems.register_error_format(errors.MCP_ENDPOINT, errors.mcp_error)
        problems.register_error_format("/mem0/", errors.mem0_error)
        problems.register_error_format("/v1/", errors.openai_error)
