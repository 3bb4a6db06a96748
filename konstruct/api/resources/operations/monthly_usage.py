"""The usage of a month by REST, as JSON or as CSV."""

from typing import Any

from django.core.validators import RegexValidator
from drf_spectacular.utils import OpenApiResponse
from rest_framework import serializers
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http.bodies import FastJSONRenderer, StrictCharField, StrictSerializer
from konstruct.api.http.routes import route
from konstruct.api.http.views import ApiView, operation
from konstruct.orchestrator.monthly import MONTH, csv_lines, month_of, row_of
from konstruct.orchestrator.usage import first_of_month, full_tenant_row
from tenants.audit.models import Action

JSON, CSV = "application/json", "text/csv"


class MonthQuery(StrictSerializer):
    """Query parameters of the usage of a month."""

    month = StrictCharField(
        required=False,
        validators=[RegexValidator(MONTH, "Give a month such as 2026-11.")],
        help_text="The month (UTC), such as 2026-11. Default: this one.",
    )


class UsageOfMonthSerializer(serializers.Serializer):
    """The tenant's usage of a month. The fields are the columns of the CSV."""

    tenant = serializers.CharField(help_text="The short name of the tenant.")
    month = serializers.CharField(help_text="The month (UTC), such as 2026-11.")
    messages = serializers.IntegerField(help_text="Messages of users that were accepted.")
    replies = serializers.IntegerField(help_text="Replies of agents that were written.")
    memories = serializers.IntegerField(
        allow_null=True, help_text="At the last measurement. null: of an earlier month."
    )
    storage_bytes = serializers.IntegerField(
        allow_null=True, help_text="At the last measurement. null: of an earlier month."
    )
    calls_reply = serializers.IntegerField(help_text="Calls of language models for replies.")
    calls_extraction = serializers.IntegerField(help_text="Those for the extraction of facts.")
    calls_dry_run = serializers.IntegerField(help_text="Those for dry runs.")
    calls_saved_questions = serializers.IntegerField(help_text="Those for saved questions.")
    calls_asking_again = serializers.IntegerField(help_text="Those for asking again.")
    calls_other = serializers.IntegerField(help_text="All other calls.")
    prompt_tokens = serializers.IntegerField(help_text="Tokens sent.")
    completion_tokens = serializers.IntegerField(help_text="Tokens received.")
    cost = serializers.DecimalField(
        max_digits=None, decimal_places=6, help_text="By the prices at the time of the calls."
    )
    unknown_calls = serializers.IntegerField(
        help_text="Those of the calls that have no outcome: their tokens are not counted."
    )


class CsvRenderer(BaseRenderer):
    """Writes the row of a month as CSV."""

    media_type = CSV
    format = "csv"
    charset = "utf-8"

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None
    ) -> str:
        """Return the line of titles and the line of the month."""
        return "".join(csv_lines([data]))


@route("usage/month/", name="usage-of-month")
class UsageOfMonthView(ApiView):
    """The usage of a month. Bound keys have no access."""

    renderer_classes = [FastJSONRenderer, CsvRenderer]

    @operation(
        Action.VIEW,
        "usage",
        permission="orchestrator.view_modelcall",
        query=MonthQuery,
        id="get_usage_of_month",
        returns={
            (200, JSON): UsageOfMonthSerializer,
            (200, CSV): OpenApiResponse(str, description="A line of titles, and one of numbers."),
        },
    )
    def get(self, request: Request) -> Response:
        """Get the tenant's usage of a month: messages, calls by purpose, tokens and money.

        With `Accept: text/csv` the response is CSV.
        """
        first = month_of(self.query["month"]) if "month" in self.query else first_of_month()
        self.log(month=f"{first:%Y-%m}")
        return Response(UsageOfMonthSerializer(row_of(full_tenant_row(), first)).data)
