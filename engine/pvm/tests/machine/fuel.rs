//! Fuel: equal everywhere, and at any limit a call has all its effects or none.

use crate::world::{PRICE, Request, World};
use crate::{ACTOR, AGENT, COUNTER, HOWDY, LOOP, MIXED, RELAY, TRIVIAL, machine, raised, run};
use cowboy_engine::primitives::keccak256;
use cowboy_engine::pvm::{Pvm as _, PvmFailure};
use cowboy_pvm::machine::Machine;

/// One line per case: result, fuel and effects.
fn digest(machine: &Machine) -> Vec<String> {
    let cases: [(&str, &str, &[u8]); 9] = [
        (TRIVIAL, "ping", b"x"),
        (TRIVIAL, "pong", b"x"),
        (LOOP, "run", b"100000"),
        (COUNTER, "init", b""),
        (COUNTER, "inc", b""),
        (AGENT, "init", b""),
        (AGENT, "chat", HOWDY),
        (MIXED, "f", b""),
        ("def f(p", "f", b""),
    ];
    let lines = cases.into_iter().map(|(source, handler, payload)| {
        let (world, outcome) = run(machine, source, handler, payload);
        let effects = keccak256(&[format!("{:?}", world.ledger).as_bytes()]);
        format!("{handler} {outcome:?} {effects}")
    });
    lines.collect()
}

#[test]
fn threads_agree() {
    let Some(machine) = machine(0) else { return };
    let expected = digest(&machine);
    std::thread::scope(|scope| {
        let threads = [(); 4].map(|()| scope.spawn(|| digest(&machine)));
        for thread in threads {
            assert_eq!(thread.join().unwrap(), expected);
        }
    });
}

#[test]
fn processes_agree() {
    let Some(machine) = machine(0) else { return };
    let lines = digest(&machine).join("\n");
    const CHILD: &str = "COWBOYCTL_PVM_CHILD";
    if std::env::var_os(CHILD).is_some() {
        println!("digest {}", keccak256(&[lines.as_bytes()]));
        return;
    }
    for seed in ["0", "1", "random"] {
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "fuel::processes_agree", "--nocapture"])
            .env(CHILD, "1")
            .env("PYTHONHASHSEED", seed)
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&child.stdout);
        assert!(output.contains(&format!("digest {}", keccak256(&[lines.as_bytes()]))), "{output}");
    }
}

#[test]
fn instances_loaded_ahead_change_nothing() {
    let Some(without) = machine(0) else { return };
    let Some(with) = machine(4) else { return };
    assert_eq!(without.tuple(), with.tuple());
    let expected = digest(&without);
    let mut used = false;
    for _ in 0..3 {
        assert_eq!(digest(&with), expected);
        with.settle();
        used |= with.ready() > 0;
    }
    assert!(used, "nothing was loaded ahead");
    assert!(with.ready() <= 4);
}

/// More instances at once than have memory that is used again: the others have fresh memory.
#[test]
fn many_instances_at_once_change_nothing() {
    let Some(machine) = machine(0) else { return };
    let expected = digest(&machine);
    let Some(full) = crate::machine(16) else { return };
    for number in 0..16 {
        run(&full, &format!("def f(p): return b'{number}'"), "f", b"").1.result.unwrap();
        full.settle();
    }
    assert_eq!(full.ready(), 16);
    assert_eq!(digest(&machine), expected);
}

#[test]
fn an_instance_finds_nothing_of_those_before_it() {
    const SOURCE: &str = "\
seen = []
def fill(p):
    seen.append(bytearray(b'\\xaa') * (30 << 20))
    seen.extend([n, str(n)] for n in range(100_000))
    raise ValueError(len(seen))
def look(p):
    new = bytearray(30 << 20)
    return f'{len(seen)} {new.count(0) == len(new)}'.encode()
";
    let Some(machine) = machine(0) else { return };
    let look = || run(&machine, SOURCE, "look", b"").1;
    let first = look();
    assert_eq!(first.result.as_deref(), Ok(&b"0 True"[..]));
    for _ in 0..4 {
        let filled = run(&machine, SOURCE, "fill", b"").1;
        assert_eq!(raised(filled).message, "100001");
        assert_eq!(look(), first);
    }
}

#[test]
fn less_fuel_than_the_load_ends_the_same_with_an_instance_loaded_ahead() {
    let Some(without) = machine(0) else { return };
    let Some(with) = machine(2) else { return };
    let attempt = |machine: &Machine, fuel| {
        let mut world = World::with(&[(ACTOR, COUNTER)]);
        let request = Request { fuel, ..Request::own(ACTOR, "inc", b"") };
        let outcome = world.call(machine, &request);
        (outcome, world.ledger)
    };
    let (full, _) = attempt(&without, 5_000_000_000);
    let (none, _) = attempt(&without, 3_000_000);
    assert_eq!((none.fuel, none.result), (3_000_000, Err(PvmFailure::OutOfFuel)));
    for fuel in (100_000..full.fuel + 200_000).step_by(150_000) {
        assert_eq!(attempt(&with, 5_000_000_000).0, full);
        with.settle();
        assert!(with.ready() > 0);
        assert_eq!(attempt(&with, fuel), attempt(&without, fuel), "{fuel}");
    }
}

#[test]
fn a_failed_load_is_never_kept() {
    let Some(machine) = machine(2) else { return };
    for source in ["raise ValueError()", "import inspect\ninspect.sys.modules['os'].urandom(1)"] {
        run(&machine, source, "f", b"").1.result.unwrap_err();
        machine.settle();
        assert_eq!(machine.ready(), 0);
    }
}

#[test]
fn a_pool_is_bounded() {
    let Some(machine) = machine(3) else { return };
    for number in 0..6 {
        let source = format!("def f(p): return b'{number}'");
        let (_, outcome) = run(&machine, &source, "f", b"");
        assert_eq!(outcome.result, Ok(number.to_string().into_bytes()));
        machine.settle();
    }
    assert_eq!(machine.ready(), 3);
}

/// 501 limits: the whole range coarsely, and one by one where the call just succeeds.
#[test]
fn a_call_has_all_its_effects_or_none() {
    let Some(machine) = machine(4) else { return };
    let request = Request::own(ACTOR, "inc", b"");
    let before = World::with(&[(ACTOR, COUNTER)]);
    let mut full = before.clone();
    let outcome = full.call(&machine, &request);
    assert_eq!(outcome.result, Ok(b"1".to_vec()));
    let used = outcome.fuel;
    let coarse = (0..201).map(|part| used * 8 / 10 + part * (used * 2 / 10 / 201));
    let (mut none, mut whole) = (0, 0);
    for fuel in coarse.chain(used - 150..used + 150) {
        let mut world = before.clone();
        let outcome = world.call(&machine, &Request { fuel, ..request.clone() });
        match outcome.result {
            // Fuel is compared at function entries and loops, so the last instructions may exceed
            // the limit without being charged.
            Ok(_) => {
                assert_eq!((world.ledger, outcome.fuel), (full.ledger.clone(), used.min(fuel)));
                whole += 1;
            }
            Err(failure) => {
                assert_eq!((failure, outcome.fuel), (PvmFailure::OutOfFuel, fuel));
                assert_eq!(world.ledger, before.ledger);
                none += 1;
            }
        }
    }
    assert_eq!(none + whole, 501);
    assert!(none >= 201 && whole >= 150, "{none} without effects, {whole} with all");
}

#[test]
fn host_functions_have_their_price() {
    let Some(machine) = machine(0) else { return };
    let cost = |calls: usize| {
        let source = format!(
            "import pvm_host\ndef f(p):\n    for _ in range({calls:03}): pvm_host.get_state(b'a')\n"
        );
        run(&machine, &source, "f", b"").1.fuel
    };
    let each = (cost(101) - cost(1)) / 100;
    assert!(each > PRICE && each < 50 * PRICE, "{each}");
    let source = "import pvm_host\ndef f(p): pvm_host.charge_gas(10**15)";
    let (_, outcome) = run(&machine, source, "f", b"");
    assert_eq!((outcome.result, outcome.fuel), (Err(PvmFailure::OutOfFuel), 5_000_000_000));
}

#[test]
fn memory_has_a_limit() {
    let Some(machine) = machine(0) else { return };
    let (_, outcome) = run(&machine, RELAY, "hoard_and_catch", b"");
    assert_eq!(outcome.result, Ok(b"caught".to_vec()));
    let error = raised(run(&machine, RELAY, "hoard", b"").1);
    assert_eq!(error.kind, "MemoryError");
}
