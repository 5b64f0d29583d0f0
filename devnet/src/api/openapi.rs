//! The OpenAPI document, built from the table of routes and the types of their answers.

use super::{routes, types::ErrorBody};
use axum::{body::Bytes, http::Method};
use std::sync::LazyLock;
use utoipa::{
    IntoParams, ToSchema,
    openapi::{
        ComponentsBuilder, Content, HttpMethod, InfoBuilder, ObjectBuilder, OpenApi,
        OpenApiBuilder, PathItem, PathsBuilder, Ref, RefOr, Required, Schema,
        path::{Operation as Built, OperationBuilder, Parameter, ParameterBuilder, ParameterIn},
        request_body::RequestBodyBuilder,
        response::{Response, ResponseBuilder},
        schema::{ArrayBuilder, Type},
        security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
    },
};

/// The name of the token's security scheme.
const TOKEN: &str = "token";

/// Named schemas that others refer to.
pub(crate) type Components = Vec<(String, RefOr<Schema>)>;

/// A route's successful answer.
pub(super) struct RouteAnswer {
    status: u16,
    content_type: &'static str,
    schema: RefOr<Schema>,
    components: Components,
}

impl RouteAnswer {
    pub fn one<T: ToSchema>() -> Self {
        let mut components = Components::new();
        let schema = reference::<T>(&mut components).into();
        Self { status: 200, content_type: "application/json", schema, components }
    }

    pub fn many<T: ToSchema>() -> Self {
        let mut components = Components::new();
        let items = reference::<T>(&mut components);
        let schema = ArrayBuilder::new().items(RefOr::Ref(items)).into();
        Self { status: 200, content_type: "application/json", schema, components }
    }

    /// A value, with status 202: the request is being carried out.
    pub fn accepted<T: ToSchema>() -> Self {
        Self { status: 202, ..Self::one::<T>() }
    }

    /// A value, with status 201: it was created.
    pub fn created<T: ToSchema>() -> Self {
        Self { status: 201, ..Self::one::<T>() }
    }

    /// Server-sent events with such values as data.
    pub fn stream<T: ToSchema>() -> Self {
        Self { content_type: "text/event-stream", ..Self::one::<T>() }
    }

    /// Metrics in the OpenMetrics text format.
    pub fn metrics() -> Self {
        Self { content_type: "application/openmetrics-text", ..Self::one::<String>() }
    }

    /// Any JSON object.
    pub fn any() -> Self {
        let schema = ObjectBuilder::new().into();
        let components = Components::new();
        Self { status: 200, content_type: "application/json", schema, components }
    }
}

/// A route's entry in the document.
pub(super) struct Operation {
    summary: &'static str,
    parameters: Vec<Parameter>,
    body: Option<RefOr<Schema>>,
    answer: RouteAnswer,
    token: bool,
}

impl Operation {
    /// A route without parameters other than those in its path.
    pub const fn new(summary: &'static str, answer: RouteAnswer) -> Self {
        Self { summary, parameters: Vec::new(), body: None, answer, token: false }
    }

    /// Adds parameters in the query.
    pub fn query<Q: IntoParams>(mut self) -> Self {
        self.parameters.extend(Q::into_params(|| Some(ParameterIn::Query)));
        self
    }

    /// Adds an optional header.
    pub fn header(mut self, name: &str, description: &str) -> Self {
        self.parameters.push(parameter(name, ParameterIn::Header, description, Required::False));
        self
    }

    /// Adds a body.
    pub fn body<T: ToSchema>(mut self) -> Self {
        self.body = Some(reference::<T>(&mut self.answer.components).into());
        self
    }

    /// Marks the route as one that changes state.
    pub const fn needs_token(mut self) -> Self {
        self.token = true;
        self
    }

    fn build(self, path: &str) -> (Built, Components) {
        let Self { summary, parameters, body, answer, token } = self;
        let in_path = in_path(path)
            .map(|name| parameter(name, ParameterIn::Path, describe(name), Required::True));
        let success = ResponseBuilder::new()
            .description("Success")
            .content(answer.content_type, Content::new(Some(answer.schema)));
        let mut operation = OperationBuilder::new()
            .summary(Some(summary))
            .tag(tag(path))
            .parameters(Some(in_path.chain(parameters)))
            .response(answer.status.to_string(), success)
            .response("default", refusal())
            .request_body(body.map(|schema| {
                RequestBodyBuilder::new()
                    .content("application/json", Content::new(Some(schema)))
                    .required(Some(Required::True))
                    .build()
            }));
        if token {
            operation = operation.security(SecurityRequirement::new(TOKEN, [""; 0]));
        }
        (operation.build(), answer.components)
    }
}

/// The document's JSON, built once because building it takes longer than most requests.
pub(super) fn text() -> Bytes {
    static TEXT: LazyLock<Bytes> = LazyLock::new(|| {
        serde_json::to_vec(&document()).expect("the document is plain data").into()
    });
    TEXT.clone()
}

pub(super) fn document() -> OpenApi {
    let mut components = Components::new();
    reference::<ErrorBody>(&mut components);
    let mut paths = PathsBuilder::new();
    for route in routes::table() {
        let (operation, named) = route.operation.build(route.path);
        components.extend(named);
        let method = match route.method {
            Method::POST => HttpMethod::Post,
            Method::DELETE => HttpMethod::Delete,
            _ => HttpMethod::Get,
        };
        paths = paths.path(route.path, PathItem::new(method, operation));
    }
    let token = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("The text of the devnet's `token` file"))
        .build();
    OpenApiBuilder::new()
        .info(
            InfoBuilder::new()
                .title("The control API of a Cowboy devnet")
                .version(env!("CARGO_PKG_VERSION"))
                .description(Some(
                    "Amounts are decimal strings of wei, byte strings 0x-hex, heights and counts \
                     numbers, times RFC 3339.",
                )),
        )
        .paths(paths)
        .components(Some(
            ComponentsBuilder::new()
                .schemas_from_iter(components)
                .security_scheme(TOKEN, SecurityScheme::Http(token))
                .build(),
        ))
        .build()
}

/// A reference to a type's schema; the schema and those it refers to are added to `components`.
pub(crate) fn reference<T: ToSchema>(components: &mut Components) -> Ref {
    components.push((T::name().into_owned(), T::schema()));
    T::schemas(components);
    Ref::from_schema_name(T::name())
}

fn refusal() -> Response {
    let schema = Ref::from_schema_name(ErrorBody::name());
    ResponseBuilder::new()
        .description("Failure")
        .content("application/json", Content::new(Some(RefOr::<Schema>::Ref(schema))))
        .build()
}

fn parameter(name: &str, within: ParameterIn, description: &str, required: Required) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(within)
        .required(required)
        .description(Some(description))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .build()
}

/// The names of a path's parameters.
fn in_path(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|step| step.strip_prefix('{')?.strip_suffix('}'))
}

/// The description of a parameter of a path.
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

/// The noun that a path is about.
fn tag(path: &str) -> &str {
    let path = path.strip_prefix("/v1/").unwrap_or(path).trim_start_matches('/');
    path.split('/').next().unwrap_or(path)
}
