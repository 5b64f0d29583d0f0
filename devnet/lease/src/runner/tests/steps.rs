//! Steps: their environment, output, ends, and the processes that they leave running.

use super::*;
use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};

#[tokio::test]
async fn a_job_is_acked_run_and_completed() {
    let bench = Bench::new();
    let step = "echo out; echo err >&2; printf 'no end'";
    let spec = json!({ "steps": [step, "\n  echo second\ntrue"], "workdir": "./sub" });
    assert_eq!(bench.run([grant(1, spec)]).await, [Outcome::Succeeded]);
    let log = format!("$ {step}\nout\nerr\nno end\n$ echo second\nsecond\n");
    assert_eq!(bench.log(), log);

    let ack = bench.message("ack-lease");
    let names = (&ack["job_id"], &ack["lease_id"], &ack["runner_id"]);
    assert_eq!(names, (&json!("job_1"), &json!(lease_id(1)), &json!("tested")));
    let complete = bench.message("complete");
    assert_eq!(complete["status"], "SUCCEEDED");
    assert_eq!(complete["exit_code"], 0);
    assert_eq!(complete["summary"], "2 of 2 steps succeeded");
    let uri = "/api/v1/jobs/job_1/log?attempt=1";
    assert_eq!(complete["artifacts"], json!([{ "type": "log", "uri": uri }]));
    let time = |text: &Value| text.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let timings = &complete["timings"];
    assert!(time(&timings["started_at"]) <= time(&timings["finished_at"]));
    let world = bench.fake.world.borrow();
    assert!(!world.of("heartbeat").is_empty(), "the first is sent at once");
    let notices = bench.notices.lock().unwrap();
    let job = JobNotice {
        job: "job_1".to_owned(),
        run: "run_1".to_owned(),
        name: "job-1".to_owned(),
        attempt: 1,
    };
    assert_eq!(notices[0], Notice::Granted(job));
}

#[tokio::test]
async fn a_step_has_the_jobs_environment_and_nothing_else() {
    let bench = Bench::new();
    let show = "pwd; ls -A; cd ~ && pwd; umask 0; ls -ld ~ ..; env | sort";
    let env = json!({ "GIVEN": "a value", "COWBOY_JOB_ID": "another" });
    let spec = json!({ "steps": [show], "env": env, "workdir": "a/b" });
    assert_eq!(bench.run([grant(1, spec)]).await, [Outcome::Succeeded]);
    let log = bench.log();
    let mut lines = log.lines().skip(1);
    let workdir = lines.next().unwrap();
    let job = std::path::Path::new(workdir).ancestors().nth(3).unwrap().to_str().unwrap();
    assert!(job.starts_with(bench.jobs_path().canonicalize().unwrap().to_str().unwrap()));
    assert_eq!(lines.next().unwrap(), format!("{job}/home"));
    let modes: Vec<_> = lines.by_ref().take(2).map(|line| &line[..10]).collect();
    assert_eq!(modes, ["drwx------"; 2]);
    // Variables that the shell itself sets.
    let own = ["PWD=", "OLDPWD=", "SHLVL=", "_="];
    let variables: Vec<_> =
        lines.filter(|line| !own.iter().any(|own| line.starts_with(own))).collect();
    let path = std::env::var("PATH").unwrap();
    let expected = [
        "COWBOY_ATTEMPT=1".to_owned(),
        "COWBOY_JOB_DIRECTORY=".to_owned() + job,
        "COWBOY_JOB_ID=job_1".to_owned(),
        "COWBOY_JOB_NAME=job-1".to_owned(),
        format!("COWBOY_OUTPUT={job}/home/.cowboy-output"),
        "COWBOY_RUN_ID=run_1".to_owned(),
        "GIVEN=a value".to_owned(),
        format!("HOME={job}/home"),
        format!("PATH={path}"),
    ];
    assert_eq!(variables, expected);

    bench.fake.change(|world| world.log.clear());
    let env = json!({ "HOME": "/", "PATH": "/nowhere" });
    let spec = json!({ "steps": ["echo $HOME $PATH"], "env": env });
    bench.run([grant(2, spec)]).await;
    assert!(bench.log().ends_with("\n/ /nowhere\n"), "{}", bench.log());
}

#[tokio::test]
async fn a_step_that_fails_is_the_last_and_is_told() {
    for (step, code, what) in [
        ("exit 7", json!(7), "failed with exit code 7"),
        ("kill -9 $$", json!(137), "was killed by signal 9"),
        ("rm -r ../work; exit 255", json!(255), "failed with exit code 255"),
    ] {
        let bench = Bench::new();
        let spec = json!({ "steps": ["true", step, "echo never"] });
        let outcomes = bench.run([grant(1, spec)]).await;
        let summary = format!("step 2 of 3 {what}: {step}");
        assert_eq!(outcomes, [Outcome::Failed(summary.clone())]);
        let complete = bench.message("complete");
        let told = (&complete["status"], &complete["exit_code"], &complete["summary"]);
        assert_eq!(told, (&json!("FAILED"), &code, &json!(summary)));
        assert_eq!(bench.log(), format!("$ true\n$ {step}\n[runner] step 2 of 3 {what}\n"));
    }
}

#[tokio::test]
async fn a_job_that_cannot_run_here_fails_with_the_reason() {
    for (spec, summary) in [
        (
            json!({ "steps": ["true"], "image": "alpine" }),
            "this runner has no containers, and the job wants alpine",
        ),
        (
            json!({ "steps": ["true"], "workdir": "../.." }),
            "workdir ../.. does not lead below the job's directory",
        ),
        (
            json!({ "steps": ["true"], "env": { "A=B": "C" } }),
            "`A=B` is not an environment variable name",
        ),
        (
            json!({ "steps": ["rm -r ../work", "true"] }),
            "step 2 of 2 cannot be run: No such file or directory (os error 2): true",
        ),
        (
            json!({ "steps": ["echo a\u{0}b"] }),
            "step 1 of 1 cannot be run: nul byte found in provided data: echo a b",
        ),
    ] {
        let bench = Bench::new();
        let outcomes = bench.run([grant(1, spec)]).await;
        assert_eq!(outcomes, [Outcome::Failed(summary.to_owned())]);
        let complete = bench.message("complete");
        assert_eq!(
            (&complete["status"], &complete["summary"]),
            (&json!("FAILED"), &json!(summary))
        );
        assert_eq!(complete.get("exit_code"), None);
    }
}

#[tokio::test]
async fn what_a_step_leaves_running_goes_with_it() {
    let bench = Bench::new();
    let marker = format!("{}/marker", bench.home.path().display());
    // In other sessions, reparented, ignoring signals; the step ends by itself.
    let leaves = "sleep 1000 & setsid sleep 1000 & (setsid sh -c 'trap \"\" TERM; sleep 1000' &)";
    let spec = json!({ "steps": [leaves, "echo next"], "env": { "MARKER": marker } });
    assert_eq!(bench.run([grant(1, spec)]).await, [Outcome::Succeeded]);
    assert!(!is_anywhere(&marker));
    assert!(bench.log().ends_with("$ echo next\nnext\n"), "{}", bench.log());
}

#[tokio::test]
async fn output_that_a_process_beyond_reach_holds_open_is_not_waited_for() {
    let bench = Bench::new();
    // Runs longer than anything here may take, and ends soon after.
    let step = "env -i $(command -v setsid) sleep 70 & echo done";
    assert_eq!(bench.run([grant(1, json!({ "steps": [step] }))]).await, [Outcome::Succeeded]);
    assert_eq!(bench.log(), format!("$ {step}\ndone\n"));
}

#[tokio::test]
async fn all_of_a_large_output_comes_in_its_order() {
    let bench = Bench::new();
    let step = "seq 1 300000";
    assert_eq!(bench.run([grant(1, json!({ "steps": [step] }))]).await, [Outcome::Succeeded]);
    let log = bench.log();
    let mut lines = log.lines();
    assert_eq!(lines.next(), Some("$ seq 1 300000"));
    assert!(lines.map(|line| line.parse::<u32>().unwrap()).eq(1..=300_000));
}

#[tokio::test]
async fn secrets_are_in_nothing_that_is_sent() {
    let bench = Bench::new();
    let key = "-----BEGIN KEY-----\nc2VjcmV0IGtleQ\n-----END KEY-----\n";
    let step = "echo hunter2-$PASSWORD-$(printf hun)ter2
        printf 'pass hun' >&2; printf 'ter2!\\n'; printf hunt; sleep 0.3; echo er2
        echo \"$KEY\" | sed s/^/key:/; echo 'progress: 50 with hunter2' >&2
        printf 'x\\377hunter2'; exit 3";
    let spec = json!({
        "steps": [format!("echo hunter2 {step}")],
        "env": { "PASSWORD": "hunter2", "KEY": key, "PLAIN": "unter" },
        "secret_env": ["PASSWORD", "KEY", "NOT_THERE"],
        "artifacts": [{ "type": "x", "path_glob": "none-hunter2" }],
    });
    let outcomes = bench.run([grant(1, spec)]).await;
    let summary =
        "step 1 of 1 failed with exit code 3: echo *** echo ***-$PASSWORD-$(printf hun)ter2";
    assert_eq!(outcomes, [Outcome::Failed(summary.to_owned())]);
    let world = bench.fake.world.borrow();
    let said = format!("{:?}{}", world.messages, world.log());
    for secret in ["hunter2", "c2VjcmV0IGtleQ", "BEGIN KEY", "END KEY"] {
        assert!(!said.contains(secret), "{secret}: {said}");
    }
    assert!(!world.log().contains("lease_"));
    let log = world.log();
    for line in [
        "*** echo ***-***-***",
        "pass ***!",
        "key:***",
        "progress: 50 with ***",
        "[runner] no file matches none-***",
    ] {
        assert!(log.lines().any(|have| have == line), "{line}: {log}");
    }
    assert!(world.log.windows(6).any(|bytes| bytes == b"x\xff***\n"));
}

/// Programs' encodings of `$S`, each if the program is installed.
const WRITES: &str = r#"
    hex() { od -An -v -tx1 | tr -d ' \n'; echo; }
    for before in '' 'u' 'user:'; do
        printf '%s%s' "$before" "$S" | base64
        printf '%s%s\n' "$before" "$S" | base64 | tr '+/' '-_' | tr -d '='
        printf '%s%s!' "$before" "$S" | base64 | tr -d '\n' | fold -w 10; echo
    done
    printf %s "$S" | hex; printf %s "$S" | hex | tr a-f A-F
    printf %s "$S" | od -An -v -tx1
    if command -v xxd > /dev/null; then printf %s "$S" | xxd -p; fi
    if command -v jq > /dev/null; then jq -rn --arg s "$S" '$s | @json, @uri, @base64'; fi
    if command -v python3 > /dev/null; then python3 -c '
import base64, json, os, urllib.parse
s = os.environ["S"]
print(json.dumps(s), json.dumps({"a": [s]}, ensure_ascii=False))
print(urllib.parse.quote(s), urllib.parse.quote_plus(s))
print(base64.urlsafe_b64encode(s.encode()).decode(), s.encode().hex())
'; fi
    echo end
"#;

#[tokio::test]
async fn a_secret_is_masked_whatever_program_writes_it() {
    let secret = "S3cr\"t/+ ü&=\\?>";
    let bench = Bench::new();
    let spec = json!({ "steps": [WRITES], "env": { "S": secret }, "secret_env": ["S"] });
    assert_eq!(bench.run([grant(1, spec)]).await, [Outcome::Succeeded]);
    let log = bench.log();
    let (_, written) = log.split_once('\n').unwrap();
    assert!(written.ends_with("\nend\n") && written.matches("***").count() >= 12, "{log}");
    // Normalized to one alphabet, one case, and one row.
    let flat = |text: &str| -> String {
        let text: String = text.split_whitespace().collect();
        text.replace('-', "+").replace('_', "/").to_ascii_lowercase()
    };
    let json = serde_json::to_string(secret).unwrap();
    let mut forms = vec![json.trim_matches('"').to_owned(), hex::encode(secret)];
    forms.extend(["S3cr%22t", "S3cr\\u0022t"].map(str::to_owned));
    // The first digits and the last one may contain bits of the surrounding text.
    forms.extend(["", "\0", "\0\0"].map(|before| {
        let digits = STANDARD_NO_PAD.encode(format!("{before}{secret}"));
        digits[(before.len() * 8).div_ceil(6)..digits.len() - 1].to_owned()
    }));
    for form in forms {
        assert!(!flat(written).contains(&flat(&form)), "{form}: {log}");
    }
}

#[tokio::test]
async fn a_secret_is_in_no_name_that_the_server_keeps() {
    let bench = Bench::new();
    let spec = json!({
        "steps": ["mkdir -p a-$S; echo one > a-$S/$S.xml; echo two > a-$S/aHVudGVyMg.xml"],
        "env": { "S": "hunter2" },
        "secret_env": ["S"],
        "artifacts": [{ "type": "x", "path_glob": "**/*.xml" }],
        "caches": [{ "type": "y", "key": "key-68756e74657232", "paths": ["a"] }],
    });
    assert_eq!(bench.run([grant(1, spec)]).await, [Outcome::Succeeded]);
    let world = bench.fake.world.borrow();
    let names: Vec<_> = world.artifacts.keys().collect();
    assert_eq!(names, ["a-***/***.xml"]);
    assert!(world.caches.is_empty());
    let said = format!("{:?}{:?}{}", world.messages, world.asked, world.log());
    for secret in ["hunter2", "aHVudGVyMg", "68756e74657232"] {
        assert!(!said.contains(secret), "{secret}: {said}");
    }
    for line in [
        "cache key-***: not restored: its key holds a secret of the job",
        "artifact a-***/***.xml is not kept: another has this name",
    ] {
        assert!(world.log().contains(&format!("[runner] {line}\n")), "{line}: {}", world.log());
    }
}

#[tokio::test]
async fn heartbeats_tell_how_far_a_job_is() {
    let bench = Bench::new();
    let wait = format!("until [ -e {}/go ]; do sleep 0.02; done", bench.home.path().display());
    let long = "x".repeat(300);
    let second = format!(": {long}\necho 'progress: 50 half way'; {wait}");
    let spec = json!({ "steps": ["echo one", second, "true"] });
    bench.fake.change(|world| world.queue.push_back(grant(1, spec)));
    let running = bench.start(1);
    bench
        .fake
        .until("progress of the second step", |world| {
            let last = world.of("heartbeat").last().map(|beat| beat["progress"].clone());
            last.is_some_and(|progress| progress["message"] == "half way")
        })
        .await;
    std::fs::write(bench.home.path().join("go"), "").unwrap();
    running.end().await.unwrap();
    let world = bench.fake.world.borrow();
    let beats = world.of("heartbeat");
    let beat = beats.iter().find(|beat| beat["progress"]["message"] == "half way").unwrap();
    let line = format!(": {}", &long[..254]);
    let expected = json!({
        "percent": 50, "current_step": line, "step_index": 1, "message": "half way",
    });
    assert_eq!(beat["progress"], expected);
    assert!(beat["log_cursor"]["bytes_sent"].as_u64().unwrap() > 0);
    assert_eq!((&beat["lease_id"], &beat["runner_id"]), (&json!(lease_id(1)), &json!("tested")));
}
