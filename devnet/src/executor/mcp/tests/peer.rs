//! The server: the SDK's, with well-behaved and badly behaved tools.

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ImageContent,
        InitializeResult, ProgressNotificationParam, ServerCapabilities,
    },
    service::RequestContext,
};
use serde_json::{Value, json};
use std::{env, fs, future, process};
use tokio::sync::mpsc;

/// The variable with the file for the process numbers of a server that runs as a process.
pub(super) const PIDS: &str = "MCP_TEST_PIDS";

/// The test server. Over HTTP it reports events to the test.
#[derive(Clone, Default)]
pub(super) struct Peer {
    pub(super) events: Option<mpsc::UnboundedSender<&'static str>>,
}

impl Peer {
    fn tell(&self, event: &'static str) {
        if let Some(events) = &self.events {
            events.send(event).unwrap();
        }
    }
}

fn text(text: impl Into<String>) -> ContentBlock {
    ContentBlock::text(text.into())
}

impl ServerHandler for Peer {
    fn get_info(&self) -> InitializeResult {
        InitializeResult::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let result = match &*request.name {
            "echo" => CallToolResult::success(vec![
                text(arguments["text"].as_str().unwrap()),
                text("\nagain: "),
                text(arguments["text"].as_str().unwrap()),
            ]),
            "add" => {
                let sum = arguments["a"].as_i64().unwrap() + arguments["b"].as_i64().unwrap();
                CallToolResult::structured(json!({ "sum": sum, "carry": false }))
            }
            "picture" => CallToolResult::success(vec![
                text("a picture:"),
                ContentBlock::Image(ImageContent::new("AAEC", "image/png")),
            ]),
            "nothing" => CallToolResult::success(Vec::new()),
            "fail" => CallToolResult::error(vec![text("the tool\nfailed")]),
            "slow" => {
                let token = context.meta.get_progress_token().unwrap();
                let notice = ProgressNotificationParam::new(token, 1.0);
                let notice = notice.with_total(4.0).with_message("a quarter");
                context.peer.notify_progress(notice).await.unwrap();
                context.ct.cancelled().await;
                self.tell("cancelled");
                future::pending().await
            }
            "huge" => {
                let length = arguments["length"].as_u64().unwrap() as usize;
                CallToolResult::success(vec![text("x".repeat(length))])
            }
            "family" => {
                let script = "trap '' TERM; sleep 600";
                #[expect(clippy::zombie_processes, reason = "what is tested is that it is killed")]
                let child = process::Command::new("sh").args(["-c", script]).spawn().unwrap();
                let pids = format!("{} {}", process::id(), child.id());
                fs::write(env::var(PIDS).unwrap(), pids).unwrap();
                if arguments["answer"] == true {
                    CallToolResult::success(vec![text("born")])
                } else {
                    future::pending().await
                }
            }
            "environment" => {
                let mut names: Vec<_> = env::vars().map(|(name, _)| name).collect();
                names.sort();
                let here = env::current_dir().unwrap();
                let files = fs::read_dir(&here).unwrap().count();
                CallToolResult::structured(json!({ "names": names, "here": here, "files": files }))
            }
            "crash" => process::exit(3),
            _ => return Err(ErrorData::invalid_params("tool not found", None)),
        };
        Ok(result.into())
    }
}
