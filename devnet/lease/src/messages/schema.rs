//! Constraints on strings in the JSON schemas. The module `check` enforces the same ones in the
//! server.
//!
//! The types here represent strings in the document only.

use super::{EnvValue, MAX_OUTPUT_BYTES, MAX_OUTPUTS};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ObjectBuilder, Ref, RefOr, Schema,
        schema::{AdditionalProperties, KnownFormat, OneOfBuilder, SchemaFormat, Type},
    },
};

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident: $pattern:expr, $least:literal..=$most:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                text($pattern, $least, Some($most)).into()
            }
        }

        impl ToSchema for $name {}
    )*};
}

fn text(pattern: &str, least: usize, most: Option<usize>) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(pattern))
        .min_length(Some(least))
        .max_length(most)
}

/// No NUL, which commands and paths cannot contain.
const NO_NUL: &str = "^[^\\x00]*$";
/// A relative path without `..`.
const PATH: &str = "^(?!/)(?!(.*/)?\\.\\.(/|$))[^\\x00]*$";

texts!(
    /// A runner's id.
    RunnerId: "^[A-Za-z0-9._:-]+$", 1..=128;
    /// A capability of a runner, such as `linux`.
    Capability: "^[A-Za-z0-9._:-]+$", 1..=128;
    /// An id in a message.
    Id: "^[!-~]+$", 1..=128;
    /// A command for `sh -c`.
    Step: NO_NUL, 1..=65_536;
    /// A relative path without `..`.
    RelativePath: PATH, 1..=512;
    /// A relative path without `..`, or one below `~/`.
    CachePath: "^(?!/)(?!~//)(?!(.*/)?\\.\\.(/|$))[^\\x00]*$", 1..=512;
    /// A job's name in its run.
    JobName: "^[A-Za-z0-9._-]+$", 1..=128;
    /// The name of an output.
    OutputName: "^[A-Za-z_][A-Za-z0-9_]*$", 1..=128;
    /// An address on the chain.
    Address: "^0x[0-9a-fA-F]{40}$", 42..=42;
    /// The name of an actor's handler.
    Handler: "^[A-Za-z_][A-Za-z0-9_]*$", 1..=256;
);

/// Outputs of a job, by name.
#[derive(Debug)]
pub struct Outputs;

impl PartialSchema for Outputs {
    fn schema() -> RefOr<Schema> {
        let value = RefOr::<Schema>::from(text(NO_NUL, 0, Some(MAX_OUTPUT_BYTES)));
        ObjectBuilder::new()
            .schema_type(Type::Object)
            .property_names(Some(text("^[A-Za-z_][A-Za-z0-9_]*$", 1, Some(128))))
            .max_properties(Some(MAX_OUTPUTS))
            .additional_properties(Some(AdditionalProperties::RefOr(value)))
            .into()
    }
}

impl ToSchema for Outputs {}

/// An RFC 3339 time.
#[derive(Debug)]
pub struct Time;

impl PartialSchema for Time {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
        ObjectBuilder::new().schema_type(Type::String).format(Some(format)).into()
    }
}

impl ToSchema for Time {}

/// A job's environment.
#[derive(Debug)]
pub struct Environment;

impl PartialSchema for Environment {
    fn schema() -> RefOr<Schema> {
        let value = RefOr::<Schema>::Ref(Ref::from_schema_name(EnvValue::name()));
        let name = text("^[A-Za-z_][A-Za-z0-9_]*$", 1, None);
        ObjectBuilder::new()
            .schema_type(Type::Object)
            .property_names(Some(name))
            .additional_properties(Some(AdditionalProperties::RefOr(value)))
            .into()
    }
}

impl ToSchema for Environment {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((EnvValue::name().into_owned(), EnvValue::schema()));
    }
}

impl PartialSchema for EnvValue {
    fn schema() -> RefOr<Schema> {
        let plain = text(NO_NUL, 0, None).description(Some("A value that is not secret"));
        let object = |description, field: &str| {
            ObjectBuilder::new()
                .schema_type(Type::Object)
                .description(Some(description))
                .property(field, text(NO_NUL, 1, None))
                .required(field)
        };
        let secret = object("A secret: masked in logs, and in no listing", "secret");
        let results = "A text with results of needed jobs: ${{ needs.JOB.outputs.NAME }}, \
                       ${{ needs.JOB.result }}";
        let from_needs = object(results, "from_needs");
        OneOfBuilder::new().item(plain).item(secret).item(from_needs).into()
    }
}

impl ToSchema for EnvValue {}
