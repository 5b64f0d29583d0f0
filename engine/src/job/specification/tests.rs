//! Invalid specifications: each refusal names the field.

use super::*;
use crate::job::{
    verification::VerificationMode,
    work::{CommandWork, EthSendWork, HttpWork, LlmMessage, LlmWork, McpWork},
};

fn good() -> JobSpec {
    JobSpec {
        work: Work::Custom(CommandWork {
            program: "echo".into(),
            args: vec![],
            env: vec![],
            stdin: None,
            delivery: None,
        }),
        bounds: Bounds {
            max_return_bytes: 64,
            expected_execution_ms: 1_000,
            data_format: "text".into(),
            max_memory_mb: 64,
        },
        verification: Verification::none(),
        max_price: Wei::cby(1),
        tip: Wei::ZERO,
        timeout_blocks: 8,
        callback: None,
        required_runner_pool: None,
        tee_required: false,
    }
}

/// The field and the reason of the refusal after a change to the valid spec.
fn refusal(change: impl FnOnce(&mut JobSpec)) -> (String, String) {
    let mut spec = good();
    change(&mut spec);
    let SpecError { field, problem } = spec.check().unwrap_err();
    (field.into_owned(), problem)
}

fn field(change: impl FnOnce(&mut JobSpec)) -> String {
    refusal(change).0
}

#[test]
fn nothing_is_refused_of_a_good_one() {
    assert_eq!(good().check(), Ok(()));
    for mode in VerificationMode::ALL {
        let mut spec = good();
        spec.verification = Verification::of(mode, mode.least_runners());
        // Some modes need a field of their own, and the error names it.
        if let Err(error) = spec.check() {
            assert!(error.field.starts_with("verification."), "{mode}: {error}");
        }
    }
}

#[test]
fn limits_are_neither_0_nor_beyond_what_can_be() {
    for beyond in [0, u32::MAX] {
        assert_eq!(field(|s| s.bounds.max_return_bytes = beyond), "bounds.max_return_bytes");
        assert_eq!(field(|s| s.bounds.max_memory_mb = beyond), "bounds.max_memory_mb");
    }
    for beyond in [0, u64::MAX] {
        let found = field(|s| s.bounds.expected_execution_ms = beyond);
        assert_eq!(found, "bounds.expected_execution_ms");
        assert_eq!(field(|s| s.timeout_blocks = beyond), "timeout_blocks");
    }
    assert_eq!(field(|s| s.bounds.data_format = "xml".into()), "bounds.data_format");
    assert_eq!(field(|s| s.max_price = Wei::ZERO), "max_price");
    assert_eq!(field(|s| s.tip = Wei::new(u128::MAX)), "tip");
}

#[test]
fn committees_have_the_size_their_mode_takes_and_time_to_commit() {
    let committee = |mode, runners| {
        move |spec: &mut JobSpec| spec.verification = Verification::of(mode, runners)
    };
    for mode in VerificationMode::ALL {
        for runners in [0, mode.least_runners() - 1, 65] {
            assert_eq!(field(committee(mode, runners)), "verification.runners", "{mode}");
        }
    }
    let short = |spec: &mut JobSpec| {
        committee(VerificationMode::Deterministic, 2)(spec);
        spec.timeout_blocks = 7;
    };
    assert_eq!(field(short), "timeout_blocks");
    // The results that are revealed together have to fit into a block.
    let long = |spec: &mut JobSpec| {
        committee(VerificationMode::Deterministic, 4)(spec);
        spec.bounds.max_return_bytes = MAX_RETURN_BYTES / 4 + 1;
    };
    assert_eq!(field(long), "bounds.max_return_bytes");
}

#[test]
fn the_works_fields_are_named() {
    let work = |work: Work| refusal(|spec| spec.work = work);
    let llm = |model: &str, role: &str, max_tokens, embedding_model: Option<&str>| {
        work(Work::Llm(LlmWork {
            model: model.into(),
            messages: vec![LlmMessage { role: role.into(), content: "hi".into() }],
            max_tokens,
            temperature_milli: None,
            seed: None,
            embedding_model: embedding_model.map(Into::into),
            response_schema: None,
        }))
        .0
    };
    assert_eq!(llm("", "user", None, None), "work.model");
    assert_eq!(llm("m", "tool", None, None), "work.messages");
    assert_eq!(llm("m", "user", Some(0), None), "work.max_tokens");
    assert_eq!(llm("m", "user", None, Some("")), "work.embedding_model");
    let http = |url: &str, method: &str, pointer: Option<&str>| {
        let (url, method, pointer) = (url.into(), method.into(), pointer.map(Into::into));
        work(Work::Http(HttpWork { method, url, headers: vec![], body: None, pointer }))
    };
    assert_eq!(http("ftp://a/", "GET", None).0, "work.url");
    assert_eq!(http("http://a/", "", None).0, "work.method");
    assert_eq!(
        http("http://a/", "GET", Some("price")),
        (
            "work.pointer".into(),
            "`price` is not a JSON pointer: neither empty nor with a / at its start".into()
        )
    );
    let mcp = |server: &str, tool: &str, arguments: &str| {
        let (server, tool, arguments) = (server.into(), tool.into(), arguments.into());
        work(Work::Mcp(McpWork { server, tool, arguments }))
    };
    assert_eq!(mcp("", "t", "{}").0, "work.server");
    assert_eq!(mcp("s", "", "{}").0, "work.tool");
    for arguments in ["", "[]", "{]", "{} {}"] {
        assert_eq!(mcp("s", "t", arguments).0, "work.arguments", "{arguments}");
    }
    let eth = |transaction: &[u8], confirmations| {
        work(Work::EthSend(EthSendWork { transaction: transaction.into(), confirmations })).0
    };
    assert_eq!(eth(b"", 1), "work.transaction");
    for confirmations in [0, u32::MAX] {
        assert_eq!(eth(b"x", confirmations), "work.confirmations");
    }
    let command = CommandWork {
        program: String::new(),
        args: vec![],
        env: vec![],
        stdin: None,
        delivery: None,
    };
    assert_eq!(work(Work::Custom(command)).0, "work.program");
    let callback = Callback { actor: Address([1; 20]), handler: String::new(), resume: None };
    assert_eq!(field(|spec| spec.callback = Some(callback)), "callback.handler");
}
