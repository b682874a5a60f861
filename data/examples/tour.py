import os
import ssl
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import duckdb
from dropdex import Client, InvalidWebhook, verify_webhook

# HOOK_URL is the address at which the server reaches this program: https://127.0.0.1:19443/dropdex
HOOK = os.environ["HOOK_URL"]
client = Client(os.environ["DROPDEX_URL"], os.environ["DROPDEX_KEY"])

# The drops of tomorrow, page by page.
for drop in client.drops(release_from="tomorrow", release_to="tomorrow", fields=["name", "dqs"]):
    print("tomorrow", drop["dqs"], drop["name"], flush=True)

# Three watched names, with a webhook for their changes.
client.watch(["solar.com", "wind.de", "rain.net"])
kinds = ["drops-tomorrow", "available", "renewed", "registered-again"]
# A secret is shown once, when its webhook is new. Without the webhook first, each run gets a new one.
for channels in [], [{"type": "webhook", "url": HOOK}]:
    settings = {"kinds": kinds, "channels": channels}
    saved = client.request("PUT", "/api/v1/watchlist/alerts", body=settings)
secret = saved["secrets"][0]["secret"]


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            message = verify_webhook(secret, self.headers, body)
            print(message["type"], message["data"]["total"], flush=True)
            self.send_response(204)
        except InvalidWebhook:
            self.send_response(401)
        self.end_headers()


receiver = HTTPServer(("", int(HOOK.split(":")[2].split("/")[0])), Receiver)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("cert.pem", "key.pem")
receiver.socket = context.wrap_socket(receiver.socket, server_side=True)
threading.Thread(target=receiver.serve_forever, daemon=True).start()
client.post("/api/v1/watchlist/alerts/test")

# A copy of the pipeline, which follows the changes from then on, also over restarts of the server.
newest = client.files("pipeline", "parquet")[0]
db = duckdb.connect("drops.duckdb")
db.execute(f"create or replace table drops as from '{client.download(newest)}'")
for change in client.follow(since=newest["lastSeq"]):
    name, values = change["domain"], [change["dqs"], change["releaseDate"], change["domain"]]
    update = "update drops set dqs = ?, releaseDate = ? where name = ? returning name"
    if change["event"] in ("renewed", "registered-again"):
        db.execute("delete from drops where name = ?", [name])
    elif db.execute(update, values).fetchone() is None:
        insert = "insert into drops (dqs, releaseDate, name, tld) values (?, ?, ?, ?)"
        db.execute(insert, [*values, name.partition(".")[2]])
    print(change["event"], name, flush=True)
