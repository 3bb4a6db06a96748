"""Receipts of erasures as JSON, with a keyed digest that shows whether one was changed."""

import json
from collections.abc import Iterable
from typing import Any, Final

from tenants.audit.models import ErasureRequest
from tenants.exceptions import KonstructError
from tenants.models import Tenant
from tenants.signatures import is_signed, signature

VERSION: Final = 1
ALGORITHM: Final = "hmac-sha256"
_PURPOSE: Final = b"konstruct.receipts"
MAX_RECEIPT_BYTES: Final = 20_000_000


class ReceiptInvalid(KonstructError):
    """A file is no receipt of this deployment, or was changed."""


def receipt_document(erasure: ErasureRequest, tenant: Tenant) -> dict[str, Any]:
    """Return the receipt of a completed erasure, with its digest. It names no person.

    Args:
        erasure: the request, with digests instead of ids.
        tenant: the tenant of the request.
    """
    document = {
        "version": VERSION,
        "tenant": tenant.slug,
        "tenant_id": str(tenant.pk),
        "erasure": str(erasure.pk),
        "user_id": erasure.user_id,
        "user_ids": erasure.user_ids,
        "agent_id": erasure.agent_id and str(erasure.agent_id),
        "reason": erasure.reason,
        "requested_by": erasure.requested_by,
        "requested_at": erasure.created_at.isoformat(),
        "done_at": erasure.done_at and erasure.done_at.isoformat(),
        "receipt": erasure.receipt,
    }
    digest = {"algorithm": ALGORITHM, "value": signature(document, _PURPOSE)}
    return {**document, "digest": digest}


def verify_receipt(content: bytes) -> dict[str, Any]:
    """Check the digest of a receipt, under each SECRET_KEY that is or was in use.

    Args:
        content: the JSON of a file.

    Returns:
        The receipt.

    Raises:
        ReceiptInvalid: it is no receipt, was changed, or is of another deployment.
    """
    if len(content) > MAX_RECEIPT_BYTES:
        raise ReceiptInvalid(f"a receipt has at most {MAX_RECEIPT_BYTES:,} bytes")
    try:
        document = json.loads(content, object_pairs_hook=_unique, parse_constant=_refuse)
        digest = document.pop("digest")
        algorithm, value = digest["algorithm"], str(digest["value"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ReceiptInvalid("this is not a receipt of an erasure") from error
    if algorithm != ALGORITHM or document.get("version") != VERSION:
        raise ReceiptInvalid("this version cannot check such a receipt")
    if is_signed(document, _PURPOSE, value):
        receipt: dict[str, Any] = document
        return receipt
    raise ReceiptInvalid(
        "the digest does not fit: the receipt was changed, or is of a deployment with another"
        " SECRET_KEY"
    )


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse duplicate names: a person could read one value, and the digest cover the other."""
    document: dict[str, Any] = {}
    for name, value in pairs:
        if name in document:
            raise ValueError(f"{name} comes twice")
        document[name] = value
    return document


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")
