//! f-strings: texts and fields in order, then their concatenation.

use super::{Compiler, at};
use crate::actor::{
    error::Fault,
    syntax::code::{Conversion, Op},
};
use ruff_python_ast::{
    ConversionFlag, ExprFString, FStringPart, InterpolatedElement, InterpolatedStringElement,
};

impl<'a> Compiler<'a, '_> {
    pub(super) fn interpolated(&mut self, of: &'a ExprFString, span: u32) -> Result<(), Fault> {
        let mut parts = 0;
        for part in &of.value {
            match part {
                FStringPart::Literal(text) => {
                    self.text(&text.value, at(text))?;
                    parts += 1;
                }
                FStringPart::FString(of) => parts += self.parts(&of.elements)?,
            }
        }
        self.emit(Op::Concat(parts), span);
        Ok(())
    }

    /// Puts each part on the stack. Returns their number.
    fn parts(
        &mut self,
        elements: impl IntoIterator<Item = &'a InterpolatedStringElement>,
    ) -> Result<u32, Fault> {
        let mut parts = 0;
        for element in elements {
            match element {
                InterpolatedStringElement::Literal(text) => self.text(&text.value, at(text))?,
                InterpolatedStringElement::Interpolation(field) => {
                    parts += self.field(field)?;
                    continue;
                }
            }
            parts += 1;
        }
        Ok(parts)
    }

    fn field(&mut self, field: &'a InterpolatedElement) -> Result<u32, Fault> {
        let span = at(field);
        let mut parts = 1;
        if let Some(shown) = &field.debug_text {
            self.text(shown.as_str(), span)?;
            parts += 1;
        }
        self.expression(&field.expression)?;
        let specified = field.format_spec.is_some();
        let conversion = match field.conversion {
            ConversionFlag::None if field.debug_text.is_some() && !specified => Conversion::Repr,
            ConversionFlag::None => Conversion::None,
            ConversionFlag::Str => Conversion::Str,
            ConversionFlag::Repr => Conversion::Repr,
            ConversionFlag::Ascii => {
                return self.refuse(span, "there is no conversion !a; use !r");
            }
        };
        if let Some(specification) = &field.format_spec {
            let made = self.parts(&specification.elements)?;
            self.emit(Op::Concat(made), at(&**specification));
        }
        self.emit(Op::Field(conversion, specified), span);
        Ok(parts)
    }
}
