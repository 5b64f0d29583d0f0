//! A validator's listener, which tells the devnet's faults the addresses of runners that other
//! processes run.

use crate::{
    api::backend::Backend,
    transport::{
        Connection as _, Listen,
        quic::{QuicConnection, QuicListener},
    },
};
use std::sync::Arc;

pub(super) struct Meeting {
    pub(super) listener: QuicListener,
    pub(super) backend: Arc<Backend>,
}

impl Listen for Meeting {
    type Connection = QuicConnection;

    async fn accept(&mut self) -> Option<QuicConnection> {
        let connection = self.listener.accept().await?;
        let runner = connection.peer().address();
        if let Some(name) = self.backend.name_of(&runner) {
            self.backend.faults().met(connection.address(), &name);
        }
        Some(connection)
    }

    fn close(&mut self, reason: &str) {
        self.listener.close(reason);
    }
}
