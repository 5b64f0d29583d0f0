//! A machine that runs actors in Python: CPython and the official SDK, compiled to one WebAssembly
//! component, in wasmtime.
//!
//! [`machine::Machine`] implements [`cowboy_engine::pvm::Pvm`]. Its results and its fuel depend on
//! the call, the host's answers and the [`tuple::Tuple`] alone, so a chain's nodes share the
//! tuple.
//!
//! A module uses only modules above it:
//!
//! | module | subject |
//! |---|---|
//! | [`limits`] | bounds of an instance: memory, stack, texts |
//! | [`tuple`] | what results and fuel depend on |
//! | [`engine`] | the compiler and runtime, and where instances have their memory |
//! | [`artifact`] | the component and its machine code on disk |
//! | [`guest`] | the program inside the component |
//! | [`build`] | how the component is built |
//! | [`host`] | the functions that an actor can call |
//! | [`compiled`] | compiled modules, kept for further calls |
//! | [`instance`] | one instance: load, one call |
//! | [`pool`] | instances loaded ahead |
//! | [`machine`] | calls of actors |
//!
//! Begin with [`machine`].
//!
//! [`tuple`]: mod@tuple

pub mod artifact;
pub mod build;
mod compiled;
mod engine;
pub mod guest;
mod host;
mod instance;
pub mod limits;
pub mod machine;
mod pool;
pub mod tuple;
