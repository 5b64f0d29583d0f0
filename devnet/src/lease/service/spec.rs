//! A job as anybody may see it, and as its runner gets it.

use crate::lease::messages::{EnvValue, GrantedSpec, JobSpec};
use std::{collections::BTreeMap, mem};

/// What stands in the place of a secret's value.
const MASK: &str = "***";

/// A job as anybody may see it, and the values of its secrets.
pub(super) fn without_secrets(mut spec: JobSpec) -> (JobSpec, BTreeMap<String, String>) {
    let mut secrets = BTreeMap::new();
    for (name, value) in &mut spec.env {
        if let EnvValue::Secret { secret } = value {
            secrets.insert(name.clone(), mem::replace(secret, MASK.to_owned()));
        }
    }
    (spec, secrets)
}

/// A job as its runner gets it.
pub(super) fn with_secrets(spec: JobSpec, mut secrets: BTreeMap<String, String>) -> GrantedSpec {
    let mut secret_env = Vec::new();
    let env = spec.env.into_iter().map(|(name, value)| {
        let value = match value {
            EnvValue::Plain(value) => value,
            EnvValue::Secret { .. } => {
                secret_env.push(name.clone());
                secrets.remove(&name).unwrap_or_default()
            }
        };
        (name, value)
    });
    let env = env.collect();
    GrantedSpec {
        name: spec.name,
        workdir: spec.workdir.unwrap_or_else(|| ".".to_owned()),
        image: spec.image,
        steps: spec.steps,
        env,
        secret_env,
        needs: spec.needs.into_iter().chain(spec.artifacts_of).collect(),
        artifacts: spec.artifacts,
        caches: spec.caches,
    }
}
