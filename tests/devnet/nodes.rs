//! Validators and runners in processes of their own, which share files only.

use crate::{
    runners::Foreground,
    shape,
    support::{Home, list, wait_until},
    timers::{number, text},
};
use rustix::process::Signal;
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
};

const TOPOLOGY: &str = "
name: apart
chain: { block_time: 200ms, epoch_blocks: 16 }
runners:
- { name: left, kinds: [custom] }
- { name: right, kinds: [custom] }
";

/// A devnet's files for its nodes, and the nodes that are started with them.
pub struct Apart {
    pub home: Home,
    files: PathBuf,
}

impl Apart {
    pub fn export() -> Self {
        let home = Home::new();
        let (topology, files) = (home.path("topology.yaml"), home.path("files"));
        fs::write(&topology, TOPOLOGY).unwrap();
        let args = ["devnet", "export", "nodes", utf8(&files), "-f", utf8(&topology)];
        let exported = home.json(&args);
        assert_eq!((number(&exported["validators"]), number(&exported["runners"])), (4, 2));
        let again = home.fails(8, &args);
        assert!(again.contains("is not empty"), "{again}");
        Self { home, files }
    }

    pub fn file(&self, name: &str) -> String {
        utf8(&self.files.join(name)).to_owned()
    }

    /// The options that a node and a runner have in common.
    pub fn options(&self, key: &str) -> Vec<String> {
        let file = |name| self.file(name);
        let options = ["--genesis", &file("genesis.json"), "--peers", &file("peers.yaml")];
        let key = ["--key-file".to_owned(), self.file(key), "--detach".to_owned()];
        options.map(str::to_owned).into_iter().chain(key).collect()
    }

    pub fn start(&self, validator: &str) -> Value {
        let options = self.options(&format!("validators/{validator}.key"));
        let options: Vec<_> = options.iter().map(String::as_str).collect();
        self.home.json(&[&["node", "run"], &*options].concat())
    }

    fn start_runner(&self, runner: &str) -> Value {
        let options = self.options(&format!("runners/{runner}.key"));
        let options: Vec<_> = options.iter().map(String::as_str).collect();
        self.home.json(&[&["runner", "start"], &*options].concat())
    }

    /// A command about one node.
    pub fn at(&self, node: &str, args: &[&str]) -> Value {
        self.home.json(&[&["--devnet", node], args].concat())
    }

    fn wait(&self, node: &str, more: u64) {
        let height = format!("+{more}");
        self.at(node, &["chain", "wait", &height, "--timeout", "60s"]);
    }

    fn run_job(&self, says: &str) {
        let args = ["job", "submit", "custom", "--wait", "--", "echo", says];
        let job = self.at("validator-0", &args);
        assert_eq!(job["result_text"], format!("{says}\n"), "{job}");
    }
}

fn utf8(path: &Path) -> &str {
    path.to_str().unwrap()
}

pub fn edit(file: &Path, edit: impl Fn(&str) -> String) {
    let text = fs::read_to_string(file).unwrap();
    fs::write(file, edit(&text)).unwrap();
}

#[test]
fn nodes_of_their_own_are_one_chain_and_survive_kills() {
    let apart = Apart::export();
    // One host by its name: the others look it up.
    edit(&apart.files.join("peers.yaml"), |text| text.replacen("127.0.0.1", "localhost", 2));
    for validator in ["validator-0", "validator-1", "validator-2"] {
        let started = apart.start(validator);
        assert_eq!((text(&started["name"]), text(&started["devnet"])), (validator, "apart"));
    }
    let twice = apart.options("validators/validator-1.key");
    let twice: Vec<_> = twice.iter().map(String::as_str).collect();
    let twice = apart.home.fails(8, &[&["node", "run"], &*twice].concat());
    assert!(twice.contains("`validator-1` is already running"), "{twice}");
    // Three of four decide, and the fourth catches up.
    apart.wait("validator-2", 3);
    apart.start("validator-3");
    for runner in ["left", "right"] {
        apart.start_runner(runner);
    }
    for runner in ["left", "right"] {
        wait_until("the runner is present", || {
            apart.at("validator-3", &["runner", "show", runner])["present"] == true
        });
    }
    let status = apart.at("validator-3", &["devnet", "status"]);
    assert_eq!(list(&status["validators"]).len(), 1, "{status}");
    wait_until("the runners are connected", || {
        let status = apart.at("validator-3", &["devnet", "status"]);
        list(&status["runners"]).iter().all(|runner| runner["status"] == "connected")
    });

    // A command signs with keys in the folder of the node that it asks.
    let account = apart.home.path("validator-0/accounts/dev-0.key");
    fs::copy(apart.files.join("accounts/dev-0.key"), account).unwrap();
    apart.run_job("together");

    // Killed nodes: the others go on without one, and each continues with its chain.
    for validator in ["validator-2", "validator-1", "validator-0"] {
        apart.home.kill(validator);
        apart.wait("validator-3", 4);
        apart.start(validator);
        let head = number(&apart.at("validator-3", &["chain", "head"])["height"]);
        apart.at(validator, &["chain", "wait", &head.to_string(), "--timeout", "60s"]);
    }
    for runner in ["left", "right"] {
        wait_until("the runner is present again", || {
            apart.at("validator-0", &["runner", "show", runner])["present"] == true
        });
    }
    apart.run_job("again");
    let height = number(&apart.at("validator-0", &["chain", "head"])["height"]).to_string();
    let hash = |node: &str| {
        apart.at(node, &["chain", "wait", &height, "--timeout", "60s"]);
        apart.at(node, &["chain", "block", &height])["hash"].clone()
    };
    let hashes: Vec<_> = (0..4).map(|index| hash(&format!("validator-{index}"))).collect();
    assert!(hashes.iter().all(|one| *one == hashes[0]), "{hashes:?}");

    // What a node says is verified with the genesis document in its folder.
    let verified = apart.at("validator-1", &["presence", "verify", "5"]);
    assert_eq!(verified["valid"], true, "{verified}");
    let deep = apart.home.run(&["--devnet", "validator-1", "doctor", "--deep"]);
    assert!(!deep.stdout.contains("problem"), "{deep:?}");

    // A fault at one node is that node's own.
    let cut = apart.at("validator-3", &["fault", "partition", "validator-3"]);
    assert!(cut.to_string().contains("validator-0"), "{cut}");
    apart.wait("validator-0", 5);
    let behind = number(&apart.at("validator-3", &["chain", "head"])["height"]);
    let head = number(&apart.at("validator-0", &["chain", "head"])["height"]);
    assert!(behind + 3 <= head, "{behind} {head}");
    apart.at("validator-3", &["fault", "heal"]);
    apart.at("validator-3", &["chain", "wait", &head.to_string(), "--timeout", "60s"]);

    for validator in ["validator-0", "validator-1", "validator-2", "validator-3"] {
        assert_eq!(apart.home.json(&["devnet", "down", validator])["how"], "gracefully");
    }
    shape::seen(&["devnet export nodes", "node run"]);
}

#[test]
fn a_node_in_the_foreground_ends_with_its_signal() {
    let apart = Apart::export();
    let options = apart.options("validators/validator-0.key");
    let options = options.iter().map(String::as_str).filter(|option| *option != "--detach");
    let args: Vec<_> = ["node", "run"].into_iter().chain(options).collect();
    let mut node = Foreground::of(apart.home.command(&args));
    wait_until("it answers", || apart.home.path("validator-0/devnet.json").exists());
    // Alone it decides nothing, and says so.
    let head = apart.at("validator-0", &["chain", "head"]);
    assert_eq!(number(&head["height"]), 0, "{head}");
    node.signal(Signal::TERM);
    let ended = node.ended();
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(!apart.home.path("validator-0/devnet.json").exists());
}

#[test]
fn what_is_no_node_of_the_chain_is_refused() {
    let apart = Apart::export();
    let home = &apart.home;
    let refused = |code, key: &str, change: &dyn Fn(&mut Vec<String>), says: &str| {
        let mut options = apart.options(key);
        change(&mut options);
        let options: Vec<_> = options.iter().map(String::as_str).collect();
        // With the place in a file, an error has more than three lines.
        let outcome = home.run(&[&["node", "run"], &*options].concat());
        assert_eq!(outcome.code, code, "{outcome:?}");
        assert!(outcome.stderr.contains(says), "{outcome:?}");
    };
    let own = "validators/validator-0.key";
    refused(3, "accounts/dev-0.key", &|_| {}, "no validator of the genesis document");
    refused(2, "validators/validator-9.key", &|_| {}, "there is no key file");
    let other = |find: &str, put: &str| {
        let (find, put, file) = (find.to_owned(), put.to_owned(), apart.file("other.yaml"));
        fs::copy(apart.file("peers.yaml"), &file).unwrap();
        edit(Path::new(&file), |text| text.replace(&find, &put));
        move |options: &mut Vec<String>| options[3].clone_from(&file)
    };
    refused(2, own, &other("validator-3", "validator-9"), "these are validator-0, validator-1");
    refused(2, own, &other("validator-3", "validator-2"), "`validator-2` is listed twice");
    refused(2, own, &other("p2p: 127.0.0.1", "p2p: 127.0.0"), "is not the name of a host");
    refused(2, own, &other("http://127.0.0.1", "http://127.0.0.1:x"), "is not an address of");
    refused(2, own, &other("http://127.0.0.1", "http://10.0.0.1"), "is open to all who reach it");
    refused(2, own, &other("http:", "https:"), "needs a certificate and a token");
    refused(2, own, &|options| options[1] = apart.file("peers.yaml"), "unknown field");

    // The folder of a node belongs to one chain, and is no devnet's.
    apart.start("validator-0");
    let up = home.fails(8, &["devnet", "up", "--detach", "--name", "validator-0"]);
    assert!(up.contains("already running"), "{up}");
    let snapshot = home.fails(2, &["--devnet", "validator-0", "devnet", "snapshot", "save"]);
    assert!(snapshot.contains("a snapshot is of a whole devnet"), "{snapshot}");
    let kill = home.fails(8, &["--devnet", "validator-0", "fault", "kill", "validator-1"]);
    assert!(kill.contains("`validator-1` runs in another process"), "{kill}");
    home.json(&["devnet", "down", "validator-0"]);
    let up = home.fails(8, &["devnet", "up", "--detach", "--name", "validator-0"]);
    assert!(up.contains("is a single node and not a devnet"), "{up}");
    let files = home.path("files-of-another");
    home.json(&["devnet", "export", "nodes", utf8(&files)]);
    refused(
        8,
        own,
        &|options| {
            for (place, name) in [(1, "genesis.json"), (3, "peers.yaml"), (5, own)] {
                options[place] = utf8(&files.join(name)).to_owned();
            }
        },
        "ended during startup",
    );
    let log = fs::read_to_string(home.path("validator-0/log/devnet.log")).unwrap();
    assert!(log.contains("the folder of a node of chain"), "{log}");

    // A runner asks a node for its registration.
    let peers = apart.file("peers.yaml");
    edit(Path::new(&peers), |text| {
        text.split_inclusive('\n').filter(|line| !line.contains("api:")).collect()
    });
    let options = apart.options("runners/left.key");
    let options: Vec<_> = options.iter().map(String::as_str).collect();
    let said = home.fails(2, &[&["runner", "start"], &*options].concat());
    assert!(said.contains("no validator has an `api`"), "{said}");
}

#[test]
fn a_runner_of_its_own_turns_to_another_node() {
    let apart = Apart::export();
    for validator in ["validator-0", "validator-1", "validator-2", "validator-3"] {
        apart.start(validator);
    }
    apart.wait("validator-0", 2);
    apart.start_runner("left");
    wait_until("the runner is present", || {
        apart.at("validator-3", &["runner", "show", "left"])["present"] == true
    });
    apart.home.json(&["devnet", "down", "validator-0"]);
    let log = || fs::read_to_string(apart.home.path("apart/processes/left/log")).unwrap();
    wait_until("it asks the next node", || log().contains("the next one is asked"));
    // The committee's validators stay the same, and so does the runner.
    apart.wait("validator-3", 20);
    let runner = apart.at("validator-3", &["runner", "show", "left"]);
    assert_eq!(runner["present"], true, "{runner}");
}
