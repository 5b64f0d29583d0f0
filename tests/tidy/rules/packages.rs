//! Packages: their dependencies on each other, and the source of their lints.

use super::{Rule, Sample};
use crate::{
    Finding,
    source::{PACKAGES, Tree},
};

/// cli uses all packages, devnet uses engine, host and lease, lease uses engine and host; engine
/// and host use none.
pub const DIRECTION: Rule = Rule {
    name: "package direction",
    check: direction,
    samples: &[
        Sample {
            files: &[(
                "engine/Cargo.toml",
                "[dependencies]\nhex.workspace = true\n\n[dev-dependencies]\ncowboy-devnet = \"1\"\n",
            )],
            found: &["engine/Cargo.toml:5"],
        },
        Sample {
            files: &[("devnet/Cargo.toml", "[dependencies.cowboyctl]\npath = \"../cli\"\n")],
            found: &["devnet/Cargo.toml:1"],
        },
        Sample {
            files: &[
                ("cli/Cargo.toml", "[dependencies]\ncowboy-engine.workspace = true\n"),
                ("devnet/Cargo.toml", "[package]\nname = \"cowboy-devnet\"\n"),
            ],
            found: &[],
        },
    ],
};

/// Lints are set once, for all packages.
pub const LINTS: Rule = Rule {
    name: "workspace lints",
    check: lints,
    samples: &[
        Sample {
            files: &[("engine/Cargo.toml", "[package]\n[lints.rust]\nunsafe_code = \"warn\"\n")],
            found: &["engine/Cargo.toml:1"],
        },
        Sample { files: &[("engine/Cargo.toml", "[lints]\nworkspace = true\n")], found: &[] },
    ],
};

/// Features are set once, for all packages: every build requests the same ones, so cargo builds a
/// dependency only once.
pub const FEATURES: Rule = Rule {
    name: "workspace features",
    check: features,
    samples: &[
        Sample {
            files: &[(
                "devnet/Cargo.toml",
                "[dependencies]\nhex.workspace = true\n\n[dev-dependencies]\n\
                 tokio = { workspace = true, features = [\"test-util\"] }\nrand = \"1\"\n",
            )],
            found: &["devnet/Cargo.toml:5", "devnet/Cargo.toml:6"],
        },
        Sample {
            files: &[("cli/Cargo.toml", "[dependencies.tokio]\nworkspace = true\n")],
            found: &["cli/Cargo.toml:1"],
        },
        Sample {
            files: &[(
                "cli/Cargo.toml",
                "[package]\nname = \"cli\"\n\n[dependencies]\n# Why.\nhex.workspace = true\n",
            )],
            found: &[],
        },
    ],
};

/// Each package of the workspace, and the packages of the workspace on which it may depend.
const ALLOWED: [(&str, &[&str]); 9] = [
    ("engine", &[]),
    ("engine/pvm", &["cowboy-engine"]),
    ("devnet/host", &[]),
    ("devnet/lease", &["cowboy-engine", "cowboy-host"]),
    ("devnet", &["cowboy-engine", "cowboy-host", "cowboy-lease", "cowboy-pvm"]),
    ("devnet/simulation", &["cowboy-engine", "cowboy-host", "cowboy-devnet"]),
    (
        "cli",
        &[
            "cowboy-engine",
            "cowboy-host",
            "cowboy-lease",
            "cowboy-pvm",
            "cowboy-devnet",
            "cowboy-simulation",
        ],
    ),
    (
        "tests",
        &[
            "cowboy-engine",
            "cowboy-host",
            "cowboy-lease",
            "cowboy-devnet",
            "cowboy-simulation",
            "cowboyctl",
        ],
    ),
    ("examples", &["cowboy-engine", "cowboy-devnet"]),
];

fn direction(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (package, allowed) in ALLOWED {
        let path = format!("{package}/Cargo.toml");
        let Some(manifest) = tree.get(&path) else { continue };
        let mut dependencies = false;
        for (number, line) in (1..).zip(manifest.text.lines()) {
            let name = if let Some(section) = line.strip_prefix('[') {
                dependencies = section.contains("dependencies]");
                // [dependencies.name]
                section.split_once("dependencies.").map(|(_, name)| name)
            } else {
                dependencies.then_some(line)
            };
            let name: String = name
                .unwrap_or_default()
                .chars()
                .take_while(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
                .collect();
            if name.starts_with("cowboy") && !allowed.contains(&name.as_str()) {
                let text = format!("{package} may not use {name}: move what both need to engine");
                findings.push(Finding::new(&path, number, text));
            }
        }
    }
    findings
}

fn features(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in PACKAGES {
        let path = format!("{package}/Cargo.toml");
        let Some(manifest) = tree.get(&path) else { continue };
        let mut dependencies = false;
        for (number, line) in (1..).zip(manifest.text.lines()) {
            let own = if line.starts_with('[') {
                dependencies = line.ends_with("dependencies]");
                line.contains("dependencies.")
            } else {
                let says = !line.is_empty() && !line.starts_with('#');
                dependencies && says && !line.ends_with(".workspace = true")
            };
            if own {
                let text = "write `NAME.workspace = true`: version and features go to the top's \
                            Cargo.toml, so that no build asks for others";
                findings.push(Finding::new(&path, number, text));
            }
        }
    }
    findings
}

fn lints(tree: &Tree) -> Vec<Finding> {
    let manifests =
        PACKAGES.iter().filter_map(|package| tree.get(&format!("{package}/Cargo.toml")));
    manifests
        .filter(|manifest| {
            let text: String = manifest.text.split_whitespace().collect();
            !text.contains("[lints]workspace=true") && !text.contains("lints.workspace=true")
        })
        .map(|manifest| {
            let text = "add `[lints] workspace = true`: lints are those of the top's Cargo.toml";
            Finding::new(&manifest.path, 1, text)
        })
        .collect()
}
