//! Databases, and how their options name them.

use std::sync::Arc;

use adbc_core::error::{Result, Status};
use adbc_core::options::{OptionConnection, OptionDatabase, OptionValue};
use adbc_core::{Database, Driver, Optionable};
use mainstem::{OpenOptions, SharedDatabase, parse_byte_size};
use percent_encoding::percent_decode_str;

use crate::connection::MainstemConnection;
use crate::errors::{adbc, misuse};
use crate::options::{self, PREFIX};

/// The option that DuckDB's driver has for a path, too.
const PATH: &str = "path";

/// The driver.
#[derive(Debug, Default)]
pub struct MainstemDriver;

impl Driver for MainstemDriver {
    type DatabaseType = MainstemDatabase;

    fn new_database(&mut self) -> Result<Self::DatabaseType> {
        self.new_database_with_opts([])
    }

    /// Opens the database that the options name; one in memory if they name none.
    fn new_database_with_opts(
        &mut self,
        opts: impl IntoIterator<Item = (OptionDatabase, OptionValue)>,
    ) -> Result<Self::DatabaseType> {
        let mut place = Place::default();
        for (key, value) in opts {
            place.set(&key, value)?;
        }
        place.open()
    }
}

/// What options say of a database.
#[derive(Debug, Default)]
struct Place {
    uri: String,
    read_only: bool,
    memory_limit: Option<u64>,
    settings: Vec<(String, String)>,
}

impl Place {
    fn set(&mut self, key: &OptionDatabase, value: OptionValue) -> Result<()> {
        let name = key.as_ref();
        match (key, name.strip_prefix(PREFIX)) {
            (OptionDatabase::Uri, _) => self.name(options::text(name, value)?)?,
            (OptionDatabase::Username | OptionDatabase::Password, _) => {
                return Err(misuse(Status::NotImplemented, "a database in a folder has no users and no passwords"));
            }
            (_, Some("read_only")) => self.read_only = options::truth(name, value)?,
            (_, Some("memory_limit")) => {
                let limit = parse_byte_size(&options::text(name, value)?).map_err(|error| adbc(&error))?;
                self.memory_limit = Some(limit);
            }
            (_, Some(setting)) => self.settings.push((setting.to_owned(), options::text(name, value)?)),
            (_, None) if name == PATH => self.name(options::text(name, value)?)?,
            (_, None) => return Err(options::unknown(name)),
        }
        Ok(())
    }

    /// Options come in no order: of two that name different databases none can win.
    fn name(&mut self, uri: String) -> Result<()> {
        if !self.uri.is_empty() && !uri.is_empty() && self.uri != uri {
            return Err(misuse(Status::InvalidArguments, "uri and path name two databases"));
        }
        if !uri.is_empty() {
            self.uri = uri;
        }
        Ok(())
    }

    fn open(self) -> Result<MainstemDatabase> {
        let mut how = OpenOptions::new().read_only(self.read_only);
        if let Some(limit) = self.memory_limit {
            how = how.memory_limit(limit);
        }
        let path = path_of(&self.uri)?;
        let database = match path.as_str() {
            "" | ":memory:" => SharedDatabase::in_memory(how),
            path => SharedDatabase::open(path, how),
        };
        let database = database.map_err(|error| adbc(&error))?;
        Ok(MainstemDatabase { database, read_only: self.read_only, uri: self.uri, settings: self.settings.into() })
    }
}

/// The path that `uri` names: it may be a path, or a URI: `mainstem:shop`, `mainstem:///srv/shop`, `file:///srv/shop`.
fn path_of(uri: &str) -> Result<String> {
    let Some(rest) = uri.strip_prefix("mainstem:").or_else(|| uri.strip_prefix("file:")) else {
        return Ok(uri.to_owned());
    };
    let path = match rest.strip_prefix("//") {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => rest,
        Some(_) => {
            let message = format!("{uri} names a host; a database is a folder of this machine: mainstem:///folder");
            return Err(misuse(Status::InvalidArguments, message));
        }
        None => rest,
    };
    if path.contains(['?', '#']) {
        return Err(misuse(Status::InvalidArguments, format!("{uri} has parts after its path; use options")));
    }
    let decoded = percent_decode_str(path).decode_utf8();
    decoded.map(Into::into).map_err(|error| misuse(Status::InvalidArguments, format!("{uri}: {error}")))
}

/// An open database, which its connections share.
#[derive(Debug)]
pub struct MainstemDatabase {
    database: SharedDatabase,
    read_only: bool,
    uri: String,
    /// What each of its connections begins with.
    settings: Arc<[(String, String)]>,
}

impl Optionable for MainstemDatabase {
    type Option = OptionDatabase;

    fn set_option(&mut self, key: Self::Option, _: OptionValue) -> Result<()> {
        let key = key.as_ref();
        Err(misuse(Status::InvalidState, format!("option {key} has to be set before the database is opened")))
    }

    fn get_option_string(&self, key: Self::Option) -> Result<String> {
        let name = key.as_ref();
        match (&key, name.strip_prefix(PREFIX)) {
            (OptionDatabase::Uri, _) => Ok(self.uri.clone()),
            (_, Some("read_only")) => Ok(options::shown(self.read_only)),
            (_, None) if name == PATH => {
                Ok(self.database.path().map_or_else(String::new, |path| path.display().to_string()))
            }
            (_, Some(setting)) => {
                let known = self.settings.iter().find(|(name, _)| name == setting);
                known.map(|(_, value)| value.clone()).ok_or_else(|| options::not_found(name))
            }
            _ => Err(options::not_found(name)),
        }
    }

    fn get_option_double(&self, key: Self::Option) -> Result<f64> {
        Err(options::not_found(key.as_ref()))
    }

    options::no_other_types!();
}

impl Database for MainstemDatabase {
    type ConnectionType = MainstemConnection;

    fn new_connection(&self) -> Result<Self::ConnectionType> {
        self.new_connection_with_opts([])
    }

    fn new_connection_with_opts(
        &self,
        opts: impl IntoIterator<Item = (OptionConnection, OptionValue)>,
    ) -> Result<Self::ConnectionType> {
        let mut connection = MainstemConnection::new(self.database.clone(), self.read_only)?;
        for (name, value) in self.settings.iter() {
            connection.set(name, value)?;
        }
        for (key, value) in opts {
            connection.set_option(key, value)?;
        }
        Ok(connection)
    }
}

#[cfg(test)]
mod tests {
    use super::path_of;

    #[test]
    fn uris_are_paths() {
        for (uri, path) in [
            ("", ""),
            (":memory:", ":memory:"),
            ("shop", "shop"),
            ("/srv/shop", "/srv/shop"),
            ("mainstem:shop", "shop"),
            ("mainstem:///srv/my%20shop", "/srv/my shop"),
            ("file:///srv/shop", "/srv/shop"),
            ("mainstem://", ""),
        ] {
            assert_eq!(path_of(uri).as_deref(), Ok(path), "{uri}");
        }
        for uri in ["mainstem://host/shop", "mainstem:shop?read_only=true", "mainstem:%ff"] {
            assert!(path_of(uri).is_err(), "{uri}");
        }
    }
}
