"""A fetcher: jobs that request pages, and jobs that call tools."""

from cowboy_sdk import actor, capture, public, runner


@actor
class Fetcher:
    @public
    @runner.continuation
    async def fetch(self, url):
        ctx = capture()
        ctx.page = await runner.http(url)
        self.storage["page"] = ctx.page.text
        return len(ctx.page.text)

    @public
    @runner.continuation
    async def post(self, url):
        ctx = capture()
        headers = {"x-from": "fetcher"}
        ctx.page = await runner.http(url, method="POST", headers=headers, body="a=1")
        self.storage["posted"] = ctx.page.json()

    @public
    @runner.continuation
    async def use_tool(self, day):
        ctx = capture()
        ctx.meetings = await runner.mcp("calendar", "list_events", day=day, limit=3)
        self.storage["meetings"] = ctx.meetings.text
