//! A prover in a separate process, and the devnet's protocol with it.
//!
//! The devnet starts its own program with the single argument [`ARGUMENT`] and an empty
//! environment. All communication goes through the standard streams, in frames of fixed lengths
//! with big-endian integers:
//!
//! | who | bytes | what |
//! |---|---|---|
//! | devnet | 4, n | n, and the proving key: the generator, its tables or `mock`'s key |
//! | prover | 8 + 32 | [`GREETING`] and the id of its key: it is ready |
//! | devnet | 264 | a request: task, agent, output, salt, blinding seed, minimum time |
//! | prover | 388 | the proof |
//!
//! The last two repeat, one proof at a time. The prover ends when its input ends, even in the
//! middle of a proof, so a killed devnet leaves no provers behind. The devnet kills a prover when
//! its proof is no longer wanted, or when it answers with a proof of another statement.

use super::{super::core::ToProve, maker::Maker};
use cowboy_engine::{
    primitives::Hash,
    proof::{Element, PROOF_BYTES, Statement, Witness},
};
use std::{
    io::{self, Read, Write},
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

/// The single argument that makes a program a prover.
pub const ARGUMENT: &str = "__prover";

const GREETING: [u8; 8] = *b"prover/1";
const REQUEST_BYTES: usize = 32 * 8 + 8;
/// Maximum length of a proving key, which takes about 8 MB.
const MAX_MAKER_BYTES: u32 = 64 << 20;
/// Time limit of a start, which needs about 30 ms of a possibly busy processor.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit for the process to end after it has closed its output.
const END_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) struct ProofRequest {
    pub(super) task: [u8; 32],
    pub(super) agent: [u8; 32],
    pub(super) witness: Witness,
    pub(super) seed: [u8; 32],
    /// Minimum time that the proof takes, in ms.
    pub(super) latency_ms: u64,
}

impl ProofRequest {
    pub(super) fn of(what: &ToProve, agent: [u8; 32], seed: [u8; 32], latency: Duration) -> Self {
        let latency_ms = u64::try_from(latency.as_millis()).unwrap_or(u64::MAX);
        Self { task: what.task, agent, witness: what.witness, seed, latency_ms }
    }

    fn statement(&self) -> Statement {
        Statement::of(&self.task, &self.agent, &self.witness)
    }

    fn to_bytes(&self) -> [u8; REQUEST_BYTES] {
        let mut bytes = Vec::with_capacity(REQUEST_BYTES);
        let Witness { output, salt } = self.witness;
        bytes.extend(self.task);
        bytes.extend(self.agent);
        bytes.extend(output.into_iter().chain([salt]).flat_map(Element::to_bytes));
        bytes.extend(self.seed);
        bytes.extend(self.latency_ms.to_be_bytes());
        bytes.try_into().expect("eight times 32 bytes, and eight")
    }

    /// Decodes a request; `None` if a number of the witness is not below the modulus.
    fn from_bytes(bytes: &[u8; REQUEST_BYTES]) -> Option<Self> {
        let (words, latency) = bytes.as_chunks::<32>();
        let [task, agent, a, b, c, d, salt, seed] = words.try_into().ok()?;
        let read = |word: &[u8; 32]| Element::from_bytes(word);
        let output = [read(&a)?, read(&b)?, read(&c)?, read(&d)?];
        let witness = Witness { output, salt: read(&salt)? };
        let latency_ms = u64::from_be_bytes(latency.try_into().ok()?);
        Some(Self { task, agent, witness, seed, latency_ms })
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Lost {
    /// It ended or was killed.
    #[error("its prover died: {0}")]
    Died(String),
    #[error("its prover answered with a proof of another statement")]
    Strange,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ProverStartError {
    #[error(transparent)]
    Lost(Lost),
    /// It could not be started, or ended by itself.
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it is not ready after {} s", START_TIMEOUT.as_secs())]
    Late,
    #[error("it proves for another key than this chain's")]
    OtherKey,
}

/// A running prover, killed when dropped.
pub(super) struct Process {
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
}

impl Process {
    /// Starts `program` as a prover for `key`, sends it `maker`, and waits until it is ready.
    pub(super) async fn start(
        program: &Path,
        maker: &[u8],
        key: &Hash,
    ) -> Result<Self, ProverStartError> {
        let mut child = Command::new(program)
            .arg(ARGUMENT)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A panic's message goes to this process's stderr.
            .stderr(Stdio::inherit())
            // A terminal signal is for the devnet, which ends its provers itself.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let piped = || io::Error::other("no pipe to it");
        let stdin = child.stdin.take().ok_or_else(piped)?;
        let stdout = child.stdout.take().ok_or_else(piped)?;
        let mut this = Self { child, stdin, stdout };
        let mut greeting = [0; GREETING.len() + 32];
        let ready = async {
            let length = u32::try_from(maker.len()).map_err(io::Error::other)?;
            this.stdin.write_all(&length.to_be_bytes()).await?;
            this.stdin.write_all(maker).await?;
            this.stdout.read_exact(&mut greeting).await
        };
        let ready = timeout(START_TIMEOUT, ready).await.map_err(|_| ProverStartError::Late)?;
        if let Err(error) = ready {
            return Err(match this.end().await {
                Some(status) if status.signal().is_some() => ProverStartError::Lost(died(status)),
                Some(status) => io::Error::other(format!("it ends at once, {status}")).into(),
                None => error.into(),
            });
        }
        match greeting == greeted(key) {
            true => Ok(this),
            false => Err(ProverStartError::OtherKey),
        }
    }

    /// Its exit status after it has closed its output; `None` if it still runs.
    async fn end(&mut self) -> Option<ExitStatus> {
        timeout(END_TIMEOUT, self.child.wait()).await.ok()?.ok()
    }

    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// If this future is dropped before it is done, the process must be dropped too.
    pub(super) async fn prove(
        &mut self,
        request: &ProofRequest,
    ) -> Result<[u8; PROOF_BYTES], Lost> {
        let mut proof = [0; PROOF_BYTES];
        let asked = async {
            self.stdin.write_all(&request.to_bytes()).await?;
            self.stdout.read_exact(&mut proof).await
        };
        if let Err(error) = asked.await {
            let ended = self.end().await;
            return Err(ended.map_or_else(|| Lost::Died(error.to_string()), died));
        }
        match Statement::carried(&proof) {
            Ok(carried) if carried == request.statement() => Ok(proof),
            _ => Err(Lost::Strange),
        }
    }
}

fn died(status: ExitStatus) -> Lost {
    Lost::Died(status.to_string())
}

fn greeted(key: &Hash) -> [u8; GREETING.len() + 32] {
    let mut bytes = [0; GREETING.len() + 32];
    let (greeting, id) = bytes.split_at_mut(GREETING.len());
    greeting.copy_from_slice(&GREETING);
    id.copy_from_slice(&key.0);
    bytes
}

fn read_maker(input: &mut impl Read) -> io::Result<Maker> {
    let mut length = [0; 4];
    input.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length).min(MAX_MAKER_BYTES);
    let mut bytes = vec![0; length as usize];
    input.read_exact(&mut bytes)?;
    Maker::from_bytes(&bytes).ok_or_else(|| io::Error::other("nothing to prove with"))
}

/// Runs as a prover until `input` ends, for a program started with [`ARGUMENT`]. `ended` is called
/// as soon as that happens, even during a proof, and should end the process. Fails if `output` is
/// closed or `input` is not a devnet's.
pub fn serve(
    mut input: impl Read + Send + 'static,
    mut output: impl Write,
    ended: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    let maker = read_maker(&mut input)?;
    let (sender, requests) = mpsc::sync_channel(1);
    // Keeps reading during a proof, so that it notices when the devnet ends.
    thread::spawn(move || {
        let mut request = [0; REQUEST_BYTES];
        while input.read_exact(&mut request).is_ok() && sender.send(request).is_ok() {}
        ended();
    });
    output.write_all(&greeted(&maker.key()))?;
    output.flush()?;
    while let Ok(request) = requests.recv() {
        let begun = Instant::now();
        let request = ProofRequest::from_bytes(&request);
        let request = request.ok_or_else(|| io::Error::other("a witness beyond the field"))?;
        let ProofRequest { task, agent, witness, seed, latency_ms } = request;
        let proof = maker.prove(&task, &agent, &witness, &seed);
        thread::sleep(Duration::from_millis(latency_ms).saturating_sub(begun.elapsed()));
        output.write_all(&proof)?;
        output.flush()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cowboy_engine::{chain::Scheme, proof::mock};

    fn request(output: u64) -> ProofRequest {
        let witness = Witness { output: [output, 6, 7, 8].map(Element::from), salt: 9.into() };
        ProofRequest { task: [1; 32], agent: [2; 32], witness, seed: [3; 32], latency_ms: 0 }
    }

    #[test]
    fn requests_come_as_they_were() {
        let bytes = ProofRequest { latency_ms: u64::MAX - 1, ..request(5) }.to_bytes();
        let read = ProofRequest::from_bytes(&bytes).unwrap();
        assert_eq!((read.to_bytes(), read.latency_ms), (bytes, u64::MAX - 1));
        assert_eq!(read.statement(), request(5).statement());
        // A number of the witness that is not below the modulus.
        let mut beyond = bytes;
        beyond[64..96].fill(0xff);
        assert!(ProofRequest::from_bytes(&beyond).is_none());
    }

    #[test]
    fn a_prover_greets_and_answers_until_its_input_ends() {
        let maker = Maker::Mock([4; 32]).to_bytes();
        let requests = [request(5), request(6)];
        let mut input = [&33_u32.to_be_bytes(), &maker[..]].concat();
        input.extend(requests.iter().flat_map(ProofRequest::to_bytes));
        let (mut output, (sender, ended)) = (Vec::new(), mpsc::channel());
        let ends = move || sender.send(()).unwrap();
        serve(io::Cursor::new(input), &mut output, ends).unwrap();
        ended.recv().unwrap();
        let mut expected = greeted(&Scheme::Mock([4; 32]).key_id()).to_vec();
        for request in &requests {
            expected.extend(mock::prove(&[4; 32], &request.statement()));
        }
        assert_eq!(output, expected);
    }

    #[test]
    fn other_input_is_refused() {
        for input in [vec![], vec![0xff; 100], vec![0, 0, 0, 0], vec![0, 0, 0, 1, 2]] {
            assert!(serve(io::Cursor::new(input), Vec::new(), || ()).is_err());
        }
    }
}
