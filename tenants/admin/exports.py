"""Exports of lists: a job writes the rows as CSV, and the member of the team who asked gets them.

1. `request_export` stores the filters of the list, and enqueues a job.
2. `write_file` rebuilds the request of the list in the worker, and stores its rows in parts of the
   tenant's table: web and workers may be on different machines.
3. The page of the export waits for the file, and downloads it once. The job runs again after a day,
   and deletes the export.

The permissions of the member are checked at each step. Each erasure, and each removal of old
messages, deletes all exports of the tenant.
"""

import csv
import json
import logging
import time
import unicodedata
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, cast
from uuid import UUID

from django import http
from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.core.handlers.asgi import ASGIRequest
from django.core.serializers.json import DjangoJSONEncoder
from django.db import connections
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import resolve, reverse
from django.utils import timezone, translation
from django.utils.http import content_disposition_header
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_lazy as _

from tenants import context, exceptions, jobs, transaction
from tenants.admin.sites import tenant_site
from tenants.audit.access_log import MAX_PEOPLE
from tenants.audit.models import EXPORTS, ListExport, ListExportPart, ListExportQuerySet
from tenants.models import Tenant

logger = logging.getLogger(__name__)

EXPORT: Final = "audit.export_list"
# How long a file is kept that is not downloaded.
KEPT: Final = timedelta(days=1)
# Exports of one member of the team. A new one deletes the oldest.
MAX_EXPORTS: Final = 3
PART_BYTES: Final = 200_000
# The lease of a job ends after TASK_TIME_LIMIT.
MAX_SECONDS: Final = settings.TASK_TIME_LIMIT * 0.8
# A cell that begins so, after characters that spreadsheets skip, is a formula to them.
FORMULA_PREFIXES: Final = tuple("=+-@\t\r\n＝＋－＠")
_SKIPPED_CATEGORIES: Final = ("C", "Z", "M")

Rows = Iterable[tuple[Any, ...]]


class ExportRefused(exceptions.KonstructError):
    """The member of the team may not export the list any more."""


class ExportTooLong(exceptions.KonstructError):
    """The list has more rows than an export can write."""


class ExportRemoved(exceptions.KonstructError):
    """The file was deleted during its download."""


# The lists that are no list of a model, by the names of their pages: each is a RecordedAdmin.
page_sources: Final[dict[str, Any]] = {}


def source_of(list_name: str) -> Any:
    """Return the list of a model, such as "memory.message", or of a page: a RecordedAdmin."""
    source = page_sources.get(list_name)
    return source or tenant_site.get_model_admin(apps.get_model(list_name))


def list_url(list_name: str, **query: str) -> str:
    """Return the address of the list of a model, such as "memory.message", or of a page."""
    page = f"{list_name.replace('.', '_')}_changelist" if "." in list_name else list_name
    return reverse(f"admin:{page}", query=query)


def list_title(list_name: str) -> str:
    """Return the name of a list, for people."""
    if list_name in page_sources:
        return capfirst(gettext(list_name))
    return capfirst(str(apps.get_model(list_name)._meta.verbose_name_plural))


def may_export(request: HttpRequest) -> bool:
    """Return whether the user may export the lists that they see; an operator always may."""
    return getattr(request, "tenant", None) is None or request.user.has_perm(EXPORT)


def request_export(request: HttpRequest, list_name: str) -> http.HttpResponseRedirect:
    """Enqueue the export of a list with the filters of the request, and show its page.

    Raises:
        PermissionDenied: the user may not export the list.
    """
    source = source_of(list_name)
    if request.method != "POST" or not _is_allowed(request, source):
        raise PermissionDenied
    asked = {
        "list_name": list_name,
        "query": request.GET.urlencode(),
        "time_zone": timezone.get_current_timezone_name(),
    }
    with transaction.atomic():
        of_member, member = _exports_of(request.user), cast(Any, request.user)
        newest = of_member.order_by("-created_at").values_list("pk", flat=True)
        of_member.exclude(pk__in=list(newest[: MAX_EXPORTS - 1])).remove()
        export = ListExport.objects.create(
            **asked, member_id=member.pk, member=member.get_username()
        )
        EXPORTS.enqueue(export.pk)
        source.record(request, "export", format="csv")
    return redirect("admin:list_export", export.pk)


def _exports_of(member: Any) -> ListExportQuerySet:
    return ListExport.objects.filter(member_id=member.pk)


def _is_allowed(request: HttpRequest, source: Any) -> bool:
    is_member = tenant_site.has_permission(request) and may_export(request)
    return is_member and bool(source.has_view_permission(request))


# --- In the worker -------------------------------------------------------------------------------


def write_file(job: UUID | jobs.Lease) -> None:
    """Write the file of an export of the current tenant, or delete an export that is finished.

    After a kill another worker begins anew.
    """
    EXPORTS.run(job, _write_or_delete, on_failure=partial(_record_failure, jobs.key_of(job)))


def _record_failure(export_id: UUID, error: Exception) -> bool:
    """Let the export be tried again; after the last attempt, show the error on its page."""
    is_final = isinstance(error, ExportRefused | ExportTooLong)
    if not is_final and EXPORTS.jobs([export_id]).get().attempts < EXPORTS.max_attempts:
        return EXPORTS.record_failure(export_id, error)
    logger.log(
        logging.WARNING if is_final else logging.ERROR,
        *("The export %s has failed: %s", export_id, exceptions.detail_of(error)),
        exc_info=not is_final,
    )
    ListExportPart.objects.filter(export_id=export_id).delete()
    ListExport.objects.filter(pk=export_id).update(error=exceptions.reason_of(error))
    EXPORTS.postpone(export_id, KEPT)
    return True


def _write_or_delete(lease: jobs.Lease) -> None:
    export_id = lease.key
    export = ListExport.objects.filter(pk=export_id).first()
    if export is None or export.finished_at or export.error:
        with lease.transaction():
            if export and (left := export.created_at + KEPT - timezone.now()) > timedelta(0):
                EXPORTS.postpone(export_id, left)
                return
            ListExport.objects.filter(pk=export_id).remove()
            EXPORTS.finish(export_id)
        return
    with lease.transaction():
        ListExportPart.objects.filter(export_id=export_id).delete()
    source, request = source_of(export.list_name), _request_of(export)
    if not _is_allowed(request, source):
        raise ExportRefused(f"{export.member} may not export this list any more.")
    stored, size, people = ListExport.objects.filter(pk=export_id), 0, set[str]()
    ends_at = time.monotonic() + MAX_SECONDS
    with timezone.override(export.time_zone), translation.override("en"):
        columns, found = source.exported(request)
        found = _note_people(columns, found, people)
        for number, (rows, content) in enumerate(_parts(columns, found)):
            size += len(content)
            with lease.transaction():
                if not stored.update(rows=rows, size=size):
                    EXPORTS.finish(export_id)  # an erasure has deleted it
                    return
                part = {"export_id": export_id, "number": number, "content": content}
                ListExportPart.objects.create(**part)
            if time.monotonic() > ends_at:
                raise ExportTooLong(
                    f"The list has more rows than can be written in {MAX_SECONDS / 60:.0f} minutes:"
                    " export a range of dates."
                )
    with lease.transaction():
        shown = sorted(people)[:MAX_PEOPLE]
        stored.update(finished_at=Now(), user_ids=shown, people_count=len(people))
        EXPORTS.postpone(export_id, export.created_at + KEPT - timezone.now())


def _note_people(columns: list[str], rows: Rows, people: set[str]) -> Rows:
    """Yield the rows, and add their users to `people`: the log has who was shown."""
    place = columns.index("user_id") if "user_id" in columns else None
    for row in rows:
        if place is not None and row[place]:
            people.add(row[place])
        yield row


def _request_of(export: ListExport) -> HttpRequest:
    """Return the request of the list, of the member of the team as they are now."""
    request = HttpRequest()
    request.method = "GET"
    request.path = request.path_info = list_url(export.list_name)
    request.resolver_match = resolve(request.path)
    request.GET = http.QueryDict(export.query)
    request.tenant = Tenant.objects.get(pk=context.required_tenant_id())  # type: ignore[attr-defined]
    member = get_user_model()._default_manager.filter(pk=export.member_id, is_active=True).first()
    if member is None:
        raise ExportRefused(f"{export.member} is not in the team any more.")
    request.user = member
    return request


def _parts(columns: list[str], rows: Rows) -> Iterator[tuple[int, bytes]]:
    """Yield the parts of a file, each with the number of rows until its end."""
    lines, size = list[bytes](), 0
    number = 0
    for number, line in enumerate(as_csv(columns, rows)):
        lines.append(line.encode())
        size += len(lines[-1])
        if size >= PART_BYTES:
            yield number, b"".join(lines)
            lines, size = [], 0
    if lines:
        yield number, b"".join(lines)


# --- The page of an export -----------------------------------------------------------------------


@tenant_site.page("exports/<uuid:export_id>/", permission=EXPORT, title=_("Export"))
def list_export(request: HttpRequest, export_id: UUID) -> dict[str, Any]:
    """Show the progress of an export, and then download its file."""
    export = _exports_of(request.user).filter(pk=export_id).first()
    job = EXPORTS.jobs([export_id]).first() if export else None
    return {
        "export": export,
        "title_of_list": list_title(export.list_name) if export else "",
        "list_url": f"{list_url(export.list_name)}?{export.query}" if export else "",
        "error": job.last_error if job else "",
        "is_queued": job is not None and job.attempts == 0,
    }


@tenant_site.page("exports/<uuid:export_id>/download/", permission=EXPORT)
def list_export_download(request: HttpRequest, export_id: UUID) -> HttpResponseBase:
    """Send the file of an export to the member of the team who asked for it, once."""
    recent = _exports_of(request.user).filter(created_at__gt=Now() - KEPT)
    export = recent.filter(pk=export_id).first()
    if export is None:
        raise http.Http404
    source = source_of(export.list_name)
    if not _is_allowed(request, source):
        raise PermissionDenied
    if request.method != "GET" or export.finished_at is None or export.downloaded_at is not None:
        return redirect("admin:list_export", export_id)
    parts = ListExportPart.objects.filter(export_id=export_id).count()
    # The log names the person of the filters.
    request.GET = http.QueryDict(export.query)
    source.record(
        request,
        "export",
        format="csv",
        downloaded_rows=export.rows,
        people=export.user_ids,
        people_count=export.people_count,
    )
    name = f"{export.list_name.rpartition('.')[2]}-{export.created_at:%Y-%m-%d}.csv"
    return streamed(request, _file(export_id, parts), **_csv_headers(name))


def _file(export_id: UUID, parts: int) -> Iterator[bytes]:
    """Yield the parts of a file, and then delete it."""
    for number in range(parts):
        part = ListExportPart.objects.filter(export_id=export_id, number=number).first()
        if part is None:
            raise ExportRemoved("The file was deleted during its download: export the list again.")
        yield bytes(part.content)
    with transaction.atomic():
        ListExport.objects.filter(pk=export_id).update(downloaded_at=Now())
        ListExportPart.objects.filter(export_id=export_id).delete()


def streamed(request: HttpRequest, pieces: Iterator[bytes], **options: Any) -> HttpResponseBase:
    """Return a response that is read in pieces while it is sent, each in a scope of the tenant.

    Args:
        request: the request of a member of the team, or of a program.
        pieces: the body. They are not empty, but for the last one.
        options: arguments of the response.
    """
    if not isinstance(request, ASGIRequest):
        return http.HttpResponse(pieces, **options)
    content = _read_in_thread(context.required_tenant_id(), pieces)
    response = http.StreamingHttpResponse(content, **options)
    # Django's GZipMiddleware would compress each piece by itself, and some clients read the first.
    response.headers["Content-Encoding"] = "identity"
    return response


async def _read_in_thread(tenant_id: UUID, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield pieces that are each read in a thread. None waits for a slow client."""
    while piece := await _read(tenant_id, pieces):
        yield piece


@context.asynchronous
def _read(tenant_id: UUID, pieces: Iterator[bytes]) -> bytes | None:
    try:
        with context.tenant_scope(tenant_id):
            return next(pieces, None)
    finally:
        connections.close_all()  # of this thread, which is the response's


# --- CSV -----------------------------------------------------------------------------------------


def export_response(name: str, columns: list[str], rows: Rows) -> http.HttpResponse:
    """Return a file of rows as CSV, for operators: their lists are short.

    Args:
        name: the beginning of the file's name.
        columns: the names of the columns.
        rows: the values of each row. Times get the offset of the current time zone.
    """
    with translation.override("en"):
        content = list(as_csv(columns, rows))
    return http.HttpResponse(content, **_csv_headers(f"{name}-{timezone.localtime():%Y-%m-%d}.csv"))


def _csv_headers(name: str) -> dict[str, Any]:
    return {
        "content_type": "text/csv; charset=utf-8",
        "headers": {"Content-Disposition": content_disposition_header(True, name) or ""},
    }


class _Echo:
    """A file for csv.writer: `write` returns its argument."""

    def write(self, text: str) -> str:
        return text


def as_csv(columns: list[str], rows: Rows) -> Iterator[str]:
    """Yield lines of CSV. A text that a spreadsheet would calculate gets an apostrophe."""
    writer = csv.writer(_Echo())
    yield writer.writerow(columns)
    for row in rows:
        yield writer.writerow([_csv_cell(value) for value in row])


def _csv_cell(value: Any) -> Any:
    if isinstance(value, dict | list):
        value = json.dumps(value, cls=DjangoJSONEncoder, ensure_ascii=False)
    elif isinstance(value, datetime):
        return timezone.localtime(value).isoformat()
    if isinstance(value, str):
        begins = next(
            (sign for sign in value if unicodedata.category(sign)[0] not in _SKIPPED_CATEGORIES), ""
        )
        if value.startswith(FORMULA_PREFIXES) or begins in FORMULA_PREFIXES:
            return f"'{value}"
    return value
