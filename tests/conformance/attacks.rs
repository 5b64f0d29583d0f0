//! Hostile modules in addition to the shared ones in `actor-attacks.json`.

use super::Attack;

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

/// These attacks as cases.
pub fn own() -> impl Iterator<Item = Attack> {
    OWN.into_iter().map(|(name, stopped_by, source)| Attack {
        name: name.to_owned(),
        stopped_by: stopped_by.to_owned(),
        source: Some(source.to_owned()),
        parts: None,
    })
}
