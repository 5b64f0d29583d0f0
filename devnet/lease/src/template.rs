//! Values of an environment that contain results of needed jobs.
//!
//! ```text
//! v${{ needs.build.outputs.version }}      what job `build` wrote as its output `version`
//! ${{ needs.build.result }}                the state that it ended in, as SUCCEEDED
//! ```
//!
//! Nothing else is allowed between `${{` and `}}`. An output that the job did not write is empty.

/// The beginning of a reference.
pub const OPEN: &str = "${{";
const CLOSE: &str = "}}";
/// The beginning of a reference to a needed job.
pub const NEEDS: &str = "needs.";

/// A part of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    Text(&'a str),
    Result(&'a str),
    Output { job: &'a str, name: &'a str },
}

impl<'a> Part<'a> {
    pub const fn job(&self) -> Option<&'a str> {
        match self {
            Self::Text(_) => None,
            Self::Result(job) | Self::Output { job, .. } => Some(*job),
        }
    }
}

/// Whether a text refers to a needed job.
pub fn refers_to_needs(text: &str) -> bool {
    let mut inside = text.split(OPEN).skip(1);
    inside.any(|inside| inside.trim_start().starts_with(NEEDS))
}

/// The parts of a template. Errors: the rest of the text from the first invalid place.
pub fn parts(text: &str) -> Result<Vec<Part<'_>>, &str> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find(OPEN) {
        if at > 0 {
            parts.push(Part::Text(&rest[..at]));
        }
        let (inside, after) = rest[at + OPEN.len()..].split_once(CLOSE).ok_or(&rest[at..])?;
        parts.push(reference(inside.trim()).ok_or(&rest[at..])?);
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest));
    }
    Ok(parts)
}

/// The output's name follows the last `.outputs.`, because a job's name may contain dots.
fn reference(text: &str) -> Option<Part<'_>> {
    let of = text.strip_prefix(NEEDS)?;
    let part = match of.rsplit_once(".outputs.") {
        Some((job, name)) => Part::Output { job, name },
        None => Part::Result(of.strip_suffix(".result")?),
    };
    part.job().is_some_and(|job| !job.is_empty()).then_some(part)
}

/// The text with each reference replaced by the result of `value`.
pub fn fill(text: &str, mut value: impl FnMut(Part<'_>) -> String) -> String {
    match parts(text) {
        Ok(parts) => parts
            .into_iter()
            .map(|part| match part {
                Part::Text(text) => text.to_owned(),
                reference => value(reference),
            })
            .collect(),
        Err(_) => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_told_from_text() {
        let output = |job, name| Part::Output { job, name };
        let version = [Part::Text("v"), output("a.b", "x"), Part::Text("-rc")];
        let check = |text: &str, expected: Result<&[Part<'_>], &str>| {
            assert_eq!(parts(text).as_deref(), expected.as_ref().map(|parts| *parts), "{text}");
        };
        check("", Ok(&[]));
        check("plain $X {}", Ok(&[Part::Text("plain $X {}")]));
        check("v${{ needs.a.b.outputs.x }}-rc", Ok(&version));
        check("${{needs.a.result}}", Ok(&[Part::Result("a")]));
        check("${{ needs.a.outputs.b.outputs.c }}", Ok(&[output("a.outputs.b", "c")]));
        for wrong in
            ["${{ needs.a }}", "${{ needs..result }}", "${{ env.X }}", "${{ needs.a.result"]
        {
            check(&format!("x {wrong}"), Err(wrong));
        }
        assert!(refers_to_needs("a ${{  needs.b.result }}") && !refers_to_needs("${{ x }} needs."));
        let upper = |part: Part<'_>| part.job().unwrap_or_default().to_uppercase();
        assert_eq!(fill("1 ${{ needs.a.result }} 2", upper), "1 A 2");
    }
}
