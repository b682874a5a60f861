import type { components } from "./schema.js";

type ErrorBody = Partial<components["schemas"]["Error"]>;

/** A response that reports an error. */
export class ApiError extends Error {
  override name = "ApiError";
  /** Reason for programs: `invalid_value`, `rate_limited`. Empty if a proxy sent the response. */
  readonly code: string;
  /** The parameter or member of the body at fault: `min_dqs`, `channels[0].url`. */
  readonly parameter: string | undefined;
  /** Seconds after which the same request may succeed. */
  readonly retryAfter: number | undefined;
  /** ID of the request in the log of the server. */
  readonly requestId: string | undefined;

  /** `message` is a reason for people; `body` has `limit`, `plan`, `resetAt` or `oldest` of some errors. */
  constructor(
    readonly status: number,
    headers: Headers,
    readonly body: ErrorBody,
  ) {
    super([body.error ?? `HTTP status ${status}`, body.hint].filter(Boolean).join("; "));
    this.code = body.code ?? "";
    this.parameter = body.parameter;
    const after = headers.get("retry-after") ?? "";
    this.retryAfter = /^\d+$/.test(after) ? Number(after) : undefined;
    this.requestId = headers.get("x-request-id") ?? undefined;
  }
}

/** No response, or only a part of it, after all attempts. */
export class NetworkError extends Error {
  override name = "NetworkError";
}

/** A downloaded file does not have the checksum that the server lists. */
export class DamagedFile extends Error {
  override name = "DamagedFile";
}

/** A message that was not sent by the server, or not recently. */
export class InvalidWebhook extends Error {
  override name = "InvalidWebhook";
}
