//! Values of secrets on their way into the database.

pub(crate) type SecretJson = Option<Hidden>;

/// A text that `Debug` hides.
pub(crate) struct Hidden(pub String);

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hidden(..)")
    }
}

impl rusqlite::ToSql for Hidden {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}
