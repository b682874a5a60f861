import { InvalidWebhook } from "./errors.js";
import type { components } from "./schema.js";

/** Headers of a request: `Headers`, or the object of Node.js. */
type Given = Headers | Record<string, string | string[] | undefined>;

/**
 * Returns the message of a webhook, verified by the Standard Webhooks specification.
 *
 * `secret` is the one of the channel (`whsec_...`), and `body` the bytes as received. A message whose
 * time is more than `tolerance` seconds away may have been recorded and sent again.
 *
 * Throws `InvalidWebhook` if the message is not genuine.
 */
export async function verifyWebhook(
  secret: string,
  headers: Given,
  body: Uint8Array | string,
  { tolerance = 300 } = {},
): Promise<components["schemas"]["WebhookMessage"]> {
  const header = (name: string) =>
    String((headers instanceof Headers ? headers.get(name) : headers[name]) ?? "");
  const [id, sentAt] = [header("webhook-id"), header("webhook-timestamp")];
  if (!/^\d+$/.test(sentAt)) {
    throw new InvalidWebhook("webhook-timestamp is missing or not a number");
  }
  if (Math.abs(Date.now() / 1000 - Number(sentAt)) > tolerance) {
    throw new InvalidWebhook("webhook-timestamp is too far from the time of this machine");
  }
  const key = await crypto.subtle.importKey(
    "raw",
    bytes(secret.replace(/^whsec_/, "")),
    { name: "HMAC", hash: "SHA-256" },
    false,
    ["verify"],
  );
  const encoder = new TextEncoder();
  const raw = typeof body === "string" ? encoder.encode(body) : body;
  const signed = new Uint8Array([...encoder.encode(`${id}.${sentAt}.`), ...raw]);
  // The specification allows several, so that a secret can be replaced. `verify` takes constant time.
  for (const signature of header("webhook-signature").split(" ")) {
    const given = signature.match(/^v1,([A-Za-z0-9+/]{43}=)$/)?.[1];
    if (given && (await crypto.subtle.verify("HMAC", key, bytes(given), signed))) {
      return JSON.parse(new TextDecoder().decode(raw));
    }
  }
  throw new InvalidWebhook("no signature matches; is this the secret of the channel?");
}

function bytes(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
}
