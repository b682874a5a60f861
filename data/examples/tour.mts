import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { buffer } from "node:stream/consumers";
import { DuckDBInstance } from "@duckdb/node-api";
import { Client, InvalidWebhook, verifyWebhook, type Schemas } from "dropdex";
import { download } from "dropdex/node";

// HOOK_URL is the address at which the server reaches this program: https://127.0.0.1:19443/dropdex
const { DROPDEX_URL = "", DROPDEX_KEY = "", HOOK_URL = "" } = process.env;
const client = new Client(DROPDEX_URL, DROPDEX_KEY);

// The drops of tomorrow, page by page.
const tomorrow = { release_from: "tomorrow", release_to: "tomorrow" };
for await (const drop of client.drops({ ...tomorrow, fields: ["name", "dqs"] })) {
  console.log("tomorrow", drop.dqs, drop.name);
}

// Three watched names, with a webhook for their changes.
await client.watch(["solar.com", "wind.de", "rain.net"]);
// A secret is shown once, when its webhook is new. Without the webhook first, each run gets a new one.
const save = (channels: Schemas["ChannelBody"][]) =>
  client.request("put", "/api/v1/watchlist/alerts", {
    body: { kinds: ["drops-tomorrow", "available", "renewed", "registered-again"], channels },
  });
await save([]);
const { secrets } = await save([{ type: "webhook", url: HOOK_URL }]);
const secret = secrets?.[0]?.secret ?? "";
const certificate = { cert: readFileSync("cert.pem"), key: readFileSync("key.pem") };
createServer(certificate, async (request, response) => {
  try {
    const message = await verifyWebhook(secret, request.headers, await buffer(request));
    console.log(message.type, message.data.total);
    response.writeHead(204).end();
  } catch (error) {
    response.writeHead(error instanceof InvalidWebhook ? 401 : 500).end();
  }
}).listen(new URL(HOOK_URL).port);
await client.request("post", "/api/v1/watchlist/alerts/test");

// A copy of the pipeline, which follows the changes from then on, also over restarts of the server.
const [newest] = await client.files("pipeline", "parquet");
if (!newest) throw new Error("there is no file yet; run this again later");
const db = await (await DuckDBInstance.create("drops.duckdb")).connect();
await db.run(`create or replace table drops as from '${await download(client, newest)}'`);
for await (const change of client.follow({ since: newest.lastSeq })) {
  const values = [change.dqs, change.releaseDate, change.domain];
  const update = "update drops set dqs = $1, releaseDate = $2::date where name = $3";
  if (change.event === "renewed" || change.event === "registered-again") {
    await db.run("delete from drops where name = $1", [change.domain]);
  } else if ((await db.run(update, values)).rowsChanged === 0) {
    const tld = change.domain.slice(change.domain.indexOf(".") + 1);
    const insert = "insert into drops (dqs, releaseDate, name, tld) values ($1, $2::date, $3, $4)";
    await db.run(insert, [...values, tld]);
  }
  console.log(change.event, change.domain);
}
