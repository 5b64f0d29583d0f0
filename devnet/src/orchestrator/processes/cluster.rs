//! The pods of a devnet's nodes, by the user's own `kubectl` and its context.
//!
//! The devnet's manifests are applied, and what they make is known by a label. Nodes start when
//! this process asks the pods' shells ([`RunMark`]). One watch tells of all pods. While the devnet
//! is down the cluster has nothing of it: a copy of the nodes' data is here.

use super::{
    containers::{COMMAND_LIMIT, steer_words},
    copies,
    pods::{self, SeenPods, follow_pods},
};
use crate::{
    api::{error::ApiError, steer::Steer},
    handout::{ClusterSite, ContainerDevnet, OWNER, RunMark, Supervision},
    home::DevnetHome,
    topology::Name,
    types::RunnerLoad,
};
use commonware_utils::sync::Mutex;
use cowboy_host::{
    duration::Plain,
    files::{self, create_private_dir, write_private},
    process::locate,
};
use cowboy_lease::runner::container::{AskError, Engine};
use serde::{Deserialize, Serialize};
use std::{
    env,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{process::Command, sync::watch, task::AbortHandle, time::timeout};

/// How long making or removing all objects may take.
const ALL_LIMIT: Duration = Duration::from_secs(120);
/// How long the copy of a node's data may take.
const COPY_LIMIT: Duration = Duration::from_secs(60);
/// The kinds of all objects that are made.
const KINDS: &str = "statefulsets,pods,services,secrets,configmaps,poddisruptionbudgets,\
                     networkpolicies,persistentvolumeclaims";
/// The record of where the objects are.
const RECORD: &str = "cluster.json";

/// A devnet's pods. Clones share them.
#[derive(Clone)]
pub(super) struct Cluster(Arc<ClusterInner>);

struct ClusterInner {
    kubectl: PathBuf,
    target: ClusterTarget,
    home: DevnetHome,
    site: Mutex<ClusterSite>,
    /// For whom the objects were made last.
    made: Mutex<Option<String>>,
    pods: watch::Receiver<SeenPods>,
    watching: AbortHandle,
    runs: AtomicU64,
}

/// Where a devnet's objects are: `cluster.json` in its folder for Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ClusterTarget {
    /// The user's own file; `None`: the usual one.
    kubeconfig: Option<String>,
    context: String,
    namespace: String,
    /// The value of the label of all objects.
    owner: String,
    /// The nodes by the number of their pod.
    validators: Vec<Name>,
    runners: Vec<Name>,
}

impl Drop for ClusterInner {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

impl ClusterTarget {
    /// Where the user's `kubectl` works now.
    async fn current(kubectl: &Path, mark: &Path) -> Result<Self, String> {
        let view = ["config", "view", "--minify", "--output", "json"];
        let told = Engine::run(kubectl, &view, mark, COMMAND_LIMIT).await;
        let told = told.map_err(|error| format!("kubectl has no context: {error}"))?;
        let no_context = || "kubectl has no context".to_owned();
        let ToldConfig { context, contexts } =
            serde_json::from_str(&told).map_err(|_| no_context())?;
        let namespace = contexts.into_iter().find(|one| one.name == context);
        let namespace = namespace.ok_or_else(no_context)?.context.namespace;
        // A list of files is taken from the environment again.
        let file = env::var("KUBECONFIG").ok().filter(|file| !file.is_empty());
        let file = file.filter(|file| !file.contains(':')).map(std::path::absolute).transpose();
        let file = file.map_err(|error| format!("KUBECONFIG: {error}"))?;
        Ok(Self {
            kubeconfig: file.map(|file| file.display().to_string()),
            validators: Vec::new(),
            runners: Vec::new(),
            context,
            namespace: namespace.unwrap_or_else(|| "default".to_owned()),
            owner: crate::home::new_token().chars().take(16).collect(),
        })
    }

    fn read(path: &Path) -> Result<Option<Self>, String> {
        let text = files::read_if_there(path).map_err(|error| error.to_string())?;
        let read = text.map(|text| serde_json::from_str(&text)).transpose();
        read.map_err(|error| format!("{}: {error}", path.display()))
    }

    /// The arguments with which all commands begin.
    fn words(&self) -> Vec<&str> {
        let file = self.kubeconfig.iter().flat_map(|file| ["--kubeconfig", file]);
        let place = ["--context", &self.context, "--namespace", &self.namespace];
        file.chain(place).collect()
    }

    fn write(&self, home: &DevnetHome) -> Result<(), String> {
        let text = serde_json::to_string_pretty(self).expect("a target is plain data");
        let path = home.kubernetes_path().join(RECORD);
        write_private(&path, &text).map_err(|error| error.to_string())
    }

    fn selector(&self) -> String {
        format!("{OWNER}={}", self.owner)
    }
}

fn kubectl() -> Result<PathBuf, String> {
    let path = env::var_os("PATH").unwrap_or_default();
    locate("kubectl", &path).ok_or_else(|| "no `kubectl` in PATH for `hosts: kubernetes`".into())
}

impl Cluster {
    /// The pods of a devnet, in the context of the user's `kubectl`. Those of an earlier run of it
    /// are removed.
    pub(super) async fn new(home: &DevnetHome) -> Result<Self, String> {
        remove_left(home).await?;
        let (kubectl, dir) = (kubectl()?, home.kubernetes_path());
        create_private_dir(&dir).map_err(|error| error.to_string())?;
        let target = ClusterTarget::current(&kubectl, home.path()).await?;
        let ClusterTarget { context, namespace, .. } = &target;
        tracing::info!(%context, %namespace, "pods of a cluster");
        Ok(Self::at(home, kubectl, target))
    }

    fn at(home: &DevnetHome, kubectl: PathBuf, target: ClusterTarget) -> Self {
        let dir = home.kubernetes_path();
        let site = ClusterSite {
            dir: dir.join("manifests"),
            devnet: home.name().clone(),
            validators: target.validators.clone(),
            runners: target.runners.clone(),
            supervision: Some(Supervision { owner: target.owner.clone(), keys: dir }),
        };
        let (sender, pods) = watch::channel(SeenPods::new());
        let (selector, printed) = (target.selector(), pods::PRINTED);
        let words = ["get", "pods", "--selector", &selector, "--watch", "--output", printed];
        let mut watch = Command::new(&kubectl);
        watch.args(target.words()).args(words);
        let watching = tokio::spawn(follow_pods(watch, sender));
        let (home, watching) = (home.clone(), watching.abort_handle());
        let (made, runs) = (Mutex::default(), AtomicU64::new(1));
        let site = Mutex::new(site);
        Self(Arc::new(ClusterInner { kubectl, target, home, site, made, pods, watching, runs }))
    }

    /// Makes the objects that are new, and changes those that are to be other ones.
    pub(super) async fn make(&self, devnet: &ContainerDevnet<'_>) -> Result<(), String> {
        let (site, now) = {
            let mut site = self.0.site.lock();
            let names = devnet.validators.iter().map(|one| one.name.clone());
            for name in names {
                if !site.validators.contains(&name) {
                    site.validators.push(name);
                }
            }
            site.runners = devnet.runners.iter().map(|one| one.name.clone()).collect();
            (site.clone(), devnet.peers(Name::to_string).to_yaml())
        };
        if self.0.made.lock().as_ref() == Some(&now) {
            return Ok(());
        }
        site.write(devnet).map_err(|error| error.to_string())?;
        let dir = site.dir.display().to_string();
        if self.0.made.lock().is_none() {
            self.refuse_others(&dir).await?;
        }
        // From here on there is something to remove.
        let target = self.0.target.clone();
        let ClusterSite { validators, runners, .. } = site;
        ClusterTarget { validators, runners, ..target }.write(&self.0.home)?;
        let apply = ["apply", "--filename", &dir];
        self.kubectl(&apply, ALL_LIMIT).await.map_err(|error| format!("kubectl apply: {error}"))?;
        *self.0.made.lock() = Some(now);
        Ok(())
    }

    /// Refuses to change what this devnet has not made.
    async fn refuse_others(&self, dir: &str) -> Result<(), String> {
        let ClusterTarget { owner, namespace, .. } = &self.0.target;
        let named = ["get", "--filename", dir, "--ignore-not-found", "--output", "name"];
        let selector = format!(
            "app.kubernetes.io/name=cowboyctl,app.kubernetes.io/instance={},{OWNER}!={owner}",
            self.0.home.name()
        );
        let alike = ["get", KINDS, "--selector", &selector, "--output", "name"];
        for asked in [&named[..], &alike[..]] {
            let there = self.kubectl(asked, COMMAND_LIMIT).await;
            let there = there.map_err(|error| format!("kubectl get: {error}"))?;
            if let Some(one) = there.lines().next() {
                return Err(format!(
                    "namespace `{namespace}` has {one}, which this devnet has not made: use \
                     another namespace, or another name with `--name`"
                ));
            }
        }
        Ok(())
    }

    /// Removes all objects of the devnet.
    pub(super) async fn remove(&self) -> Result<(), String> {
        let selector = self.0.target.selector();
        let delete = ["delete", KINDS, "--selector", &selector, "--ignore-not-found"];
        let said = self.kubectl(&delete, ALL_LIMIT).await;
        said.map_err(|error| format!("kubectl delete: {error}"))?;
        let record = self.0.home.kubernetes_path().join(RECORD);
        files::remove_file(&record).map_err(|error| error.to_string())
    }

    /// Copies the data of nodes that do not run from their pods to this machine.
    pub(super) async fn gather(&self) {
        let ClusterSite { validators, runners, .. } = self.0.site.lock().clone();
        let copies = validators.iter().chain(&runners).map(async |name| {
            let Some(pod) = self.pod(name) else { return };
            if let Err(error) = pod.gather().await {
                tracing::warn!(node = %name, %error, "its data is not copied");
            }
        });
        futures::future::join_all(copies).await;
    }

    pub(super) fn pod(&self, node: &Name) -> Option<Pod> {
        let site = self.0.site.lock();
        let name = site.pod(node)?;
        let is_validator = site.validators.contains(node);
        Some(Pod { cluster: self.clone(), node: node.clone(), name, is_validator })
    }

    /// The host name of a validator's pod among the pods.
    pub(super) fn host(&self, validator: &Name) -> Option<String> {
        self.0.site.lock().host(validator)
    }

    /// The certificate that the nodes' control APIs are verified with, PEM.
    pub(super) fn authority(&self) -> Result<Vec<u8>, String> {
        let supervision = self.0.site.lock().supervision.clone();
        let authority = supervision.map(|supervision| supervision.authority()).transpose();
        authority.map(Option::unwrap_or_default).map_err(|error| error.to_string())
    }

    pub(super) fn next_run(&self) -> u64 {
        self.0.runs.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn pods(&self) -> watch::Receiver<SeenPods> {
        self.0.pods.clone()
    }

    async fn kubectl(&self, args: &[&str], limit: Duration) -> Result<String, AskError> {
        let words = [&self.0.target.words(), args].concat();
        Engine::run(&self.0.kubectl, &words, self.0.home.path(), limit).await
    }

    /// A command that runs for longer, which ends when it is dropped.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.0.kubectl);
        command
            .args(self.0.target.words())
            .args(args)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        command
    }
}

/// One node's pod.
#[derive(Clone)]
pub(super) struct Pod {
    pub(super) cluster: Cluster,
    pub(super) node: Name,
    pub(super) name: String,
    pub(super) is_validator: bool,
}

impl Pod {
    /// Its container with the node.
    fn container(&self) -> &'static str {
        if self.is_validator { "validator" } else { "runner" }
    }

    /// Runs a command in its container.
    pub(super) async fn exec(&self, words: &[&str]) -> Result<String, AskError> {
        let begin = ["exec", &self.name, "--container", self.container(), "--"];
        self.cluster.kubectl(&[&begin[..], words].concat(), COMMAND_LIMIT).await
    }

    pub(super) async fn shell(&self, script: &str) -> Result<String, AskError> {
        self.exec(&["sh", "-c", script]).await
    }

    /// The command that prints its container's log from an instant on.
    pub(super) fn log(&self, since: Option<&str>) -> Command {
        let begin = ["logs", &self.name, "--container", self.container(), "--follow"];
        let since = since.map(|since| format!("--since-time={since}"));
        let since = since.as_deref().into_iter();
        let words: Vec<_> = begin.into_iter().chain(["--timestamps"]).chain(since).collect();
        self.cluster.command(&words)
    }

    /// The command that forwards a port of this machine to one of the pod's.
    pub(super) fn forward(&self, from: Option<u16>, to: u16) -> Command {
        let from = from.map(|port| port.to_string()).unwrap_or_default();
        let (pod, ports) = (format!("pod/{}", self.name), format!("{from}:{to}"));
        self.cluster.command(&["port-forward", &pod, &ports, "--address", "127.0.0.1"])
    }

    /// The folder of the pod's home that has the node's data, and the folder here with its copy.
    fn copy(&self) -> (&Name, PathBuf) {
        let home = &self.cluster.0.home;
        match self.is_validator {
            true => (&self.node, home.nodes_path()),
            false => {
                let runners = home.kubernetes_path().join("runners");
                (home.name(), runners.join(self.node.as_str()))
            }
        }
    }

    /// Copies the node's data to this machine. The node does not run.
    async fn gather(&self) -> Result<(), String> {
        let (folder, into) = self.copy();
        create_private_dir(&into).map_err(|error| error.to_string())?;
        let name = folder.as_str();
        let script = "cd \"$HOME\" && [ ! -d \"$0\" ] || tar -cf - \"$0\"";
        let begin = ["exec", &self.name, "--container", self.container(), "--"];
        let words = [&begin[..], &["sh", "-c", script, name]].concat();
        let mut process = self.cluster.command(&words).spawn().map_err(|e| e.to_string())?;
        let archive = process.stdout.take().ok_or("it prints nothing")?;
        let copied = copies::unpack(archive, &into, folder);
        timeout(COPY_LIMIT, copied).await.map_err(|_| late())??;
        let status = process.wait().await.map_err(|error| error.to_string())?;
        if status.success() { Ok(()) } else { Err(format!("kubectl exec: {status}")) }
    }

    /// Copies the node's data into a pod that has none.
    pub(super) async fn restore(&self) -> Result<(), String> {
        let (folder, from) = self.copy();
        if !from.join(folder.as_str()).is_dir() {
            return Ok(());
        }
        let there = self.shell(&format!("[ ! -d \"$HOME/{folder}\" ] || echo there")).await;
        if there.map_err(|error| error.to_string())? == "there" {
            return Ok(());
        }
        let begin = ["exec", "--stdin", &self.name, "--container", self.container(), "--"];
        // Whole or not at all.
        let script = "cd \"$HOME\" && rm -rf .copy && mkdir .copy && tar -C .copy -xf - && \
                      mv \".copy/$0\" . && rmdir .copy";
        let words = [&begin[..], &["sh", "-c", script, folder.as_str()]].concat();
        let mut command = self.cluster.command(&words);
        let spawned = command.stdin(Stdio::piped()).spawn();
        let mut process = spawned.map_err(|error| error.to_string())?;
        let archive = process.stdin.take().ok_or("it reads nothing")?;
        let copied = async {
            copies::pack(&from, folder, archive).await?;
            process.wait().await.map_err(|error| error.to_string())
        };
        let status = timeout(COPY_LIMIT, copied).await.map_err(|_| late())??;
        if status.success() { Ok(()) } else { Err(format!("its data is not copied: {status}")) }
    }

    /// Changes the capacity of the runner in it by its own command, `None` if that does not answer.
    pub(super) async fn steer(&self, steer: &Steer) -> Option<Result<RunnerLoad, ApiError>> {
        if let Steer::Answer(..) = steer {
            let what = "runners in containers and pods take no answers by hand";
            let hint = "use a runner of the devnet's process, or one in a process of its own";
            return Some(Err(ApiError::conflict(what).hint(hint)));
        }
        let mut load = None;
        for command in steer_words(&self.name, steer) {
            let devnet = self.cluster.0.home.name().as_str();
            let begin = ["cowboyctl", "--devnet", devnet, "--output", "json", "runner"];
            let command = command.iter().map(String::as_str);
            let words: Vec<_> = begin.into_iter().chain(command).collect();
            match self.exec(&words).await {
                Ok(said) => load = serde_json::from_str(&said).ok(),
                Err(error) => return Some(Err(ApiError::conflict(error.to_string()))),
            }
        }
        load.map(Ok)
    }
}

fn late() -> String {
    format!("not copied within {}", Plain(COPY_LIMIT))
}

/// Removes the pods that a killed devnet has left, and copies the nodes' data first.
pub(super) async fn remove_left(home: &DevnetHome) -> Result<(), String> {
    let record = home.kubernetes_path().join(RECORD);
    let Some(target) = ClusterTarget::read(&record)? else { return Ok(()) };
    let cluster = Cluster::at(home, kubectl()?, target);
    let ClusterTarget { validators, runners, .. } = &cluster.0.target;
    let nodes = validators.iter().chain(runners);
    let ends = nodes.filter_map(|node| cluster.pod(node)).map(async |pod| {
        // An error: there is no such pod.
        let _ = pod.shell(&RunMark::end()).await;
    });
    futures::future::join_all(ends).await;
    cluster.gather().await;
    cluster.remove().await
}

#[derive(Deserialize)]
struct ToldConfig {
    #[serde(rename = "current-context")]
    context: String,
    contexts: Vec<ToldContext>,
}

#[derive(Deserialize)]
struct ToldContext {
    name: String,
    context: ToldNamespace,
}

#[derive(Deserialize)]
struct ToldNamespace {
    namespace: Option<String>,
}
