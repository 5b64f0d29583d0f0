//! The program inside the component: its sources, and what actors can import.

/// The world that the component implements.
pub(crate) const WORLD: &str = include_str!("../wit/pvm.wit");

/// Pinned versions and hashes of the packages that the component is built with.
pub(crate) const REQUIREMENTS: &str = include_str!("../requirements.txt");

/// The Python files of the program, by name.
pub(crate) const FILES: [(&str, &str); 3] = [
    ("app.py", include_str!("../guest/app.py")),
    ("importable.py", IMPORTABLE),
    ("pvm_host.py", include_str!("../guest/pvm_host.py")),
];

const IMPORTABLE: &str = include_str!("../guest/importable.py");

/// The modules that actors can import, in alphabetical order.
pub fn importable() -> impl Iterator<Item = &'static str> {
    let (_, list) = IMPORTABLE.split_once("frozenset(\"\"\"").expect("the list begins so");
    let (list, _) = list.split_once("\"\"\"").expect("the list ends so");
    list.split_whitespace()
}

/// The version of the SDK in the component.
pub fn sdk_version() -> &'static str {
    let line = REQUIREMENTS.lines().find_map(|line| line.strip_prefix("cowboy-actor-sdk=="));
    line.expect("the SDK is required").trim_end_matches(" \\")
}

#[cfg(test)]
mod tests {
    use super::{REQUIREMENTS, importable, sdk_version};

    #[test]
    fn importable_modules_are_listed_once() {
        let listed: Vec<_> = importable().collect();
        assert!(listed.is_sorted_by(|a, b| a < b), "{listed:?}");
        assert!(listed.contains(&"cowboy_sdk") && !listed.contains(&"os"), "{listed:?}");
    }

    #[test]
    fn every_requirement_is_pinned_with_hashes() {
        for line in REQUIREMENTS.lines().filter(|line| !line.starts_with(['#', ' '])) {
            assert!(line.contains("==") && line.ends_with('\\'), "{line}");
        }
        assert_eq!(sdk_version(), "0.1.6");
    }
}
