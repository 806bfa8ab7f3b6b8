"""A client of a robot's MCP endpoint: it calls a skill that goes on, and reads its later updates."""

import asyncio
import sys

from mcp import Client


async def main(url: str) -> None:
    async with Client(url) as robot:
        print("tools:", *sorted(tool.name for tool in (await robot.list_tools()).tools))
        begun = (await robot.call_tool("boil", {"litres": 0.5, "until_c": 35})).structured_content
        print(begun["state"], "-", begun["text"].splitlines()[0])
        cursor, state = begun["cursor"], begun["state"]
        while state == "open":  # a cursor can be used again: to read counts nothing as delivered
            wanted = {"call_id": begun["call_id"], "after": cursor, "wait_s": 20}
            page = (await robot.call_tool("skill_updates", wanted)).structured_content
            for event in page["events"]:
                print(event["type"], "-", event["text"])
            cursor, state = page["cursor"], page["call"]["state"]


asyncio.run(main(sys.argv[1]))
