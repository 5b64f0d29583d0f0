//! The OpenAPI document, built from the table of routes and the types of their messages.

use super::{
    Context, Route,
    error::Refused,
    extract::{Access, Asked, Takes},
};
use crate::{
    api::openapi::{Components, reference},
    http::JSON,
    lease::messages::{ErrorBody, LEASE_HEADER, LOG_BYTES_HEADER, LOG_ENDED_HEADER, StaleLease},
    openmetrics,
};
use axum::{
    body::Bytes,
    http::{Method, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};
use utoipa::{
    IntoParams, ToSchema,
    openapi::{
        self, ComponentsBuilder, Content, HttpMethod, InfoBuilder, ObjectBuilder, OpenApi,
        OpenApiBuilder, PathItem, PathsBuilder, Ref, RefOr, Required, Schema,
        header::HeaderBuilder,
        path::{Operation as Built, OperationBuilder, Parameter, ParameterBuilder, ParameterIn},
        request_body::RequestBodyBuilder,
        response::ResponseBuilder,
        schema::{ArrayBuilder, OneOfBuilder, Type},
        security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
    },
};

/// Names of the security schemes for tokens.
const OPERATOR: &str = "operator";
const RUNNER: &str = "runner";
const BYTES: &str = "application/octet-stream";

/// The documentation of a route.
#[derive(Clone)]
pub(super) struct Operation {
    summary: &'static str,
    parameters: Vec<Parameter>,
    body: Option<(&'static str, Content)>,
    answers: Vec<(u16, openapi::Response)>,
    /// Statuses of refusals that do not follow from the kind of route.
    refusals: Vec<u16>,
    components: Components,
}

impl Operation {
    /// An operation without answers; the methods below add them.
    pub const fn new(summary: &'static str) -> Self {
        Self {
            summary,
            parameters: Vec::new(),
            body: None,
            answers: Vec::new(),
            refusals: Vec::new(),
            components: Vec::new(),
        }
    }

    fn answer(mut self, status: u16, answer: ResponseBuilder) -> Self {
        self.answers.push((status, answer.build()));
        self
    }

    /// Adds a JSON answer.
    pub fn one<T: ToSchema>(mut self, status: u16) -> Self {
        let schema = RefOr::<Schema>::Ref(reference::<T>(&mut self.components));
        self.answer(
            status,
            described("What was asked for").content(JSON, Content::new(Some(schema))),
        )
    }

    /// Adds a JSON array as answer.
    pub fn many<T: ToSchema>(mut self) -> Self {
        let items = reference::<T>(&mut self.components);
        let schema: RefOr<Schema> = ArrayBuilder::new().items(RefOr::Ref(items)).into();
        self.answer(200, described("What was asked for").content(JSON, Content::new(Some(schema))))
    }

    /// Adds an arbitrary JSON object as answer.
    pub fn any(self) -> Self {
        let schema: RefOr<Schema> = ObjectBuilder::new().into();
        self.answer(200, described("What was asked for").content(JSON, Content::new(Some(schema))))
    }

    /// Adds an answer without a body.
    pub fn nothing(self, status: u16, description: &str) -> Self {
        self.answer(status, described(description))
    }

    /// Adds the metrics as answer.
    pub fn text(self) -> Self {
        let schema: RefOr<Schema> = ObjectBuilder::new().schema_type(Type::String).into();
        let content = Content::new(Some(schema));
        self.answer(200, described("The metrics").content(openmetrics::CONTENT_TYPE, content))
    }

    /// Adds a file as answer.
    pub fn file(self) -> Self {
        self.answer(200, described("The bytes").content(BYTES, bytes()))
    }

    /// Adds a part of a log as answer.
    pub fn log(self) -> Self {
        let header =
            |kind| HeaderBuilder::new().schema(Some(ObjectBuilder::new().schema_type(kind)));
        let answer = described("The bytes from the offset on, as many as one answer has")
            .content(BYTES, bytes())
            .header(
                LOG_BYTES_HEADER,
                header(Type::Integer).description(Some("Length of the log in bytes")).build(),
            )
            .header(
                LOG_ENDED_HEADER,
                header(Type::Boolean).description(Some("Whether the log is complete")).build(),
            );
        self.answer(200, answer)
    }

    /// Adds query parameters.
    pub fn query<Q: IntoParams>(mut self) -> Self {
        self.parameters.extend(Q::into_params(|| Some(ParameterIn::Query)));
        self
    }

    /// Adds the header with the lease.
    pub fn lease_header(mut self) -> Self {
        let schema = ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some("^[!-~]+$"))
            .min_length(Some(1))
            .max_length(Some(128));
        let header = ParameterBuilder::new()
            .name(LEASE_HEADER)
            .parameter_in(ParameterIn::Header)
            .required(Required::True)
            .description(Some("The active lease: a secret"))
            .schema(Some(schema));
        self.parameters.push(header.build());
        self
    }

    /// Adds a message as request body.
    pub fn body<T: ToSchema>(mut self) -> Self {
        let schema = RefOr::<Schema>::Ref(reference::<T>(&mut self.components));
        self.body = Some((JSON, Content::new(Some(schema))));
        self
    }

    /// Adds bytes as request body.
    pub fn bytes(mut self) -> Self {
        self.body = Some((BYTES, bytes()));
        self
    }

    /// Adds a status of refusals.
    pub fn refuses(mut self, status: u16) -> Self {
        self.refusals.push(status);
        self
    }

    fn build(self, path: &str, access: Access, takes: Takes) -> (Built, Components) {
        let Self { summary, parameters, body, answers, mut refusals, components } = self;
        let in_path: Vec<_> = in_path(path).map(path_parameter).collect();
        // An empty path parameter makes another path.
        refusals.extend([405, 413, 500, 503]);
        if takes == Takes::Message {
            refusals.push(408);
        }
        if body.is_some() || !parameters.is_empty() || path.contains("{*") {
            refusals.push(400);
        }
        if !in_path.is_empty() {
            refusals.push(404);
        }
        match access {
            Access::Public => {}
            Access::Operator => refusals.push(401),
            Access::Runner => refusals.extend([401, 403]),
        }
        refusals.sort_unstable();
        refusals.dedup();
        refusals.retain(|refusal| answers.iter().all(|(status, _)| status != refusal));
        let mut operation = OperationBuilder::new()
            .summary(Some(summary))
            .tag(tag(path))
            .parameters(Some(in_path.into_iter().chain(parameters)))
            .request_body(body.map(|(kind, content)| {
                RequestBodyBuilder::new()
                    .content(kind, content)
                    .required(Some(Required::True))
                    .build()
            }));
        for (status, answer) in answers {
            operation = operation.response(status.to_string(), answer);
        }
        for status in refusals {
            operation = operation.response(status.to_string(), refusal(status, access));
        }
        let token = match access {
            Access::Public => return (operation.build(), components),
            Access::Operator => OPERATOR,
            Access::Runner => RUNNER,
        };
        (operation.security(SecurityRequirement::new(token, [""; 0])).build(), components)
    }
}

fn described(description: &str) -> ResponseBuilder {
    ResponseBuilder::new().description(description)
}

fn bytes() -> Content {
    Content::new(None::<RefOr<Schema>>)
}

fn refusal(status: u16, access: Access) -> openapi::Response {
    let error = RefOr::<Schema>::Ref(Ref::from_schema_name(ErrorBody::name()));
    let stale = RefOr::<Schema>::Ref(Ref::from_schema_name(StaleLease::name()));
    let schema = if status == 409 && access == Access::Runner {
        OneOfBuilder::new().item(stale).item(error).into()
    } else {
        error
    };
    described("Why not").content(JSON, Content::new(Some(schema))).build()
}

/// The names of the parameters in a path.
fn in_path(path: &str) -> impl Iterator<Item = &str> {
    let parameters = path.split('/').filter_map(|step| step.strip_prefix('{')?.strip_suffix('}'));
    parameters.map(|name| name.trim_start_matches('*'))
}

fn path_parameter(name: &str) -> Parameter {
    let text = |pattern, most| {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(pattern)
            .min_length(Some(1))
            .max_length(Some(most))
    };
    let (description, schema) = match name {
        "run" => ("A run's id", text(Some("^run_[0-9a-f]+$"), 128)),
        "job" => ("A job's id", text(Some("^job_[0-9a-f]+$"), 128)),
        "schedule" => ("A schedule's id", text(Some("^sched_[0-9a-f]+$"), 128)),
        "runner" => ("A runner's id", text(Some("^[A-Za-z0-9._:-]+$"), 128)),
        "attempt" => (
            "The number of an attempt, from 1",
            ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(100)),
        ),
        "key" => ("A cache's key; a `/` in it needs no escaping", text(Some("^[^\\x00]+$"), 512)),
        _ => (
            "An artifact's name: a relative path; a `/` in it needs no escaping",
            text(Some("^(?!(.*/)?[.]{0,2}(/|$))[^\\x00-\\x1f\\x7f-\\x9f\\\\]+$"), 200),
        ),
    };
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some(description))
        .schema(Some(schema))
        .build()
}

/// The OpenAPI tag of a path: its noun.
fn tag(path: &str) -> &str {
    let path = path.strip_prefix("/api/v1/").unwrap_or(path).trim_start_matches('/');
    path.split('/').next().unwrap_or(path)
}

pub(super) fn table() -> Vec<Route> {
    let operation = Operation::new("This document").any();
    vec![Route::new(Method::GET, "/openapi.json", Access::Public, show, operation)]
}

async fn show(_: Arc<Context>, _: Asked) -> Result<Response, Refused> {
    Ok(([(CONTENT_TYPE, JSON)], text()).into_response())
}

/// The document as JSON. It is built once, because building it takes longer than most requests.
fn text() -> Bytes {
    static TEXT: LazyLock<Bytes> = LazyLock::new(|| {
        serde_json::to_vec(&document()).expect("the document is plain data").into()
    });
    TEXT.clone()
}

pub(super) fn document() -> OpenApi {
    let mut components = Components::new();
    reference::<ErrorBody>(&mut components);
    reference::<StaleLease>(&mut components);
    let mut items: BTreeMap<String, PathItem> = BTreeMap::new();
    for route in super::table() {
        let (operation, named) = route.operation.build(route.path, route.access, route.takes);
        components.extend(named);
        let method = match route.method {
            Method::POST => HttpMethod::Post,
            Method::PUT => HttpMethod::Put,
            Method::DELETE => HttpMethod::Delete,
            _ => HttpMethod::Get,
        };
        let item = PathItem::new(method, operation);
        match items.get_mut(&route.path.replace("{*", "{")) {
            Some(known) => known.merge_operations(item),
            None => {
                items.insert(route.path.replace("{*", "{"), item);
            }
        }
    }
    let paths =
        items.into_iter().fold(PathsBuilder::new(), |paths, (path, item)| paths.path(path, item));
    let bearer = |description: &str| {
        let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer);
        SecurityScheme::Http(scheme.description(Some(description)).build())
    };
    OpenApiBuilder::new()
        .info(
            InfoBuilder::new()
                .title("Leases: jobs for runners")
                .version(env!("CARGO_PKG_VERSION"))
                .description(Some(
                    "Times are RFC 3339, durations in seconds. Unknown fields are ignored.",
                )),
        )
        .paths(paths)
        .components(Some(
            ComponentsBuilder::new()
                .schemas_from_iter(components)
                .security_scheme(OPERATOR, bearer("The operator's token"))
                .security_scheme(RUNNER, bearer("The runner's own token"))
                .build(),
        ))
        .build()
}
