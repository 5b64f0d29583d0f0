//! The OpenAPI document, built from the table of routes and the types of their answers.

use super::route::{Route, TOKEN};
use crate::types::ErrorBody;
use cowboy_host::http::{
    JSON,
    openapi::{Components, Document, reference},
};
use utoipa::{
    ToSchema,
    openapi::{
        Content, ObjectBuilder, OpenApi, Ref, RefOr, Schema, response::ResponseBuilder,
        schema::Type,
    },
};

const DOCUMENT: Document = Document {
    title: "The control API of a Cowboy devnet",
    description: "Amounts are decimal strings of wei, byte strings 0x-hex, heights and counts \
                  numbers, times RFC 3339.",
    prefix: "/v1/",
    success: "Success",
    tokens: &[(TOKEN, "The text of the devnet's `token` file")],
    parameter: |name| (describe(name), text()),
    refusal: |_, _| {
        let error = RefOr::<Schema>::Ref(Ref::from_schema_name(ErrorBody::name()));
        let content = Content::new(Some(error));
        ResponseBuilder::new().description("Failure").content(JSON, content).build()
    },
};

pub(super) fn document(table: Vec<Route>) -> OpenApi {
    let mut components = Components::new();
    reference::<ErrorBody>(&mut components);
    let routes = table
        .into_iter()
        .map(|Route { method, path, operation, .. }| (method, path, operation.refuses("default")));
    DOCUMENT.build(components, routes)
}

pub(super) fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

fn describe(name: &str) -> &'static str {
    match name {
        "height" => "A height, or `latest`",
        "hash" => "A transaction's hash: 0x and 64 hex digits",
        "id" => "A job's id: 0x and 64 hex digits; or `latest`",
        "timer" => "A timer's id, or enough of its beginning: 0x and hex digits; or `latest`",
        "actor" => "An actor's address, or enough of its beginning: 0x and hex digits",
        "fault" => "A fault's number, or a node by name or address",
        "kind" => "A job kind, as `custom`",
        "subject" => "The kind of entry to prove, as `timer`",
        _ => "A name of this devnet, or an address: 0x and 40 hex digits",
    }
}
