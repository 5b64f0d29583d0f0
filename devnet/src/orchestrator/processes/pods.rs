//! What a cluster tells of a devnet's pods: one watch of `kubectl` for all of them.

use serde::Deserialize;
use std::{collections::BTreeMap, net::IpAddr, process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    process::Command,
    sync::watch,
    time::sleep,
};

/// What the watch prints of each pod: its name, its id, when it began to be deleted, and its status
/// as JSON. `kubectl` replaces tabs.
pub(super) const PRINTED: &str = concat!(
    r#"jsonpath={.metadata.name}{"|"}{.metadata.uid}{"|"}{.metadata.deletionTimestamp}{"|"}"#,
    r#"{.status}{"\n"}"#,
);
/// The pause before a watch, a log or a forwarded port that has ended begins again.
pub(super) const AGAIN: Duration = Duration::from_millis(500);
/// The longest line of the watch, in bytes.
const MAX_WATCHED: u64 = 1 << 20;
/// Why a container waits, if it will not run by itself.
const TROUBLES: [&str; 6] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "ErrImageNeverPull",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CrashLoopBackOff",
];

/// The pods by name.
pub(super) type SeenPods = BTreeMap<String, SeenPod>;

/// What has been told of a pod last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SeenPod {
    /// Another one for each pod of the same name, and for each start of its container.
    pub(super) life: (String, u32),
    pub(super) address: Option<IpAddr>,
    /// Its container runs.
    pub(super) running: bool,
    /// Why it does not run, if something has gone wrong.
    pub(super) trouble: Option<String>,
    /// How its container ended before.
    pub(super) ended: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodStatus {
    #[serde(rename = "podIP")]
    address: Option<String>,
    #[serde(default)]
    conditions: Vec<PodCondition>,
    #[serde(default)]
    init_container_statuses: Vec<PodContainer>,
    #[serde(default)]
    container_statuses: Vec<PodContainer>,
}

#[derive(Deserialize)]
struct PodCondition {
    r#type: String,
    status: String,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodContainer {
    restart_count: u32,
    state: PodState,
    last_state: PodState,
}

#[derive(Deserialize, Default)]
struct PodState {
    running: Option<serde_json::Value>,
    waiting: Option<PodReason>,
    terminated: Option<PodReason>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodReason {
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
    exit_code: Option<i32>,
}

/// Follows the watch that this command is, as long as there is a receiver.
pub(super) async fn follow_pods(mut command: Command, pods: watch::Sender<SeenPods>) {
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.kill_on_drop(true);
    while !pods.is_closed() {
        match command.spawn() {
            Ok(mut process) => {
                if let Some(stdout) = process.stdout.take() {
                    let mut reader = BufReader::new(stdout);
                    loop {
                        let mut line = String::new();
                        let read = (&mut reader).take(MAX_WATCHED).read_line(&mut line).await;
                        if !matches!(read, Ok(1..)) {
                            break;
                        }
                        let told = read_pod(line.trim_end());
                        pods.send_if_modified(|pods| told.is_some_and(|told| apply(pods, told)));
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "kubectl"),
        }
        sleep(AGAIN).await;
    }
}

/// Notes what was told; returns whether it is news. A pod that is being deleted is gone.
fn apply(pods: &mut SeenPods, (name, pod): (String, Option<SeenPod>)) -> bool {
    match pod {
        Some(pod) => pods.insert(name, pod.clone()) != Some(pod),
        None => pods.remove(&name).is_some(),
    }
}

/// Reads a line of the watch. `None` for a pod that is being deleted.
fn read_pod(line: &str) -> Option<(String, Option<SeenPod>)> {
    let mut parts = line.splitn(4, '|');
    let (name, id) = (parts.next()?.to_owned(), parts.next()?.to_owned());
    let (deleted, status) = (parts.next()?, parts.next()?);
    if !deleted.is_empty() {
        return Some((name, None));
    }
    let told: PodStatus = serde_json::from_str(status).ok()?;
    let container = told.container_statuses.first();
    let waiting = told.init_container_statuses.iter().chain(container);
    let waiting = waiting.filter_map(|container| container.state.waiting.as_ref());
    let stuck = waiting.filter(|one| TROUBLES.contains(&one.reason.as_str())).map(explained).next();
    let mut conditions = told.conditions.iter();
    let unscheduled = conditions.find(|one| one.r#type == "PodScheduled" && one.status == "False");
    let unscheduled = unscheduled.map(|one| format!("it has no place: {}", one.message));
    let ended = container.and_then(|container| container.last_state.terminated.as_ref());
    let pod = SeenPod {
        life: (id, container.map_or(0, |container| container.restart_count)),
        address: told.address.and_then(|address| address.parse().ok()),
        running: container.is_some_and(|container| container.state.running.is_some()),
        trouble: stuck.or(unscheduled),
        ended: ended.map(explained),
    };
    Some((name, Some(pod)))
}

fn explained(told: &PodReason) -> String {
    let code = told.exit_code.map(|code| format!(" with code {code}")).unwrap_or_default();
    let message =
        if told.message.is_empty() { String::new() } else { format!(": {}", told.message) };
    format!("{}{code}{message}", told.reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(deleted: &str, status: &str) -> String {
        format!("local-validator-0|u-1|{deleted}|{status}")
    }

    #[test]
    fn a_pod_runs_waits_or_is_gone() {
        let running = r#"{"podIP":"10.0.0.7","containerStatuses":[{"restartCount":2,
            "state":{"running":{"startedAt":"x"}},"lastState":{"terminated":
            {"exitCode":137,"reason":"OOMKilled"}}}],"phase":"Running"}"#;
        let (name, pod) = read_pod(&line("", running)).unwrap();
        let expected = SeenPod {
            life: ("u-1".to_owned(), 2),
            address: Some([10, 0, 0, 7].into()),
            running: true,
            trouble: None,
            ended: Some("OOMKilled with code 137".to_owned()),
        };
        assert_eq!((name.as_str(), &pod), ("local-validator-0", &Some(expected)));

        let mut pods = SeenPods::new();
        assert!(apply(&mut pods, (name.clone(), pod.clone())), "it is new");
        assert!(!apply(&mut pods, (name.clone(), pod)), "nothing has changed");
        let (_, gone) = read_pod(&line("2026-11-28T10:54:08Z", running)).unwrap();
        assert!(apply(&mut pods, (name.clone(), gone)) && pods.is_empty(), "it is being deleted");

        let waiting = |reason: &str| {
            let status = format!(
                r#"{{"initContainerStatuses":[{{"restartCount":0,"lastState":{{}},"state":
                {{"waiting":{{"reason":"{reason}","message":"not found"}}}}}}]}}"#
            );
            read_pod(&line("", &status)).unwrap().1.unwrap()
        };
        assert_eq!(waiting("ErrImagePull").trouble.as_deref(), Some("ErrImagePull: not found"));
        assert_eq!(waiting("PodInitializing").trouble, None);
        let nowhere =
            r#"{"conditions":[{"type":"PodScheduled","status":"False","message":"0/1"}]}"#;
        let pod = read_pod(&line("", nowhere)).unwrap().1.unwrap();
        assert_eq!(pod.trouble.as_deref(), Some("it has no place: 0/1"));
        for malformed in ["", "{}", "a|b", "a|b||", "a|b||{"] {
            assert_eq!(read_pod(malformed), None, "{malformed}");
        }
    }
}
