//! Functions of numbers and types from Python that the Starlark specification lacks.

use crate::actor::{
    error::{Fault, failed},
    eval::{Args, Machine, require_type},
    syntax::BinOp,
    value::Value,
};

impl Machine<'_> {
    pub(super) fn div_mod(&mut self, args: &Args) -> Result<Value, Fault> {
        let [a, b] = self.parameters(args, "divmod", ["", ""], 2)?;
        let (a, b) = (a.unwrap_or(Value::None), b.unwrap_or(Value::None));
        if let Some(other) = [a, b].into_iter().find(|value| !is_int(*value)) {
            return failed(format!("divmod() takes ints, not {}", other.kind()));
        }
        let quotient = self.binary(BinOp::FloorDivide, a, b)?;
        let rest = self.binary(BinOp::Percent, a, b)?;
        self.new_tuple(vec![quotient, rest])
    }

    pub(super) fn pow(&mut self, args: &Args) -> Result<Value, Fault> {
        let names = ["base", "exp", "mod"];
        let [base, exponent, modulus] = self.parameters(args, "pow", names, 2)?;
        let (base, exponent) = (base.unwrap_or(Value::None), exponent.unwrap_or(Value::None));
        let modulus = modulus.filter(|modulus| *modulus != Value::None);
        let all = [Some(base), Some(exponent), modulus];
        if let Some(other) = all.into_iter().flatten().find(|value| !is_int(*value)) {
            return failed(format!("pow() takes ints, not {}", other.kind()));
        }
        match modulus {
            Some(modulus) => self.power_modulo([base, exponent, modulus]),
            None => self.binary(BinOp::Power, base, exponent),
        }
    }

    pub(super) fn sum(&mut self, args: &Args) -> Result<Value, Fault> {
        let [over, start] = self.parameters(args, "sum", ["", "start"], 1)?;
        let mut sum = start.unwrap_or(Value::Int(0));
        if let Value::Text(_) = sum {
            return failed("sum() takes no strings: use ''.join(…)");
        }
        for item in self.items(over.unwrap_or(Value::None), "sum's argument")? {
            self.meter.step(self.meter.schedule.node)?;
            sum = self.binary(BinOp::Add, sum, item)?;
        }
        Ok(sum)
    }

    pub(super) fn is_instance(&mut self, args: &Args) -> Result<Value, Fault> {
        let [value, of] = self.parameters(args, "isinstance", ["", ""], 2)?;
        let (value, of) = (value.unwrap_or(Value::None), of.unwrap_or(Value::None));
        self.instance_of(value, of, 1).map(Value::Bool)
    }

    /// Whether a value is of a type, or of one in a tuple of them.
    fn instance_of(&mut self, value: Value, of: Value, depth: u64) -> Result<bool, Fault> {
        let Value::Tuple(_) = of else {
            require_type(of)?;
            return self.is_of(value, of, depth);
        };
        self.meter.depth_fits(depth)?;
        let mut index = 0;
        while let Some(of) = self.sequence(of).get(index).copied() {
            self.meter.elements(1)?;
            if self.instance_of(value, of, depth + 1)? {
                return Ok(true);
            }
            index += 1;
        }
        Ok(false)
    }

    /// `format(value, specification)`
    pub(super) fn format_value(&mut self, args: &Args) -> Result<Value, Fault> {
        let [value, specification] = self.parameters(args, "format", ["", ""], 1)?;
        let value = value.unwrap_or(Value::None);
        let specification = match specification {
            None => String::new(),
            Some(Value::Text(id)) => {
                let len = self.heap.str(id).len();
                self.meter.bytes(len)?;
                self.heap.str(id).to_owned()
            }
            Some(other) => {
                let got = other.kind();
                return failed(format!("a format specification must be a string, not {got}"));
            }
        };
        let mut text = String::new();
        self.write_specified(&mut text, value, &specification)?;
        self.take_text(text.len())?;
        Ok(self.paid_text(text))
    }
}

pub(super) const fn is_int(value: Value) -> bool {
    matches!(value, Value::Int(_) | Value::Big(_))
}
