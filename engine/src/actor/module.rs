//! A loaded module: a deployment makes one, and calls run on it.

use super::{
    effect::{Call, CallOutcome, Seed, World},
    error::{Error, ErrorKind, Fault, Frame, Position, failed, shorten},
    eval::{Globals, Machine},
    gas::{ActorParams, Budget, Cause, Meter, Usage},
    host::{Around, Host, HostCall, Mock},
    input::{Parameters, SUPPORTED, Shape, TestInput, Vocabulary},
    profile::{Coverage, LineRecorder, Profile, covered},
    syntax::{Lines, Parameter, ParameterKind, Program, compile, on_known_stack, plain, scan},
    testing::{Chain, Fired, account},
    value::{Arena, Heap, Id, Type, Value, freeze, known},
};
use crate::primitives::{Hash, Height, Wei};
use std::{fmt, sync::Arc};

/// Arguments of a handler: the context and the payload.
const HANDLER_PARAMETERS: usize = 2;
const TEST_PREFIX: &str = "test_";
/// Prefix of functions that are private to the module and not handlers.
const PRIVATE_PREFIX: char = '_';

/// A function that a transaction, a message or a timer can call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handler {
    pub name: String,
    pub parameters: Vec<String>,
    pub at: Position,
}

/// How a test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestReport {
    pub name: String,
    pub usage: Usage,
    /// Absent if the test passed.
    pub error: Option<Error>,
    /// Lines printed by the test, and logged by the actors that it called.
    pub log: Vec<String>,
    /// The height at the end of the test.
    pub height: Height,
    /// Timers that fired or were removed.
    pub fires: Vec<Fired>,
    /// Whether `mock.assume` discarded the input; then the error is no failure.
    pub discarded: bool,
}

impl TestReport {
    /// The report of a test that has not run.
    pub fn of(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            usage: Usage::default(),
            error: None,
            log: Vec::new(),
            height: Height::default(),
            fires: Vec::new(),
            discarded: false,
        }
    }
}

/// A loaded module: its program and its frozen globals. Clones share both.
#[derive(Clone)]
pub struct Module {
    loaded: Arc<LoadedModule>,
    /// Present if calls are recorded.
    recorder: Option<LineRecorder>,
}

struct LoadedModule {
    program: Program,
    arena: Arena,
    cells: Vec<Value>,
    globals: Vec<Value>,
    retained: u64,
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("retained", &self.loaded.retained).finish_non_exhaustive()
    }
}

impl Module {
    /// Loads a module. Returns the usage, and the module or the reason why it is refused. The
    /// result depends on the arguments alone.
    pub fn load(
        source: &str,
        params: &ActorParams,
        budget: Budget,
    ) -> (Usage, Result<Self, Error>) {
        let mut meter = Meter::new(params, budget);
        let loaded = load(source, &mut meter);
        (meter.usage(), loaded.map(Self::of).map_err(Fault::into_error))
    }

    fn of(loaded: LoadedModule) -> Self {
        Self { loaded: Arc::new(loaded), recorder: None }
    }

    /// The same module, whose calls are recorded from now on, together with those of its clones.
    #[must_use]
    pub fn recorded(&self) -> Self {
        let recorder = Some(LineRecorder::new(&self.loaded.program));
        Self { loaded: Arc::clone(&self.loaded), recorder }
    }

    /// What the calls so far have spent, by line; `None` if they are not recorded.
    pub fn profile(&self) -> Option<Profile> {
        self.recorder.as_ref().map(|recorder| recorder.profile(&self.loaded.program))
    }

    /// How much of the module the calls so far have run; `None` if they are not recorded.
    pub fn coverage(&self) -> Option<Coverage> {
        let program = &self.loaded.program;
        let functions = covered(program, |name| name.starts_with(TEST_PREFIX));
        self.recorder.as_ref().map(|recorder| recorder.coverage(program, &functions))
    }

    /// Bytes of heap that the module's constants and globals keep.
    pub fn retained(&self) -> u64 {
        self.loaded.retained
    }

    /// Its handlers by name: functions that take a context and a payload.
    pub fn handlers(&self) -> Vec<Handler> {
        // It takes at least these two by position and requires nothing else.
        let takes = |program: &Program, code: u32| {
            let function = &program.functions[code as usize];
            let by_place = function.positional as usize;
            let needed = function.parameters.iter().filter(|parameter| {
                let single = matches!(parameter.kind, ParameterKind::Normal | ParameterKind::Named);
                single && parameter.default.is_none()
            });
            let by_name = |parameter: &&Parameter| parameter.kind == ParameterKind::Named;
            by_place >= HANDLER_PARAMETERS
                && needed.clone().count() <= HANDLER_PARAMETERS
                && !needed.clone().any(|parameter| by_name(&parameter))
        };
        self.functions(takes)
            .filter(|handler| !handler.name.starts_with([PRIVATE_PREFIX]))
            .filter(|handler| !handler.name.starts_with(TEST_PREFIX))
            .collect()
    }

    /// Its tests, in the order in which they are defined.
    pub fn tests(&self) -> Vec<Handler> {
        let mut tests: Vec<_> = self
            .functions(|_, _| true)
            .filter(|function| function.name.starts_with(TEST_PREFIX))
            .collect();
        tests.sort_by_key(|test| test.at);
        tests
    }

    fn functions(&self, admits: impl Fn(&Program, u32) -> bool) -> impl Iterator<Item = Handler> {
        let LoadedModule { program, globals, arena, .. } = &*self.loaded;
        let heap = Heap::new(arena, &[], Arena::default());
        program.symbols.iter().filter_map(move |(name, symbol)| {
            let global = program.globals.get(symbol)?;
            let Value::Function(id) = globals[*global as usize] else { return None };
            let code = heap.function(id).code;
            let function = &program.functions[code as usize];
            let parameters =
                function.parameters.iter().map(|p| program.name(p.name).to_owned()).collect();
            admits(program, code).then(|| Handler {
                name: name.to_string(),
                parameters,
                at: program.lines.position(function.offset),
            })
        })
    }

    fn machine<'a>(&'a self, meter: Meter, host: Host<'a>) -> Machine<'a> {
        let LoadedModule { program, arena, cells, globals, .. } = &*self.loaded;
        let heap = Heap::new(arena, cells, Arena::default());
        let mut machine = Machine::new(program, heap, meter, Globals::Frozen(globals), host);
        machine.tracker = self.recorder.as_ref().map(LineRecorder::begin);
        machine
    }

    /// Keeps what a machine has recorded.
    fn keep(&self, machine: &mut Machine<'_>) {
        if let (Some(recorder), Some(tracker)) = (&self.recorder, machine.tracker.take()) {
            recorder.end(*tracker, machine.meter.spent());
        }
    }

    /// Calls a handler. Changes nothing: the effects are in the outcome.
    pub fn call(
        &self,
        params: &ActorParams,
        call: &Call<'_>,
        world: &dyn World,
        budget: Budget,
    ) -> CallOutcome {
        let meter = Meter::new(params, budget);
        let host = Host::Call(Box::new(HostCall::new(call, Around::World(world))));
        let mut machine = self.machine(meter, host);
        let result = machine.handle(call.handler, call.payload).and_then(|value| {
            let json = machine.encoded(value)?.into_bytes();
            machine.meter.cells(json.len())?;
            Ok(json)
        });
        self.keep(&mut machine);
        let usage = machine.meter.usage();
        let (log, effects, _) = match machine.host {
            Host::Call(call) => call.finish(),
            Host::Loading => Default::default(),
        };
        let effects = if result.is_ok() { effects } else { Vec::new() };
        CallOutcome { usage, result: result.map_err(Fault::into_error), effects, log }
    }

    /// Asks a gas bidding agent: calls its `getGasBid` with the context's eight fields in their
    /// order (CIP-1 §7.2). Returns the usage, and the four fields of the answer or why it failed.
    pub fn bid(
        &self,
        params: &ActorParams,
        context: &[u128; 8],
        call: &Call<'_>,
        world: &dyn World,
        budget: Budget,
    ) -> (Usage, Result<[u128; 4], Error>) {
        let host = Host::Call(Box::new(HostCall::new(call, Around::World(world))));
        let mut machine = self.machine(Meter::new(params, budget), host);
        let bid = machine.bid(call.handler, context);
        self.keep(&mut machine);
        (machine.meter.usage(), bid.map_err(Fault::into_error))
    }

    /// The parameters of a test that it does not get from the chain: all but the context and those
    /// with a default. The error is at the first for which no argument can be generated.
    pub(super) fn parameters(&self, name: &str) -> Result<Parameters, Error> {
        let budget = Budget { cycles: 0, cells: 0 };
        let machine = self.machine(Meter::new(&ActorParams::default(), budget), Host::Loading);
        let Value::Function(id) = machine.named_function(name).map_err(Fault::into_error)? else {
            unreachable!("it was found to be one")
        };
        let function = machine.heap.function(id);
        let code = &self.loaded.program.functions[function.code as usize];
        let mut listed = Vec::new();
        for parameter in code.parameters.iter().skip(usize::from(machine.takes_context(id))) {
            let (kind, default) = (parameter.kind, parameter.default);
            let is_rest = matches!(kind, ParameterKind::Rest | ParameterKind::NamedRest);
            if is_rest || default.is_some() {
                continue;
            }
            let known = self.loaded.program.name(parameter.name);
            let shape = match parameter.annotation.map(|of| function.types[of as usize]) {
                _ if kind == ParameterKind::Named => {
                    Err("it can be given by name only; generated arguments have a place".into())
                }
                None => Err(format!("it has no type to generate values of: {SUPPORTED}")),
                Some(annotation) => Shape::of(&machine, annotation),
            };
            let shape = shape.map_err(|why| {
                let what = format!("parameter {} of {}: {why}", shorten(known), shorten(name));
                ErrorKind::Failed(what).at(self.loaded.program.lines.position(parameter.offset))
            })?;
            listed.push((known.to_owned(), shape));
        }
        let mut vocabulary = Vocabulary::default();
        for constant in &self.loaded.program.constants {
            match *constant {
                Value::Text(id) => vocabulary.add_text(machine.heap.str(id)),
                number => {
                    if let Some(integer) = machine.heap.big(number) {
                        vocabulary.add_integer(integer.into_owned());
                    }
                }
            }
        }
        Ok(Parameters { listed, vocabulary })
    }

    /// Runs one of the module's tests on `chain`, which the test may change.
    pub fn test(
        &self,
        params: &ActorParams,
        (name, arguments): (&str, Option<&TestInput>),
        budget: Budget,
        chain: &mut dyn Chain,
    ) -> TestReport {
        let call = Call {
            handler: name,
            payload: &[],
            sender: account("sender"),
            this: account("self"),
            value: Wei::ZERO,
            height: chain.height(),
            timestamp_ms: chain.timestamp_ms(),
            seed: Seed::Fixed(Hash::ZERO),
        };
        let host = Host::Call(Box::new(HostCall::new(&call, Around::Test(Mock::new(chain)))));
        let mut machine = self.machine(Meter::new(params, budget), host);
        let result = machine.test(name, arguments);
        self.keep(&mut machine);
        let (usage, height) = (machine.meter.usage(), machine.host().map(|host| host.height));
        let height = height.unwrap_or_default();
        let discarded = machine.host.discarded();
        let (log, _, fires) = match machine.host {
            Host::Call(call) => call.finish(),
            Host::Loading => Default::default(),
        };
        let error = result.err().map(Fault::into_error);
        TestReport { name: name.to_owned(), usage, error, log, height, fires, discarded }
    }
}

impl Machine<'_> {
    fn named_function(&self, name: &str) -> Result<Value, Fault> {
        let Globals::Frozen(globals) = &self.globals else {
            return failed("the module is still loading");
        };
        let global = self.program.global(name).map(|global| globals[global as usize]);
        match global {
            Some(function @ Value::Function(_)) if !name.starts_with(PRIVATE_PREFIX) => {
                Ok(function)
            }
            _ => failed(format!("UnknownHandler: the actor has no function {}", shorten(name))),
        }
    }

    pub(super) fn handle(&mut self, name: &str, payload: &[u8]) -> Result<Value, Fault> {
        self.meter.step(self.meter.schedule.call)?;
        let handler = self.named_function(name)?;
        let payload = self.text_of(payload)?;
        self.invoke(handler, &[Value::Context, payload])
    }

    fn bid(&mut self, name: &str, context: &[u128; 8]) -> Result<[u128; 4], Fault> {
        self.meter.step(self.meter.schedule.call)?;
        let handler = self.named_function(name)?;
        let context = self.gba_context(context)?;
        let answer = self.invoke(handler, &[context])?;
        let known = self.as_seen(Value::RecordType(known::TX_FEE_PARAMS));
        let Value::Record(id) = answer else {
            return failed(format!("a bid must be TxFeeParams, not {}", answer.kind()));
        };
        if Value::RecordType(self.heap.record(id).of) != known {
            return failed("a bid must be TxFeeParams, not another record");
        }
        let mut bid = [0; 4];
        for (index, amount) in bid.iter_mut().enumerate() {
            let field = self.heap.record(id).values[index];
            *amount = self.amount(field)?;
        }
        Ok(bid)
    }

    /// Whether a test gets the context: its first parameter has no default, and no type that
    /// excludes it.
    fn takes_context(&self, id: Id) -> bool {
        let function = self.heap.function(id);
        let code = &self.program.functions[function.code as usize];
        let Some(first) = code.parameters.first() else { return false };
        let is_needed = first.kind == ParameterKind::Normal && first.default.is_none();
        is_needed
            && first.annotation.is_none_or(|of| match function.types[of as usize] {
                Value::Type(id) => matches!(self.heap.type_(id), Type::Any | Type::Context),
                _ => false,
            })
    }

    /// Runs a test with the context, if it takes one, and arguments.
    fn test(&mut self, name: &str, arguments: Option<&TestInput>) -> Result<(), Fault> {
        let test = self.named_function(name)?;
        let Value::Function(id) = test else { unreachable!("it was found to be one") };
        let code = &self.program.functions[self.heap.function(id).code as usize];
        // Errors before the first line and after the last are blamed on the test itself.
        let at = self.program.lines.position(code.offset);
        let blame = |fault: Fault| -> Fault {
            let function = shorten(name).to_owned();
            let mut error = fault.into_error();
            error.stack.insert(0, Frame { function, at });
            error.at = error.stack.last().map(|frame| frame.at);
            error.into()
        };
        let mut values = Vec::new();
        if self.takes_context(id) {
            values.push(Value::Context);
        }
        if let Some(arguments) = arguments {
            values.extend(arguments.values(self).map_err(blame)?);
        }
        self.invoke(test, &values)?;
        // The last effects are applied after the last line.
        self.settle().map_err(blame)
    }
}

fn load(source: &str, meter: &mut Meter) -> Result<LoadedModule, Fault> {
    meter.pay(Cause::Loading, meter.schedule.module)?;
    let (limit, got) = (meter.limits.source, source.len() as u64);
    if got > limit {
        return Err(ErrorKind::TooMuch { what: "bytes of source", limit, got }.into());
    }
    let lines = Lines::new(&plain(source)?);
    scan(&lines, source.len(), meter)?;
    let mut arena = known::arena();
    let mut program = on_known_stack(|| compile(lines, &mut arena, meter))?;
    let globals = vec![Value::Unset; program.globals.len()];
    let nothing = Arena::default();
    let heap = Heap::new(&nothing, &[], arena);
    let mut machine =
        Machine::new(&program, heap, meter.clone(), Globals::Open(globals), Host::Loading);
    let result = machine.load();
    *meter = machine.meter.clone();
    result?;
    let (Globals::Open(mut globals), (mut arena, mut cells)) =
        (machine.globals, machine.heap.into_parts())
    else {
        unreachable!("the globals were open")
    };
    arena.freeze();
    freeze::all(globals.iter_mut().chain(&mut cells));
    freeze::all(&mut program.constants);
    Ok(LoadedModule { program, arena, cells, globals, retained: meter.heap_used() })
}
