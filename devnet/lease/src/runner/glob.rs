//! Files below a folder that match patterns.
//!
//! Patterns have `*` and `?` (within a name), `[..]`, and `**` for any number of folders. Symbolic
//! links are neither followed nor found, so that nothing outside the folder is.

use cowboy_host::spelling::Quoted;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Maximum number of directory entries that a search visits.
const MAX_ENTRIES: usize = 1_000_000;

#[derive(Debug)]
pub(super) struct Globs(GlobSet);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is not a file pattern: {reason}", Quoted(.pattern))]
pub(super) struct GlobError {
    pattern: String,
    reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// Path relative to the folder, its parts separated by `/`.
    pub(super) name: String,
    /// Indexes of the patterns that match it, ascending.
    pub(super) patterns: Vec<usize>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Search {
    /// Sorted by name.
    pub(super) files: Vec<Found>,
    /// Number of matching files whose names are not UTF-8.
    pub(super) nameless: usize,
    pub(super) cut: bool,
}

impl Globs {
    /// A set of patterns, none of which leads out of the folder.
    pub(super) fn new<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self, GlobError> {
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            let error = |reason: String| GlobError { pattern: pattern.to_owned(), reason };
            let below = pattern.trim_start_matches("./");
            if below.starts_with('/') || below.split('/').any(|part| part == "..") {
                return Err(error("it leads out of the working directory".to_owned()));
            }
            let glob = GlobBuilder::new(below).literal_separator(true).build();
            set.add(glob.map_err(|found| error(found.kind().to_string()))?);
        }
        let built = set.build().map_err(|found| GlobError {
            pattern: found.glob().unwrap_or_default().to_owned(),
            reason: found.kind().to_string(),
        });
        built.map(Self)
    }

    /// Searches `folder`. Entries that cannot be read are left out.
    pub(super) fn search(&self, folder: &Path) -> io::Result<Search> {
        let mut search = Search::default();
        let mut folders = vec![PathBuf::new()];
        let mut looked = 0;
        'search: while let Some(at) = folders.pop() {
            let entries = match fs::read_dir(folder.join(&at)) {
                Ok(entries) => entries,
                Err(error) if at.as_os_str().is_empty() => return Err(error),
                Err(_) => continue,
            };
            for entry in entries.flatten() {
                looked += 1;
                if looked > MAX_ENTRIES {
                    search.cut = true;
                    break 'search;
                }
                let Ok(kind) = entry.file_type() else { continue };
                let path = at.join(entry.file_name());
                if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_file() {
                    let patterns = self.0.matches(&path);
                    match path.to_str() {
                        _ if patterns.is_empty() => {}
                        None => search.nameless += 1,
                        Some(name) => {
                            search.files.push(Found { name: name.to_owned(), patterns });
                        }
                    }
                }
            }
        }
        search.files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(search)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        folder
    }

    #[test]
    fn patterns_match_as_people_expect() {
        let folder = tree(&["a.xml", "b.txt", "sub/c.xml", "sub/deep/d.xml", ".hidden/e.xml"]);
        for (pattern, expected) in [
            ("*.xml", &["a.xml"][..]),
            ("./*.xml", &["a.xml"]),
            ("**/*.xml", &[".hidden/e.xml", "a.xml", "sub/c.xml", "sub/deep/d.xml"]),
            ("sub/*", &["sub/c.xml"]),
            ("sub/**", &["sub/c.xml", "sub/deep/d.xml"]),
            ("**/deep/*.xml", &["sub/deep/d.xml"]),
            ("?.[tx][xm][tl]", &["a.xml", "b.txt"]),
            ("sub", &[]),
            ("none*", &[]),
        ] {
            let search = Globs::new([pattern]).unwrap().search(folder.path()).unwrap();
            let names: Vec<_> = search.files.iter().map(|file| file.name.as_str()).collect();
            assert_eq!(names, expected, "{pattern}");
        }
        let both = Globs::new(["**", "*.txt"]).unwrap().search(folder.path()).unwrap();
        let text = both.files.iter().find(|file| file.name == "b.txt").unwrap();
        assert_eq!(text.patterns, [0, 1]);
    }

    #[test]
    fn what_leads_out_or_is_no_pattern_is_told() {
        for (pattern, expected) in [
            ("/etc/*", "`/etc/*` is not a file pattern: it leads out of the working directory"),
            ("a/../../b", "`a/../../b` is not a file pattern: it leads out"),
            ("a[", "`a[` is not a file pattern: unclosed character class"),
        ] {
            let error = Globs::new(["*", pattern]).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn links_and_names_that_are_no_text_are_left_out() {
        let outside = tree(&["secret.xml"]);
        let folder = tree(&["a.xml"]);
        let link = |to: &Path, name: &str| {
            std::os::unix::fs::symlink(to, folder.path().join(name)).unwrap();
        };
        link(&outside.path().join("secret.xml"), "link.xml");
        link(outside.path(), "folder");
        link(folder.path(), "round");
        fs::write(folder.path().join(OsStr::from_bytes(b"\xff.xml")), "").unwrap();
        let search = Globs::new(["**"]).unwrap().search(folder.path()).unwrap();
        let found = Found { name: "a.xml".to_owned(), patterns: vec![0] };
        assert_eq!(search, Search { files: vec![found], nameless: 1, cut: false });
    }
}
