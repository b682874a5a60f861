const { createHmac, timingSafeEqual } = require("node:crypto");
const { createServer } = require("node:http");

const key = Buffer.from(process.env.WEBHOOK_SECRET.replace(/^whsec_/, ""), "base64");

function isGenuine(headers, body) {
  const { "webhook-id": id, "webhook-timestamp": timestamp } = headers;
  // Not recorded long ago, and played again.
  if (!id || !(Math.abs(Date.now() / 1000 - Number(timestamp)) <= 300)) return false;
  const expected = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest();
  return (headers["webhook-signature"] ?? "").split(" ").some((signature) => {
    const given = Buffer.from(signature.replace(/^v1,/, ""), "base64");
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}

createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  if (isGenuine(request.headers, body)) {
    const alert = JSON.parse(body);
    console.log(request.headers["webhook-id"], alert.type, alert.data.total);
    response.writeHead(204).end();
  } else {
    response.writeHead(401).end();
  }
}).listen(process.env.PORT ?? 8000, "127.0.0.1");
