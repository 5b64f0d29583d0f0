//! Topology fields of governed parameters.

/// The field with a governed parameter's initial value, such as `timers.lane_timer_cycles`, for the
/// parameter's key on the chain, such as `system:cip5:lane_timer_cycles`. Other keys are returned
/// as they are.
pub fn field_of(key: &str) -> String {
    let Some((source, name)) = key.strip_prefix("system:").and_then(|key| key.split_once(':'))
    else {
        return key.to_owned();
    };
    let section = match source {
        "cip11" => "connectivity",
        "tasks" => "tasks",
        _ => "timers",
    };
    match name.strip_prefix("fairness_") {
        Some(name) => format!("{section}.fairness.{name}"),
        None => format!("{section}.{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cowboy_engine::timer::Governed;

    #[test]
    fn every_governed_parameter_has_a_field_in_the_template() {
        let template: serde_json::Value =
            serde_yaml::from_str(include_str!("template.yaml")).unwrap();
        let others = ["selection.seed", "migration.phase"];
        for key in Governed::KEYS.iter().map(|key| key.name).chain(others) {
            let pointer = format!("/{}", field_of(key).replace('.', "/"));
            assert!(template.pointer(&pointer).is_some(), "{key} is not at {pointer}");
        }
    }
}
