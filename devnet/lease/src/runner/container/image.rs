//! Names of images that a job may use: images of a registry or of the engine's own store. Names
//! that an engine would take for an option or for a file of its machine are refused.

use cowboy_host::spelling::Quoted;

/// Prefixes with a colon that podman takes for another source than a registry, mostly files of its
/// machine.
const TRANSPORTS: [&str; 14] = [
    "atomic",
    "containers-storage",
    "dir",
    "docker",
    "docker-archive",
    "docker-daemon",
    "http",
    "https",
    "oci",
    "oci-archive",
    "oci-mem",
    "ostree",
    "sif",
    "tarball",
];

/// Refuses a text that is not the name of an image, and says why.
pub(super) fn check(image: &str) -> Result<(), String> {
    let refused = |why: &str| Err(format!("{} is not an image name: {why}", Quoted(image)));
    let known = |c: char| c.is_ascii_alphanumeric() || "._-/:@+[]".contains(c);
    if !image.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[') {
        return refused("it must begin with a letter, a digit or [");
    }
    if let Some(other) = image.chars().find(|c| !known(*c)) {
        return refused(&format!("it contains {}", Quoted(&other.to_string())));
    }
    if image.split('/').any(|part| part.is_empty() || part.starts_with(['.', '-'])) {
        return refused("no part may be empty or begin with . or -");
    }
    if let Some((before, _)) = image.split_once(':')
        && TRANSPORTS.iter().any(|name| name.eq_ignore_ascii_case(before))
    {
        return refused("only images of registries and the engine's own are allowed");
    }
    // Except for the last part, only the first may have a colon, before a port.
    let (folders, _) = image.rsplit_once('/').unwrap_or_default();
    let mut folders = folders.split('/');
    let host = folders.next().unwrap_or_default();
    let port = host.rsplit_once(':').filter(|_| !host.ends_with(']')).map(|(_, port)| port);
    let number = |port: &str| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    if port.is_some_and(|port| !number(port)) || folders.any(|part| part.contains(':')) {
        return refused("a registry's colon must be followed by its port");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_to_a_registry_or_to_an_image_that_is_there() {
        for image in [
            "alpine",
            "alpine:3.20",
            "Debian:bookworm-slim",
            "docker.io/library/alpine@sha256:0f1e2d",
            "ghcr.io/a/b/c:v1.2_3",
            "localhost:5000/a",
            "localhost:5000/a:b",
            "[::1]:5000/a:b",
            "[fe80::1]/a",
            "3f4e5d6c7b8a",
            "docker/whalesay",
        ] {
            assert_eq!(check(image), Ok(()), "{image}");
        }
        for image in [
            "",
            "-v/:/host",
            "--privileged",
            "a b",
            "a\nb",
            "a\u{0}",
            "ä",
            "/etc/passwd",
            "./rootfs",
            "../rootfs",
            "a/../b",
            "a//b",
            "a/-b",
            "dir:/etc",
            "dir:etc",
            "DIR:etc",
            "dir:5000/etc",
            "oci-archive:image.tar",
            "docker://alpine",
            "new-transport:/etc",
            "new-transport:etc/x",
            "localhost:5000/a:b/c",
            "a:/b",
            "$(id)",
        ] {
            let error = check(image).unwrap_err();
            assert!(error.contains("is not an image name") && !error.contains('\n'), "{error}");
        }
    }
}
