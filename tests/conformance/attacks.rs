//! Hostile modules and how each must end: the shared ones in `actor-attacks.json`, and our own. The
//! fuzzer, a package of its own, includes this file.

use cowboy_engine::actor::ErrorKind;
use serde::Deserialize;

/// A file of hostile modules.
#[derive(Deserialize)]
pub struct Attacks {
    pub cases: Vec<Attack>,
}

#[derive(Deserialize)]
pub struct Attack {
    pub name: String,
    pub stopped_by: String,
    source: Option<String>,
    parts: Option<Vec<Part>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Part {
    Once(String),
    Repeated { repeat: String, times: usize },
}

impl Attack {
    pub fn source(&self) -> String {
        let parts = self.parts.iter().flatten().map(|part| match part {
            Part::Once(text) => text.clone(),
            Part::Repeated { repeat, times } => repeat.repeat(*times),
        });
        self.source.clone().into_iter().chain(parts).collect()
    }

    /// Whether this outcome is the one that the case expects.
    pub fn allows(&self, error: Option<&ErrorKind>) -> bool {
        let is_limit =
            |kind: &ErrorKind| !matches!(kind, ErrorKind::Failed(_) | ErrorKind::Undone(_));
        match (self.stopped_by.as_str(), error) {
            ("ok", error) => error.is_none(),
            ("error", error) => error.is_some(),
            ("refused at deployment", Some(kind)) => kind.is_refusal(),
            (_, Some(kind)) => is_limit(kind) && !kind.is_refusal(),
            (_, None) => false,
        }
    }
}

/// Attacks with language features that the shared cases do not use: name, `stopped_by`, source.
const OWN: [(&str, &str, &str); 14] = [
    ("while True", "OutOfCycles", "def f():\n  while True: pass\n"),
    ("while True at the top level", "OutOfCycles", "while True: pass\ndef f(): pass\n"),
    ("while that continues", "OutOfCycles", "def f():\n  while 1:\n    if 1: continue\n"),
    ("10 ** 10 ** 10", "too large", "def f():\n  return 10 ** 10 ** 10\n"),
    ("many powers", "OutOfCycles", "def f():\n  while 1: 7 ** 1400\n"),
    ("many powers modulo", "OutOfCycles", "def f():\n  while 1: pow(3, 1 << 4000, 1 << 4090)\n"),
    ("width", "too large", "def f():\n  return f'{1:99999999999999999999999}'\n"),
    ("width of a field", "too large", "def f():\n  return f'{1:{1 << 40}}'\n"),
    ("width with separators", "too large", "def f():\n  return f'{1:0999999999,}'\n"),
    ("f-string doubling", "too large", "def f():\n  a = 'x'\n  while 1: a = f'{a}{a}'\n"),
    ("spread doubling", "too large", "def f():\n  a = [1]\n  while 1: a = [*a, *a]\n"),
    (
        "characters",
        "OutOfCycles",
        "def f():\n  a = 'x' * 1000000\n  for i in range(9):\n    for c in a: pass\n",
    ),
    ("sum of lists", "OutOfMemory", "def f():\n  return sum([[0] * 999] * 60, [])\n"),
    (
        "deep types",
        "StackOverflow",
        "def f():\n  t = ()\n  for i in range(99): t = (t, int)\n  return isinstance('', t)\n",
    ),
];

/// Our own attacks as cases.
pub fn own() -> impl Iterator<Item = Attack> {
    OWN.into_iter().map(|(name, stopped_by, source)| Attack {
        name: name.to_owned(),
        stopped_by: stopped_by.to_owned(),
        source: Some(source.to_owned()),
        parts: None,
    })
}
