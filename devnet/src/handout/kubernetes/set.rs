//! A set of pods: validators or runners.

use super::{ManifestError, OWNER, marks::KEEPER};
use crate::{
    handout::containers::{API_PORT, ContainerDevnet, HOME, OWN, P2P_PORT, QUIC_PORT, SHARED},
    topology::{Name, ProcessPlan, Size},
};
use k8s_openapi::{
    api::{
        apps::v1::{
            StatefulSet, StatefulSetPersistentVolumeClaimRetentionPolicy as RetentionPolicy,
            StatefulSetSpec, StatefulSetUpdateStrategy,
        },
        core::v1::{
            Capabilities, ConfigMapVolumeSource, Container, ContainerPort, EmptyDirVolumeSource,
            EnvVar, EnvVarSource, ObjectFieldSelector, PersistentVolumeClaim,
            PersistentVolumeClaimSpec, PodSecurityContext, PodSpec, PodTemplateSpec, Probe,
            ResourceRequirements, SeccompProfile, SecretKeySelector, SecretVolumeSource,
            SecurityContext, Service, ServicePort, ServiceSpec, TCPSocketAction, Volume,
            VolumeMount, VolumeResourceRequirements,
        },
        networking::v1::{
            NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort,
            NetworkPolicySpec,
        },
        policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec},
    },
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{LabelSelector, ObjectMeta},
        util::intstr::IntOrString,
    },
};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;

/// The user of the image.
const USER: i64 = 10_001;
/// Where an init container has all secret keys.
const KEYS: &str = "/run/keys";
/// The size of a node's volume.
const VOLUME: &str = "8Gi";

/// The names and labels of a devnet's objects.
#[derive(Clone, Copy)]
pub(super) struct ObjectScope<'a> {
    pub(super) devnet: &'a str,
    /// The value of the label [`OWNER`] of each, if a devnet's process makes them.
    pub(super) owner: Option<&'a str>,
}

/// The nodes of one kind: a set of pods.
pub(super) struct NodeSet<'a> {
    devnet: &'a ContainerDevnet<'a>,
    scope: &'a ObjectScope<'a>,
    /// `validator` or `runner`.
    kind: &'static str,
    count: usize,
    process: ProcessPlan,
}

impl ObjectScope<'_> {
    pub(super) fn meta(&self, kind: &str) -> ObjectMeta {
        ObjectMeta { name: Some(format!("{}-{kind}", self.devnet)), ..self.labelled(kind) }
    }

    /// The labels of an object of this kind, without a name.
    fn labelled(&self, kind: &str) -> ObjectMeta {
        let owner = self.owner.map(|owner| (OWNER.to_owned(), owner.to_owned()));
        let labels = labels(self.devnet, kind).into_iter().chain(owner).collect();
        ObjectMeta { labels: Some(labels), ..ObjectMeta::default() }
    }
}

fn labels(devnet: &str, kind: &str) -> BTreeMap<String, String> {
    let labels = [
        ("app.kubernetes.io/name", "cowboyctl"),
        ("app.kubernetes.io/instance", devnet),
        ("app.kubernetes.io/component", kind),
    ];
    labels.map(|(label, value)| (label.to_owned(), value.to_owned())).into()
}

fn selector(devnet: &str, kind: &str) -> LabelSelector {
    LabelSelector { match_labels: Some(labels(devnet, kind)), ..LabelSelector::default() }
}

/// A mounted volume: its name, the path in the container, and whether it can be written.
fn mount(name: &str, path: &str, writable: bool) -> VolumeMount {
    VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        read_only: (!writable).then_some(true),
        ..VolumeMount::default()
    }
}

fn memory(medium: Option<&str>) -> Option<EmptyDirVolumeSource> {
    let medium = medium.map(str::to_owned);
    Some(EmptyDirVolumeSource { medium, ..EmptyDirVolumeSource::default() })
}

impl<'a> NodeSet<'a> {
    /// As many pods as `count`, for these nodes.
    pub(super) fn of(
        devnet: &'a ContainerDevnet<'a>,
        scope: &'a ObjectScope<'a>,
        kind: &'static str,
        count: usize,
        nodes: Vec<(&Name, &ProcessPlan)>,
    ) -> Result<Self, ManifestError> {
        let process = nodes.first().map_or_else(ProcessPlan::default, |(_, plan)| (*plan).clone());
        for (name, plan) in &nodes {
            let fields = [
                ("a `binary`", plan.binary.is_some()),
                ("`cpus`", plan.cpus.is_some()),
                ("`core_dumps`", plan.core_dumps),
            ];
            if let Some((field, _)) = fields.into_iter().find(|(_, given)| *given) {
                return Err(ManifestError::NotForPods { node: (*name).clone(), field });
            }
            if **plan != process {
                let one = nodes[0].0.clone();
                return Err(ManifestError::Unlike { one, other: (*name).clone() });
            }
        }
        Ok(Self { devnet, scope, kind, count, process })
    }

    fn devnet(&self) -> &str {
        self.scope.devnet
    }

    fn name(&self) -> String {
        format!("{}-{}", self.devnet(), self.kind)
    }

    fn is_validator(&self) -> bool {
        self.kind == "validator"
    }

    /// A headless service: each pod has a name of its own. Pods need each other to become ready.
    pub(super) fn service(&self) -> Service {
        let port = |name: &str, port: u16, protocol: &str| ServicePort {
            name: Some(name.to_owned()),
            port: port.into(),
            protocol: Some(protocol.to_owned()),
            ..ServicePort::default()
        };
        let ports = [
            port("p2p", P2P_PORT, "TCP"),
            port("quic", QUIC_PORT, "UDP"),
            port("api", API_PORT, "TCP"),
        ];
        Service {
            metadata: self.scope.meta(self.kind),
            spec: Some(ServiceSpec {
                cluster_ip: Some("None".to_owned()),
                publish_not_ready_addresses: Some(true),
                ports: self.is_validator().then(|| ports.into()),
                selector: Some(labels(self.devnet(), self.kind)),
                ..ServiceSpec::default()
            }),
            ..Service::default()
        }
    }

    pub(super) fn set(&self) -> StatefulSet {
        let resources = VolumeResourceRequirements {
            requests: Some([("storage".to_owned(), Quantity(VOLUME.to_owned()))].into()),
            ..VolumeResourceRequirements::default()
        };
        let claim = PersistentVolumeClaim {
            metadata: ObjectMeta {
                name: Some("data".to_owned()),
                ..self.scope.labelled(self.kind)
            },
            spec: Some(PersistentVolumeClaimSpec {
                access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
                resources: Some(resources),
                ..PersistentVolumeClaimSpec::default()
            }),
            ..PersistentVolumeClaim::default()
        };
        let delete = || Some("Delete".to_owned());
        StatefulSet {
            metadata: self.scope.meta(self.kind),
            spec: Some(StatefulSetSpec {
                replicas: i32::try_from(self.count).ok(),
                service_name: Some(self.name()),
                pod_management_policy: Some("Parallel".to_owned()),
                selector: selector(self.devnet(), self.kind),
                persistent_volume_claim_retention_policy: Some(RetentionPolicy {
                    when_deleted: delete(),
                    when_scaled: delete(),
                }),
                volume_claim_templates: Some(vec![claim]),
                template: PodTemplateSpec {
                    metadata: Some(self.scope.labelled(self.kind)),
                    spec: Some(self.pod_spec()),
                },
                // A validator that joins is no reason to stop the others.
                update_strategy: self.scope.owner.map(|_| StatefulSetUpdateStrategy {
                    type_: Some("OnDelete".to_owned()),
                    ..StatefulSetUpdateStrategy::default()
                }),
                ..StatefulSetSpec::default()
            }),
            ..StatefulSet::default()
        }
    }

    fn pod_spec(&self) -> PodSpec {
        let seccomp =
            SeccompProfile { type_: "RuntimeDefault".to_owned(), ..SeccompProfile::default() };
        PodSpec {
            automount_service_account_token: Some(false),
            enable_service_links: Some(false),
            termination_grace_period_seconds: Some(15),
            security_context: Some(PodSecurityContext {
                run_as_non_root: Some(true),
                run_as_user: Some(USER),
                run_as_group: Some(USER),
                fs_group: Some(USER),
                seccomp_profile: Some(seccomp),
                ..PodSecurityContext::default()
            }),
            init_containers: Some(vec![self.key_container()]),
            containers: vec![self.container()],
            volumes: Some(self.volumes()),
            ..PodSpec::default()
        }
    }

    /// Copies the pod's own keys into files of its user's.
    fn key_container(&self) -> Container {
        let files = if self.is_validator() { "key tls.key tls.crt" } else { "key" };
        let copy = format!(
            "umask 077 && for file in {files}; do cat \"{KEYS}/$POD_NAME.$file\" >\"{OWN}/$file\" \
             || exit 1; done"
        );
        Container {
            name: "key".to_owned(),
            command: Some(["sh", "-c", &copy].map(str::to_owned).into()),
            volume_mounts: Some(vec![mount("keys", KEYS, false), mount("own", OWN, true)]),
            ..self.base()
        }
    }

    fn container(&self) -> Container {
        let mut arguments = match self.devnet.validators.first().filter(|_| self.is_validator()) {
            Some(validator) => self.devnet.arguments(validator),
            None => {
                self.devnet.runners.first().map(|runner| runner.arguments()).unwrap_or_default()
            }
        };
        let mut mounts = vec![
            mount("chain", &format!("{SHARED}/genesis.json"), false),
            mount("chain", &format!("{SHARED}/peers.yaml"), false),
            mount("chain", &format!("{SHARED}/ca.pem"), false),
            mount("api", &format!("{SHARED}/api.token"), false),
        ];
        for mount in &mut mounts {
            mount.sub_path = mount.mount_path.rsplit('/').next().map(str::to_owned);
        }
        mounts.extend([
            mount("own", OWN, false),
            mount("data", HOME, true),
            mount("tmp", "/tmp", true),
        ]);
        if !self.is_validator() {
            // Each pod's own name, and its own settings.
            for argument in &mut arguments {
                if self.devnet.runners.iter().any(|runner| runner.name.as_str() == argument) {
                    "$(POD_NAME)".clone_into(argument);
                } else if argument.ends_with("/executors.yaml") {
                    *argument = "/etc/executors/$(POD_NAME).yaml".to_owned();
                }
            }
            mounts.push(mount("executors", "/etc/executors", false));
        }
        let port = |name: &str, port: u16, protocol: &str| ContainerPort {
            name: Some(name.to_owned()),
            container_port: port.into(),
            protocol: Some(protocol.to_owned()),
            ..ContainerPort::default()
        };
        let ports = [
            port("p2p", P2P_PORT, "TCP"),
            port("quic", QUIC_PORT, "UDP"),
            port("api", API_PORT, "TCP"),
        ];
        let probe = Probe {
            tcp_socket: Some(TCPSocketAction {
                port: IntOrString::String("api".to_owned()),
                ..TCPSocketAction::default()
            }),
            period_seconds: Some(5),
            ..Probe::default()
        };
        let quantity = |kind: &str, amount: String| (kind.to_owned(), Quantity(amount));
        let limit = self.process.memory.map(|Size(bytes)| quantity("memory", bytes.to_string()));
        let requests = [quantity("cpu", "100m".to_owned()), quantity("memory", "128Mi".to_owned())];
        let keeper = ["sh", "-c", KEEPER, "cowboyctl"].map(str::to_owned);
        Container {
            name: self.kind.to_owned(),
            command: self.scope.owner.map(|_| keeper.into()),
            args: Some(arguments),
            ports: self.is_validator().then(|| ports.into()),
            readiness_probe: self.is_validator().then_some(probe),
            resources: Some(ResourceRequirements {
                requests: Some(requests.into()),
                limits: limit.map(|limit| [limit].into()),
                ..ResourceRequirements::default()
            }),
            volume_mounts: Some(mounts),
            ..self.base()
        }
    }

    /// What the containers of a pod have in common.
    fn base(&self) -> Container {
        let field =
            ObjectFieldSelector { field_path: "metadata.name".to_owned(), api_version: None };
        let own_name = EnvVar {
            name: "POD_NAME".to_owned(),
            value_from: Some(EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() }),
            ..EnvVar::default()
        };
        let plain = |name: &str, value: &str| EnvVar {
            name: name.to_owned(),
            // `$(NAME)` is a variable of the manifest.
            value: Some(value.replace("$(", "$$(")),
            ..EnvVar::default()
        };
        let own = [own_name, plain("COWBOYCTL_HOME", HOME), plain("HOME", HOME)];
        let given = self.process.env.iter().map(|(name, value)| plain(name, value));
        // A Secret of the cluster's own may have it.
        let llm = self.devnet.runners.iter().filter(|_| !self.is_validator());
        let llm = llm.filter_map(|runner| runner.executors.llm.as_ref()?.api_key_env.as_ref());
        let key = llm.map(|variable| EnvVar {
            name: variable.as_str().to_owned(),
            value_from: Some(EnvVarSource {
                secret_key_ref: Some(SecretKeySelector {
                    name: format!("{}-env", self.devnet()),
                    key: variable.as_str().to_owned(),
                    optional: Some(true),
                }),
                ..EnvVarSource::default()
            }),
            ..EnvVar::default()
        });
        let mut variables: Vec<_> = own.into_iter().chain(given).collect();
        for variable in key {
            if variables.iter().all(|known| known.name != variable.name) {
                variables.push(variable);
            }
        }
        let drop = Capabilities { drop: Some(vec!["ALL".to_owned()]), ..Capabilities::default() };
        Container {
            image: Some(self.devnet.image.to_string()),
            // By default one without a tag is fetched even where it is.
            image_pull_policy: Some("IfNotPresent".to_owned()),
            env: Some(variables),
            security_context: Some(SecurityContext {
                allow_privilege_escalation: Some(false),
                read_only_root_filesystem: Some(true),
                capabilities: Some(drop),
                ..SecurityContext::default()
            }),
            ..Container::default()
        }
    }

    fn volumes(&self) -> Vec<Volume> {
        let named = |name: &str| Volume { name: name.to_owned(), ..Volume::default() };
        let config = |name: &str| {
            Some(ConfigMapVolumeSource {
                name: format!("{}-{name}", self.devnet()),
                ..ConfigMapVolumeSource::default()
            })
        };
        let secret = |name: String| SecretVolumeSource {
            secret_name: Some(name),
            default_mode: Some(0o440),
            ..SecretVolumeSource::default()
        };
        let mut volumes = vec![
            Volume { config_map: config("chain"), ..named("chain") },
            Volume { secret: Some(secret(format!("{}-api", self.devnet()))), ..named("api") },
            Volume { secret: Some(secret(self.name())), ..named("keys") },
            Volume { empty_dir: memory(Some("Memory")), ..named("own") },
            Volume { empty_dir: memory(None), ..named("tmp") },
        ];
        if !self.is_validator() {
            volumes.push(Volume { config_map: config("executors"), ..named("executors") });
        }
        volumes
    }

    /// As many validators may be away as leave a quorum.
    pub(super) fn disruption(&self) -> PodDisruptionBudget {
        let most = i32::try_from(self.count.saturating_sub(1) / 3).unwrap_or(i32::MAX);
        PodDisruptionBudget {
            metadata: self.scope.meta(self.kind),
            spec: Some(PodDisruptionBudgetSpec {
                max_unavailable: Some(IntOrString::Int(most)),
                selector: Some(selector(self.devnet(), self.kind)),
                ..PodDisruptionBudgetSpec::default()
            }),
            ..PodDisruptionBudget::default()
        }
    }

    /// Validators hear each other, the runners, and pods that carry a label; runners hear none.
    pub(super) fn network(&self) -> NetworkPolicy {
        let peer = |labels: BTreeMap<String, String>| NetworkPolicyPeer {
            pod_selector: Some(LabelSelector {
                match_labels: Some(labels),
                ..LabelSelector::default()
            }),
            ..NetworkPolicyPeer::default()
        };
        let port = |port: u16, protocol: &str| NetworkPolicyPort {
            port: Some(IntOrString::Int(port.into())),
            protocol: Some(protocol.to_owned()),
            ..NetworkPolicyPort::default()
        };
        let rule =
            |from, ports| NetworkPolicyIngressRule { from: Some(vec![from]), ports: Some(ports) };
        let devnet = self.devnet();
        let guest = [("cowboyctl/devnet".to_owned(), devnet.to_owned())];
        let rules = vec![
            rule(peer(labels(devnet, "validator")), vec![port(P2P_PORT, "TCP")]),
            rule(
                peer(labels(devnet, "runner")),
                vec![port(QUIC_PORT, "UDP"), port(API_PORT, "TCP")],
            ),
            rule(
                NetworkPolicyPeer {
                    namespace_selector: Some(LabelSelector::default()),
                    ..peer(guest.into())
                },
                vec![port(API_PORT, "TCP")],
            ),
        ];
        NetworkPolicy {
            metadata: self.scope.meta(self.kind),
            spec: Some(NetworkPolicySpec {
                pod_selector: Some(selector(devnet, self.kind)),
                policy_types: Some(vec!["Ingress".to_owned()]),
                ingress: Some(if self.is_validator() { rules } else { Vec::new() }),
                ..NetworkPolicySpec::default()
            }),
        }
    }

    /// For clusters with the Prometheus operator, whose kinds are not Kubernetes' own.
    pub(super) fn monitor(&self) -> impl Serialize {
        let devnet = self.devnet();
        json!({
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "ServiceMonitor",
            "metadata": self.scope.meta(self.kind),
            "spec": {
                "selector": { "matchLabels": labels(devnet, self.kind) },
                "endpoints": [{
                    "port": "api",
                    "path": "/metrics",
                    "scheme": "https",
                    "authorization": {
                        "credentials": { "name": format!("{devnet}-api"), "key": "api.token" },
                    },
                    "tlsConfig": {
                        "ca": { "configMap": { "name": format!("{devnet}-chain"), "key": "ca.pem" } },
                        "serverName": self.name(),
                    },
                }],
            },
        })
    }
}
