export { Changes, Client } from "./client.js";
export type { Options, Query, Schemas } from "./client.js";
export { ApiError, DamagedFile, InvalidWebhook, NetworkError } from "./errors.js";
export type { components, paths } from "./schema.js";
export { verifyWebhook } from "./webhooks.js";
