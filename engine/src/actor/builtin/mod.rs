//! The names that every module can use: functions, methods, the host.

mod collection;
mod format;
mod function;
mod host;
mod json;
mod mock;
mod number;
mod specification;
mod text;

use super::{
    error::{Fault, failed, shorten},
    eval::{Args, Machine},
    gas::Meter,
    value::{Builtin, Method, Value},
};

impl Machine<'_> {
    pub(in crate::actor) fn builtin(
        &mut self,
        builtin: Builtin,
        args: &Args,
    ) -> Result<Value, Fault> {
        self.meter.elements(args.positional + self.named_count(args))?;
        match builtin {
            Builtin::Abs => self.abs(args),
            Builtin::All => self.all_any(args, "all", false),
            Builtin::Any => self.all_any(args, "any", true),
            Builtin::Bool => self.bool(args),
            Builtin::Chr => self.chr(args),
            Builtin::Dict => self.dict(args),
            Builtin::Dir => self.dir(args),
            Builtin::DivMod => self.div_mod(args),
            Builtin::Enumerate => self.enumerate(args),
            Builtin::Fail => self.fail(args),
            Builtin::Field => self.field(args),
            Builtin::FormatValue => self.format_value(args),
            Builtin::GetAttr => self.getattr(args),
            Builtin::HasAttr => self.hasattr(args),
            Builtin::Hash => self.hash_text(args),
            Builtin::Int => self.int(args),
            Builtin::IsInstance => self.is_instance(args),
            Builtin::JsonDecode => self.json_decode(args),
            Builtin::JsonEncode => self.json_encode(args),
            Builtin::Keccak256 => self.keccak256(args),
            Builtin::Len => self.len(args),
            Builtin::List => self.list(args),
            Builtin::Max => self.extreme(args, "max", true),
            Builtin::Min => self.extreme(args, "min", false),
            Builtin::Ord => self.ord(args),
            Builtin::Pow => self.pow(args),
            Builtin::Print => self.print(args),
            Builtin::Range => self.range(args),
            Builtin::Record => self.new_record_type(args),
            Builtin::Repr => self.repr(args),
            Builtin::Reversed => self.reversed(args),
            Builtin::Sorted => self.sorted(args),
            Builtin::Str => self.str(args),
            Builtin::Sum => self.sum(args),
            Builtin::Tuple => self.tuple(args),
            Builtin::Type => self.type_of(args),
            Builtin::Zip => self.zip(args),
            Builtin::CancelTimer
            | Builtin::DeleteState
            | Builtin::Emit
            | Builtin::ExtendTimer
            | Builtin::GetBalance
            | Builtin::GetBlockHeight
            | Builtin::GetMru
            | Builtin::GetState
            | Builtin::GetTimestampMs
            | Builtin::Log
            | Builtin::Randomness
            | Builtin::ScheduleTimer
            | Builtin::ScheduleTimerEx
            | Builtin::SendMessage
            | Builtin::SetState
            | Builtin::SetTimeout
            | Builtin::SubmitJob
            | Builtin::Transfer => self.host_function(builtin, args),
            Builtin::MockAccount
            | Builtin::MockAdvance
            | Builtin::MockAssume
            | Builtin::MockBound
            | Builtin::MockCall
            | Builtin::MockCharge
            | Builtin::MockDeploy
            | Builtin::MockEvents
            | Builtin::MockFails
            | Builtin::MockFires
            | Builtin::MockFund
            | Builtin::MockJobs
            | Builtin::MockLog
            | Builtin::MockMessages
            | Builtin::MockPolicy
            | Builtin::MockTimers
            | Builtin::MockTransfers => self.mock_function(builtin, args),
        }
    }

    /// Calls a method, whose receiver is the first argument.
    pub(in crate::actor) fn method(&mut self, method: Method, args: &Args) -> Result<Value, Fault> {
        self.meter.elements(args.positional + self.named_count(args))?;
        let receiver = self.argument(args, 0).expect("a method has a receiver");
        let args = &args.without_first();
        match receiver {
            Value::Text(text) => self.text_method(method, text, args),
            Value::List(list) => self.list_method(method, list, args),
            Value::Tuple(_) => self.tuple_method(method, receiver, args),
            _ if method == Method::DictFromKeys => self.dict_from_keys(args),
            Value::Dict(dict) => self.dict_method(method, dict, args),
            other => failed(format!("{} has no methods", other.kind())),
        }
    }

    /// Assigns the arguments of a builtin to its parameters: by position, or by name if the
    /// parameter's name is not empty. The first `required` parameters must be given.
    fn parameters<const N: usize>(
        &self,
        args: &Args,
        function: &str,
        names: [&str; N],
        required: usize,
    ) -> Result<[Option<Value>; N], Fault> {
        let mut parameters = [None; N];
        if args.positional > N {
            let got = args.positional;
            return failed(format!("{function}() takes at most {N} arguments, got {got}"));
        }
        for (index, parameter) in parameters.iter_mut().enumerate().take(args.positional) {
            *parameter = self.argument(args, index);
        }
        for index in 0..self.named_count(args) {
            let (name, value) = self.named(args, index);
            let Some(at) = names.iter().position(|known| *known == name && !name.is_empty()) else {
                return no_parameter(function, name, &names);
            };
            if parameters[at].is_some() {
                return failed(format!("{function}() is given {name} twice"));
            }
            parameters[at] = Some(value);
        }
        if let Some(missing) = parameters.iter().take(required).position(Option::is_none) {
            let name = match names[missing] {
                "" => format!("argument {}", missing + 1),
                name => name.to_owned(),
            };
            return failed(format!("{function}() lacks {name}"));
        }
        Ok(parameters)
    }
}

/// The error for an argument that names no parameter. Empty parameter names are skipped.
fn no_parameter<T>(function: &str, name: &str, known: &[&str]) -> Result<T, Fault> {
    let known: Vec<_> = known.iter().copied().filter(|known| !known.is_empty()).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    let name = shorten(name);
    failed(format!("{function}() has no parameter {name}; by name it takes {known}"))
}

/// A Boolean parameter; false if it is not given.
fn flag(value: Option<Value>, function: &str, name: &str) -> Result<bool, Fault> {
    match value {
        None => Ok(false),
        Some(Value::Bool(is)) => Ok(is),
        Some(other) => {
            failed(format!("{function}() got {} for its parameter {name}, want bool", other.kind()))
        }
    }
}

/// Appends text, within the limit of a string.
fn append(meter: &mut Meter, to: &mut String, text: &str) -> Result<(), Fault> {
    meter.bytes(text.len())?;
    meter.string_fits(to.len() + text.len())?;
    to.push_str(text);
    Ok(())
}
