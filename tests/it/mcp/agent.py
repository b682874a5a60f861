"""An agent without a model: finds the best .com that is released tomorrow, has its score explained, and
adds it to the watchlist. Prints the results as JSON.

Usage: agent.py MODE, where MODE is `auto`, `legacy` or a version of the protocol."""

import asyncio
import json
import os
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def main():
    headers = {"Authorization": "Bearer " + os.environ["DROPDEX_KEY"]}
    async with httpx2.AsyncClient(headers=headers) as http:
        transport = streamable_http_client(os.environ["DROPDEX_URL"] + "/mcp", http_client=http)
        async with Client(transport, mode=sys.argv[1]) as client:
            seen = {"protocol": client.protocol_version, "instructions": client.instructions}
            tools = (await client.list_tools()).tools
            seen["tools"] = {tool.name: tool.annotations.read_only_hint for tool in tools}

            async def call(tool, /, **arguments):
                result = await client.call_tool(tool, arguments)
                return {"is_error": result.is_error, **(result.structured_content or {})}

            drops = await call(
                "list_drops", tld="com", release_from="tomorrow", release_to="tomorrow", limit=1
            )
            best = drops["drops"][0]["name"]
            seen["best"] = best
            seen["dossier"] = await call("get_domain", domain=best)
            scores = await call("appraise", domains=[best], fields="explanation,signals")
            seen["score"] = scores["appraisals"][0]
            seen["search"] = await call("search_names", q=best[:3])
            seen["family"] = await call("label_family", label=best.split(".")[0])
            seen["changes"] = await call("list_changes", domain=best)
            seen["meaning"] = await call("explain_filters", tld="com", min_dqs=60)
            seen["tlds"] = (await call("list_tlds"))["count"]
            seen["watch"] = await call("watch", domains=[best], tags=["agent"])
            seen["watchlist"] = await call("list_watchlist")
            seen["wrong"] = await call("list_drops", min_dqs=101)
            seen["unknown"] = await call("list_drops", min_dsq=1)
            seen["unwatch"] = await call("unwatch", domain=best)
            print(json.dumps(seen))


asyncio.run(main())
