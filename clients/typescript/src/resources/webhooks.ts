/** API keys, events for programs, webhooks, and the deliveries of events to webhooks. */

import { pathOf } from "../calls.js";
import type { CallOptions, Params } from "../types.js";
import { Resource } from "./resource.js";

/** The key of this program, and the keys that it made. They need the scope `keys`. */
export class ApiKeys extends Resource {
  /** Create a key that allows no more than this one. Its `key` is shown once. */
  create(params: Params<"create_api_key">, options: CallOptions = {}) {
    return this.call<"create_api_key">("POST", "api-keys/", { body: params, isRepeatable: false }, options);
  }

  /** Get a key, without its secret. */
  get(keyId: string, options: CallOptions = {}) {
    return this.call<"get_api_key">("GET", pathOf("api-keys", keyId), {}, options);
  }

  /** Revoke a key for good, with the keys that it made. */
  revoke(keyId: string, options: CallOptions = {}) {
    return this.done("DELETE", pathOf("api-keys", keyId), {}, options);
  }

  /** List keys, newest first. */
  list(params: Params<"list_api_keys"> = {}, options: CallOptions = {}) {
    return this.pages<"list_api_keys">("api-keys/", params, options);
  }
}

/** Events, in their order. */
export class Events extends Resource {
  /** Read the events after a place. The response has the place for the next call. */
  read(params: Params<"list_events"> = {}, options: CallOptions = {}) {
    return this.call<"list_events">("GET", "events/", { query: params }, options);
  }
}

/** Addresses of programs that get events. */
export class Webhooks extends Resource {
  /** Create a webhook. The response has its secret, which no later one shows. */
  create(params: Params<"create_webhook">, options: CallOptions = {}) {
    return this.call<"create_webhook">("POST", "webhooks/", { body: params, isRepeatable: false }, options);
  }

  /** Get a webhook. */
  get(webhookId: string, options: CallOptions = {}) {
    return this.call<"get_webhook">("GET", pathOf("webhooks", webhookId), {}, options);
  }

  /** Change a webhook. */
  update(webhookId: string, params: Params<"update_webhook">, options: CallOptions = {}) {
    return this.call<"update_webhook">("PATCH", pathOf("webhooks", webhookId), { body: params }, options);
  }

  /** Delete a webhook, with its deliveries. */
  delete(webhookId: string, options: CallOptions = {}) {
    return this.call<"delete_webhook">("DELETE", pathOf("webhooks", webhookId), {}, options);
  }

  /** Replace the secret. For a day events are signed by each of the two. */
  rotateSecret(webhookId: string, options: CallOptions = {}) {
    const request = { isRepeatable: false };
    return this.call<"rotate_webhook_secret">("POST", pathOf("webhooks", webhookId, "secret"), request, options);
  }

  /** List webhooks, oldest first. */
  list(params: Params<"list_webhooks"> = {}, options: CallOptions = {}) {
    return this.pages<"list_webhooks">("webhooks/", params, options);
  }
}

/** Events that are, or were, sent to webhooks. */
export class WebhookDeliveries extends Resource {
  /** Get a delivery. */
  get(deliveryId: string, options: CallOptions = {}) {
    return this.call<"get_webhook_delivery">("GET", pathOf("webhook-deliveries", deliveryId), {}, options);
  }

  /** Send an event again, also one that was delivered. */
  retry(deliveryId: string, options: CallOptions = {}) {
    const request = { isRepeatable: false };
    return this.call<"retry_webhook_delivery">("POST", pathOf("webhook-deliveries", deliveryId, "retry"), request, options);
  }

  /** List deliveries, newest first. */
  list(params: Params<"list_webhook_deliveries"> = {}, options: CallOptions = {}) {
    return this.pages<"list_webhook_deliveries">("webhook-deliveries/", params, options);
  }
}
