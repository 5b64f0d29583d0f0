//! Validators and runners on several hosts: network namespaces with addresses of their own, joined
//! by a bridge in one more. Making them needs root; without it nothing is tested, and the test says
//! so.

use crate::{
    nodes::edit,
    support::{Home, Outcome, list, wait_until},
    timers::number,
};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::Value;
use std::{
    fs,
    io::Write as _,
    path::PathBuf,
    process::{self, Command},
};

/// Four hosts have a validator and a runner each, the last one has the other four runners.
const HOSTS: usize = 5;
const VALIDATORS: usize = 4;
const RUNNERS: usize = 8;

/// The namespaces of the hosts and of the bridge. Dropping them removes them.
struct Network {
    bridge: String,
    hosts: Vec<String>,
}

fn ip(args: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(args).output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

/// The host that peers know by name only, and that gets another address.
const MOVING: usize = 2;
const NAME: &str = "moving.test";
const MOVED: &str = "10.77.0.99";

fn address(host: usize) -> String {
    format!("10.77.0.{}", host + 1)
}

/// The host as `peers.yaml` and certificates have it.
fn known_as(host: usize) -> String {
    if host == MOVING { NAME.to_owned() } else { address(host) }
}

impl Network {
    /// Fails with the reason where namespaces cannot be made.
    fn make() -> Result<Self, String> {
        let name = |part: &str| format!("cowboy-{}-{part}", process::id());
        let hosts = (0..HOSTS).map(|host| name(&format!("h{host}"))).collect();
        let network = Self { bridge: name("bridge"), hosts };
        let bridge = network.bridge.as_str();
        ip(&["netns", "add", bridge])?;
        ip(&["-n", bridge, "link", "add", "br0", "type", "bridge"])?;
        ip(&["-n", bridge, "link", "set", "br0", "up"])?;
        for (host, namespace) in network.hosts.iter().enumerate() {
            let port = format!("port{host}");
            ip(&["netns", "add", namespace])?;
            let veth = ["link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns"];
            ip(&[&["-n", bridge], &veth[..], &[namespace]].concat())?;
            ip(&["-n", bridge, "link", "set", &port, "master", "br0", "up"])?;
            let own = format!("{}/24", address(host));
            ip(&["-n", namespace, "address", "add", &own, "dev", "eth0"])?;
            ip(&["-n", namespace, "link", "set", "eth0", "up"])?;
            ip(&["-n", namespace, "link", "set", "lo", "up"])?;
        }
        Ok(network)
    }

    /// Delays everything that a host sends by 40 ms; returns whether the kernel can.
    fn delay(&self) -> bool {
        self.hosts.iter().all(|namespace| {
            let netem = ["-n", namespace, "qdisc", "add", "dev", "eth0", "root", "netem"];
            let set = Command::new("tc").args(netem).args(["delay", "40ms"]).output();
            set.is_ok_and(|output| output.status.success())
        })
    }

    fn move_host(&self) {
        let (namespace, old) = (&self.hosts[MOVING], format!("{}/24", address(MOVING)));
        ip(&["-n", namespace, "address", "delete", &old, "dev", "eth0"]).unwrap();
        let new = format!("{MOVED}/24");
        ip(&["-n", namespace, "address", "add", &new, "dev", "eth0"]).unwrap();
    }

    fn link(&self, host: usize, state: &str) {
        ip(&["-n", &self.hosts[host], "link", "set", "eth0", state]).unwrap();
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for namespace in self.hosts.iter().chain([&self.bridge]) {
            // Absent if making it failed.
            let _ = ip(&["netns", "delete", namespace]);
        }
    }
}

/// Nodes on hosts. Its home is dropped first, which ends their processes.
struct Spread {
    home: Home,
    files: PathBuf,
    network: Network,
}

fn pem(label: &str, der: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", BASE64_STANDARD.encode(der))
}

impl Spread {
    fn export(network: Network) -> Self {
        let home = Home::new();
        let (topology, files) = (home.path("topology.yaml"), home.path("files"));
        let runners: Vec<_> =
            (0..RUNNERS).map(|index| format!("- {{ name: r{index}, kinds: [custom] }}")).collect();
        let text = format!(
            "name: spread\nchain: {{ block_time: 500ms }}\nrunners:\n{}\n",
            runners.join("\n")
        );
        fs::write(&topology, text).unwrap();
        let (topology, folder) = (topology.to_str().unwrap(), files.to_str().unwrap());
        home.json(&["devnet", "export", "nodes", folder, "-f", topology]);
        edit(&files.join("peers.yaml"), |_| {
            let place = |index| {
                let at = known_as(index);
                format!(
                    "- {{ name: validator-{index}, p2p: '{at}:9000', quic: '{at}:9001', api: \
                     'https://{at}:9002' }}\n"
                )
            };
            format!("validators:\n{}", (0..VALIDATORS).map(place).collect::<String>())
        });
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        fs::write(files.join("ca.pem"), pem("CERTIFICATE", ca.der())).unwrap();
        for index in 0..VALIDATORS {
            let key = KeyPair::generate().unwrap();
            let params = CertificateParams::new(vec![known_as(index)]).unwrap();
            let certificate = params.signed_by(&key, &ca).unwrap();
            let file = |end| files.join(format!("validators/validator-{index}.{end}"));
            fs::write(file("crt"), pem("CERTIFICATE", certificate.der())).unwrap();
            fs::write(file("tls"), pem("PRIVATE KEY", &key.serialize_der())).unwrap();
        }
        let spread = Self { home, files, network };
        spread.name(&address(MOVING));
        spread
    }

    /// Gives the host that is known by name this address.
    fn name(&self, address: &str) {
        // Written in place, because it is mounted.
        fs::write(self.home.path("hosts"), format!("127.0.0.1 localhost\n{address} {NAME}\n"))
            .unwrap();
    }

    fn file(&self, name: &str) -> String {
        self.files.join(name).to_str().unwrap().to_owned()
    }

    /// Runs a command on a host to its end.
    fn on(&self, host: usize, args: &[&str]) -> Outcome {
        let all = ["--output", "json"].iter().chain(args).copied().collect::<Vec<_>>();
        let hosts = self.home.path("hosts");
        let mount = "mount --bind \"$0\" /etc/hosts && exec \"$@\"";
        let exec = ["netns", "exec", &self.network.hosts[host], "unshare", "--mount"];
        let named = ["sh", "-c", mount, hosts.to_str().unwrap(), env!("CARGO_BIN_EXE_cowboyctl")];
        Outcome::of(&all, &mut self.home.command_of("ip", &[&exec[..], &named, &all].concat()))
    }

    fn json(&self, host: usize, args: &[&str]) -> Value {
        let outcome = self.on(host, args);
        assert_eq!(outcome.code, 0, "{args:?}: {outcome:?}");
        outcome.json()
    }

    /// A command about the validator of a host.
    fn at(&self, host: usize, args: &[&str]) -> Value {
        let node = format!("validator-{host}");
        self.json(host, &[&["--devnet", &node], args].concat())
    }

    fn start(&self, host: usize) {
        let file = |end: &str| self.file(&format!("validators/validator-{host}.{end}"));
        let (genesis, peers) = (self.file("genesis.json"), self.file("peers.yaml"));
        let (key, certificate, tls) = (file("key"), file("crt"), file("tls"));
        let token = self.file("api.token");
        let common = ["node", "run", "--detach", "--genesis", &genesis, "--peers", &peers];
        let own = ["--key-file", &key, "--tls-cert", &certificate, "--tls-key", &tls];
        self.json(host, &[&common[..], &own, &["--api-token-file", &token]].concat());
    }

    fn start_runner(&self, host: usize, runner: usize) {
        let (genesis, peers) = (self.file("genesis.json"), self.file("peers.yaml"));
        let key = self.file(&format!("runners/r{runner}.key"));
        let (token, ca) = (self.file("api.token"), self.file("ca.pem"));
        let common = ["runner", "start", "--detach", "--genesis", &genesis, "--peers", &peers];
        let own = ["--key-file", &key, "--api-token-file", &token, "--api-ca", &ca];
        self.json(host, &[&common[..], &own].concat());
    }

    fn height(&self, host: usize) -> u64 {
        number(&self.at(host, &["chain", "head"])["height"])
    }

    fn wait(&self, host: usize, height: &str) {
        self.at(host, &["chain", "wait", height, "--timeout", "60s"]);
    }

    fn present(&self, host: usize) -> usize {
        let runners = self.at(host, &["runner", "ls"]);
        list(&runners).iter().filter(|runner| runner["present"] == true).count()
    }

    fn run_job(&self, host: usize, says: &str) {
        let job = ["job", "submit", "custom", "--wait", "--", "echo", says];
        let job = self.at(host, &job);
        assert_eq!(job["result_text"], format!("{says}\n"), "{job}");
    }
}

#[test]
fn a_devnet_on_five_hosts_survives_a_cut_and_a_kill() {
    let network = match Network::make() {
        Ok(network) => network,
        Err(reason) => {
            let told = format!("not run: no network namespaces can be made here: {reason}");
            writeln!(std::io::stderr(), "{told}").unwrap();
            return;
        }
    };
    let spread = Spread::export(network);
    (0..VALIDATORS).for_each(|host| spread.start(host));
    for runner in 0..RUNNERS {
        spread.start_runner(if runner < VALIDATORS { runner } else { HOSTS - 1 }, runner);
    }
    wait_until("all runners are present", || spread.present(0) == RUNNERS);
    let account = spread.home.path("validator-0/accounts");
    fs::copy(spread.files.join("accounts/dev-0.key"), account.join("dev-0.key")).unwrap();
    if !spread.network.delay() {
        // Each node delays what it receives itself.
        for host in 0..VALIDATORS {
            let node = format!("validator-{host}");
            spread.at(host, &["fault", "latency", &node, "40ms"]);
        }
    }
    spread.run_job(0, "far");

    // One host is cut off: the others go on without its validator and its runner.
    spread.network.link(3, "down");
    wait_until("its runner is absent", || spread.present(0) == RUNNERS - 1);
    spread.wait(0, "+4");
    assert!(spread.height(3) + 3 < spread.height(0));
    spread.run_job(0, "without it");
    spread.network.link(3, "up");
    let head = spread.height(0).to_string();
    spread.wait(3, &head);
    wait_until("its runner is back", || spread.present(3) == RUNNERS);

    // One validator is killed, and continues with its chain at another address.
    spread.home.kill(&format!("validator-{MOVING}"));
    spread.wait(0, "+4");
    spread.run_job(0, "one less");
    spread.network.move_host();
    spread.name(MOVED);
    spread.start(MOVING);
    let head = spread.height(0).to_string();
    spread.wait(MOVING, &head);
    let log = || fs::read_to_string(spread.home.path("validator-3/log/devnet.log")).unwrap();
    wait_until("the others find it", || log().contains("a validator has moved"));
    wait_until("runners find it", || {
        let show = ["validator", "show", &format!("validator-{MOVING}")];
        let shown = spread.at(MOVING, &show);
        let count = |field: &str| list(&shown[field]).len();
        count("connected_runners") == count("subset_of")
    });
    let hash = |host| spread.at(host, &["chain", "block", &head])["hash"].clone();
    let expected = hash(0);
    for host in 1..VALIDATORS {
        spread.wait(host, &head);
        assert_eq!(hash(host), expected, "host {host}");
    }
}
