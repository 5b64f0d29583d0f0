//! Valid configurations, and the errors of invalid ones.

use super::*;

const FULL: &str = "llm:
  base_url: http://127.0.0.1:8080/v1/
  api_key_env: OPENAI_API_KEY
  models: {small: real-small, large: org/real-large}
  embedding_models: {embedder: real-embedder}
";

fn parse(text: &str) -> Result<Config, String> {
    serde_yaml::from_str(text).map_err(|error| error.to_string())
}

#[test]
fn a_configuration_is_read_and_written() {
    let config = parse(FULL).unwrap();
    let llm = config.llm.as_ref().unwrap();
    assert_eq!(
        llm.base_url.join("chat/completions").as_str(),
        "http://127.0.0.1:8080/v1/chat/completions"
    );
    assert_eq!(llm.api_key_env.as_ref().unwrap().as_str(), "OPENAI_API_KEY");
    assert_eq!(llm.models.get("large"), Some("org/real-large"));
    assert_eq!(llm.models.names().collect::<Vec<_>>(), ["large", "small"]);
    assert_eq!(parse(&serde_yaml::to_string(&config).unwrap()), Ok(config));
    assert!(parse("{}").unwrap().is_default());
    let local = parse("http: {allow_loopback: true}").unwrap();
    assert!(local.http.allow_loopback && !local.is_default());
    assert_eq!(parse(&serde_yaml::to_string(&local).unwrap()), Ok(local));
}

#[test]
fn what_is_configured_decides_which_kinds_there_are() {
    let none = Config::default();
    assert_eq!(none.kinds(), [JobKind::Http, JobKind::Custom].into());
    assert!(none.lacks(JobKind::Llm).unwrap().contains("base_url"));
    assert_eq!(none.lacks(JobKind::Custom), None);
    let config = parse(FULL).unwrap();
    assert_eq!(config.kinds(), [JobKind::Llm, JobKind::Http, JobKind::Custom].into());
    assert_eq!(config.lacks(JobKind::Llm), None);
    assert!(config.lacks(JobKind::Mcp).is_some());
}

#[test]
fn a_runner_registers_what_it_has_for_the_kinds_it_takes() {
    let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    let both = format!("{FULL}mcp: {{files: {{command: [f]}}, a: {{url: 'http://h'}}}}");
    let config = parse(&both).unwrap();
    let registered = config.capabilities(config.kinds(), 3);
    let kinds = [JobKind::Llm, JobKind::Http, JobKind::Mcp, JobKind::Custom];
    assert_eq!((registered.kinds.as_slice(), registered.max_concurrent_jobs), (&kinds[..], 3));
    assert_eq!(registered.models, names(&["embedder", "large", "small"]));
    assert_eq!(registered.mcp_servers, names(&["a", "files"]));
    let some = config.capabilities([JobKind::Custom, JobKind::Mcp].into(), 3);
    assert_eq!((some.models, some.mcp_servers), (None, names(&["a", "files"])));
    // Limits of the registry are enforced here as well.
    for name in ["x".repeat(MAX_NAME_BYTES + 1), "''".to_owned()] {
        let error = parse(&format!("mcp: {{{name}: {{command: [f]}}}}")).unwrap_err();
        assert!(error.contains("a server's name is empty or too long"), "{error}");
    }
    let many: Vec<_> = (0..=MAX_NAMES).map(|i| format!("s{i}: {{command: [f]}}")).collect();
    let error = parse(&format!("mcp: {{{}}}", many.join(", "))).unwrap_err();
    assert!(error.contains("129 servers: expected at most 128"), "{error}");
}

#[test]
fn an_error_names_the_field_and_what_it_takes() {
    let llm = |fields: &str| format!("llm: {{{fields}}}");
    let url = "base_url: 'http://h/v1'";
    let long = format!("{url}, models: {{{}: b}}", "x".repeat(MAX_NAME + 1));
    let many: Vec<_> = (0..=MAX_MODELS).map(|i| format!("m{i}: m")).collect();
    let many = format!("{url}, models: {{{}}}", many.join(", "));
    for (fields, expected) in [
        ("models: {a: b}", "missing field `base_url`"),
        (url, "missing field `models`"),
        ("base_url: h, models: {a: b}", "llm.base_url: not a URL"),
        ("base_url: 'ftp://h', models: {a: b}", "llm.base_url: neither http nor https"),
        ("base_url: 'http://me:s3cret@h', models: {a: b}", "llm.base_url: a URL with more than"),
        ("base_url: 'http://h?key=s3cret', models: {a: b}", "llm.base_url: a URL with more than"),
        ("base_url: 'http://h', models: {}", "llm.models: invalid length 0, expected 1 to 64"),
        ("base_url: 'http://h', models: {a: ''}", "llm.models: a model's name is empty"),
        ("base_url: 'http://h', models: {a: b, a: c}", "`a` appears twice"),
        ("base_url: 'http://h', models: {a: b}, key: s3cret", "unknown field `key`"),
        (
            "base_url: 'http://h', models: {a: b}, api_key_env: sk-s3cret",
            "llm.api_key_env: not an environment variable name",
        ),
        (&long, "llm.models: a model's name is empty or too long"),
        (&many, "llm.models: invalid length 65, expected 1 to 64"),
    ] {
        let error = parse(&llm(fields)).unwrap_err();
        assert!(error.contains(expected), "{fields}: {error}");
        assert!(!error.contains("s3cret"), "{error}");
    }
    assert!(parse("lm: {}").unwrap_err().contains("unknown field `lm`"));
}

#[test]
fn a_key_is_read_from_its_variable_and_shown_nowhere() {
    let name = Variable("THE_KEY".to_owned());
    let read = |value: Option<&str>| {
        ApiKey::read(&name, |asked| {
            assert_eq!(asked, "THE_KEY");
            value.map(str::to_owned)
        })
    };
    let key = read(Some("sk-s3cret\n")).unwrap();
    assert_eq!(key.header().to_str().unwrap(), "Bearer sk-s3cret");
    assert_eq!(key.secret().shown("no sk-s3cret, sk-s3cret", 99), "no [hidden], [hidden]");
    for shown in [format!("{key:?}"), format!("{:?}", key.header())] {
        assert!(!shown.contains("s3cret"), "{shown}");
    }
    assert_eq!(read(None), Err(ConfigError::NoKey("THE_KEY".to_owned())));
    for value in ["", " ", "s3cret\nx", "sch\u{f6}n s3cret"] {
        let error = read(Some(value)).unwrap_err();
        assert_eq!(error, ConfigError::NotAKey("THE_KEY".to_owned()));
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
}
