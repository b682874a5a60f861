"""A real SMTP server (aiosmtpd) on loopback that prints each accepted mail as a line of JSON.

Arguments: none, starttls or tls; then, except for none: certificate, key, user name, password. The first
line is its port. Mailboxes called nobody... do not exist; those called later... accept the second attempt.
"""

import asyncio
import email
import email.policy
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword


class Handler:
    def __init__(self):
        self.tries = {}

    async def handle_RCPT(self, server, session, envelope, address, options):
        tries = self.tries[address] = self.tries.get(address, 0) + 1
        if address.startswith("nobody"):
            return "550 5.1.1 no such mailbox"
        if address.startswith("later") and tries == 1:
            return "450 4.2.0 try again later"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        message = email.message_from_bytes(envelope.original_content, policy=email.policy.default)
        text = message.get_body(("plain",))
        html = message.get_body(("html",))
        mail = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "tls": server.transport.get_extra_info("ssl_object") is not None,
            "login": session.authenticated,
            "headers": {name.lower(): str(value) for name, value in message.items()},
            "type": message.get_content_type(),
            "text": text.get_content(),
            "html": html.get_content(),
            "defects": [str(defect) for part in message.walk() for defect in part.defects],
        }
        print(json.dumps(mail), flush=True)
        return "250 OK"


def main(mode, certificate=None, key=None, user=None, password=None):
    options, context = {}, None
    if mode != "none":
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)

        def authenticate(server, session, envelope, mechanism, data):
            good = LoginPassword(user.encode(), password.encode())
            return AuthResult(success=isinstance(data, LoginPassword) and data == good)

        options = {"authenticator": authenticate, "auth_required": True}
    if mode == "starttls":
        options |= {"tls_context": context, "require_starttls": True}
    if mode == "tls":
        options |= {"auth_require_tls": False}
    loop = asyncio.new_event_loop()
    handler = Handler()
    serve = loop.create_server(
        lambda: SMTP(handler, loop=loop, **options),
        "127.0.0.1",
        0,
        ssl=context if mode == "tls" else None,
    )
    server = loop.run_until_complete(serve)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    loop.run_forever()


main(*sys.argv[1:])
