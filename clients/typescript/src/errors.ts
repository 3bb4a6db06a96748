/**
 * Errors: a class for each type of problem of the API. A problem that is newer
 * than this client is thrown as the class of its status.
 */

/** Base of all errors of this client. */
export class KonstructError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** There was no answer. Whether the request was done is not known. */
export class ConnectionFailed extends KonstructError {
  constructor(
    message: string,
    options?: ErrorOptions,
    /** Whether the server may have got the request. */
    readonly wasSent = true,
  ) {
    super(message, options);
  }
}

/** There was no answer in time. */
export class TimedOut extends ConnectionFailed {}

/** A field that is wrong, and why; with its value if that is short. */
export interface FieldError {
  field: string;
  detail: string;
  value?: unknown;
}

/** A problem document, as RFC 9457 has them. */
export interface ProblemDocument {
  type: string;
  status: number;
  detail: string;
  request_id?: string;
  errors?: FieldError[];
  [name: string]: unknown;
}

/** The API has refused a request. Nothing of a refused request was done. */
export class Problem extends KonstructError {
  static readonly kind: string = "";
  readonly type: string;
  readonly status: number;
  readonly detail: string;
  /** Under which the server's log has the request. */
  readonly requestId: string;
  /** The fields that are wrong. */
  readonly errors: FieldError[];

  constructor(
    readonly document: ProblemDocument,
    /** Seconds after which to try again, if the server sent them. */
    readonly retryAfter?: number,
  ) {
    const fields = (document.errors ?? []).filter((each) => each.detail !== document.detail);
    const texts = fields.map((each) => `${each.field}: ${each.detail}`);
    super([`${document.status}: ${document.detail}`, ...texts].join(" "));
    this.type = document.type;
    this.status = document.status;
    this.detail = document.detail;
    this.requestId = document.request_id ?? "";
    this.errors = document.errors ?? [];
  }
}

/** 400: the request cannot be understood. */
export class BadRequest extends Problem {
  static override readonly kind: string = "bad-request";
}

/** Some fields are invalid. `errors` has the fields, with remedies. */
export class InvalidFields extends BadRequest {
  static override readonly kind: string = "invalid-fields";
}

/** The body is not readable JSON. */
export class MalformedBody extends BadRequest {
  static override readonly kind: string = "malformed-body";
}

/** 401: the key opens nothing. */
export class Unauthenticated extends Problem {
  static override readonly kind: string = "unauthenticated";
}

/** 403: the key has not the scope, or is bound. */
export class Forbidden extends Problem {
  static override readonly kind: string = "forbidden";
}

/** The key is bound to a user, and the request is about another. */
export class OutsideOfKey extends Forbidden {
  static override readonly kind: string = "outside-of-key";
}

/** 404: there is no such thing for this key. */
export class NotFound extends Problem {
  static override readonly kind: string = "not-found";
}

/** 405: the address does not know this method. */
export class MethodNotAllowed extends Problem {
  static override readonly kind: string = "method-not-allowed";
}

/** 406: the address does not answer in this form. */
export class NotAcceptable extends Problem {
  static override readonly kind: string = "not-acceptable";
}

/** 408: the body did not arrive in time. */
export class RequestTimeout extends Problem {
  static override readonly kind: string = "request-timeout";
}

/** 409: the request conflicts with the present state. */
export class Conflict extends Problem {
  static override readonly kind: string = "conflict";
}

/** The first request with this Idempotency-Key is still at work. */
export class IdempotencyKeyInUse extends Conflict {
  static override readonly kind: string = "idempotency-key-in-use";
}

/** The escalation is over. */
export class AlreadyResolved extends Conflict {
  static override readonly kind: string = "already-resolved";
}

/** The tool call was decided otherwise, or has expired. */
export class AlreadyDecided extends Conflict {
  static override readonly kind: string = "already-decided";
}

/** The identity cannot be linked to this user. */
export class NothingToLink extends Conflict {
  static override readonly kind: string = "nothing-to-link";
}

/** The agent has as many saved questions as it may. */
export class TooManyQuestions extends Conflict {
  static override readonly kind: string = "too-many-questions";
}

/** The tenant has as many such objects as it may. */
export class LimitReached extends Conflict {
  static override readonly kind: string = "limit-reached";
}

/** A decision about a fact or a run does not fit its state. */
export class WrongState extends Conflict {
  static override readonly kind: string = "wrong-state";
}

/** The key, or another key of the same person, proposed the fact: another has to confirm it. */
export class OwnProposal extends Conflict {
  static override readonly kind: string = "own-proposal";
}

/** The slot of a fact has another value: retract that fact first. */
export class SlotTaken extends Conflict {
  static override readonly kind: string = "slot-taken";
}

/** Another fact of the same agent and user has this text. */
export class DuplicateFact extends Conflict {
  static override readonly kind: string = "duplicate-fact";
}

/** The user is being erased; nothing can be kept of them meanwhile. */
export class BeingErased extends Conflict {
  static override readonly kind: string = "being-erased";
}

/** Another agent has this name. */
export class NameTaken extends Conflict {
  static override readonly kind: string = "name-taken";
}

/** 412: it has changed since it was read. */
export class ChangedSince extends Problem {
  static override readonly kind: string = "changed-since";
}

/** 413: send less in one request. */
export class BodyTooLarge extends Problem {
  static override readonly kind: string = "body-too-large";
}

/** 414: parameters of an address are too long. */
export class AddressTooLong extends Problem {
  static override readonly kind: string = "address-too-long";
}

/** 415: the body is not JSON. */
export class UnsupportedMediaType extends Problem {
  static override readonly kind: string = "unsupported-media-type";
}

/** 422: the request was understood and cannot be done. */
export class Unprocessable extends Problem {
  static override readonly kind: string = "unprocessable";
}

/** There are no messages to extract facts from, or the model's answer has no list of facts. */
export class ExtractionFailed extends Unprocessable {
  static override readonly kind: string = "extraction-failed";
}

/** A file of history, or an option of its import, cannot be used. */
export class ImportRefused extends Unprocessable {
  static override readonly kind: string = "import-refused";
}

/** The language model refused the request, or gave no usable answer. */
export class ModelFailed extends Unprocessable {
  static override readonly kind: string = "model-failed";
}

/** The agent has used its tokens for facts of today (UTC). */
export class ExtractionLimitReached extends Unprocessable {
  static override readonly kind: string = "extraction-limit-reached";
}

/** There is no such agent for this key. */
export class UnknownAgent extends Unprocessable {
  static override readonly kind: string = "unknown-agent";
}

/** The user has no messages in this thread. */
export class UnknownThread extends Unprocessable {
  static override readonly kind: string = "unknown-thread";
}

/** The Idempotency-Key was sent with another body before. */
export class IdempotencyKeyReused extends Unprocessable {
  static override readonly kind: string = "idempotency-key-reused";
}

/** The thread is not the user's alone. */
export class ThreadOfOthers extends Unprocessable {
  static override readonly kind: string = "thread-of-others";
}

/** The session's state cannot be read. */
export class UnreadableSession extends Unprocessable {
  static override readonly kind: string = "unreadable-session";
}

/** Fields of the agent contradict each other. */
export class ContradictoryFields extends Unprocessable {
  static override readonly kind: string = "contradictory-fields";
}

/** 429: wait for `retryAfter` seconds. */
export class TooManyRequests extends Problem {
  static override readonly kind: string = "too-many-requests";
}

/** 402 or 429: a quota of the tenant is used up; 429 until `retryAfter`. */
export class QuotaExceeded extends Problem {
  static override readonly kind: string = "quota-exceeded";
}

/** 500: the server's fault. */
export class ServerError extends Problem {
  static override readonly kind: string = "internal-error";
}

/** 503: a service that the API needs is not running, or is overloaded. */
export class Unavailable extends Problem {
  static override readonly kind: string = "unavailable";
}

/** A stream broke off in the middle of a reply, which is being given anew: ask for it again. */
export class ReplyInterrupted extends Unavailable {
  static override readonly kind: string = "reply-interrupted";
}
