/** Events for programs, webhooks, and the deliveries of events to webhooks. */

import { pathOf } from "../calls.js";
import type { CallOptions, Params } from "../types.js";
import { Resource } from "./resource.js";

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
