//! The OpenAPI document against the routes.

use super::fixture::*;
use crate::api::{openapi, routes};
use serde_json::Value;
use std::collections::BTreeSet;

fn document() -> Value {
    serde_json::to_value(openapi::document(routes::table(true))).unwrap()
}

/// Method and path of each operation.
fn operations(document: &Value) -> BTreeSet<(String, String)> {
    let paths = document["paths"].as_object().unwrap();
    let operation = |(path, item): (&String, &Value)| {
        let methods: Vec<String> = item.as_object().unwrap().keys().cloned().collect();
        methods.into_iter().map(|method| (method.to_uppercase(), path.clone())).collect::<Vec<_>>()
    };
    paths.iter().flat_map(operation).collect()
}

#[test]
fn every_route_is_in_the_document_and_the_reverse() {
    let table = routes::table(true);
    let routes: BTreeSet<_> =
        table.iter().map(|route| (route.method.to_string(), route.path.to_owned())).collect();
    assert_eq!(routes.len(), table.len(), "a route is in the table twice");
    assert_eq!(operations(&document()), routes);
}

#[tokio::test]
async fn every_operation_of_the_served_document_has_a_route() {
    let devnet = Devnet::new().await;
    let served: Value = devnet.get("/openapi.json").await.json().await.unwrap();
    assert_eq!(served, document());
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    for (method, path) in operations(&served) {
        let url = format!("{}{}", devnet.url, path.replace(['{', '}'], "-"));
        let response = client.request(method.parse().unwrap(), url).send().await.unwrap();
        assert_ne!(response.status(), 405, "{method} {path}");
        if response.status() == 404 {
            let text = response.text().await.unwrap();
            assert!(!text.contains(&format!("there is no {method} /")), "{text}");
        }
    }
}

#[test]
fn parameters_references_and_tokens_are_complete() {
    let document = document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"").skip(1) {
        let name = reference.split('"').next().unwrap();
        let name = name.strip_prefix("#/components/schemas/").expect("references are to schemas");
        assert!(schemas.contains_key(name), "{name}");
    }
    for (method, path) in operations(&document) {
        let operation = &document["paths"][&path][method.to_lowercase()];
        assert!(operation["summary"].is_string(), "{path}");
        let named: BTreeSet<_> = operation["parameters"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|parameter| parameter["in"] == "path")
            .map(|parameter| parameter["name"].as_str().unwrap())
            .collect();
        let in_path: BTreeSet<_> =
            path.split('/').filter_map(|s| s.strip_prefix('{')?.strip_suffix('}')).collect();
        assert_eq!(named, in_path, "{path}");
        let changes = method != "GET" && path.starts_with("/v1/") && !path.ends_with("/dry-run");
        assert_eq!(operation["security"].is_array(), changes, "{path}");
        assert!(operation["responses"]["default"].is_object(), "{path}");
    }
}

#[test]
fn what_actors_make_is_any_json() {
    let schemas = &document()["components"]["schemas"];
    let value = &schemas["StateEntry"]["properties"]["value"];
    assert!(value.get("type").is_none() && value.get("$ref").is_none(), "{value}");
    assert_eq!(schemas["DryRun"]["properties"]["result"]["type"], Value::Null);
}
