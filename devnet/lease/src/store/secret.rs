//! Values of secrets on their way into the database.

pub(crate) type SecretJson = Option<Hidden>;

/// A text that is not to be shown: values of secrets.
pub(crate) struct Hidden(pub String);

impl rusqlite::ToSql for Hidden {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}
