const { createServer } = require("node:http");
const { Webhook } = require("standardwebhooks");

const webhook = new Webhook(process.env.WEBHOOK_SECRET);

createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  try {
    const alert = webhook.verify(Buffer.concat(chunks).toString(), request.headers);
    console.log(request.headers["webhook-id"], alert.type, alert.data.total);
    response.writeHead(204).end();
  } catch {
    response.writeHead(401).end();
  }
}).listen(process.env.PORT ?? 8000, "127.0.0.1");
