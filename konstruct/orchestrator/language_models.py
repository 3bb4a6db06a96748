"""A tenant's language models and rerankers: creating and changing them, and which an agent calls.

An agent calls its own models in their order, or else those with a position, or else the
deployment's. A `LanguageModel` without an endpoint is one of the deployment's server; without a
name, it is the deployment's model itself.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.db.models import Q

from konstruct.llm.client import HttpLanguageModel, language_model
from konstruct.llm.completions import LLMError, LLMRefused, LLMTimeout, host_of
from konstruct.orchestrator import exceptions, usage
from konstruct.orchestrator.models import Agent, LanguageModel, ModelKind
from tenants import context, outages, transaction
from tenants.secret_keys import SecretUnreadable, decrypt, encrypt

MAX_LANGUAGE_MODELS: Final = 50
# A model with a next one is left out for PAUSE_SECONDS after this many failures in
# FAILURE_SECONDS. The counts are in the cache: without it, each model is called.
MAX_FAILURES: Final = 3
FAILURE_SECONDS: Final = 60
PAUSE_SECONDS: Final = 30
# Visible ASCII: a key is sent in a header.
KEY: Final = re.compile(r"[!-~]{0,2000}")
LEFT_OUT: Final = "The reranker has failed several times, and is left out for some seconds."
NONE_ACTIVE: Final = "None of the language models for this agent is active."
AGENT_LIMIT_REACHED: Final = "This agent has used its tokens of today (UTC)."
LIMIT_REACHED: Final = "The language models for this agent have used their tokens of today (UTC)."


def create_language_model(*, key: str = "", **fields: Any) -> LanguageModel:
    """Create a language model of the current tenant.

    Args:
        key: the key of its server.
        fields: fields of `LanguageModel`.

    Raises:
        LanguageModelInvalid: a field is invalid.
        LimitReached: the tenant has MAX_LANGUAGE_MODELS.
    """
    model = LanguageModel(**fields)
    with _validation(model):
        check_key(key, endpoint=model.endpoint)
        usage.require_fewer(LanguageModel.objects.all(), MAX_LANGUAGE_MODELS)
        _set_key(model, key)
        model.save(force_insert=True)
    return model


def update_language_model(
    model: LanguageModel, /, *, key: str | None = None, **changes: Any
) -> LanguageModel:
    """Change a language model. A key is not sent to another address: it is given again.

    Args:
        model: the model, which the caller's transaction has locked.
        key: the new key; "": none; None: unchanged.
        changes: new values of fields.

    Raises:
        LanguageModelInvalid: a field is invalid.
        WrongState: agents use the name, and it or the kind changes.
    """
    stored = LanguageModel.objects.get(pk=model.pk)
    before = {"name": stored.name, "kind": stored.kind}
    if before != {name: changes.get(name, value) for name, value in before.items()}:
        _require_unused(stored)
    for name, value in changes.items():
        setattr(model, name, value)
    with _validation(model):
        check_key(key, endpoint=model.endpoint, stored=stored)
        if key is not None or not model.endpoint:
            _set_key(model, key or "")
        model.save()
    return model


def delete_language_model(model: LanguageModel) -> None:
    """Delete a language model. Raises WrongState if agents name it."""
    _require_unused(model)
    model.delete()


def key_of(model: LanguageModel) -> str:
    """Return the key of a model; "": none. Raises SecretUnreadable."""
    if not model.secret_key:
        return ""
    return decrypt(model.secret_key, tenant_id=context.required_tenant_id(), place=_place(model))


def check_key(key: str | None, *, endpoint: str, stored: LanguageModel | None = None) -> None:
    """Raise ValidationError for a key that cannot be stored, or that has to be entered again.

    Args:
        key: the key; None: it is unchanged.
        endpoint: the address of the server.
        stored: the model before the change; None: a new one.
    """
    problem = ""
    if key and not endpoint:
        problem = "The deployment's server has its own key."
    elif not KEY.fullmatch(key or ""):
        problem = "A key has at most 2,000 letters, digits and signs."
    elif key and not settings.CHANNEL_TOKEN_KEYS:
        problem = "This deployment cannot keep keys: its operator has to set CHANNEL_TOKEN_KEYS."
    elif key is None and stored and stored.secret_key and endpoint not in ("", stored.endpoint):
        problem = "Enter the key again: the address changes."
    if problem:
        raise ValidationError({"key": problem})


def _set_key(model: LanguageModel, key: str) -> None:
    tenant_id = context.required_tenant_id()
    model.secret_key = key and encrypt(key, tenant_id=tenant_id, place=_place(model))


def _place(model: LanguageModel) -> str:
    return f"language model {model.pk}"


@contextmanager
def _validation(model: LanguageModel) -> Iterator[None]:
    """Validate the model, and run the block in a transaction. Raises LanguageModelInvalid."""
    try:
        model.full_clean()
        with transaction.atomic():
            yield
    except ValidationError as error:
        raise exceptions.LanguageModelInvalid.of(error) from error
    except IntegrityError as error:  # the name was taken after the validation
        raise exceptions.LanguageModelInvalid("name: This name was taken meanwhile.") from error


def _require_unused(model: LanguageModel) -> None:
    named = Q(language_models__contains=[model.name]) | Q(reranker=model.name)
    agents = Agent.objects.filter(named)
    if names := list(agents.values_list("name", flat=True)[:10]):
        raise exceptions.WrongState(f"Remove {model.name!r} from these agents first: {names}.")


# --- Which models an agent calls ------------------------------------------------------------------


def has_language_model(agent: Any) -> bool:
    """Return whether an agent has a language model, of the tenant or of the deployment."""
    return bool(settings.LLM_POOL_URL) or bool(_models_of(agent))


def chain_of(agent: Any) -> list[LanguageModel]:
    """Return the active language models that an agent calls, in order; []: there is none.

    Raises:
        LLMRefused: the agent or the tenant has models, and none is active.
    """
    models = _models_of(agent)
    if not models:
        return [LanguageModel(name="")] if settings.LLM_POOL_URL else []
    if active := [model for model in models if model.is_active]:
        return active
    raise LLMRefused(NONE_ACTIVE)


def require_tokens_left(agent: Any, purpose: str) -> None:
    """Raise LLMRefused for an agent that has used its tokens of today for this purpose."""
    limit = getattr(agent, "max_tokens_per_day", None)
    if limit is not None and usage.tokens_today(agent.id, purpose) >= limit:
        raise LLMRefused(AGENT_LIMIT_REACHED)


def _models_of(agent: Any) -> list[LanguageModel]:
    if not getattr(agent, "has_models", True):
        return []
    names = list(getattr(agent, "language_models", ()))
    chosen = Q(name__in=names) if names else Q(position__isnull=False)
    models = list(LanguageModel.objects.filter(chosen))
    return sorted(models, key=lambda model: names.index(model.name)) if names else models


def without_exhausted(chain: list[LanguageModel]) -> list[LanguageModel]:
    """Return the models of a chain with tokens left, without those that fail now.

    If all fail, all are returned.

    Raises:
        LLMRefused: no model has tokens left.
    """
    limits = {model.name: model.max_tokens_per_day for model in chain}
    names = [name for name, limit in limits.items() if limit is not None]
    used = usage.model_tokens_today(names) if names else {}
    left = [model for model in chain if used.get(model.name, 0) < (limits[model.name] or 2**63)]
    if not left:
        raise LLMRefused(LIMIT_REACHED)
    return (left if len(left) == 1 else without_paused(left)) or left


def reranker_of(agent: Any) -> LanguageModel | None:
    """Return the active reranker that an agent names, or None."""
    name = getattr(agent, "reranker", "")
    named = LanguageModel.objects.filter(name=name, kind=ModelKind.RERANKER, is_active=True)
    return named.first() if name else None


def require_available(model: LanguageModel) -> None:
    """Raise LLMRefused for a model that has no tokens left, or fails now."""
    if not without_paused(without_exhausted([model])):
        raise LLMRefused(LEFT_OUT)


def without_paused(models: list[LanguageModel]) -> list[LanguageModel]:
    """Return the models that do not fail now."""
    try:
        paused = cache.get_many([_paused_key(model.pk) for model in models])
    except outages.OUTAGES:
        return models
    return [model for model in models if _paused_key(model.pk) not in paused]


def is_temporary(error: LLMError) -> bool:
    """Return whether a later request may succeed."""
    return error.is_retryable or isinstance(error, LLMTimeout)


def record_failure(model: LanguageModel, error: LLMError) -> None:
    """Count a temporary failure. After MAX_FAILURES, the model is left out."""
    if not model.name or not is_temporary(error):
        return
    key = f"model_failures:{model.pk}"
    try:
        cache.add(key, 0, timeout=FAILURE_SECONDS)
        if cache.incr(key) >= MAX_FAILURES:
            cache.set(_paused_key(model.pk), 1, timeout=PAUSE_SECONDS)
    except (*outages.OUTAGES, ValueError):  # ValueError: it has expired since
        return


def _paused_key(model_id: UUID) -> str:
    return f"model_paused:{model_id}"


def client_of(
    model: LanguageModel, *, timeout: float, max_attempts: int | None = None
) -> HttpLanguageModel:
    """Return the client of a model.

    Args:
        model: the model.
        timeout: seconds, at most the model's.
        max_attempts: the maximum number of requests; None: MAX_ATTEMPTS.

    Raises:
        LLMRefused: its key cannot be read, or the deployment has no server any more.
    """
    seconds = min(timeout, model.timeout_seconds or timeout)
    if not model.endpoint:
        client = language_model(seconds)
        if not isinstance(client, HttpLanguageModel):
            raise LLMRefused("The deployment has no server of its own.")
        return replace(client, max_attempts=max_attempts)
    try:
        key = key_of(model)
    except SecretUnreadable as error:
        raise LLMRefused(str(error)) from error
    return HttpLanguageModel(
        model.endpoint, key=key, timeout=seconds, is_guarded=True, max_attempts=max_attempts
    )


def described(model: LanguageModel, requested: str, tier: str) -> dict[str, Any]:
    """Return what the meter stores of a model, by the names of fields of `ModelCall`.

    A model with its own server has its own prices, another one those of the deployment.

    Args:
        model: the model.
        requested: the name of the agent's model; "": none.
        tier: the agent's tier.
    """
    default = "" if model.endpoint else settings.LLM_MODEL
    if model.endpoint:
        prices = model.prompt_price, model.completion_price
    else:
        prices = settings.LLM_PRICE_PROMPT, settings.LLM_PRICE_COMPLETION
    return {
        "language_model": model.name,
        "model": model.model or requested or default or tier,
        "endpoint": host_of(model.endpoint or settings.LLM_POOL_URL),
        "prompt_price": prices[0],
        "completion_price": prices[1],
    }


def cost(used: tuple[int, int], values: Mapping[str, Any]) -> Decimal:
    """Return the cost of tokens of prompts and answers, by the prices from `described`."""
    price = used[0] * values["prompt_price"] + used[1] * values["completion_price"]
    return Decimal(price / 1_000_000).quantize(Decimal("0.000001"))
