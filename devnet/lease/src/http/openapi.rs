//! The OpenAPI document, built from the table of routes and the types of their messages.

use super::{
    Context, Route,
    error::Refused,
    extract::{Access, Asked, Takes},
};
use crate::messages::{ErrorBody, LEASE_HEADER, LOG_BYTES_HEADER, LOG_ENDED_HEADER, StaleLease};
use axum::{
    body::Bytes,
    http::{Method, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use cowboy_host::{
    http::{
        JSON,
        openapi::{Components, Document, Operation, bytes, parameter, reference},
    },
    openmetrics,
};
use std::sync::{Arc, LazyLock};
use utoipa::{
    ToSchema,
    openapi::{
        self, Content, ObjectBuilder, OpenApi, Ref, RefOr, Required, Schema,
        header::HeaderBuilder,
        path::{Parameter, ParameterIn},
        response::ResponseBuilder,
        schema::{OneOfBuilder, Type},
    },
};

const OPERATOR: &str = "operator";
const RUNNER: &str = "runner";

const DOCUMENT: Document = Document {
    title: "Leases: jobs for runners",
    description: "Times are RFC 3339, durations in seconds. Unknown fields are ignored.",
    prefix: "/api/v1/",
    success: "What was asked for",
    tokens: &[(OPERATOR, "The operator's token"), (RUNNER, "The runner's own token")],
    parameter: describe,
    refusal,
};

pub(super) fn file_answer() -> ResponseBuilder {
    let (kind, content) = bytes();
    ResponseBuilder::new().description("The bytes").content(kind, content)
}

pub(super) fn log_answer() -> ResponseBuilder {
    let header = |kind, description| {
        let schema = ObjectBuilder::new().schema_type(kind);
        HeaderBuilder::new().schema(Some(schema)).description(Some(description)).build()
    };
    file_answer()
        .description("The bytes from the offset on, as many as one answer has")
        .header(LOG_BYTES_HEADER, header(Type::Integer, "Length of the log in bytes"))
        .header(LOG_ENDED_HEADER, header(Type::Boolean, "Whether the log is complete"))
}

pub(super) fn metrics_answer() -> ResponseBuilder {
    let schema = ObjectBuilder::new().schema_type(Type::String);
    let content = Content::new(Some(RefOr::<Schema>::from(schema)));
    ResponseBuilder::new().description("The metrics").content(openmetrics::CONTENT_TYPE, content)
}

pub(super) fn lease_header() -> Parameter {
    let schema = text("^[!-~]+$", 128);
    let description = "The active lease: a secret";
    parameter(LEASE_HEADER, ParameterIn::Header, Required::True, description, schema)
}

fn described(route: &Route) -> Operation {
    let operation = route.operation.clone();
    let mut refusals = vec![405, 413, 500, 503];
    if route.takes == Takes::Message {
        refusals.push(408);
    }
    if operation.has_input() || route.path.contains("{*") {
        refusals.push(400);
    }
    // An empty path parameter makes another path.
    if route.path.contains('{') {
        refusals.push(404);
    }
    let operation = match route.access {
        Access::Public => operation,
        Access::Operator => operation.refuses(401).token(OPERATOR),
        Access::Runner => operation.refuses(401).refuses(403).token(RUNNER),
    };
    refusals.into_iter().fold(operation, Operation::refuses)
}

fn refusal(status: &str, token: Option<&str>) -> openapi::Response {
    let error = Ref::from_schema_name(ErrorBody::name());
    let stale = Ref::from_schema_name(StaleLease::name());
    let schema: RefOr<Schema> = if status == "409" && token == Some(RUNNER) {
        OneOfBuilder::new().item(stale).item(error).into()
    } else {
        error.into()
    };
    ResponseBuilder::new().description("Why not").content(JSON, Content::new(Some(schema))).build()
}

/// A text of 1 to `most` characters that matches a pattern.
fn text(pattern: &str, most: usize) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(pattern))
        .min_length(Some(1))
        .max_length(Some(most))
}

fn describe(name: &str) -> (&'static str, ObjectBuilder) {
    match name {
        "run" => ("A run's id", text("^run_[0-9a-f]+$", 128)),
        "job" => ("A job's id", text("^job_[0-9a-f]+$", 128)),
        "schedule" => ("A schedule's id", text("^sched_[0-9a-f]+$", 128)),
        "runner" => ("A runner's id", text("^[A-Za-z0-9._:-]+$", 128)),
        "attempt" => (
            "The number of an attempt, from 1",
            ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(100)),
        ),
        "key" => ("A cache's key; a `/` in it needs no escaping", text("^[^\\x00]+$", 512)),
        _ => (
            "An artifact's name: a relative path; a `/` in it needs no escaping",
            text("^(?!(.*/)?[.]{0,2}(/|$))[^\\x00-\\x1f\\x7f-\\x9f\\\\]+$", 200),
        ),
    }
}

pub(super) fn table() -> Vec<Route> {
    let operation = Operation::new("This document").any();
    vec![Route::new(Method::GET, "/openapi.json", Access::Public, show).documented(operation)]
}

async fn show(_: Arc<Context>, _: Asked) -> Result<Response, Refused> {
    Ok(([(CONTENT_TYPE, JSON)], json()).into_response())
}

/// The document as JSON. It is built once, because building it takes longer than most requests.
fn json() -> Bytes {
    static TEXT: LazyLock<Bytes> = LazyLock::new(|| {
        serde_json::to_vec(&document()).expect("the document is plain data").into()
    });
    TEXT.clone()
}

pub(super) fn document() -> OpenApi {
    let mut components = Components::new();
    reference::<ErrorBody>(&mut components);
    reference::<StaleLease>(&mut components);
    let routes = super::table();
    let routes = routes.iter().map(|route| (route.method.clone(), route.path, described(route)));
    DOCUMENT.build(components, routes)
}
