//! OpenAPI documents, built from a server's routes and the types of their messages.

use super::JSON;
use axum::http::Method;
use utoipa::{
    IntoParams, ToSchema,
    openapi::{
        ComponentsBuilder, Content, HttpMethod, InfoBuilder, ObjectBuilder, OpenApi,
        OpenApiBuilder, PathItem, PathsBuilder, Ref, RefOr, Required, Response, Schema,
        path::{Operation as Built, OperationBuilder, Parameter, ParameterBuilder, ParameterIn},
        request_body::RequestBodyBuilder,
        response::ResponseBuilder,
        schema::ArrayBuilder,
        security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
    },
};

const BYTES: &str = "application/octet-stream";

/// Named schemas that others refer to.
pub type Components = Vec<(String, RefOr<Schema>)>;

/// A reference to a type's schema; the schema and those it refers to are added to `components`.
pub fn reference<T: ToSchema>(components: &mut Components) -> RefOr<Schema> {
    components.push((T::name().into_owned(), T::schema()));
    T::schemas(components);
    Ref::from_schema_name(T::name()).into()
}

/// Content without a schema.
pub fn bytes() -> (&'static str, Content) {
    (BYTES, Content::new(None::<RefOr<Schema>>))
}

/// A parameter of a request.
pub fn parameter(
    name: &str,
    within: ParameterIn,
    required: Required,
    description: &str,
    schema: ObjectBuilder,
) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(within)
        .required(required)
        .description(Some(description))
        .schema(Some(schema))
        .build()
}

/// A route's entry in the document.
#[derive(Clone, Default)]
pub struct Operation {
    summary: &'static str,
    parameters: Vec<Parameter>,
    body: Option<(&'static str, Content)>,
    /// An answer without a description has that of the [`Document`].
    answers: Vec<(u16, Response)>,
    refusals: Vec<String>,
    token: Option<&'static str>,
    components: Components,
}

impl Operation {
    pub fn new(summary: &'static str) -> Self {
        Self { summary, ..Self::default() }
    }

    pub fn answer(mut self, status: u16, answer: ResponseBuilder) -> Self {
        self.answers.push((status, answer.build()));
        self
    }

    fn content(self, status: u16, kind: &str, schema: impl Into<RefOr<Schema>>) -> Self {
        let content = Content::new(Some(schema.into()));
        self.answer(status, ResponseBuilder::new().content(kind, content))
    }

    pub fn one<T: ToSchema>(self, status: u16) -> Self {
        self.one_as::<T>(status, JSON)
    }

    pub fn one_as<T: ToSchema>(mut self, status: u16, kind: &str) -> Self {
        let schema = reference::<T>(&mut self.components);
        self.content(status, kind, schema)
    }

    pub fn many<T: ToSchema>(mut self) -> Self {
        let items = reference::<T>(&mut self.components);
        self.content(200, JSON, ArrayBuilder::new().items(items))
    }

    pub fn any(self) -> Self {
        self.content(200, JSON, ObjectBuilder::new())
    }

    pub fn nothing(self, status: u16, description: &str) -> Self {
        self.answer(status, ResponseBuilder::new().description(description))
    }

    pub fn query<Q: IntoParams>(mut self) -> Self {
        self.parameters.extend(Q::into_params(|| Some(ParameterIn::Query)));
        self
    }

    /// Adds a parameter that is neither in the path nor of a type of parameters.
    pub fn parameter(mut self, parameter: Parameter) -> Self {
        self.parameters.push(parameter);
        self
    }

    pub fn body<T: ToSchema>(mut self) -> Self {
        let schema = reference::<T>(&mut self.components);
        self.body = Some((JSON, Content::new(Some(schema))));
        self
    }

    pub fn bytes(mut self) -> Self {
        self.body = Some(bytes());
        self
    }

    pub fn has_input(&self) -> bool {
        self.body.is_some() || !self.parameters.is_empty()
    }

    /// Adds a status of refusals, which counts unless an answer has it.
    pub fn refuses(mut self, status: impl ToString) -> Self {
        self.refusals.push(status.to_string());
        self
    }

    pub const fn token(mut self, name: &'static str) -> Self {
        self.token = Some(name);
        self
    }
}

/// A document without its operations.
#[derive(Debug)]
pub struct Document {
    pub title: &'static str,
    pub description: &'static str,
    /// The beginning of most paths. An operation's tag is the next part of its path.
    pub prefix: &'static str,
    /// The description of answers that have no other.
    pub success: &'static str,
    pub tokens: &'static [(&'static str, &'static str)],
    pub parameter: fn(&str) -> (&'static str, ObjectBuilder),
    /// The answer with this status that a route with this token gives to a refused request.
    pub refusal: fn(&str, Option<&str>) -> Response,
}

impl Document {
    /// The document of these routes, which may refer to further `components`.
    pub fn build(
        &self,
        mut components: Components,
        routes: impl IntoIterator<Item = (Method, &'static str, Operation)>,
    ) -> OpenApi {
        let mut paths = PathsBuilder::new();
        for (method, path, mut operation) in routes {
            components.append(&mut operation.components);
            let method = match method {
                Method::POST => HttpMethod::Post,
                Method::PUT => HttpMethod::Put,
                Method::DELETE => HttpMethod::Delete,
                _ => HttpMethod::Get,
            };
            let item = PathItem::new(method, self.operation(path, operation));
            paths = paths.path(path.replace("{*", "{"), item);
        }
        let info = InfoBuilder::new()
            .title(self.title)
            .version(env!("CARGO_PKG_VERSION"))
            .description(Some(self.description));
        let components = ComponentsBuilder::new().schemas_from_iter(components);
        let components = self.tokens.iter().fold(components, |components, (name, description)| {
            let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer);
            let scheme = scheme.description(Some(*description)).build();
            components.security_scheme(*name, SecurityScheme::Http(scheme))
        });
        OpenApiBuilder::new().info(info).paths(paths).components(Some(components.build())).build()
    }

    fn operation(&self, path: &str, operation: Operation) -> Built {
        let Operation { summary, parameters, body, answers, refusals, token, .. } = operation;
        let in_path = in_path(path).map(|name| {
            let (description, schema) = (self.parameter)(name);
            parameter(name, ParameterIn::Path, Required::True, description, schema)
        });
        let mut built = OperationBuilder::new()
            .summary(Some(summary))
            .tag(self.tag(path))
            .parameters(Some(in_path.chain(parameters)))
            .request_body(body.map(|(kind, content)| {
                let body = RequestBodyBuilder::new().content(kind, content);
                body.required(Some(Required::True)).build()
            }));
        for status in refusals {
            let refusal = (self.refusal)(&status, token);
            built = built.response(status, refusal);
        }
        for (status, mut answer) in answers {
            if answer.description.is_empty() {
                answer.description = self.success.to_owned();
            }
            built = built.response(status.to_string(), answer);
        }
        match token {
            Some(token) => built.security(SecurityRequirement::new(token, [""; 0])).build(),
            None => built.build(),
        }
    }

    fn tag<'a>(&self, path: &'a str) -> &'a str {
        let path = path.strip_prefix(self.prefix).unwrap_or(path).trim_start_matches('/');
        path.split('/').next().unwrap_or(path)
    }
}

/// The names of a path's parameters; `{*name}` takes the rest of the path.
fn in_path(path: &str) -> impl Iterator<Item = &str> {
    let parameters = path.split('/').filter_map(|step| step.strip_prefix('{')?.strip_suffix('}'));
    parameters.map(|name| name.trim_start_matches('*'))
}
