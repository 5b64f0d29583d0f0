//! Calls that fail, and what people read then.

use crate::world::{Request, World};
use crate::{ACTOR, COUNTER, machine, raised, run};
use cowboy_engine::primitives::Address;
use cowboy_engine::pvm::PvmFailure;

/// Runs `f`, which evaluates an expression; returns the exception as people read it.
fn fails(machine: &cowboy_pvm::machine::Machine, expression: &str) -> String {
    let source = format!(
        "import inspect\nimport pvm_host\nfrom cowboy_sdk import runtime\n\
         def f(p):\n    return repr(({expression})).encode()\n"
    );
    raised(run(machine, &source, "f", b"").1).headline()
}

/// The SDK compiles the parts of a continuation, whose texts are in no file.
#[test]
fn a_continuation_that_cannot_be_compiled_says_so() {
    let Some(machine) = machine(0) else { return };
    for line in [
        "ctx.a = await runner.llm('x', **(ctx.b if ctx.b else {}))",
        "ctx.a = await runner.llm('x', max_tokens=(n := 5))",
        "ctx.a = await runner.llm('x')\n        return await runner.llm(ctx.a)",
    ] {
        let source = format!(
            "from cowboy_sdk import actor, capture, public, runner\n@actor\nclass A:\n    \
             @public\n    @runner.continuation\n    async def f(self, p):\n        \
             ctx = capture()\n        ctx.b = p\n        {line}\n"
        );
        let error = raised(run(&machine, &source, "f", b"").1);
        assert_eq!(error.slug.as_deref(), Some("E1202"), "{line}: {error}");
    }
    // A text that is compiled by the actor itself.
    let error = fails(&machine, "compile('1 +', 'file', 'eval')");
    assert!(error.starts_with("SyntaxError: invalid syntax"), "{error}");
}

#[test]
fn wrong_arguments_are_refused() {
    let Some(machine) = machine(0) else { return };
    for (expression, expected) in [
        ("pvm_host.set_state('a', 5)", "TypeError: value must be bytes, not int"),
        (
            "pvm_host.set_state('a', bytes((1 << 20) + 1))",
            "HostError: value has 1048577 bytes, at most 1048576",
        ),
        (
            "pvm_host.set_state(b'__INITIALIZED__', b'')",
            "ValueError: set_state: key b'__INITIALIZED__' is reserved by the cowboy_sdk",
        ),
        (
            "pvm_host.set_reserved_state(b'x', b'')",
            "ValueError: set_reserved_state: key b'x' is not reserved",
        ),
        ("runtime.transfer_balance(bytes(19), 1)", "HostError: to has 19 bytes, 20 are expected"),
        (
            "runtime.transfer_balance(bytes(20), -1)",
            "HostError: amount must be from 0 to 340282366920938463463374607431768211455",
        ),
        ("runtime.fork_actor()", "HostError: fork_actor: this devnet has no forks of actors"),
        ("pvm_host.intent_deposit(1, 2)", "HostError: intent_deposit: this devnet has no intents"),
        ("open('/etc/passwd')", "PermissionError: actors have no file system"),
        ("f(b'')", "RecursionError: maximum recursion depth exceeded"),
    ] {
        assert_eq!(fails(&machine, expression), expected, "{expression}");
    }
}

#[test]
fn what_gets_round_the_guest_is_checked_again() {
    let Some(machine) = machine(0) else { return };
    for (call, expected) in [
        ("set_state(b'__INITIALIZED__', b'')", "the key is reserved"),
        ("delete_state(b'cowboy.offchain.image.v1')", "the key is reserved"),
        ("set_reserved_state(b'a', b'')", "the key is not reserved"),
        ("send_message(bytes(21), b'')", "21 bytes where 20 are expected"),
        ("cancel_timer(b'')", "0 bytes where 32 are expected"),
    ] {
        let source = format!(
            "import inspect\ndef f(p):\n    try:\n        \
             inspect.sys.modules['wit_world'].{call}\n    \
             except Exception as error:\n        return error.value.message.encode()\n"
        );
        let (world, outcome) = run(&machine, &source, "f", b"");
        assert_eq!(outcome.result, Ok(expected.into()), "{call}");
        assert_eq!(world.ledger, crate::world::Ledger::default());
    }
    // More than may cross at once.
    let source = "import inspect\n\
                  def f(p): inspect.sys.modules['wit_world'].set_state(b'a', bytes(5 << 20))";
    assert_eq!(run(&machine, source, "f", b"").1.result, Err(PvmFailure::Stopped));
}

#[test]
fn host_errors_have_a_code_and_a_name() {
    let Some(machine) = machine(0) else { return };
    let source = "import pvm_host\ndef f(p):\n    try:\n        \
                  pvm_host.call_actor(bytes(20), 'm', b'', 0)\n    \
                  except pvm_host.HostError as e:\n        \
                  return f'{e.code} {e.name} {e} {e.__context__}'.encode()";
    let (_, outcome) = run(&machine, source, "f", b"");
    let text = String::from_utf8(outcome.result.unwrap()).unwrap();
    assert_eq!(text, format!("3 not_found no actor 0x{} None", "00".repeat(20)));
}

#[test]
fn only_handlers_can_be_called() {
    let Some(machine) = machine(0) else { return };
    let (class, _) = COUNTER.split_once("def _a()").unwrap();
    for (source, handler) in [
        ("def f(p): pass", "g"),
        ("def _f(p): pass", "_f"),
        ("from cowboy_sdk.runtime import delete_state", "delete_state"),
        ("f = print", "f"),
        ("class A: pass", "A"),
        ("import json", "json"),
        (class, "_dispatch"),
        (class, "__init__"),
        (class, "storage"),
        (class, "Counter"),
    ] {
        let error = raised(run(&machine, source, handler, b"").1).headline();
        assert_eq!(error, format!("NoHandler: the actor has no handler {handler}"));
    }
}

#[test]
fn a_module_that_cannot_be_loaded_says_where() {
    let Some(machine) = machine(0) else { return };
    for (source, expected, place) in [
        (
            "\ndef f(p:\n",
            "SyntaxError: '(' was never closed (<actor>, line 2)",
            "<actor>:2 in <module>: def f(p:",
        ),
        (
            "x = 1\nreturn x\n",
            "SyntaxError: 'return' outside function (<actor>, line 2)",
            "<actor>:2 in <module>: return x",
        ),
        ("import os\n", "ImportError: actors cannot import os", "<actor>:1 in <module>: import os"),
        (
            "import cowboy_sdk.testing\n",
            "ModuleNotFoundError: No module named 'cowboy_sdk.testing'",
            "<actor>:1 in <module>: import cowboy_sdk.testing",
        ),
        (
            "import pvm_host\npvm_host.context()\n",
            "HostError: the host cannot be asked while the module is loaded",
            "<actor>:2 in <module>: pvm_host.context()",
        ),
    ] {
        let error = raised(run(&machine, source, "f", b"").1);
        assert_eq!((error.headline().as_str(), error.traceback.as_str()), (expected, place));
    }
    // Getting round that stops the call.
    let source = "import inspect\ninspect.sys.modules['wit_world'].context()";
    assert_eq!(run(&machine, source, "f", b"").1.result, Err(PvmFailure::Stopped));
}

#[test]
fn an_exception_shows_the_actors_lines_alone() {
    let Some(machine) = machine(0) else { return };
    let source = COUNTER.replace("    @public\n    def inc", "    def inc");
    let mut world = World::with(&[(ACTOR, &source)]);
    let request = Request { sender: Address([0x44; 20]), ..Request::own(ACTOR, "inc", b"") };
    let error = raised(world.call(&machine, &request));
    assert_eq!(error.kind, "PermissionDeniedError");
    assert_eq!(error.slug.as_deref(), Some("E1230"));
    assert!(error.fix.unwrap().starts_with("Mark the handler @public"));
    assert_eq!(error.traceback, "<actor>:16 in inc: def inc(p): return _a().inc(p)");
    let error = raised(run(&machine, "def f(p): return 5", "f", b"").1);
    assert_eq!(error.headline(), "TypeError: handler f returned int, not bytes or None");
    let error = raised(run(&machine, "def f(p): return bytes((1 << 20) + 1)", "f", b"").1);
    assert_eq!(error.headline(), "ValueError: handler f returned 1048577 bytes");
    let error = raised(run(&machine, "async def f(p): return b''", "f", b"").1);
    assert_eq!(error.headline(), "TypeError: handler f returned coroutine, not bytes or None");
}

#[test]
fn long_texts_are_cut() {
    let Some(machine) = machine(0) else { return };
    let source = "class E(Exception):\n    ERROR_SLUG = why = 'é' * 999\n    fix = 5\n\
                  def f(p): raise E('\\ud800' * 9999)";
    let error = raised(run(&machine, source, "f", b"").1);
    assert_eq!(error.message.len(), 2_048);
    assert_eq!(error.slug.unwrap().len(), 16);
    assert_eq!((error.why.unwrap().len(), error.fix), (512, None));
    let deep = "def f(p): return g(0)\ndef g(n): return g(n + 1)";
    let error = raised(run(&machine, deep, "f", b"").1);
    assert_eq!(error.traceback.lines().count(), 17);
    assert!(error.traceback.contains(" more\n"), "{}", error.traceback);
}
