//! Profiles add up to the usage, and coverage tells what ran.

use super::{
    super::{
        gas::Spent,
        profile::{CoveredBranch, MOST_SPOTS, Profile},
    },
    *,
};

const SOURCE: &str = "\
def double(n):
    return n + n

def both(n):
    if n > 2:
        return double(n) + double(1)
    return 0

def work(ctx, payload):
    total = 0
    for n in range(int(payload)):
        total = total + both(n)
    names = sorted(['bb', 'a'], key=lambda name: len(name))
    pvm_host.set_state('total', [total, names])
    return total

def crash(ctx, payload):
    both(3)
    fail_now = [][1]

def idle(ctx, payload):
    pass

def test_idle(ctx):
    assert (lambda: True)()
";

fn recorded() -> Module {
    load(SOURCE).unwrap().recorded()
}

fn called(module: &Module, handler: &str, payload: &str) -> CallOutcome {
    call_in(&Fixed::default(), module, handler, payload.as_bytes())
}

fn total(profile: &Profile) -> Spent {
    let spots = profile.spots.iter().map(|spot| spot.spent).chain([profile.outside]);
    spots.fold(Spent::default(), |sum, more| Spent {
        cycles: sum.cycles + more.cycles,
        cells: sum.cells + more.cells,
    })
}

fn stack(profile: &Profile, index: usize) -> String {
    let spot = &profile.spots[index];
    let by = spot.by.map(|by| stack(profile, by) + " ").unwrap_or_default();
    format!("{by}{}:{}", spot.function, spot.line)
}

#[test]
fn spots_and_what_is_outside_add_up_to_the_usage() {
    for (handler, payload) in [("work", "5"), ("work", "no number"), ("crash", ""), ("none", "")] {
        let module = recorded();
        let outcome = called(&module, handler, payload);
        let plain = called(&load(SOURCE).unwrap(), handler, payload);
        assert_eq!(outcome, plain, "a record changes nothing");
        let profile = module.profile().unwrap();
        let Spent { cycles, cells } = total(&profile);
        assert_eq!((cycles, cells), (outcome.usage.cycles(), outcome.usage.cells), "{handler}");
    }
    assert_eq!(load(SOURCE).unwrap().profile(), None);
}

#[test]
fn a_spot_has_the_lines_that_called_it() {
    let module = recorded();
    called(&module, "work", "5").result.unwrap();
    let profile = module.profile().unwrap();
    let stacks: Vec<_> = (0..profile.spots.len())
        .map(|index| (stack(&profile, index), profile.spots[index].times))
        .collect();
    let stacks: Vec<_> = stacks.iter().map(|(stack, times)| (stack.as_str(), *times)).collect();
    assert_eq!(
        stacks,
        [
            ("work:10", 1),
            ("work:11", 1),
            ("work:12", 5),
            ("work:12 both:5", 5),
            ("work:12 both:7", 3),
            ("work:12 both:6", 2),
            ("work:12 both:6 double:2", 4),
            ("work:13", 1),
            ("work:13 lambda:13", 2),
            ("work:14", 1),
            ("work:15", 1),
        ]
    );
    // Calls of one module are recorded together.
    called(&module.clone(), "idle", "");
    assert_eq!(module.profile().unwrap().spots.last().unwrap().function, "idle");
}

#[test]
fn stacks_beyond_the_limit_count_for_their_callers() {
    let source = "def f(n):\n    if n == 0:\n        return 0\n    a = f(n - 1)\n    \
                  b = f(n - 1)\n    return a + b\n\ndef work(ctx, payload):\n    return f(14)\n";
    let module = load(source).unwrap().recorded();
    let budget = Budget { cycles: 1 << 40, ..BUDGET };
    let outcome = call_with(&Fixed::default(), &module, "work", b"", budget);
    assert_eq!(outcome.result, Ok(b"0".to_vec()));
    let profile = module.profile().unwrap();
    assert_eq!(profile.spots.len(), MOST_SPOTS);
    assert_eq!(total(&profile).cycles, outcome.usage.cycles());
}

#[test]
fn coverage_has_functions_lines_and_branches() {
    let module = recorded();
    assert_eq!(load(SOURCE).unwrap().coverage(), None);
    called(&module, "work", "2").result.unwrap();
    let coverage = module.coverage().unwrap();
    let functions: Vec<_> =
        coverage.functions.iter().map(|f| (f.name.as_str(), f.line, f.calls)).collect();
    assert_eq!(
        functions,
        [
            ("double", 1, 0),
            ("both", 4, 2),
            ("work", 9, 1),
            ("lambda", 13, 2),
            ("crash", 17, 0),
            ("idle", 21, 0),
        ]
    );
    assert_eq!(
        coverage.lines,
        [
            (2, 0),
            (5, 2),
            (6, 0),
            (7, 2),
            (10, 1),
            (11, 1),
            (12, 2),
            (13, 3),
            (14, 1),
            (15, 1),
            (18, 0),
            (19, 0),
            (22, 0),
        ]
    );
    assert_eq!(
        coverage.branches,
        [
            CoveredBranch { line: 5, counts: Some([0, 2]) },
            CoveredBranch { line: 11, counts: Some([2, 1]) },
        ]
    );
    // More calls add to it.
    called(&module, "work", "4").result.unwrap();
    let coverage = module.coverage().unwrap();
    assert_eq!(coverage.lines[..3], [(2, 2), (5, 6), (6, 1)]);
    assert_eq!(coverage.branches[0].counts, Some([1, 5]));
}
