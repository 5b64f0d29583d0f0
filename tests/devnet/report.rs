//! Reports without secrets, which can be shown to others.

use crate::{
    shape,
    support::{Home, list},
};
use serde_json::Value;
use std::{collections::BTreeMap, fs, io::Read as _, path::Path};
use tar::Archive;

/// The files of an archive, by name.
pub fn unpack(file: &Path) -> BTreeMap<String, String> {
    let mut archive = Archive::new(zstd::Decoder::new(fs::File::open(file).unwrap()).unwrap());
    let mut found = BTreeMap::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().strip_prefix("report").unwrap().display().to_string();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        found.insert(name, text);
    }
    found
}

/// Every secret in a devnet's folder.
fn secrets(home: &Home, devnet: &str) -> Vec<String> {
    let mut secrets = Vec::new();
    let mut open = vec![home.path(devnet)];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                open.push(path);
            } else if name == "token" || name.ends_with(".key") {
                secrets.push(fs::read_to_string(path).unwrap().trim().to_owned());
            }
        }
    }
    secrets
}

#[test]
fn a_report_has_what_helps_and_no_secret() {
    let home = Home::new();
    home.up(&["--wait", "3"]);
    home.json(&["account", "new", "alice"]);
    home.json(&["fault", "latency", "validator-0", "1ms"]);
    home.json(&["job", "submit", "custom", "--wait", "--", "echo", "hi"]);
    // The log contains secrets.
    let log = home.path("local/log/devnet.log");
    let token = fs::read_to_string(home.path("local/token")).unwrap();
    let key = fs::read_to_string(home.path("local/accounts/alice.key")).unwrap().to_uppercase();
    let mut text = fs::read_to_string(&log).unwrap();
    text += &format!("a token={} key=0x{}\n", token.trim(), key.trim());
    fs::write(home.path("local/log/devnet.log.old"), text).unwrap();

    let file = home.path("a.tar.zst");
    let path = file.to_str().unwrap();
    let written = home.json(&["devnet", "report", path]);
    assert_eq!(written["file"], path);
    assert_eq!(written["bytes"].as_u64().unwrap(), fs::metadata(&file).unwrap().len());
    let report = unpack(&file);
    assert_eq!(list(&written["entries"]).len(), report.len());
    let json = |name: &str| -> Value { serde_json::from_str(&report[name]).unwrap() };
    assert_eq!(json("report.json")["status"], "running");
    assert_eq!(json("report.json")["seed"], 0);
    assert_eq!(json("api/status.json")["name"], "local");
    assert!(json("api/head.json")["height"].as_u64().unwrap() >= 3);
    assert_eq!(list(&json("api/faults.json")).len(), 1);
    assert!(!list(&json("api/events.json")).is_empty());
    assert!(json("machine.json")["cores"].as_u64().unwrap() >= 1);
    assert!(report["topology.yaml"].contains("validator-3"));
    assert!(report["log/devnet.log"].contains("ready"));
    assert!(report["files.txt"].contains("validators/validator-0/index.db"));
    assert!(report["log/devnet.log.old"].ends_with("a token=[hidden] key=0x[hidden]\n"));
    assert!(!report.contains_key("api/errors.txt"), "{}", report["api/errors.txt"]);
    let secrets = secrets(&home, "local");
    assert!(secrets.len() > 10, "every account's key, and a token");
    for (name, text) in &report {
        let text = text.to_lowercase();
        for secret in &secrets {
            assert!(!text.contains(&secret.to_lowercase()), "{name} tells a secret");
        }
    }

    let error = home.fails(8, &["devnet", "report", path]);
    assert!(error.contains("--force"), "{error}");
    home.json(&["devnet", "report", path, "--force"]);
    home.fails(2, &["devnet", "report", home.path("a.zip").to_str().unwrap()]);
    home.fails(3, &["devnet", "report", home.path("no/such/folder/a.tar.zst").to_str().unwrap()]);
    shape::seen(&["devnet report"]);
}

#[test]
fn a_stopped_devnet_is_reported_from_its_files() {
    let home = Home::new();
    home.up(&["--wait", "3"]);
    home.json(&["devnet", "down"]);
    let outcome = home
        .command(&["--quiet", "devnet", "report"])
        .current_dir(home.path("."))
        .output()
        .unwrap();
    let name = String::from_utf8(outcome.stdout).unwrap();
    assert!(name.starts_with("cowboyctl-report-local-") && name.ends_with("Z.tar.zst\n"), "{name}");
    let report = unpack(&home.path(name.trim()));
    let stored: Value = serde_json::from_str(&report["stored.json"]).unwrap();
    let heights = stored.as_object().unwrap().values().map(|one| one["height"].as_u64());
    assert!(heights.max().flatten() >= Some(3), "{stored}");
    assert!(report["log/devnet.log"].contains("stopped"));
    assert!(!report.keys().any(|name| name.starts_with("api/")), "{:?}", report.keys());
    home.fails(4, &["--devnet", "absent", "devnet", "report"]);
}

#[test]
fn a_devnet_is_told_as_a_page_without_secrets() {
    let home = Home::new();
    home.up(&["--wait", "3"]);
    home.json(&["account", "new", "alice"]);
    home.json(&["fault", "pause", "runner-1"]);
    home.json(&["job", "submit", "custom", "--wait", "--", "echo", "hi"]);
    let fault = home.json(&["fault", "ls"])[0]["id"].to_string();
    home.json(&["fault", "heal", &fault]);
    home.json(&["fault", "kill", "validator-3"]);
    home.json(&["validator", "start", "validator-3"]);
    let token = fs::read_to_string(home.path("local/token")).unwrap();
    let log = home.path("local/log/devnet.log");
    let mut text = fs::read_to_string(&log).unwrap();
    text += &format!("2026-01-01T00:00:00Z  WARN </script><b> token={}\n", token.trim());
    fs::write(&log, text).unwrap();

    let file = home.path("a.html");
    let path = file.to_str().unwrap();
    let written = home.json(&["devnet", "report", "--html", path]);
    assert_eq!(written["bytes"].as_u64().unwrap(), fs::metadata(&file).unwrap().len());
    let page = fs::read_to_string(&file).unwrap();
    for secret in secrets(&home, "local") {
        assert!(!page.contains(&secret), "a secret is in the page");
    }
    let (_, data) = page.split_once("id=\"story\">").unwrap();
    let story: Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    assert_eq!((&story["title"], &story["kind"]), (&"local".into(), &"devnet".into()));
    assert!(list(&story["blocks"]).iter().any(|block| block["transactions"] == 1), "{story}");
    assert!(list(&story["blocks"]).iter().any(|block| block["voters"].is_array()), "{story}");
    // Each runner connects to three of the four validators: fewer votes could see it.
    let could = |block: &Value| block["certified_could"]["0"].as_u64();
    let could: Vec<_> = list(&story["blocks"]).iter().filter_map(could).collect();
    assert!(!could.is_empty() && could.iter().all(|votes| (2..=3).contains(votes)), "{could:?}");
    assert_eq!(story["jobs"][0]["status"], "verified", "{story}");
    let [pause, kill] = &list(&story["faults"])[..] else { panic!("{story}") };
    assert_eq!((&pause["kind"], &pause["target"]), (&"pause".into(), &"runner-1".into()));
    assert_eq!((&kill["kind"], &kill["target"]), (&"kill".into(), &"validator-3".into()));
    assert!(pause["to"].is_u64() && kill["to"].is_u64(), "{pause} {kill}");
    let hostile = list(&story["logs"]).iter().find(|line| line["level"] == "WARN").unwrap();
    assert_eq!(hostile["text"], "</script><b> token=[hidden]");

    let said = home.fails(8, &["devnet", "report", "--html", path]);
    assert!(said.contains("already exists"), "{said}");
    home.json(&["devnet", "report", "--html", "--force", "--blocks", "1", path]);
    home.fails(2, &["devnet", "report", "--html", "a.tar.zst"]);
    home.json(&["devnet", "down"]);
    home.fails(4, &["devnet", "report", "--html", "--force", path]);
}
