//! `presence watch`: prints changes of presence as the blocks that show them become final.

use super::{only, signed};
use crate::{
    context::Context,
    error::CliError,
    output::{Row, columns},
};
use cowboy_devnet::client::{BlockAt, Client};
use serde::Serialize;

pub async fn run(cx: &Context, client: &Client) -> Result<(), CliError> {
    let mut blocks = client.follow(None);
    let mut last: Option<Vec<String>> = None;
    loop {
        for height in blocks.next().await?.certificate_for {
            let now = client.presence(BlockAt::Height(height)).await?;
            let before = last.as_deref().unwrap_or_default();
            let change = PresenceChange {
                height,
                appeared: only(&now.present, before),
                vanished: only(before, &now.present),
                present: now.present.len(),
                registry_len: now.registry_len,
            };
            if last.is_none() || !change.appeared.is_empty() || !change.vanished.is_empty() {
                cx.ui.record(&change)?;
            }
            last = Some(now.present);
        }
    }
}

/// The changes of a block's presence since the previous block's.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct PresenceChange {
    /// The block that the votes are on.
    height: u64,
    /// Runners that are present now.
    appeared: Vec<String>,
    /// Runners that no longer are.
    vanished: Vec<String>,
    /// Number of present runners.
    present: usize,
    /// Number of registered runners.
    registry_len: u32,
}

impl Row for PresenceChange {
    columns! { self;
        ">block" => self.height.to_string(),
        "present" => format!("{} of {}", self.present, self.registry_len),
        "change" => self.id(),
    }

    fn id(&self) -> String {
        signed(&self.appeared, &self.vanished).join(" ")
    }
}
