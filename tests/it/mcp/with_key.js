// A proxy that adds an API key: the conformance suite cannot send one. Prints its port; the first line of
// its standard input is the port of the server.

const http = require("node:http");
const readline = require("node:readline");

const authorization = `Bearer ${process.env.DROPDEX_KEY}`;

readline.createInterface({ input: process.stdin }).once("line", (port) => {
  proxy.on("request", (request, response) => {
    const headers = { ...request.headers, authorization };
    const options = { host: "127.0.0.1", port, method: request.method, path: request.url, headers };
    const sent = http.request(options, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    sent.on("error", () => response.destroy());
    request.pipe(sent);
  });
});

const proxy = http.createServer().listen(0, "127.0.0.1", () => console.log(proxy.address().port));
