//! `costs`: for every kind of work a program that does nothing else, on the inputs that make it
//! slowest for what it is charged. A table of nanoseconds per cycle, the worst first.

use crate::run;
use std::{fmt::Write as _, time::Duration};

/// What a cycle may take at most.
pub const MOST_NANOSECONDS: f64 = 50.0;
/// Below so many cycles it is the time itself that counts.
pub const FEW_CYCLES: u64 = 2_000;
/// What a load or a call of few cycles may take.
pub const FEW_CYCLES_TIME: Duration = Duration::from_micros(100);

/// How often each program runs; its fastest run counts.
const ROUNDS: usize = 3;

/// Name, statements before the loop, statement within it.
type Case = (&'static str, &'static str, &'static str);

const LOOPS: &[Case] = &[
    ("loop", "", "pass"),
    ("nested loops", "", "for j in range(1000): pass"),
    ("loop over dict", "d = {i: i for i in range(3000)}", "for k in d: pass"),
    ("call", "g = lambda: 0", "g()"),
    ("call of 10", "g = lambda a, b, c, d, e, f, g, h, i, j: 0", "g(1,2,3,4,5,6,7,8,9,10)"),
    ("call by name", "g = lambda a = 1, b = 2, c = 3: 0", "g(c = 1, a = 2)"),
    ("call with *", "g = lambda *a: 0\n  l = [0] * 1000", "g(*l)"),
    (
        "call with ** of 1000",
        "g = lambda **a: 0\n  k = {'k%d' % i: i for i in range(1000)}",
        "g(**k)",
    ),
    ("closure", "n = [0]\n  g = lambda: lambda: n", "g()()"),
    ("recursion", "g = lambda h, n: h(h, n - 1) if n else 0", "g(g, 50)"),
    ("additions", "x = 1", "x = x + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1"),
    ("comparisons", "x = 1", "x < 2 and x == 1 and x != 2 and x >= 0 and not x > 5"),
    ("small products", "x = 3", "x * x * x * x * x // 7 % 5"),
    ("mixed // and %", "x = -7", "x // 3 % 2 // 5 % 3"),
    ("shifts", "x = 3", "x << 40 >> 30 << 5 >> 3"),
    ("just beyond 64 bits", "x = 1 << 62", "x + x + x - x - x - x"),
    ("65 bits -", "x = 1 << 65", "-x - x - x - x"),
    ("4096 bits +", "x = (1 << 4095) - 1\n  y = x - 5", "x + y"),
    ("4096 bits -", "x = (1 << 4095) - 1\n  y = x - 5", "y - x"),
    ("2048 bits *", "x = (1 << 2047) - 1\n  y = x - 5", "x * y"),
    ("4000 x 64 bits *", "x = (1 << 4000) - 1\n  y = (1 << 64) + 1", "x * y"),
    ("4096 // 2048", "x = (1 << 4095) - 1\n  y = (1 << 2047) - 9", "x // y"),
    ("4096 // 64", "x = (1 << 4095) - 1\n  y = (1 << 63) + 9", "x // y"),
    ("4096 % 2048", "x = -(1 << 4095) + 1\n  y = (1 << 2047) - 9", "x % y"),
    ("64 // 4096", "y = (1 << 4095) - 1\n  x = -(1 << 63) - 9", "x // y"),
    ("4096 bits &", "x = -(1 << 4095) + 1\n  y = -(1 << 4094) + 3", "x & y"),
    ("4096 bits |", "x = -(1 << 4095) + 1\n  y = -(1 << 4094) + 3", "x | y"),
    ("4096 bits ^", "x = -(1 << 4095) + 1\n  y = -(1 << 4094) + 3", "x ^ y"),
    ("4096 bits ~", "x = -(1 << 4095) + 1", "~x"),
    ("4096 bits <<", "x = 3", "x << 4090"),
    ("4096 bits >>", "x = -(1 << 4095) + 1", "x >> 3"),
    ("4096 bits <", "x = (1 << 4095) - 1\n  y = x - 1", "x < y"),
    ("4096 bits ==", "x = (1 << 4095) - 1\n  y = x + 1 - 1", "x == y"),
    ("4096 bits in list", "x = (1 << 4095) - 1\n  l = [x - 1] * 1000", "x in l"),
    ("4096 bits sorted", "x = (1 << 4095) - 1\n  l = [x - i for i in range(1000)]", "sorted(l)"),
    ("65 bits sorted", "x = 1 << 65\n  l = [x - i for i in range(1000)]", "sorted(l)"),
    ("4096 bits max", "x = (1 << 4095) - 1\n  l = [x] * 1000", "max(l)"),
    ("4096 bits as key", "x = (1 << 4095) - 1\n  d = {x: 1}", "d[x]"),
    ("4096 bits str", "x = (1 << 4095) - 1", "str(x)"),
    ("4096 bits %d", "x = (1 << 4095) - 1", "'%d' % x"),
    ("4096 bits %x", "x = (1 << 4095) - 1", "'%x' % x"),
    ("4096 bits %o", "x = (1 << 4095) - 1", "'%o' % x"),
    ("65 bits str of list", "x = 1 << 65\n  l = [x] * 1000", "str(l)"),
    ("small ints str of list", "l = [7] * 1000", "str(l)"),
    ("int of 1200 digits", "s = '9' * 1200", "int(s)"),
    ("int of 1000 hex digits", "s = 'f' * 1000", "int(s, 16)"),
    ("int of 4000 bits", "s = '1' * 4000", "int(s, 2)"),
    ("int of 790 digits of base 36", "s = 'z' * 680", "int(s, 36)"),
    ("int of 1 MB of zeros", "s = '0' * 1000000", "int(s)"),
    ("int of '1'", "", "int('1')"),
    ("abs of big", "x = -(1 << 4095) + 1", "abs(x)"),
    // Strings: searching.
    ("in: a..ab", "s = 'a' * 500000\n  n = 'a' * 250000 + 'b'", "n in s"),
    ("in: b in a..", "s = 'a' * 1000000", "'b' in s"),
    ("in: a*20 b", "s = 'a' * 1000000\n  n = 'a' * 20 + 'b'", "n in s"),
    ("in: b a*20", "s = 'a' * 1000000\n  n = 'b' + 'a' * 20", "n in s"),
    ("in: a*100 b a*100", "s = 'a' * 1000000\n  n = 'a' * 100 + 'b' + 'a' * 100", "n in s"),
    ("in: a b a*1000", "s = 'a' * 1000000\n  n = 'ab' + 'a' * 1000", "n in s"),
    ("in: (ab)*100 c", "s = 'ab' * 500000\n  n = 'ab' * 100 + 'c'", "n in s"),
    ("in: (ab)*20 b", "s = 'ab' * 500000\n  n = 'ab' * 20 + 'b'", "n in s"),
    ("in: a*30 b a*30 over pieces", "s = ('a' * 60 + 'b') * 16000\n  n = 'a' * 61 + 'b'", "n in s"),
    ("in: pair everywhere", "s = 'ab' * 500000\n  n = 'abababac'", "n in s"),
    (
        "in: fib",
        "a = 'a'\n  b = 'ab'\n  for i in range(26): a, b = b, b + a\n  n = b[:5000] + 'c'",
        "n in b",
    ),
    (
        "in: thue",
        "s = 'a'\n  for i in range(19): s = s + s.replace('a', 'x').replace('b', 'a').replace('x', 'b')\n  n = s[3:3003] + 'ab' * 8",
        "n in s",
    ),
    ("in: short text", "s = 'a' * 40\n  n = 'a' * 20 + 'b'", "n in s; n in s; n in s; n in s"),
    ("in: empty", "s = 'a' * 1000000", "'' in s"),
    ("find: a*20 b", "s = 'a' * 1000000\n  n = 'a' * 20 + 'b'", "s.find(n)"),
    ("find: non-ASCII at the end", "s = 'é' * 500000 + 'b'", "s.find('b')"),
    ("find from, non-ASCII", "s = 'é' * 500000 + 'b'", "s.find('b', 250000, 499999)"),
    ("index from -1", "s = 'é' * 500000 + 'b'", "s.index('b', -1)"),
    ("rfind: b a*20", "s = 'a' * 1000000\n  n = 'b' + 'a' * 20", "s.rfind(n)"),
    ("rfind: a*20 b", "s = 'a' * 1000000\n  n = 'a' * 20 + 'b'", "s.rfind(n)"),
    ("rfind: b", "s = 'a' * 1000000", "s.rfind('b')"),
    ("rfind: ab", "s = 'a' * 1000000", "s.rfind('ab')"),
    ("rfind: ba", "s = 'a' * 1000000", "s.rfind('ba')"),
    ("rfind: long", "s = 'a' * 1000000\n  n = 'b' + 'a' * 1000", "s.rfind(n)"),
    ("rfind: middle", "s = 'a' * 1000000\n  n = 'a' * 100 + 'b' + 'a' * 100", "s.rfind(n)"),
    (
        "rfind: fib",
        "a = 'a'\n  b = 'ab'\n  for i in range(26): a, b = b, b + a\n  n = 'c' + b[:5000]",
        "b.rfind(n)",
    ),
    ("rfind: period", "s = 'ab' * 500000\n  n = 'c' + 'ab' * 100", "s.rfind(n)"),
    ("rindex found last", "s = 'é' * 500000", "s.rindex('é')"),
    ("count: a in a..", "s = 'a' * 1000000", "s.count('a')"),
    ("count: aa in a..", "s = 'a' * 1000000", "s.count('aa')"),
    ("count: ab in ab..", "s = 'ab' * 500000", "s.count('ab')"),
    ("count: empty", "s = 'a' * 1000000", "s.count('')"),
    ("count: empty, non-ASCII", "s = 'é' * 500000", "s.count('')"),
    ("replace: a by nothing", "s = 'a' * 1000000", "s.replace('a', '')"),
    ("replace: a by a", "s = 'a' * 60000", "s.replace('a', 'a')"),
    ("replace: nothing by b", "s = 'a' * 60000", "s.replace('', 'b')"),
    ("replace: nothing by nothing", "s = 'a' * 1000000", "s.replace('', '')"),
    ("replace: a*20 b", "s = 'a' * 1000000\n  n = 'a' * 20 + 'b'", "s.replace(n, '')"),
    ("split: ,", "s = ',' * 60000", "s.split(',')"),
    ("split: , too many", "s = ',' * 1000000", "s.split(',')"),
    ("split: a*20 b", "s = 'a' * 100000\n  n = 'a' * 20 + 'b'", "s.split(n)"),
    ("rsplit: ,", "s = ',' * 60000", "s.rsplit(',')"),
    ("rsplit: , too many", "s = ',' * 1000000", "s.rsplit(',')"),
    ("rsplit: b a*20", "s = 'a' * 100000\n  n = 'b' + 'a' * 20", "s.rsplit(n)"),
    ("split: white", "s = 'a ' * 30000", "s.split()"),
    ("split: white only", "s = ' ' * 1000000", "s.split()"),
    ("split: white, non-ASCII", "s = 'é\\u2003' * 30000", "s.split()"),
    ("split: white, CJK", "s = '漢' * 30000", "s.split()"),
    ("rsplit: white", "s = 'a ' * 30000", "s.rsplit()"),
    ("rsplit: white, 1", "s = 'é\\u2003' * 30000", "s.rsplit(None, 1)"),
    ("splitlines", "s = '\\n' * 60000", "s.splitlines()"),
    ("splitlines \\r\\n", "s = '\\r\\n' * 60000", "s.splitlines(True)"),
    ("splitlines too many", "s = '\\n' * 1000000", "s.splitlines()"),
    ("splitlines none", "s = 'é' * 500000", "s.splitlines()"),
    ("partition: a*20 b", "s = 'a' * 1000\n  n = 'a' * 20 + 'b'", "s.partition(n)"),
    ("rpartition: b a*20", "s = 'a' * 1000\n  n = 'b' + 'a' * 20", "s.rpartition(n)"),
    ("rpartition long", "s = 'a' * 100000\n  n = 'b' + 'a' * 20", "s.rpartition(n)"),
    ("startswith", "s = 'a' * 1000000\n  n = 'a' * 999999 + 'b'", "s.startswith(n)"),
    ("startswith of many", "s = 'a'\n  n = ('b',) * 60000", "s.startswith(n)"),
    ("startswith from, non-ASCII", "s = 'é' * 500000", "s.startswith('x', 250000)"),
    ("endswith", "s = 'a' * 1000000", "s.endswith(s)"),
    ("endswith of many", "s = 'a'\n  n = ('',) * 60000 ", "s.endswith(n)"),
    ("removeprefix", "s = 'a' * 10000", "s.removeprefix('a')"),
    ("removesuffix", "s = 'a' * 1000000", "s.removesuffix(s)"),
    // Strings: characters.
    ("elems", "s = 'a' * 60000", "s.elems()"),
    ("elems, non-ASCII", "s = 'é' * 60000", "s.elems()"),
    ("lower, ASCII", "s = 'A' * 60000", "s.lower()"),
    ("lower, É", "s = 'É' * 60000", "s.lower()"),
    ("lower, Σ", "s = 'Σ' * 60000", "s.lower()"),
    ("lower, ..Σ", "s = (\"'\" * 30 + 'Σ') * 2000", "s.lower()"),
    ("lower, İ", "s = 'İ' * 60000", "s.lower()"),
    ("lower, CJK", "s = '漢' * 60000", "s.lower()"),
    ("lower, 𐐀", "s = '𐐀' * 60000", "s.lower()"),
    ("upper, ASCII", "s = 'a' * 60000", "s.upper()"),
    ("upper, é", "s = 'é' * 60000", "s.upper()"),
    ("upper, ﬃ", "s = 'ﬃ' * 60000", "s.upper()"),
    ("upper, ΐ", "s = 'ΐ' * 60000", "s.upper()"),
    ("upper, CJK", "s = '漢' * 60000", "s.upper()"),
    ("title, a a", "s = 'a ' * 60000", "s.title()"),
    ("title, é é", "s = 'é ' * 60000", "s.title()"),
    ("title, ΐ", "s = 'ΐ ' * 60000", "s.title()"),
    ("title, CJK", "s = '漢' * 60000", "s.title()"),
    ("capitalize, É", "s = 'É' * 60000", "s.capitalize()"),
    ("capitalize, İ", "s = 'İ' * 60000", "s.capitalize()"),
    ("isalnum, ASCII", "s = 'a' * 1000000", "s.isalnum()"),
    ("isalnum, é", "s = 'é' * 500000", "s.isalnum()"),
    ("isalnum, ٣", "s = '٣' * 500000", "s.isalnum()"),
    ("isalnum, CJK", "s = '漢' * 300000", "s.isalnum()"),
    ("isalpha, é", "s = 'é' * 500000", "s.isalpha()"),
    ("isalpha, CJK", "s = '漢' * 300000", "s.isalpha()"),
    ("isdigit, ٣", "s = '٣' * 500000", "s.isdigit()"),
    ("isspace", "s = '\\u2003' * 300000", "s.isspace()"),
    ("islower, é", "s = 'é' * 500000", "s.islower()"),
    ("islower, CJK", "s = '漢' * 300000", "s.islower()"),
    ("islower, ٣", "s = '٣' * 500000", "s.islower()"),
    ("isupper, É", "s = 'É' * 500000", "s.isupper()"),
    ("isupper, CJK", "s = '漢' * 300000", "s.isupper()"),
    ("isupper, ٣", "s = '٣' * 500000", "s.isupper()"),
    ("istitle, É é", "s = 'Éé ' * 200000", "s.istitle()"),
    ("istitle, CJK", "s = '漢' * 300000", "s.istitle()"),
    ("istitle, ٣", "s = '٣' * 500000", "s.istitle()"),
    ("strip", "s = ' ' * 1000000", "s.strip()"),
    ("strip, wide", "s = '\\u2003' * 300000", "s.strip()"),
    (
        "strip of many",
        "c = ''.join([chr(i) for i in range(300, 2300)])\n  s = c * 100",
        "s.strip(c)",
    ),
    ("strip of few", "s = 'ab' * 500000", "s.strip('ab')"),
    ("strip by long", "s = 'b'\n  c = 'ba' * 500000", "s.strip(c)"),
    (
        "rstrip of many",
        "c = ''.join([chr(i) for i in range(300, 2300)])\n  s = c * 100",
        "s.rstrip(c)",
    ),
    ("index of ASCII", "s = 'a' * 1000000", "s[500000]"),
    ("index of non-ASCII", "s = 'é' * 500000", "s[499999]"),
    ("index of CJK", "s = '漢' * 300000", "s[-1]"),
    ("slice of ASCII", "s = 'a' * 100000", "s[1:]"),
    ("slice with step", "s = 'a' * 100000", "s[::-1]"),
    ("slice of non-ASCII", "s = 'é' * 100000", "s[::-1]"),
    ("slice of CJK, empty", "s = '漢' * 300000", "s[5:4]"),
    ("len, ASCII", "s = 'a' * 1000000", "len(s)"),
    ("len, non-ASCII", "s = 'é' * 500000", "len(s)"),
    ("==, long", "s = 'a' * 500000\n  t = 'a' * 499999 + 'a'", "s == t"),
    ("<, long", "s = 'a' * 500000\n  t = 'a' * 499999 + 'b'", "s < t"),
    ("+ of strings", "s = 'a' * 100000", "s + s"),
    ("* of strings", "s = 'ab'", "s * 50000"),
    ("* of strings, non-ASCII", "s = 'é'", "s * 50000"),
    ("join of empty", "l = [''] * 60000", "''.join(l)"),
    ("join", "l = ['a'] * 60000", "','.join(l)"),
    ("hash()", "s = 'é' * 500000", "hash(s)"),
    ("hash(), ASCII", "s = 'a' * 1000000", "hash(s)"),
    ("keccak256", "s = 'a' * 1000000", "keccak256(s)"),
    ("keccak256 of hex", "s = '0x' + 'ab' * 500000", "keccak256(s)"),
    ("keccak256 of little", "", "keccak256('')"),
    ("ord and chr", "", "ord(chr(8364))"),
    ("% of nothing", "s = '%%' * 60000", "s % ()"),
    ("% of empty", "s = '%s' * 60000\n  a = ('',) * 60000", "s % a"),
    ("% of ints", "s = '%d' * 60000\n  a = (7,) * 60000", "s % a"),
    ("%x of ints", "s = '%x' * 60000\n  a = (-255,) * 60000", "s % a"),
    ("%X of ints", "s = '%X' * 60000\n  a = (-255,) * 60000", "s % a"),
    ("%r of strings", "s = '%r' * 60000\n  a = ('\\n',) * 60000", "s % a"),
    ("%c", "s = '%c' * 60000\n  a = (97,) * 60000", "s % a"),
    ("%s of None", "s = '%s' * 60000\n  a = (None,) * 60000", "s % a"),
    ("%s of ()", "s = '%s' * 60000\n  a = ((),) * 60000", "s % a"),
    ("%(k)s", "s = '%(k)s' * 60000\n  a = {'k': ''}", "s % a"),
    ("% of a long name", "s = '%(' + 'k' * 500000 + ')s'\n  a = {'k' * 500000: ''}", "s % a"),
    ("format {}", "s = '{}' * 20000\n  a = [''] * 20000", "s.format(*a)"),
    ("format {0}", "s = '{0}' * 60000", "s.format('')"),
    ("format {k}", "s = '{k}' * 60000", "s.format(k = '')"),
    ("format {{", "s = '{{' * 60000", "s.format()"),
    (
        "format, many names",
        "k = {'k%d' % i: '' for i in range(1000)}\n  s = '{k999}' * 1000",
        "s.format(**k)",
    ),
    (
        "format, long names",
        "p = 'k' * 2000\n  k = {p + str(i): '' for i in range(1000, 2500)}\n  s = '{%s2499}' % p",
        "s.format(**k)",
    ),
    ("repr of strings", "s = '\\n' * 60000", "repr(s)"),
    ("repr of controls", "s = '\\x01' * 60000", "repr(s)"),
    ("repr of non-ASCII", "s = 'é' * 60000", "repr(s)"),
    ("repr of empties", "l = [''] * 60000", "repr(l)"),
    ("repr of ()", "l = [()] * 60000", "repr(l)"),
    ("repr of nested", "l = []\n  for i in range(60): l = [l]", "repr(l)"),
    ("repr of doubled", "l = []\n  for i in range(15): l = [l, l]", "repr(l)"),
    ("repr of dict", "d = {i: i for i in range(3000)}", "repr(d)"),
    ("repr of functions", "l = [len] * 60000", "repr(l)"),
    ("repr of ranges", "l = [range(9, 1, -2)] * 60000", "repr(l)"),
    ("str of True", "l = [True] * 60000", "str(l)"),
    ("str of int", "", "str(7)"),
    ("type", "", "type(7)"),
    // Collections.
    ("list", "", "[1, 2, 3, 4, 5, 6, 7, 8]"),
    ("empty lists", "", "[[], [], [], []]"),
    ("tuple", "", "(1, 2, 3, 4, 5, 6, 7, 8)"),
    ("dict", "", "{1: 2, 3: 4, 5: 6}"),
    ("list comprehension", "", "[j for j in range(100)]"),
    ("dict comprehension", "", "{j: j for j in range(100)}"),
    ("list()", "r = range(60000)", "list(r)"),
    ("tuple()", "r = range(60000)", "tuple(r)"),
    ("list of dict", "d = {i: i for i in range(4000)}", "list(d)"),
    ("reversed", "r = range(60000)", "reversed(r)"),
    ("enumerate", "r = range(60000)", "enumerate(r)"),
    ("zip", "r = range(30000)", "zip(r, r)"),
    ("zip of one", "r = range(60000)", "zip(r)"),
    ("zip of many", "r = [range(9)] * 10000", "zip(*r)"),
    ("all", "l = [True] * 60000", "all(l)"),
    ("any", "l = [''] * 60000", "any(l)"),
    ("any of range", "r = range(1)", "any(r)"),
    ("min of ints", "l = [1] * 60000", "min(l)"),
    ("max of strings", "s = 'a' * 1000\n  l = [s] * 1000", "max(l)"),
    ("max with key", "l = [1] * 1000\n  k = lambda x: x", "max(l, key = k)"),
    ("max by len", "l = [''] * 1000", "max(l, key = len)"),
    ("sorted, random", "l = [i * 7919 % 60013 for i in range(4000)]", "sorted(l)"),
    ("sorted, long, ASCII", "p = 'a' * 1000\n  l = [p + str(i) for i in range(1000)]", "sorted(l)"),
    ("sorted, short strings", "l = [str(i * 7919 % 60013) for i in range(3000)]", "sorted(l)"),
    ("sorted, empty strings", "l = [''] * 60000", "sorted(l)"),
    ("sorted, tuples", "l = [(0, 0, i * 7919 % 60013) for i in range(2000)]", "sorted(l)"),
    ("sorted, 1000 empty strings", "l = [''] * 1000", "sorted(l)"),
    ("sorted, 60000 equal ints", "l = [1] * 60000", "sorted(l)"),
    ("sorted, by len", "l = [''] * 4000", "sorted(l, key = len)"),
    ("append", "l = []", "l.append(1); l.append(1); l.append(1); l.append(1)"),
    ("insert(0)", "l = [0] * 60000", "l.insert(0, l.pop())"),
    ("insert(0), large", "l = [0] * 65000", "l.insert(0, 0)"),
    ("pop(0)", "l = [0] * 65000", "l.pop(0); l.append(0)"),
    ("remove", "l = [0] * 30000 + [1]", "l.remove(1); l.append(1)"),
    ("list index", "l = [0] * 60000 + [1]", "l.index(1)"),
    ("in list", "l = [0] * 60000 + [1]", "1 in l"),
    ("in list of strings", "l = ['aa'] * 60000", "'ab' in l"),
    ("in list of tuples", "l = [()] * 60000", "1 in l"),
    ("in list of equal tuples", "l = [(1, 2, 3)] * 20000", "(1, 2, 4) in l"),
    ("in range", "r = range(0, 1000000, 7)", "5 in r"),
    ("extend", "l = []\n  m = [0] * 1000", "l.extend(m); l.clear()"),
    ("clear", "m = [0] * 60000", "l = m + m[:0]; l.clear()"),
    ("+ of lists", "m = [0] * 30000", "m + m"),
    ("* of lists", "m = [0]", "m * 60000"),
    ("* of tuples", "m = (0,)", "m * 60000"),
    ("slice of list", "m = [0] * 60000", "m[1:]"),
    ("slice with step of list", "m = [0] * 60000", "m[::-1]"),
    ("slice of range", "r = range(60000)", "r[1:100:3]"),
    ("== of lists", "a = [0] * 60000\n  b = [0] * 60000", "a == b"),
    (
        "== of lists of empties",
        "a = [()] * 30000\n  b = [[][:] for i in range(1)] * 0 + [()] * 30000",
        "a == b",
    ),
    (
        "== of doubled",
        "a = []\n  b = []\n  for i in range(60):\n    a = [a, a]\n    b = [b, b]",
        "a == b",
    ),
    ("< of lists", "a = [0] * 60000\n  b = [0] * 60000 + [1]", "a < b"),
    ("< of deep", "a = 1\n  b = 2\n  for i in range(60):\n    a = (0, a)\n    b = (0, b)", "a < b"),
    ("unpack", "l = [1, 2, 3, 4, 5, 6, 7, 8]", "a, b, c, d, e, g, h, j = l"),
    ("index", "l = [1]", "l[0]; l[0]; l[0]; l[0]; l[-1]"),
    ("store index", "l = [1]", "l[0] = 1; l[0] = 2; l[0] += 3"),
    // Dicts.
    ("dict of ints, update of 4000", "d = {i: i for i in range(4000)}", "d.update(d)"),
    ("dict |", "d = {i: i for i in range(4000)}", "d | d"),
    ("dict | of 6000", "d = {i * 7919: i for i in range(6000)}\n  e = {}", "e | d"),
    ("dict()", "d = [(i, i) for i in range(3500)]", "dict(d)"),
    ("dict() of dict", "d = {i: i for i in range(6000)}", "dict(d)"),
    ("dict of 30000 by | ", "l = list(range(8000))\n  d = dict(zip(l, l))", "d | {}"),
    ("dict get", "d = {i: i for i in range(4000)}", "d.get(3999); d.get(1); d.get(-1)"),
    ("dict in", "d = {i: i for i in range(4000)}", "5 in d; 6 in d; 7 in d; 8 in d; 9 in d"),
    ("dict set", "d = {i: i for i in range(4000)}", "d[3] = 5; d[4] = 5; d[7] = 8"),
    ("dict insert and pop", "d = {i: i for i in range(4000)}", "d[i] = 5; d.pop(i)"),
    ("dict popitem", "d = {i: i for i in range(4000)}", "d.popitem(); d[i] = 1"),
    ("dict keys", "d = {i: i for i in range(4000)}", "d.keys()"),
    ("dict values", "d = {i: i for i in range(4000)}", "d.values()"),
    ("dict items", "d = {i: i for i in range(4000)}", "d.items()"),
    ("dict ==", "d = {i: i for i in range(4000)}\n  e = {i: i for i in range(4000)}", "d == e"),
    ("dict == of strings", "d = {str(i): i for i in range(2000)}\n  e = dict(d)", "d == e"),
    ("dict clear", "d = {i: i for i in range(3000)}", "e = dict(d); e.clear()"),
    ("dict setdefault", "d = {i: i for i in range(3000)}", "d.setdefault(5, 1)"),
    ("dict, tuples as keys", "d = {}\n  k = (1, 2, 3)", "d[k] = 1; d[k] = 2; d[k] = 3"),
    ("dict, long tuple", "d = {}\n  k = (1,) * 60000", "d[k] = 1; d[k]"),
    ("dict, doubled tuple", "d = {}\n  k = ()\n  for i in range(15): k = (k, k)", "d[k] = 1; d[k]"),
    ("dict, long strings", "d = {}\n  k = 'a' * 1000000\n  d[k] = 1", "d[k]"),
    ("dict, empty strings", "d = {}", "d[''] = 1; d['']; d['']; d['']"),
    ("dict, functions as keys", "d = {}", "d[lambda: 0] = 1"),
    ("dict, types as keys", "d = {}", "d[record()] = 1"),
    ("dict, records as keys", "d = {}", "d[record()()] = 1"),
    ("dict, builtins as keys", "d = {len: 1}", "d[len]; d[max]  if max in d else 0"),
    // Records, annotations.
    ("record, its fields", "R = record(a = int, b = int, c = int)", "R(a = 1, b = 2, c = 3)"),
    ("record, reversed", "R = record(a = int, b = int, c = int)", "R(c = 1, b = 2, a = 3)"),
    (
        "record of 1000, in order",
        "k = {'k%d' % i: int for i in range(1000)}\n  v = {a: 1 for a in k}\n  R = record(**k)",
        "R(**v)",
    ),
    (
        "record of 1000, reversed",
        "k = {'k%d' % i: int for i in range(1000)}\n  v = {a: 1 for a in reversed(k)}\n  R = record(**k)",
        "R(**v)",
    ),
    (
        "record, long names",
        "p = 'k' * 20000\n  k = {p + str(i): int for i in range(100, 150)}\n  v = {a: 1 for a in reversed(k)}\n  R = record(**k)",
        "R(**v)",
    ),
    ("record()", "k = {'k%d' % i: int for i in range(1000)}", "record(**k)"),
    (
        "field of 1000",
        "k = {'k%d' % i: int for i in range(1000, 2000)}\n  v = {a: 1 for a in k}\n  R = record(**k)\n  r = R(**v)",
        "r.k1999; r.k1999; r.k1999; r.k1999",
    ),
    (
        "field of long names",
        "p = 'k' * 20000\n  k = {p + str(i): int for i in range(100, 150)}\n  v = {a: 1 for a in k}\n  R = record(**k)\n  r = R(**v)\n  n = p + '149'",
        "getattr(r, n)",
    ),
    ("field", "r = record(a = int)(a = 1)", "r.a; r.a; r.a; r.a"),
    ("hasattr", "r = record(a = int)(a = 1)", "hasattr(r, 'a')"),
    ("getattr of method", "s = ''", "getattr(s, 'split')"),
    (
        "dir of 1000",
        "k = {'k%d' % i: int for i in range(1000)}\n  v = {a: 1 for a in k}\n  r = record(**k)(**v)",
        "dir(r)",
    ),
    (
        "dir of long names",
        "p = 'k' * 2000\n  k = {p + str(i): int for i in range(500)}\n  v = {a: 1 for a in k}\n  r = record(**k)(**v)",
        "dir(r)",
    ),
    ("dir of string", "", "dir('')"),
    (
        "== of records",
        "k = {'k%d' % i: int for i in range(1000)}\n  v = {a: 1 for a in k}\n  R = record(**k)\n  r = R(**v)\n  s = R(**v)",
        "r == s",
    ),
    (
        "repr of records",
        "k = {'k%d' % i: int for i in range(1000)}\n  v = {a: 1 for a in k}\n  r = record(**k)(**v)",
        "repr(r)",
    ),
    ("check int", "", "x: int = 1"),
    ("check list[int]", "l = [1] * 60000", "x: list[int] = l"),
    ("check list[list[int]]", "l = [[1] * 100] * 600", "x: list[list[int]] = l"),
    ("check dict", "l = {i: i for i in range(4000)}", "x: dict[int, int] = l"),
    (
        "check union",
        "l = [None] * 20000\n  T = int | str | bool | None",
        "x: list[int | str | None] = l",
    ),
    ("tuple of types", "t = (int,) * 60000", "tuple[t]"),
    (
        "check tuple of types",
        "T = tuple[(int,) * 60000]\n  t = (1,) * 60000",
        "isinstance if False else R(t = t)",
    ),
    ("typing", "", "int | str"),
    // Names.
    ("attribute of list", "l = []", "l.append"),
    ("method", "s = ''", "s.isalpha(); s.isalpha(); s.isalpha()"),
    // The host.
    ("ctx", "", "pvm_host.get_block_height()"),
    ("get_timestamp_ms", "", "pvm_host.get_timestamp_ms()"),
    ("get_balance", "", "pvm_host.get_balance()"),
    ("get_balance of", "a = mock.account('a')", "pvm_host.get_balance(a)"),
    (
        "get_balance of a long text",
        "a = '0x' + 'a' * 1000000",
        "pvm_host.get_balance(a) if False else 0",
    ),
    ("get_state, none", "", "pvm_host.get_state('k')"),
    ("get_state", "pvm_host.set_state('k', [1] * 1000)", "pvm_host.get_state('k')"),
    ("get_state, text", "pvm_host.set_state('k', 'a' * 500000)", "pvm_host.get_state('k')"),
    ("get_state, escapes", "pvm_host.set_state('k', '\\n' * 300000)", "pvm_host.get_state('k')"),
    ("set_state", "", "pvm_host.set_state('k', 1)"),
    ("set_state, other keys", "", "pvm_host.set_state(str(i), 1)"),
    ("set_state, long", "v = 'a' * 10000", "pvm_host.set_state('k', v)"),
    ("delete_state", "", "pvm_host.delete_state('k')"),
    ("delete_state, other keys", "", "pvm_host.delete_state(str(i))"),
    ("emit", "", "pvm_host.emit('e', 1)"),
    ("emit, long", "v = 'a' * 50000", "pvm_host.emit('e', v)"),
    ("log", "", "pvm_host.log('e', 1)"),
    ("print, long", "v = 'a' * 50000", "print(v)"),
    (
        "transfer",
        "a = mock.account('a')\n  mock.fund(pvm_host.get_balance and mock.account('self'), 1000000)",
        "pvm_host.transfer(a, 1)",
    ),
    ("send_message", "a = mock.account('a')", "pvm_host.send_message(a, 'h', 'x')"),
    (
        "send_message, long",
        "a = mock.account('a')\n  v = 'x' * 1000000",
        "pvm_host.send_message(a, 'h', v)",
    ),
    ("schedule_timer", "", "pvm_host.schedule_timer(100, 'x')"),
    ("schedule_timer, long", "v = 'x' * 100000", "pvm_host.schedule_timer(100, v)"),
    ("schedule_timer_ex", "", "pvm_host.schedule_timer_ex(100, 'x', handler = 'h')"),
    ("cancel_timer", "t = '0x' + '00' * 32", "pvm_host.cancel_timer(t)"),
    ("extend_timer", "t = '0x' + '00' * 32", "pvm_host.extend_timer(t, 1000)"),
    ("submit_job", "s = {'kind': 'x'}", "pvm_host.submit_job(s)"),
    ("submit_job, long", "s = {'kind': 'x' * 100000}", "pvm_host.submit_job(s)"),
    ("get_mru", "", "pvm_host.get_mru('http')"),
    ("randomness", "", "pvm_host.randomness()"),
    ("randomness, long", "v = 'x' * 1000000", "pvm_host.randomness(v)"),
    ("json_encode of ints", "l = [1] * 60000", "json_encode(l)"),
    ("json_encode of None", "l = [None] * 60000", "json_encode(l)"),
    ("json_encode of empties", "l = [''] * 60000", "json_encode(l)"),
    ("json_encode of []", "l = [[]] * 60000", "json_encode(l)"),
    ("json_encode of escapes", "s = '\\x01' * 100000", "json_encode(s)"),
    ("json_encode of text", "s = 'é' * 100000", "json_encode(s)"),
    ("json_encode of dict", "d = {str(i): i for i in range(2000)}", "json_encode(d)"),
    ("json_decode of ints", "s = '[' + '1,' * 20000 + '1]'", "json_decode(s)"),
    ("json_decode of null", "s = '[' + 'null,' * 20000 + '1]'", "json_decode(s)"),
    ("json_decode of empties", "s = '[' + '\"\",' * 20000 + '1]'", "json_decode(s)"),
    ("json_decode of []", "s = '[' + '[],' * 20000 + '1]'", "json_decode(s)"),
    ("json_decode of {}", "s = '[' + '{},' * 20000 + '1]'", "json_decode(s)"),
    ("json_decode of escapes", "s = '\"' + '\\\\n' * 100000 + '\"'", "json_decode(s)"),
    ("json_decode of \\u", "s = '\"' + '\\\\u00e9' * 100000 + '\"'", "json_decode(s)"),
    ("json_decode of text", "s = '\"' + 'é' * 100000 + '\"'", "json_decode(s)"),
    ("json_decode of white", "s = ' ' * 1000000 + '1'", "json_decode(s)"),
    ("json_decode of deep", "s = '[' * 60 + ']' * 60", "json_decode(s)"),
    ("json_decode of keys", "s = json_encode({str(i): 1 for i in range(3000)})", "json_decode(s)"),
    ("json_decode of a long int", "s = '1' * 1200", "json_decode(s)"),
    // The chain of tests.
    ("mock.account, long", "v = 'x' * 1000000", "mock.account(v)"),
    ("mock.fund", "a = mock.account('a')", "mock.fund(a, 1)"),
    ("mock.events", "for i in range(500): pvm_host.emit('e', 1)", "mock.events()"),
    (
        "mock.transfers of events",
        "for i in range(1000): pvm_host.emit('e', '' * 900)",
        "mock.transfers()",
    ),
    ("mock.log", "for i in range(500): print(i)", "mock.log()"),
    ("mock.timers", "for i in range(500): pvm_host.schedule_timer(9999999, 'x')", "mock.timers()"),
    (
        "mock.advance",
        "for i in range(1000): pvm_host.schedule_timer(9999999, 'x')",
        "mock.advance(1)",
    ),
    ("mock.advance, none", "", "mock.advance(1000)"),
    ("mock.fails", "", "mock.fails('nothing')"),
    (
        "mock.fails after effects",
        "for i in range(1000): pvm_host.emit('e', 1)",
        "mock.fails('nothing')",
    ),
    (
        "mock.cancel",
        "t = '0x' + '00' * 32\n  for i in range(500): pvm_host.schedule_timer(9999999, 'x')",
        "pvm_host.cancel_timer(t); mock.timers()",
    ),
];

/// Modules built by repetition: those whose function `f` is run, and those whose load is what
/// costs.
fn built() -> Vec<(String, String)> {
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

struct Row {
    name: String,
    rate: f64,
    elapsed: Duration,
    cycles: u64,
    cause: &'static str,
    end: String,
}

impl Row {
    fn is_finding(&self) -> bool {
        if self.cycles < FEW_CYCLES {
            return self.elapsed > FEW_CYCLES_TIME;
        }
        self.rate > MOST_NANOSECONDS
    }
}

fn measure(name: &str, source: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    let loads: Vec<_> = (0..ROUNDS).map(|_| run::load(source)).collect();
    let elapsed = loads.iter().map(|(_, _, elapsed)| *elapsed).min().unwrap_or_default();
    let (usage, module, _) = &loads[0];
    let row = |name: String, elapsed, usage: &_, error: Option<&_>| {
        let cycles = cowboy_engine::actor::Usage::cycles(usage);
        Row {
            name,
            rate: run::rate(elapsed, cycles),
            elapsed,
            cycles,
            cause: run::main_cause(usage),
            end: run::ending(error),
        }
    };
    let is_load = name.starts_with("load:");
    match module {
        Err(error) => rows.push(row(name.to_owned(), elapsed, usage, Some(error))),
        Ok(_) if is_load => rows.push(row(name.to_owned(), elapsed, usage, None)),
        Ok(module) => {
            let tests: Vec<_> = (0..ROUNDS).map(|_| run::test(module, "f")).collect();
            let elapsed = tests.iter().map(|(_, elapsed)| *elapsed).min().unwrap_or_default();
            let report = &tests[0].0;
            rows.push(row(name.to_owned(), elapsed, &report.usage, report.error.as_ref()));
        }
    }
    rows
}

/// Prints the table of what matches `filter`; how many lines of it are findings.
pub fn costs(filter: &str) -> usize {
    let filter = filter.to_owned();
    let rows = run::on_a_thread(move || {
        let loops = LOOPS.iter().map(|(name, before, body)| {
            let mut source = String::from("def f():\n");
            if !before.is_empty() {
                let _ = writeln!(source, "  {before}");
            }
            let _ = writeln!(source, "  for i in range(1000000):\n    {body}");
            ((*name).to_owned(), source)
        });
        let cases = loops.chain(built());
        let mut rows: Vec<_> = cases
            .filter(|(name, _)| name.contains(&filter))
            .flat_map(|(name, source)| measure(&name, &source))
            .collect();
        rows.sort_by(|a, b| b.rate.total_cmp(&a.rate));
        rows
    });
    println!("{:>9} {:>10} {:>9}  {:<10} {:<42} end", "ns/cycle", "us", "cycles", "cause", "work");
    for row in &rows {
        let mark = if row.is_finding() { '*' } else { ' ' };
        println!(
            "{:>8.1}{mark} {:>10.1} {:>9}  {:<10} {:<42} {}",
            row.rate,
            row.elapsed.as_nanos() as f64 / 1000.0,
            row.cycles,
            row.cause,
            row.name,
            row.end
        );
    }
    summary(&rows);
    rows.iter().filter(|row| row.is_finding()).count()
}

fn summary(rows: &[Row]) {
    let causes = ["loading", "evaluation", "data", "heap", "storage", "effects", "hashing"];
    for cause in causes {
        let of_cause = |row: &&Row| row.cause == cause && row.cycles >= FEW_CYCLES;
        let mut rates: Vec<_> = rows.iter().filter(of_cause).map(|row| row.rate).collect();
        rates.sort_by(f64::total_cmp);
        let Some(worst) = rates.last() else { continue };
        let median = rates[rates.len() / 2];
        println!("{cause}: {} kinds of work, median {median:.1}, worst {worst:.1}", rates.len());
    }
}
