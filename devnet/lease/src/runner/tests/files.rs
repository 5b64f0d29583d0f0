//! Artifacts and caches.

use super::*;
use crate::messages::ErrorCode;
use reqwest::StatusCode;

#[tokio::test]
async fn files_that_match_are_kept_whether_the_job_succeeds_or_not() {
    for (last, outcome) in [
        ("true", Outcome::Succeeded),
        ("false", Outcome::Failed("step 2 of 2 failed with exit code 1: false".to_owned())),
    ] {
        let bench = Bench::new();
        let make = "mkdir -p out/deep; echo a > out/a.xml; echo b > out/deep/b.xml; \
             head -c 300000 /dev/zero > zero; ln -s /etc/passwd out/link.xml; \
             ln -s /etc out/etc; mkfifo out/pipe.xml; echo 'ü' > 'out/ü +%.xml'";
        let spec = json!({
            "steps": [make, last],
            "workdir": "w",
            "artifacts": [
                { "type": "junit", "path_glob": "out/**/*.xml" },
                { "type": "raw", "path_glob": "zer?" },
                { "type": "first", "path_glob": "out/a.*" },
                { "type": "none", "path_glob": "*.none" },
            ],
        });
        assert_eq!(bench.run([grant(1, spec)]).await, [outcome]);
        let artifacts = json!([
            { "type": "log", "uri": "/api/v1/jobs/job_1/log?attempt=1" },
            { "type": "junit", "uri": "/kept/out/a.xml" },
            { "type": "first", "uri": "/kept/out/a.xml" },
            { "type": "junit", "uri": "/kept/out/deep/b.xml" },
            { "type": "junit", "uri": "/kept/out/ü +%.xml" },
            { "type": "raw", "uri": "/kept/zero" },
        ]);
        assert_eq!(bench.message("complete")["artifacts"], artifacts);
        let world = bench.fake.world.borrow();
        let kept: Vec<_> =
            world.artifacts.iter().map(|(name, bytes)| (name.as_str(), bytes.len())).collect();
        let expected =
            [("out/a.xml", 2), ("out/deep/b.xml", 2), ("out/ü +%.xml", 3), ("zero", 300_000)];
        assert_eq!(kept, expected);
        assert!(world.log().ends_with("[runner] no file matches *.none\n"), "{}", world.log());
    }
}

#[tokio::test]
async fn artifacts_that_cannot_be_kept_are_notes_in_the_log() {
    let bench = Bench::new();
    let fault = Fault::Code(StatusCode::PAYLOAD_TOO_LARGE, ErrorCode::StoreFull);
    bench.fake.change(|world| world.faults.push(("artifacts/a", fault)));
    let spec = json!({
        "steps": ["echo > a; echo > b"],
        "artifacts": [{ "type": "x", "path_glob": "*" }],
    });
    assert_eq!(bench.run([grant(1, spec)]).await, [Outcome::Succeeded]);
    let log = bench.log();
    assert!(log.ends_with("[runner] artifact a is not kept: as the test wants\n"), "{log}");
    assert_eq!(bench.message("complete")["artifacts"][1]["uri"], "/kept/b");

    let bench = Bench::new();
    let spec = json!({
        "steps": ["seq 1 1200 | xargs touch"],
        "artifacts": [{ "type": "x", "path_glob": "*" }],
    });
    assert_eq!(bench.run([grant(1, spec)]).await, [Outcome::Succeeded]);
    assert!(bench.log().ends_with("[runner] 201 artifacts are not kept: the maximum is 999\n"));
    assert_eq!(bench.message("complete")["artifacts"].as_array().unwrap().len(), 1_000);

    let bench = Bench::new();
    let make = "d=$(printf %0200d 1); mkdir $d; for n in $(seq 1001 1900); do \
         echo > $d/$(printf %0196d 2)$n; done";
    let kind = "🤠".repeat(64);
    let spec = json!({
        "steps": [make],
        "artifacts": [{ "type": kind, "path_glob": "**" }],
    });
    assert_eq!(bench.run([grant(1, spec)]).await, [Outcome::Succeeded]);
    let complete = bench.message("complete");
    assert!(serde_json::to_vec(&complete).unwrap().len() < crate::messages::MAX_MESSAGE);
    let named = complete["artifacts"].as_array().unwrap().len() - 1;
    let note = format!(
        "[runner] {} artifacts are kept, but not named at the end of the job: their names have \
         more than 524288 bytes\n",
        900 - named
    );
    assert!(named < 900 && bench.log().ends_with(&note), "{}", bench.log());
    assert_eq!(bench.fake.world.borrow().artifacts.len(), 900);

    for (glob, reason) in [
        ("../*", "it leads out of the working directory"),
        ("[", "unclosed character class; missing ']'"),
    ] {
        let bench = Bench::new();
        let artifacts = json!([{ "type": "x", "path_glob": glob }]);
        let spec = json!({ "steps": ["true"], "artifacts": artifacts });
        assert_eq!(bench.run([grant(1, spec)]).await, [Outcome::Succeeded]);
        let note = format!("no artifacts are kept: `{glob}` is not a file pattern: {reason}");
        assert!(bench.log().contains(&note), "{}", bench.log());
    }
}

fn caching(number: u32, step: &str) -> Value {
    let caches = json!([
        { "type": "deps", "key": "deps/{hash}", "paths": ["~/.deps", "target", "not-there"] },
    ]);
    grant(number, json!({ "steps": [step], "workdir": "w", "caches": caches }))
}

const FILL: &str = "mkdir -p ~/.deps/ro target; echo dep > ~/.deps/dep; chmod 640 ~/.deps/dep; \
    chmod 500 ~/.deps/ro; echo '#!/bin/sh' > target/run; chmod 755 target/run; \
    touch -d 2001-02-03T04:05:06.789012345Z target/run; ln -s ../../../home/.deps target/deps; \
    ln -s /etc target/etc; echo left > left";

#[tokio::test]
async fn what_a_job_caches_the_next_one_has() {
    let bench = Bench::new();
    let look = "cat ~/.deps/dep target/deps/dep; ls; ls target; stat -c %a ~/.deps/dep ~/.deps/ro; \
         stat -c %a-%y target/run | cut -c 1-33";
    bench.run([caching(1, FILL)]).await;
    let log = bench.log();
    let saved = "[runner] cache deps/{hash}: 6 files and folders saved, 1 left out that are neither \
        or lead out of the job's folders\n";
    assert!(log.starts_with("[runner] cache deps/{hash}: nothing saved yet\n"), "{log}");
    assert!(log.ends_with(saved), "{log}");
    bench.fake.change(|world| world.log.clear());
    bench.run([caching(2, look)]).await;
    let expected = format!(
        "[runner] cache deps/{{hash}}: 6 files and folders restored\n$ {look}\n\
         dep\ndep\ntarget\ndeps\nrun\n640\n500\n755-2001-02-03 04:05:06.789012345\n"
    );
    assert_eq!(bench.log(), expected);
    // Saved caches are not sent again.
    let world = bench.fake.world.borrow();
    let asked = world.asked.iter().filter(|path| path.starts_with("/caches/")).count();
    let keys: Vec<_> = world.caches.keys().map(String::as_str).collect();
    assert_eq!((asked, keys), (3, vec!["deps/{hash}"]));
}

#[tokio::test]
async fn a_job_that_fails_saves_no_cache() {
    let bench = Bench::new();
    bench.run([caching(1, &format!("{FILL}; exit 1"))]).await;
    assert!(bench.fake.world.borrow().caches.is_empty());
}

#[tokio::test]
async fn a_broken_cache_is_a_clean_miss() {
    let whole = {
        let bench = Bench::new();
        bench.run([caching(1, FILL)]).await;
        let world = bench.fake.world.borrow();
        world.caches["deps/{hash}"].clone()
    };
    let look = "ls -A . ~";
    for bytes in [whole.slice(..whole.len() - 9), whole.slice(..20), (&b"no archive"[..]).into()] {
        let bench = Bench::new();
        let key = "deps/{hash}".to_owned();
        bench.fake.change(|world| drop(world.caches.insert(key, bytes)));
        assert_eq!(bench.run([caching(1, look)]).await, [Outcome::Succeeded]);
        let log = bench.log();
        let (note, rest) = log.split_once('\n').unwrap();
        assert!(
            note.starts_with("[runner] cache deps/{hash}: not restored, it is broken"),
            "{log}"
        );
        assert!(rest.starts_with(&format!("$ {look}\n.:\n\n")), "{log}");
        assert!(!log.contains("dep\n") && !log.contains("target"), "{log}");
    }
}

#[tokio::test]
async fn paths_of_a_cache_that_lead_out_are_told() {
    for path in ["../x", "/etc", "~/../x", "a/../../x"] {
        let bench = Bench::new();
        let caches = json!([{ "type": "x", "key": "k", "paths": [path] }]);
        let spec = json!({ "steps": ["true"], "caches": caches });
        assert_eq!(bench.run([grant(1, spec)]).await, [Outcome::Succeeded]);
        let note = format!(
            "[runner] cache k: not restored: its path {path} leads neither below the working \
             directory nor below ~\n"
        );
        assert!(bench.log().starts_with(&note), "{}", bench.log());
        assert!(bench.fake.world.borrow().caches.is_empty());
    }
}
