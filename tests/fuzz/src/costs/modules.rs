//! Modules whose work is in their size.

/// Modules built by repetition: first those whose function `f` is measured, then those whose load
/// is.
pub(super) fn built() -> Vec<(String, String)> {
    let list = |count: usize, item: &dyn Fn(usize) -> String, separator: &str| {
        (0..count).map(item).collect::<Vec<_>>().join(separator)
    };
    let names = |count: usize| list(count, &|i| format!("n{i:x}"), ", ");
    let mut cases = vec![
        (
            "call with 7000 slots",
            format!(
                "def g(l):\n  if l: return 0\n  {} = l\ndef f():\n  for i in range(100000): g(1)\n",
                names(7000)
            ),
        ),
        (
            "call with 5000 defaults",
            format!(
                "def g({}): return 0\ndef f():\n  for i in range(100000): g()\n",
                list(4800, &|i| format!("n{i:x}=0"), ", ")
            ),
        ),
        (
            "call with 5000 arguments",
            format!(
                "def g({}): return 0\ndef f():\n  l = [0] * 5000\n  for i in range(100000): g(*l)\n",
                names(5000)
            ),
        ),
        (
            "call with 3000 names",
            format!(
                "def g({}): return 0\ndef f():\n  k = {{'n%x' % i: i for i in range(3000)}}\n  for i in range(100000): g(**k)\n",
                names(3000)
            ),
        ),
        (
            "comprehension over nothing with 5000 variables",
            format!("def f():\n  for i in range(100000): [0 for {} in ()]\n", names(5000)),
        ),
        (
            "comprehension with 3000 shared variables",
            format!(
                "def f():\n  for i in range(100000): [lambda: [{}] for {} in ()]\n",
                names(3000),
                names(3000)
            ),
        ),
        (
            "closure of 3000",
            format!(
                "def g():\n  {} = [0] * 3000\n  def h(): return [{}]\n  return h\ndef f():\n  for i in range(100000): g()\n",
                names(3000),
                names(3000)
            ),
        ),
        (
            "global, one of 5000",
            format!("{} = [0] * 5000\ndef f():\n  for i in range(100000): n1387\n", names(5000)),
        ),
        (
            "long name",
            format!(
                "def f():\n  {0} = 1\n  for i in range(100000): {0}; {0}; {0}\n",
                "n".repeat(8000)
            ),
        ),
        (
            "long argument name",
            format!(
                "def g({0}): return 0\ndef f():\n  for i in range(100000): g({0} = 1)\n",
                "n".repeat(20000)
            ),
        ),
        (
            "unpack of 5000",
            format!("def f():\n  l = [0] * 5000\n  for i in range(100000): {} = l\n", names(5000)),
        ),
        (
            "docstrings and jumps",
            format!(
                "def f():\n  for i in range(100000):\n{}",
                "    if 0: ''\n    else: ''\n".repeat(1500)
            ),
        ),
        (
            "if chain",
            format!(
                "def f(x = 9):\n  for i in range(100000):\n    if x == 0: pass\n{}",
                "    elif x == 1: pass\n".repeat(250)
            ),
        ),
        (
            "errors on long lines",
            format!(
                "def g(ctx, p): {} fail('x')\ndef f():\n  for i in range(100000): mock.fails(g)\n",
                "0; ".repeat(9000)
            ),
        ),
        (
            "errors of deep calls on long lines",
            format!(
                "def g(n = 0, p = 0): {} fail('x') if n == 60 else g(n + 1 if type(n) == 'int' else 1)\ndef f():\n  for i in range(100000): mock.fails(g)\n",
                "0; ".repeat(1000)
            ),
        ),
        // Loads.
        ("load: nothing", String::new()),
        ("load: one function", "def f():\n  pass\n".to_owned()),
        ("load: comments", "#\n".repeat(14_000)),
        ("load: a comment", format!("#{}\n", "x".repeat(65_000))),
        ("load: blank lines", "\n".repeat(65_000)),
        ("load: white", " ".repeat(65_000)),
        ("load: white lines", " \n".repeat(32_000)),
        ("load: indented blank lines", format!("def f():\n{}  pass\n", "      \n".repeat(9000))),
        ("load: continuation", "\\\n".repeat(32_000)),
        ("load: open lines", format!("[{}]", "\n".repeat(65_000))),
        ("load: ints", format!("[{}]", "1,".repeat(14_000))),
        ("load: statements", "0\n".repeat(14_000)),
        ("load: semicolons", "0;".repeat(14_000)),
        ("load: many globals", list(7000, &|i| format!("n{i:x}=0"), "\n")),
        ("load: one global", "n=0\n".repeat(7000)),
        ("load: globals that are record types", list(5500, &|i| format!("n{i:x}=record()"), "\n")),
        (
            "load: globals that are one record type",
            format!("R=record()\n{}", list(7000, &|i| format!("n{i:x}=R"), "\n")),
        ),
        (
            "load: comprehension of 5000 variables",
            format!("[[{}] for {} in ()]", names(5000), names(5000)),
        ),
        (
            "load: comprehension of 5000, its last",
            format!("[[{}] for {} in ()]", "n1387,".repeat(5000), names(5000)),
        ),
        (
            "load: 120 clauses",
            format!(
                "[[{}] {}]",
                "a0,".repeat(10_000),
                list(110, &|i| format!("for a{i} in ()"), " ")
            ),
        ),
        ("load: lambdas on a line", format!("[{}]", "lambda:0,".repeat(7000))),
        (
            "load: lambdas on a line, non-ASCII",
            format!("['{}',{}]", "é".repeat(20_000), "lambda:0,".repeat(2600)),
        ),
        ("load: lambdas on lines", format!("[{}]", "lambda:0,\n".repeat(6500))),
        ("load: functions", list(3500, &|i| format!("def n{i:x}():0"), "\n")),
        ("load: nested functions", {
            let mut s = String::new();
            for i in 0..31 {
                s += &format!("{}def n{i}():\n", " ".repeat(i));
            }
            s + &" ".repeat(31) + &"0\n".repeat(1)
        }),
        ("load: captures", {
            let mut s = String::from("def m():\n a,b,c,d=0,0,0,0\n");
            for i in 1..30 {
                s += &format!("{}def n{i}():\n", " ".repeat(i));
            }
            s + &" ".repeat(30) + "[" + &"a,b,c,d,".repeat(2500) + "]\n"
        }),
        ("load: parameters", format!("def f({}): 0\n", names(7000))),
        ("load: defaults", format!("def f({}): 0\n", list(5000, &|i| format!("n{i:x}=0"), ","))),
        ("load: the same strings", format!("[{}]", "'abc',".repeat(9000))),
        ("load: strings", format!("[{}]", list(7000, &|i| format!("'{i:x}'"), ","))),
        ("load: a long string", format!("'{}'", "x".repeat(65_000))),
        ("load: a string of escapes", format!("'{}'", "\\n".repeat(32_000))),
        ("load: a string of \\x", format!("'{}'", "\\x41".repeat(16_000))),
        ("load: a string of \\u", format!("'{}'", "\\u00e9".repeat(10_000))),
        ("load: a raw string", format!("r'''{}'''", "\\'\n".repeat(20_000))),
        ("load: a string without end", format!("'''{}", "x".repeat(65_000))),
        ("load: strings of a line without end", "'\n".repeat(30_000)),
        ("load: a long name", "n".repeat(65_000)),
        (
            "load: long names",
            format!(
                "{0}a=0\n{0}b=0\n{1}",
                "n".repeat(1000),
                format!("{}a\n", "n".repeat(1000)).repeat(60)
            ),
        ),
        (
            "load: integers of 4000 bits",
            format!("[{}]", format!("{},", "9".repeat(1200)).repeat(50)),
        ),
        ("load: an integer of 60000 digits", "9".repeat(60_000)),
        ("load: an integer of 60000 hex digits", format!("0x{}", "f".repeat(60_000))),
        ("load: dict", format!("{{{}}}", list(7000, &|i| format!("{i}:0"), ","))),
        ("load: the same key", format!("{{{}}}", "0:0,".repeat(7000))),
        ("load: brackets", format!("{}{}", "[".repeat(60), "]".repeat(60)).repeat(200)),
        ("load: deep brackets", format!("{}{}\n", "(".repeat(60), "1)".repeat(60)).repeat(150)),
        ("load: operators", format!("{}0\n", "0+".repeat(250)).repeat(55)),
        ("load: not", format!("{}0\n", "not ".repeat(250)).repeat(60)),
        ("load: minus", format!("{}0\n", "-".repeat(250)).repeat(110)),
        (
            "load: elif",
            format!(
                "def f():\n if 0:0\n{}",
                format!("{} if 0:0\n", " elif 0:0\n".repeat(250)).repeat(20)
            ),
        ),
        ("load: calls", "f()\n".repeat(7000).replacen("f()", "def f():0\n", 1)),
        ("load: keyword arguments", format!("dict({})", list(7000, &|i| format!("n{i:x}=0"), ","))),
        (
            "load: attributes",
            format!("def f(): a={}\n", ".a".repeat(1).repeat(1) + "0").replace("=.", "=0."),
        ),
        (
            "load: dots",
            format!("def f():\n a=0\n{}", format!(" a{}\n", ".b".repeat(120)).repeat(110)),
        ),
        (
            "load: indexes",
            format!("def f():\n a=0\n{}", format!(" a{}\n", "[0]".repeat(80)).repeat(110)),
        ),
        ("load: conditionals", format!("{}0\n", "0 if 0 else ".repeat(120)).repeat(40)),
        ("load: assignments to tuples", format!("{}=[0]*14000\n", "a,".repeat(14_000))),
        ("load: annotations", "a:int=0\n".repeat(5900)),
        ("load: refused at the end", format!("{})", "0\n".repeat(14_000))),
        ("load: refused on one line", format!("{})", "0;".repeat(14_000))),
        ("load: undefined at the end", format!("{}zz", "0;".repeat(14_000))),
        ("load: tabs", "\t\n".repeat(30_000)),
        ("load: unlexable", "$".repeat(65_000)),
        ("load: null bytes", "\0".repeat(65_000)),
        ("load: non-ASCII names", "é = 1\n".repeat(5000)),
        ("load: carriage returns", "0\r\n".repeat(9000)),
        (
            "load: dedents",
            format!(
                "{}\n0\n",
                (0..31).map(|i| format!("{}if 0:\n", " ".repeat(i))).collect::<String>()
                    + &" ".repeat(31)
                    + "0"
            )
            .repeat(30)
            .replace("if 0:", "def x():"),
        ),
    ];
    cases.push(("load: returns at the top", "return\n".repeat(9000)));
    cases.push(("load: breaks", format!("def f():\n{}", " break\n".repeat(9000))));
    cases.push(("load: loops at the top", "for i in j:0\n".repeat(4500)));
    cases.push(("load: conditions at the top", "if i:0\n".repeat(5900)));
    cases.push(("load: pass", format!("def f():\n{}", " pass\n".repeat(9000))));
    cases.into_iter().map(|(name, source)| (name.to_owned(), source)).collect()
}
