import createClient from "openapi-fetch";
import type { paths } from "./dropdex.js";

const { DROPDEX_URL: baseUrl, DROPDEX_KEY: key } = process.env;
const client = createClient<paths>({
  baseUrl,
  headers: { Authorization: `Bearer ${key}` },
  querySerializer: { array: { style: "form", explode: false } },
});

const query = { tld: ["com", "net"], min_dqs: 40, limit: 5 };
const { data, error } = await client.GET("/api/v1/drops", { params: { query } });
if (!data) throw new Error(error?.error ?? "no answer");
for (const drop of data.drops) console.log(drop.dqs, drop.name);
