//! The abilities that a job needs and a runner may lack, permanently or temporarily.

use super::{specification::JobSpec, work::Work};
use crate::registry::Ability;

/// The labels of everything that `spec` needs: its kind, the models or the server that the work
/// names, a trusted execution environment, a pool.
pub fn of(spec: &JobSpec) -> impl Iterator<Item = Ability> {
    let kind = Ability::Kind(spec.work.kind());
    let named = match &spec.work {
        Work::Llm(work) => {
            let embedder = work.embedding_model.clone().map(Ability::Model);
            [Some(Ability::Model(work.model.clone())), embedder]
        }
        Work::Mcp(work) => [Some(Ability::Server(work.server.clone())), None],
        Work::Http(_) | Work::EthSend(_) | Work::Custom(_) => [None, None],
    };
    let tee = spec.tee_required.then_some(Ability::Tee);
    let pool = spec.required_runner_pool.clone().map(Ability::Pool);
    [kind].into_iter().chain(named.into_iter().flatten()).chain(tee).chain(pool)
}
