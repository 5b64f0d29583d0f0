//! Jobs with an image, on a scripted engine: its calls, and its failures. For a real engine see
//! `tests/cli/lease/containers.rs`.

use super::*;
use crate::messages::StaleReason;
use container::Engine;
use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, time::Duration};

/// An engine without containers. The file `on-COMMAND` next to it overrides a command. It notes
/// each call on a line.
const ENGINE: &str = r#"#!/bin/sh
here=${0%/*}
call=$(printf '%s\0' "$@" | tr '\n\0' ' |')
echo "$call" >> "$here/calls"
if [ -e "$here/on-$1" ]; then . "$here/on-$1"; fi
case $1 in
--version) echo 'podman version 4.3.1' ;;
info) echo '4.3.1;false' ;;
image) echo 0f1e2d ;;
create)
    for option; do
        case $option in type=bind,source=*)
            option=${option#type=bind,source=}
            echo "${option%,target=*}" > "$here/job" ;;
        esac
    done ;;
start) echo $$ > "$here/container"; echo 7; read -r _ ;;
exec)
    [ $# = 10 ] || { kill -TERM "$(cat "$here/step")"; exit 0; }
    job=$(cat "$here/job")
    ( . "$job${8#/cowboy}" && cd "$job${9#/cowboy}" && exec /bin/sh -c "${10}" ) &
    echo $! > "$here/step"
    wait $!
    exit $? ;;
kill) kill -KILL "$(cat "$here/container")" ;;
esac
"#;

/// A bench whose runner has an engine, and the engine's folder.
async fn equipped() -> (Bench, PathBuf) {
    let mut bench = Bench::new();
    let folder = bench.home.path().join("engine");
    fs::create_dir(&folder).unwrap();
    let program = folder.join("podman");
    fs::write(&program, ENGINE).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    bench.engine = Some(found(&bench, &program, LIMIT).await.unwrap());
    fs::remove_file(folder.join("calls")).unwrap();
    (bench, folder)
}

async fn found(bench: &Bench, program: &Path, patience: Duration) -> Result<Engine, String> {
    Engine::at(program, bench.home.path(), patience).await
}

/// Overrides a command of the engine.
fn upon(engine: &Path, command: &str, script: &str) {
    fs::write(engine.join(format!("on-{command}")), script).unwrap();
}

/// The engine's calls, without the container's name and the runner's folders.
fn calls(engine: &Path) -> Vec<String> {
    let text = fs::read_to_string(engine.join("calls")).unwrap_or_default();
    let job = fs::read_to_string(engine.join("job")).unwrap_or_default();
    let lines = text.lines().map(|line| {
        let parts = line.split('|').map(|part| match part.starts_with("cowboyctl-") {
            true => "NAME",
            false => part,
        });
        let line = parts.collect::<Vec<_>>().join(" ");
        let line = if job.is_empty() { line } else { line.replace(job.trim(), "JOB") };
        line.trim_end().to_owned()
    });
    lines.collect()
}

/// The first words of the engine's calls.
fn commands(engine: &Path) -> Vec<String> {
    let first = |call: String| call.split(' ').next().unwrap_or_default().to_owned();
    calls(engine).into_iter().map(first).collect()
}

/// The notes of containers that may exist.
fn notes(bench: &Bench) -> Vec<PathBuf> {
    let folder = bench.jobs_path().with_file_name("containers");
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

const WHOLE: [&str; 6] = ["image", "create", "start", "exec", "kill", "rm"];

#[tokio::test]
async fn steps_run_in_one_container_that_is_gone_afterwards() {
    let (bench, engine) = equipped().await;
    let env = json!({ "PASSWORD": "hunter2\n'; exit 9", "PATH": "/usr/bin:/bin" });
    let spec = json!({
        "image": "localhost/tools:1",
        "workdir": "sub",
        "steps": [
            "echo \"$HOME $COWBOY_JOB_DIRECTORY $COWBOY_ATTEMPT ${COWBOY_JOB_NAME}\"; echo err >&2",
            "ls -l ../../container-env | cut -c 1-10; echo $PASSWORD; echo 'progress: 50 half'",
            "mkdir out; echo made > out/it; exit 3",
        ],
        "env": env,
        "secret_env": ["PASSWORD"],
        "artifacts": [{ "type": "x", "path_glob": "out/*" }],
    });
    let outcomes = bench.run([grant(1, spec)]).await;
    let failed = "step 3 of 3 failed with exit code 3: mkdir out; echo made > out/it; exit 3";
    assert_eq!(outcomes, [Outcome::Failed(failed.to_owned())]);
    assert_eq!(bench.message("complete")["exit_code"], 3);
    let log = bench.log();
    let said: Vec<_> = log.lines().filter(|line| !line.starts_with(['$', '['])).collect();
    let expected =
        ["/cowboy/home /cowboy 1 job-1", "err", "-rw-------", "*** ***", "progress: 50 half"];
    assert_eq!(said, expected, "{log}");
    assert_eq!(bench.fake.world.borrow().artifacts["out/it"], "made\n".as_bytes());

    let calls = calls(&engine);
    assert_eq!(calls[0], "image inspect --format {{.Id}} -- localhost/tools:1");
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let runner = bench.jobs_path().parent().unwrap().to_owned();
    let create = format!(
        "create --pull never --name NAME --label cowboyctl.runner={} --init --user {}:{} \
         --http-proxy=false --mount type=bind,source=JOB,target=/cowboy,relabel=private \
         --stop-signal KILL --stop-timeout 0 --interactive --workdir /cowboy \
         --entrypoint /bin/sh -- localhost/tools:1 -c trap '' TERM HUP INT QUIT; echo $$; \
         read -r _",
        runner.display(),
        user.as_raw(),
        group.as_raw(),
    );
    assert_eq!(calls[1], create);
    assert_eq!(calls[2], "start --attach --interactive NAME");
    for (call, step) in calls[3..6].iter().zip(["echo \"$HOME", "ls -l", "mkdir out"]) {
        assert!(call.starts_with("exec NAME /bin/sh -c asked="), "{call}");
        let expected = format!(" sh 7 /cowboy/container-env /cowboy/work/sub {step}");
        assert!(call.contains(&expected), "{call}");
    }
    assert_eq!(calls[6..], ["kill --signal KILL NAME", "rm --force --volumes NAME"]);
    let all = calls.join("\n");
    assert!(!all.contains("hunter2") && !all.contains("lease_"), "{all}");
    assert!(notes(&bench).is_empty());

    // The request for work has the capability for containers.
    let request = bench.message("lease");
    assert_eq!(request["capabilities"], json!([consts::OS, consts::ARCH, "container"]));
}

#[tokio::test]
async fn a_container_is_noted_from_before_it_is_made_until_it_is_gone() {
    let (bench, engine) = equipped().await;
    let noted = bench.jobs_path().with_file_name("containers").display().to_string();
    let look = format!("ls {noted} >> $here/seen-$1");
    for command in ["image", "create", "start", "rm"] {
        upon(&engine, command, &look);
    }
    let spec = json!({ "image": "tools", "steps": ["true"] });
    assert_eq!(bench.run([grant(1, spec)]).await, [Outcome::Succeeded]);
    let seen = |command: &str| {
        let text = fs::read_to_string(engine.join(format!("seen-{command}")));
        text.unwrap_or_default().lines().count()
    };
    assert_eq!(["image", "create", "start", "rm"].map(seen), [0, 1, 1, 1]);
    assert!(notes(&bench).is_empty());
    assert_eq!(commands(&engine), WHOLE);
}

#[tokio::test]
async fn an_image_that_is_not_there_is_pulled_into_the_log() {
    let (bench, engine) = equipped().await;
    upon(&engine, "image", "exit 1");
    upon(&engine, "pull", "echo 'layer 1'; echo 'layer 2' >&2");
    let spec = json!({ "image": "tools", "steps": ["echo step"] });
    assert_eq!(bench.run([grant(1, spec)]).await, [Outcome::Succeeded]);
    let expected = "[runner] pulling image tools\nlayer 1\nlayer 2\n$ echo step\nstep\n";
    assert_eq!(bench.log(), expected);
    assert_eq!(calls(&engine)[1], "pull -- tools");
}

#[tokio::test]
async fn what_goes_wrong_before_the_first_step_is_the_summary() {
    let no_init = "case $call in *--init*) echo 'Error: container-init binary not found' >&2
        exit 127 ;; esac";
    for (command, script, summary, asked) in [
        (
            "pull",
            "echo layer; echo 'Error: no such\u{7} host S3CRET' >&2; echo >&2; exit 125",
            "image tools cannot be pulled: no such  host ***",
            &["image", "pull"][..],
        ),
        (
            "create",
            "echo Error: no room >&2; exit 125",
            "a container of tools cannot be made: no room",
            &["image", "pull", "create", "rm"],
        ),
        (
            "start",
            "echo Error: no runtime >&2; exit 126",
            "a container of tools cannot be started: no runtime",
            &["image", "pull", "create", "start", "rm"],
        ),
        (
            "start",
            "echo hello; read -r _; exit 0",
            "a container of tools cannot be started: its /bin/sh is not a shell",
            &["image", "pull", "create", "start", "rm"],
        ),
    ] {
        let (bench, engine) = equipped().await;
        upon(&engine, "image", "exit 1");
        upon(&engine, "pull", "exit 0");
        upon(&engine, command, script);
        let spec = json!({
            "image": "tools",
            "steps": ["echo step"],
            "env": { "SECRET": "S3CRET" },
            "secret_env": ["SECRET"],
        });
        let outcomes = bench.run([grant(1, spec)]).await;
        assert_eq!(outcomes, [Outcome::Failed(summary.to_owned())]);
        let complete = bench.message("complete");
        assert_eq!((&complete["summary"], complete.get("exit_code")), (&json!(summary), None));
        assert!(bench.log().ends_with(&format!("[runner] {summary}\n")), "{}", bench.log());
        assert!(!bench.log().contains("\nstep\n"), "{}", bench.log());
        assert_eq!(commands(&engine), asked, "{summary}");
        assert!(notes(&bench).is_empty());
    }

    // Without the engine's init binary the container has none.
    let (bench, engine) = equipped().await;
    upon(&engine, "create", no_init);
    let spec = json!({ "image": "tools", "steps": ["echo step"] });
    assert_eq!(bench.run([grant(1, spec)]).await, [Outcome::Succeeded]);
    let note = "[runner] processes that end may stay zombies: container-init binary not found\n";
    assert_eq!(bench.log(), format!("{note}$ echo step\nstep\n"));
    let creations = calls(&engine).into_iter().filter(|call| call.starts_with("create"));
    let inits: Vec<_> = creations.map(|call| call.contains(" --init ")).collect();
    assert_eq!(inits, [true, false]);
}

#[tokio::test]
async fn what_no_container_can_have_is_refused_before_the_engine_is_asked() {
    for (spec, summary) in [
        (
            json!({ "image": "--privileged" }),
            "`--privileged` is not an image name: it must begin with a letter, a digit or [",
        ),
        (
            json!({ "image": "dir:/etc" }),
            "`dir:/etc` is not an image name: only images of registries and the engine's own are \
             allowed",
        ),
        (
            json!({ "image": "tools", "env": { "a.b": "c" } }),
            "`a.b` cannot be a variable in a container: expected letters, digits and _, no digit \
             first",
        ),
        (
            json!({ "image": "tools", "env": { "UID": "0" } }),
            "`UID` cannot be a variable in a container: the shell reserves it",
        ),
        (
            json!({ "image": "tools", "workdir": "../.." }),
            "workdir ../.. does not lead below the job's directory",
        ),
    ] {
        let (bench, engine) = equipped().await;
        let mut spec = spec;
        spec["steps"] = json!(["true"]);
        let outcomes = bench.run([grant(1, spec)]).await;
        assert_eq!(outcomes, [Outcome::Failed(summary.to_owned())]);
        assert!(commands(&engine).is_empty(), "{summary}");
    }
}

#[tokio::test]
async fn a_cancel_ends_whatever_the_engine_is_doing() {
    for (command, script, asked) in [
        ("image", "echo ready >> $here/ready; exec sleep 600", &["image"][..]),
        ("pull", "echo ready >> $here/ready; echo ready; sleep 600; :", &["image", "pull"]),
        (
            "create",
            "echo ready >> $here/ready; trap '' TERM; sleep 600; :",
            &["image", "pull", "create", "rm"],
        ),
        (
            "start",
            "echo ready >> $here/ready; sleep 600; :",
            &["image", "pull", "create", "start", "rm"],
        ),
    ] {
        let (bench, engine) = equipped().await;
        upon(&engine, "image", "exit 1");
        upon(&engine, "pull", "exit 0");
        upon(&engine, command, script);
        let spec = json!({ "image": "tools", "steps": ["echo step"] });
        bench.fake.change(|world| world.queue.push_back(grant(1, spec)));
        let running = bench.start(1);
        until_there(&engine.join("ready")).await;
        bench.fake.change(|world| world.cancel = Some(30));
        running.end().await.unwrap();
        assert_eq!(bench.outcomes(), [Outcome::Canceled], "{command}");
        assert_eq!(commands(&engine), asked, "{command}");
        assert!(!is_anywhere(bench.home.path().to_str().unwrap()), "{command}");
        assert!(notes(&bench).is_empty());
    }
}

/// Waits for a file that another process writes.
async fn until_there(path: &Path) {
    let there = async {
        while fs::read(path).unwrap_or_default().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    timeout(LIMIT, there).await.expect("it is written");
}

/// A job whose step reports that it is ready and that it is asked to end.
fn endless(number: u32) -> Value {
    let step = "trap 'echo cleaned; exit 5' TERM; echo part > part; echo ready; sleep 600 & wait";
    let artifacts = json!([{ "type": "x", "path_glob": "part" }]);
    grant(number, json!({ "image": "tools", "steps": [step], "artifacts": artifacts }))
}

#[tokio::test]
async fn a_cancel_asks_what_runs_in_a_container_to_end() {
    let (bench, engine) = equipped().await;
    bench.fake.change(|world| world.queue.push_back(endless(1)));
    let running = bench.start(1);
    bench.fake.until("the step's output", |world| world.log().contains("\nready\n")).await;
    bench.fake.change(|world| world.cancel = Some(30));
    running.end().await.unwrap();
    assert_eq!(bench.outcomes(), [Outcome::Canceled]);
    assert!(bench.log().contains("\nready\ncleaned\n[runner] Canceled during"), "{}", bench.log());
    assert!(bench.fake.world.borrow().artifacts.contains_key("part"));
    assert_eq!(commands(&engine), ["image", "create", "start", "exec", "exec", "kill", "rm"]);
    let end = &calls(&engine)[4];
    assert!(end.starts_with("exec NAME /bin/sh -c trap '' TERM; kill -TERM -1 "), "{end}");
    assert!(end.ends_with(" sh 7") && notes(&bench).is_empty(), "{end}");
}

#[tokio::test]
async fn a_lost_lease_asks_nothing_more_of_what_runs() {
    let (bench, engine) = equipped().await;
    bench.fake.change(|world| world.queue.push_back(endless(1)));
    let running = bench.start(1);
    bench.fake.until("the step's output", |world| world.log().contains("\nready\n")).await;
    let reason = StaleReason::LeaseRevoked;
    bench.fake.change(|world| world.faults.push(("heartbeat", Fault::Stale(reason))));
    running.end().await.unwrap();
    assert_eq!(bench.outcomes(), [Outcome::Lost(Loss::Stale(reason))]);
    assert_eq!(commands(&engine)[3..], ["exec", "rm"]);
    assert!(!bench.log().contains("\ncleaned\n"), "{}", bench.log());
}

#[tokio::test]
async fn an_engine_that_hangs_holds_no_job_up() {
    let (bench, engine) = equipped().await;
    upon(&engine, "kill", "exec sleep 600");
    let spec = json!({ "image": "tools", "steps": ["echo step"] });
    let next = grant(2, json!({ "steps": ["echo next"] }));
    let outcomes = bench.run([grant(1, spec), next]).await;
    assert_eq!(outcomes, [Outcome::Succeeded, Outcome::Succeeded]);
    assert_eq!(commands(&engine), WHOLE);
    assert!(!is_anywhere(bench.home.path().to_str().unwrap()));
}

#[tokio::test]
async fn a_container_that_ends_by_itself_ends_its_step() {
    let (bench, engine) = equipped().await;
    upon(&engine, "exec", "kill -KILL $(cat $here/container); sleep 0.2; exit 137");
    let spec = json!({ "image": "tools", "steps": ["echo step"] });
    let outcomes = bench.run([grant(1, spec)]).await;
    let summary = "step 1 of 1 cannot be run: its container has ended: echo step";
    assert_eq!(outcomes, [Outcome::Failed(summary.to_owned())]);
}

#[tokio::test]
async fn what_cannot_be_removed_is_tried_again_when_a_runner_starts() {
    let (bench, engine) = equipped().await;
    upon(&engine, "rm", "echo Error: busy >&2; exit 2");
    upon(&engine, "ps", "echo 0f1e2d");
    let spec = json!({ "image": "tools", "steps": ["echo step"] });
    let job = || grant(1, spec.clone());
    assert_eq!(bench.run([job()]).await, [Outcome::Succeeded]);
    let [note] = &notes(&bench)[..] else { panic!("{:?}", notes(&bench)) };
    let name = note.file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(fs::read(note).unwrap(), engine.join("podman").to_str().unwrap().as_bytes());

    // Any runner that starts in the same home; one with another name removes the folder too.
    let folder = folder::RunnerFolder::of(bench.home.path(), "tested");
    folder::RunnerFolder::sweep(bench.home.path()).await.unwrap();
    assert_eq!(notes(&bench).len(), 1, "it is busy still");
    fs::remove_file(engine.join("on-rm")).unwrap();
    fs::remove_file(engine.join("calls")).unwrap();
    folder::RunnerFolder::sweep(bench.home.path()).await.unwrap();
    let calls = fs::read_to_string(engine.join("calls")).unwrap();
    assert_eq!(calls, format!("rm|--force|--volumes|{name}|\n"));
    assert!(!folder.path().exists());

    // And the next one with the same name. A container that no longer exists counts as removed.
    let left = format!("cowboyctl-{:032x}", 7);
    fs::create_dir_all(bench.jobs_path().with_file_name("containers")).unwrap();
    drop(fs::File::create(folder.path().join("lock")).unwrap());
    let note = bench.jobs_path().with_file_name("containers").join(&left);
    fs::write(&note, engine.join("podman").to_str().unwrap()).unwrap();
    upon(&engine, "rm", "case $2 in --force) echo Error: none >&2; exit 1;; esac");
    upon(&engine, "ps", "exit 0");
    bench.fake.change(|world| world.queue.push_back(grant(2, json!({ "steps": ["true"] }))));
    bench.start(1).end().await.unwrap();
    assert!(!note.exists());
    let calls = fs::read_to_string(engine.join("calls")).unwrap();
    assert!(calls.ends_with(&format!("ps|--all|--quiet|--filter|name={left}|\n")), "{calls}");
}

#[tokio::test]
async fn an_engine_without_a_server_or_an_answer_is_none() {
    let (bench, engine) = equipped().await;
    let program = engine.join("podman");
    let find = async |patience| found(&bench, &program, patience).await;
    assert_eq!(find(LIMIT).await.unwrap().name(), "podman 4.3.1");
    upon(&engine, "info", "echo Cannot connect to the Docker daemon >&2; exit 1");
    assert_eq!(find(LIMIT).await.unwrap_err(), "Cannot connect to the Docker daemon");
    upon(&engine, "info", "echo ';[]'; exit 0");
    assert_eq!(find(LIMIT).await.unwrap_err(), "it has no server");
    upon(&engine, "info", "sleep 600; :");
    assert_eq!(find(Duration::from_millis(300)).await.unwrap_err(), "no answer in time");
    assert!(!is_anywhere(bench.home.path().to_str().unwrap()));
    upon(&engine, "--version", "echo Docker version 28.2.2; exit 0");
    upon(&engine, "info", "echo '28.2.2;[name=seccomp,profile=builtin name=userns]'; exit 0");
    let error = find(LIMIT).await.unwrap_err();
    assert!(error.contains("userns-remap"), "{error}");
    upon(&engine, "info", "echo '28.2.2;[name=seccomp,profile=builtin]'; exit 0");
    assert_eq!(find(LIMIT).await.unwrap().name(), "docker 28.2.2");
}
