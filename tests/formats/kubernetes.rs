//! Manifests of `devnet export kubernetes`, by the schemas that Kubernetes publishes.
//!
//! `COWBOYCTL_PYTHON` (default: `python3`) names a Python with `tests/formats/requirements.txt`.
//! Without one the schemas are not checked, and standard error says so; one that is named must have
//! them.

use cowboy_devnet::{
    handout::{ClusterSite, ContainerDevnet, GenesisDocument, ManifestError, OWNER, Supervision},
    orchestrator::genesis::genesis,
    topology::{Overrides, Plan, Topology},
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::Path,
    process::{Command, Stdio},
};

/// The oldest and the newest version of Kubernetes whose schemas are checked.
const VERSIONS: [&str; 2] = ["1.33", "1.37"];

fn plan(topology: &str) -> Plan {
    let parsed = Topology::parse(topology, "devnet.yaml").expect("it is a topology");
    parsed.resolve(&Overrides::default(), topology, "devnet.yaml").expect("it is a plan")
}

fn write(topology: &str, dir: &Path) -> Result<(), ManifestError> {
    let plan = plan(topology);
    let document = GenesisDocument::of(&plan, genesis(&plan));
    let devnet = ContainerDevnet::of(&plan, &document);
    ClusterSite::new(&devnet, dir.to_owned()).write(&devnet)
}

/// All objects of a folder, by kind and name.
fn objects(dir: &Path) -> BTreeMap<(String, String), Value> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(dir).expect("it is written") {
        let path = entry.expect("it can be read").path();
        if path.is_file() {
            let text = fs::read_to_string(&path).expect("it can be read");
            for part in serde_yaml::Deserializer::from_str(&text) {
                let object: Value = serde::Deserialize::deserialize(part).expect("it is YAML");
                let word = |value: &Value| value.as_str().expect("it is a text").to_owned();
                all.insert((word(&object["kind"]), word(&object["metadata"]["name"])), object);
            }
        }
    }
    all
}

const TOPOLOGY: &str = "name: range\nhosts: compose\nimage: registry.example/cowboyctl:1.0\nvalidators:\n\
    - {name: alpha, memory: 512MB}\n- {name: beta, memory: 512MB}\n\
    - {name: gamma, memory: 512MB}\n- {name: delta, memory: 512MB}\n\
    runners:\n- name: worker\n  executors:\n    llm: {base_url: 'http://models/v1', \
    models: {small: real}, api_key_env: MODEL_KEY}\n- name: other\n  executors:\n    \
    llm: {base_url: 'http://models/v1', models: {small: real}, api_key_env: MODEL_KEY}\n";

#[test]
fn the_objects_refer_to_each_other() {
    let folder = tempfile::tempdir().unwrap();
    write(TOPOLOGY, folder.path()).unwrap();
    let all = objects(folder.path());
    let names: BTreeSet<_> = all.keys().map(|(kind, name)| format!("{kind} {name}")).collect();
    let expected = [
        "ConfigMap range-chain",
        "ConfigMap range-executors",
        "NetworkPolicy range-runner",
        "NetworkPolicy range-validator",
        "PodDisruptionBudget range-validator",
        "Secret range-api",
        "Secret range-runner",
        "Secret range-validator",
        "Service range-runner",
        "Service range-validator",
        "StatefulSet range-runner",
        "StatefulSet range-validator",
    ];
    assert_eq!(names, expected.map(str::to_owned).into());
    let get = |kind: &str, name: &str| &all[&(kind.to_owned(), name.to_owned())];

    // Nodes reach each other by the names of their pods, for which certificates and keys are.
    let peers = get("ConfigMap", "range-chain")["data"]["peers.yaml"].as_str().unwrap();
    assert!(peers.contains("p2p: range-validator-3.range-validator:9000"), "{peers}");
    assert!(peers.contains("api: https://range-validator-0.range-validator:9002"), "{peers}");
    let keys = get("Secret", "range-validator")["stringData"].as_object().unwrap();
    assert!(keys.contains_key("range-validator-2.key"), "{:?}", keys.keys());
    let set = &get("StatefulSet", "range-validator")["spec"];
    assert_eq!((&set["replicas"], &set["serviceName"]), (&4.into(), &"range-validator".into()));
    let pod = &set["template"]["spec"];
    assert_eq!(pod["containers"][0]["resources"]["limits"]["memory"], "512000000");
    assert_eq!(pod["containers"][0]["image"], "registry.example/cowboyctl:1.0");
    assert_eq!(pod["automountServiceAccountToken"], false);
    let budget = get("PodDisruptionBudget", "range-validator");
    assert_eq!(budget["spec"]["maxUnavailable"], 1, "three of four are a quorum");
    let runner = &get("StatefulSet", "range-runner")["spec"]["template"]["spec"]["containers"][0];
    let text = runner.to_string();
    assert!(text.contains("/etc/executors/$(POD_NAME).yaml"), "{text}");
    assert!(text.contains(r#""name":"MODEL_KEY""#) && !text.contains("\"worker\""), "{text}");

    // A secret is in Secrets only.
    let plan = plan(TOPOLOGY);
    let secret = hex::encode(plan.key(&"alpha".parse().unwrap()).to_bytes());
    for ((kind, name), object) in &all {
        let has = object.to_string().contains(&secret);
        assert_eq!(has, kind == "Secret" && name == "range-validator", "{kind} {name}");
    }
}

/// By its label a devnet's process finds and removes all that it has made.
#[test]
fn all_that_a_devnets_process_makes_has_its_label() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(TOPOLOGY);
    let document = GenesisDocument::of(&plan, genesis(&plan));
    let devnet = ContainerDevnet::of(&plan, &document);
    let (manifests, keys) = (folder.path().join("manifests"), folder.path().to_owned());
    let supervision = Supervision { owner: "0123456789abcdef".to_owned(), keys };
    let mut site = ClusterSite::new(&devnet, manifests.clone());
    site.supervision = Some(supervision);
    // A validator that has left keeps its number.
    site.validators.insert(1, "left".parse().unwrap());
    site.write(&devnet).unwrap();
    let all = objects(&manifests);
    assert_eq!(all.len(), 12);
    let owner = |metadata: &Value| metadata["labels"][OWNER] == "0123456789abcdef";
    for ((kind, name), object) in &all {
        assert!(owner(&object["metadata"]), "{kind} {name}");
    }
    let get = |kind: &str, name: &str| &all[&(kind.to_owned(), name.to_owned())];
    let set = &get("StatefulSet", "range-validator")["spec"];
    assert!(owner(&set["template"]["metadata"]), "pods");
    assert!(owner(&set["volumeClaimTemplates"][0]["metadata"]), "volumes");
    assert_eq!((&set["replicas"], &set["updateStrategy"]["type"]), (&5.into(), &"OnDelete".into()));
    assert_eq!(set["template"]["spec"]["containers"][0]["command"][0], "sh");
    assert_eq!(site.pod(&"beta".parse().unwrap()).as_deref(), Some("range-validator-2"));
    let peers = get("ConfigMap", "range-chain")["data"]["peers.yaml"].as_str().unwrap();
    assert!(peers.contains("p2p: range-validator-2.range-validator:9000"), "{peers}");
    assert!(!peers.contains("range-validator-1."), "{peers}");

    // A pod's node goes on with its authority and its token.
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let before = (read("ca.pem"), read("api.token"));
    site.write(&devnet).unwrap();
    assert_eq!((read("ca.pem"), read("api.token")), before);
}

#[test]
fn what_pods_cannot_have_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |nodes: &str, says: &str| {
        let topology = format!("hosts: compose\nvalidators:\n{nodes}");
        let error = write(&topology, folder.path()).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    };
    refused("- {name: a}\n- {name: b, cpus: '0'}\n", "`b` has `cpus`, which a pod does not have");
    refused("- {name: a}\n- {name: b, memory: 1GB}\n", "`a` and `b` are run differently");
    refused("- {name: a, binary: ./x}\n", "`a` has a `binary`");

    // A topology for a cluster says so where it is written.
    let text = "hosts: kubernetes\nvalidators:\n- {name: a}\n- {name: b, cpus: '0'}\n";
    let topology = Topology::parse(text, "devnet.yaml").unwrap();
    let error = topology.resolve(&Overrides::default(), text, "devnet.yaml").unwrap_err();
    let said = error.to_string();
    assert!(said.contains("devnet.yaml:4") && said.contains("a pod does not have it"), "{said}");
}

#[test]
fn manifests_are_as_kubernetes_publishes_its_objects() {
    let python = env::var("COWBOYCTL_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let mut command = Command::new(&python);
    command.args(["-c", "import kubernetes_validate"]).stdin(Stdio::null());
    if !command.stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        assert!(env::var_os("COWBOYCTL_PYTHON").is_none(), "{python} has no kubernetes-validate");
        eprintln!("no Python with kubernetes-validate: the schemas are not checked");
        return;
    }
    for (topology, runners) in [(TOPOLOGY, 2), ("validators: 1\nrunners: 0\n", 0)] {
        let folder = tempfile::tempdir().unwrap();
        write(topology, folder.path()).unwrap();
        let files = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let files: Vec<_> = files.filter(|path| path.is_file()).collect();
        assert_eq!(files.len(), 7, "{runners} runners");
        for version in VERSIONS {
            let output = Command::new(&python)
                .args(["-m", "kubernetes_validate", "--strict", "-k", version])
                .args(&files)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{version}: {said}");
        }
    }
}
