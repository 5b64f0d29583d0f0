//! Consensus' files while a validator that is alone hurries: written at once, synced later.
//!
//! Consensus syncs its files some fifteen times per block and hands each write to another thread,
//! which takes longer than everything else about an empty block. [`Hurried`] is a runtime whose
//! storage does neither while [`Hurry`] is on: it writes into the system's cache at once, so that a
//! killed process loses nothing, and notes what has changed. The first sync or synced write after
//! that first syncs all of it. Until then a power failure may lose or damage the chain.
//!
//! Only a validator whose committee is itself may hurry: it cannot contradict votes that others
//! hold.

use commonware_runtime::{
    Blob, BlobVersion, Clock, Error, Handle, IoBufs, IoBufsMut, Metrics, Name, ReadOptions,
    Spawner, Storage, Supervisor, WriteOptions, signal,
    telemetry::metrics::{Metric, Registered},
};
use governor::clock::{Clock as RateClock, ReasonablyRealtime};
use rand_core::{TryCryptoRng, TryRng};
use std::{
    collections::BTreeMap,
    fmt::Display,
    fs::{self, File},
    io::{self, Read as _, Write as _},
    ops::RangeInclusive,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

/// Whether the files in a folder are written in a hurry. Clones share it. By default they never
/// are.
#[derive(Clone, Default)]
pub struct Hurry(Option<Arc<Folder>>);

/// What the runtime writes at the beginning of a new file, by the versions that were asked for.
type FileHeaders = BTreeMap<(BlobVersion, BlobVersion), Arc<[u8]>>;

/// Files and folders with changes that no sync covers, each with the number of its last change.
#[derive(Default)]
struct Changed {
    last: u64,
    paths: BTreeMap<PathBuf, u64>,
}

/// The storage folder of a runtime.
struct Folder {
    path: PathBuf,
    on: AtomicBool,
    changed: Mutex<Changed>,
    syncing: tokio::sync::Mutex<()>,
    headers: Mutex<FileHeaders>,
}

impl Hurry {
    /// For the runtime whose storage is in `folder`.
    pub fn over(folder: PathBuf) -> Self {
        Self(Some(Arc::new(Folder {
            path: folder,
            on: AtomicBool::default(),
            changed: Mutex::default(),
            syncing: tokio::sync::Mutex::default(),
            headers: Mutex::default(),
        })))
    }

    /// Hurries from now on, or no longer.
    pub fn set(&self, on: bool) {
        if let Some(folder) = &self.0 {
            folder.on.store(on, Ordering::Release);
        }
    }

    fn folder(&self) -> Option<&Arc<Folder>> {
        self.0.as_ref().filter(|folder| folder.on.load(Ordering::Acquire))
    }

    async fn settle(&self) -> Result<(), Error> {
        match &self.0 {
            Some(folder) => folder.settle().await,
            None => Ok(()),
        }
    }
}

impl Folder {
    fn changed(&self) -> MutexGuard<'_, Changed> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_changed(&self, path: &Path) {
        let mut changed = self.changed();
        changed.last += 1;
        let number = changed.last;
        match changed.paths.get_mut(path) {
            Some(last) => *last = number,
            None => {
                changed.paths.insert(path.to_owned(), number);
            }
        }
    }

    /// A file was made or removed: its folder has changed, and that may be new too.
    fn has_other_files(&self, file: &Path) {
        self.has_changed(file.parent().unwrap_or(&self.path));
        self.has_changed(&self.path);
    }

    /// Syncs all that was changed in a hurry before this call. What cannot be synced stays.
    async fn settle(&self) -> Result<(), Error> {
        if self.changed().paths.is_empty() {
            return Ok(());
        }
        // Who comes second waits for the first, and finds what that could not sync.
        let _turn = self.syncing.lock().await;
        let paths = self.changed().paths.clone();
        let synced = tokio::task::spawn_blocking(move || {
            // A file that is gone needs no sync; its folder is among them.
            let exist = paths.keys().map(|path| match File::open(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                opened => opened?.sync_data(),
            });
            exist.collect::<io::Result<()>>().map(|()| paths)
        });
        let synced = synced.await.map_err(|_| Error::Closed)??;
        // Without what has changed again in the meantime.
        self.changed().paths.retain(|path, number| synced.get(path) != Some(number));
        Ok(())
    }

    fn file(&self, partition: &str, name: &[u8]) -> PathBuf {
        self.path.join(partition).join(hex::encode(name))
    }

    /// Creates a file as the runtime does, but does not sync it. The runtime completes or refuses a
    /// file that was not completely created.
    fn create(&self, file: &Path, header: &[u8]) -> io::Result<()> {
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent)?;
        }
        let created = File::options().write(true).create_new(true).open(file);
        let written = created.and_then(|mut file| file.write_all(header));
        self.has_changed(file);
        self.has_other_files(file);
        written
    }

    fn header(&self, versions: &RangeInclusive<BlobVersion>) -> Option<Arc<[u8]>> {
        let headers = self.headers.lock().unwrap_or_else(PoisonError::into_inner);
        headers.get(&(*versions.start(), *versions.end())).cloned()
    }

    /// Learns the header of a new file from the runtime's own.
    fn learn(&self, versions: &RangeInclusive<BlobVersion>, file: &Path) -> io::Result<()> {
        let mut header = Vec::new();
        File::open(file)?.read_to_end(&mut header)?;
        let mut headers = self.headers.lock().unwrap_or_else(PoisonError::into_inner);
        headers.insert((*versions.start(), *versions.end()), header.into());
        Ok(())
    }
}

/// A runtime whose storage knows [`Hurry`].
pub struct Hurried<E> {
    inner: E,
    hurry: Hurry,
}

impl<E> Hurried<E> {
    pub const fn new(inner: E, hurry: Hurry) -> Self {
        Self { inner, hurry }
    }
}

impl<E: Storage> Storage for Hurried<E> {
    type Blob = HurriedBlob<E::Blob>;

    async fn open_versioned(
        &self,
        partition: &str,
        name: &[u8],
        versions: RangeInclusive<BlobVersion>,
    ) -> Result<(Self::Blob, u64, BlobVersion), Error> {
        let Some(folder) = &self.hurry.0 else {
            let (inner, len, version) =
                self.inner.open_versioned(partition, name, versions).await?;
            return Ok((HurriedBlob { inner, own: None }, len, version));
        };
        let path = folder.file(partition, name);
        let is_new = self.hurry.folder().is_some() && !path.exists();
        let header = folder.header(&versions).filter(|_| is_new);
        if let Some(header) = &header
            && let Err(error) = folder.create(&path, header)
        {
            tracing::debug!(file = %path.display(), %error, "not created in a hurry");
        }
        let (inner, len, version) =
            self.inner.open_versioned(partition, name, versions.clone()).await?;
        if is_new && header.is_none() && len == 0 {
            folder.learn(&versions, &path)?;
        }
        // What precedes the contents is the runtime's own.
        let begin = fs::metadata(&path)?.len().checked_sub(len);
        let own = begin.map(|begin| OwnFile {
            hurry: self.hurry.clone(),
            path,
            begin,
            file: OnceLock::new(),
        });
        Ok((HurriedBlob { inner, own }, len, version))
    }

    async fn remove(&self, partition: &str, name: Option<&[u8]>) -> Result<(), Error> {
        if let (Some(folder), Some(name)) = (self.hurry.folder(), name) {
            let file = folder.file(partition, name);
            if fs::remove_file(&file).is_ok() {
                folder.has_other_files(&file);
                // A long advance makes and removes a file for each block.
                folder.changed().paths.remove(&file);
                return Ok(());
            }
        }
        self.inner.remove(partition, name).await
    }

    async fn scan(&self, partition: &str) -> Result<Vec<Vec<u8>>, Error> {
        self.inner.scan(partition).await
    }
}

/// A file of [`Hurried`]. The runtime reads it.
pub struct HurriedBlob<B> {
    inner: B,
    own: Option<OwnFile>,
}

struct OwnFile {
    hurry: Hurry,
    path: PathBuf,
    /// Where the contents begin in the file.
    begin: u64,
    /// Opened by the first write in a hurry.
    file: OnceLock<File>,
}

impl OwnFile {
    fn file(&self) -> io::Result<&File> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let opened = File::options().write(true).open(&self.path)?;
        Ok(self.file.get_or_init(|| opened))
    }
}

impl<B> HurriedBlob<B> {
    /// In a hurry, changes the file at a place in its contents and says `true`.
    fn change(
        &self,
        place: u64,
        change: impl FnOnce(&File, u64) -> io::Result<()>,
    ) -> Result<bool, Error> {
        let Some(own) = &self.own else { return Ok(false) };
        let Some(folder) = own.hurry.folder() else { return Ok(false) };
        let at = own.begin.checked_add(place).ok_or(Error::OffsetOverflow)?;
        let changed = own.file().and_then(|file| change(file, at));
        folder.has_changed(&own.path);
        changed?;
        Ok(true)
    }

    /// Puts a sync off, while in a hurry. It may be one of writes that were not in a hurry.
    fn is_put_off(&self) -> bool {
        let Some(own) = &self.own else { return false };
        let folder = own.hurry.folder();
        folder.inspect(|folder| folder.has_changed(&own.path)).is_some()
    }

    async fn settle(&self) -> Result<(), Error> {
        match &self.own {
            Some(own) => own.hurry.settle().await,
            None => Ok(()),
        }
    }
}

impl<B: Blob> Blob for HurriedBlob<B> {
    async fn read_at_buf(
        &self,
        offset: u64,
        len: usize,
        bufs: impl Into<IoBufsMut> + Send,
        options: ReadOptions,
    ) -> Result<IoBufsMut, Error> {
        self.inner.read_at_buf(offset, len, bufs, options).await
    }

    async fn read_at(
        &self,
        offset: u64,
        len: usize,
        options: ReadOptions,
    ) -> Result<IoBufsMut, Error> {
        self.inner.read_at(offset, len, options).await
    }

    async fn write_at(
        &self,
        offset: u64,
        bufs: impl Into<IoBufs> + Send,
        options: WriteOptions,
    ) -> Result<(), Error> {
        // A clone shares the bytes.
        let bufs: IoBufs = bufs.into();
        let write = |file: &File, at| file.write_all_at(bufs.clone().coalesce().as_ref(), at);
        if self.change(offset, write)? {
            return Ok(());
        }
        // What was written before must not be lost where this is not.
        if options.contains(WriteOptions::SYNC) {
            self.settle().await?;
        }
        self.inner.write_at(offset, bufs, options).await
    }

    async fn resize(&self, len: u64) -> Result<(), Error> {
        match self.change(len, File::set_len)? {
            true => Ok(()),
            false => self.inner.resize(len).await,
        }
    }

    async fn sync(&self) -> Result<(), Error> {
        if self.is_put_off() {
            return Ok(());
        }
        self.settle().await?;
        self.inner.sync().await
    }

    async fn start_sync(&self) -> Handle<()> {
        if self.is_put_off() {
            return Handle::ready(Ok(()));
        }
        match self.settle().await {
            Ok(()) => self.inner.start_sync().await,
            Err(error) => Handle::ready(Err(error)),
        }
    }
}

impl<E: Supervisor> Supervisor for Hurried<E> {
    fn name(&self) -> Name {
        self.inner.name()
    }

    fn child(&self, label: &'static str) -> Self {
        Self { inner: self.inner.child(label), hurry: self.hurry.clone() }
    }

    fn with_attribute(self, key: &'static str, value: impl Display) -> Self {
        Self { inner: self.inner.with_attribute(key, value), hurry: self.hurry }
    }
}

impl<E: Spawner> Spawner for Hurried<E> {
    fn shared(self, blocking: bool) -> Self {
        Self { inner: self.inner.shared(blocking), hurry: self.hurry }
    }

    fn dedicated(self) -> Self {
        Self { inner: self.inner.dedicated(), hurry: self.hurry }
    }

    fn spawn<F, Fut, T>(self, f: F) -> Handle<T>
    where
        F: FnOnce(Self) -> Fut + Send + 'static,
        Fut: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        let hurry = self.hurry;
        self.inner.spawn(move |inner| f(Self { inner, hurry }))
    }

    async fn stop(self, value: i32, timeout: Option<Duration>) -> Result<(), Error> {
        self.inner.stop(value, timeout).await
    }

    fn stopped(&self) -> signal::Signal {
        self.inner.stopped()
    }
}

impl<E: Metrics> Metrics for Hurried<E> {
    fn register<N: Into<String>, H: Into<String>, M: Metric>(
        &self,
        name: N,
        help: H,
        metric: M,
    ) -> Registered<M> {
        self.inner.register(name, help, metric)
    }

    fn encode(&self) -> String {
        self.inner.encode()
    }
}

impl<E: Clock> Clock for Hurried<E> {
    fn current(&self) -> SystemTime {
        self.inner.current()
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send + 'static + use<E> {
        self.inner.sleep(duration)
    }

    fn sleep_until(
        &self,
        deadline: SystemTime,
    ) -> impl Future<Output = ()> + Send + 'static + use<E> {
        self.inner.sleep_until(deadline)
    }
}

impl<E: Clock> RateClock for Hurried<E> {
    type Instant = SystemTime;

    fn now(&self) -> SystemTime {
        self.current()
    }
}

impl<E: Clock> ReasonablyRealtime for Hurried<E> {}

impl<E: TryRng> TryRng for Hurried<E> {
    type Error = E::Error;

    fn try_next_u32(&mut self) -> Result<u32, E::Error> {
        self.inner.try_next_u32()
    }

    fn try_next_u64(&mut self) -> Result<u64, E::Error> {
        self.inner.try_next_u64()
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), E::Error> {
        self.inner.try_fill_bytes(bytes)
    }
}

impl<E: TryCryptoRng> TryCryptoRng for Hurried<E> {}

#[cfg(test)]
mod tests {
    use super::*;
    use commonware_runtime::{Runner as _, tokio};

    const PARTITION: &str = "votes";

    fn run<T>(folder: &Path, test: impl AsyncFnOnce(tokio::Context) -> T) -> T {
        let config = tokio::Config::new().with_storage_directory(folder).with_worker_threads(1);
        tokio::Runner::new(config).start(async |context| test(context).await)
    }

    async fn put<B: Blob>(blob: &B, at: u64, text: &str) {
        blob.write_at(at, text.as_bytes().to_vec(), WriteOptions::default()).await.unwrap();
    }

    async fn contents<B: Blob>(blob: &B, len: u64) -> String {
        let len = len.try_into().unwrap();
        let read = blob.read_at(0, len, ReadOptions::default()).await.unwrap();
        String::from_utf8(read.coalesce().as_ref().to_vec()).unwrap()
    }

    #[test]
    fn what_is_written_in_a_hurry_is_there_at_once_and_for_another_runtime() {
        let folder = tempfile::tempdir().unwrap();
        run(folder.path(), async |context| {
            let hurry = Hurry::over(folder.path().to_owned());
            let context = Hurried::new(context, hurry.clone());
            let (old, _) = context.open(PARTITION, b"old").await.unwrap();
            put(&old, 0, "slow words").await;
            old.sync().await.unwrap();
            drop(context.open(PARTITION, b"gone").await.unwrap());

            hurry.set(true);
            put(&old, 0, "fast").await;
            // The first new file has the runtime's header, the second one that was learnt.
            for name in [b"one", b"two"] {
                let (blob, len) = context.open(PARTITION, name).await.unwrap();
                assert_eq!(len, 0);
                put(&blob, 0, "abcdef").await;
                put(&blob, 2, "CD").await;
                blob.resize(5).await.unwrap();
                blob.sync().await.unwrap();
                blob.start_sync().await.await.unwrap();
                assert_eq!(contents(&blob, 5).await, "abCDe");
                let again = context.open(PARTITION, name).await;
                assert!(matches!(again, Err(Error::BlobAlreadyOpen(..))), "it is open");
            }
            put(&context.open(PARTITION, b"brief").await.unwrap().0, 0, "text").await;
            let changes = || hurry.0.as_ref().unwrap().changed().paths.len();
            let before = changes();
            context.remove(PARTITION, Some(b"brief")).await.unwrap();
            assert_eq!(changes(), before - 1);
            context.remove(PARTITION, Some(b"gone")).await.unwrap();
            let gone = context.remove(PARTITION, Some(b"gone")).await;
            assert!(matches!(gone, Err(Error::BlobMissing(..))));
            assert_eq!(contents(&old, 10).await, "fast words");
        });
        run(folder.path(), async |context| {
            let mut names = context.scan(PARTITION).await.unwrap();
            names.sort();
            assert_eq!(names, [b"old", b"one", b"two"]);
            for (name, expected) in [("old", "fast words"), ("one", "abCDe"), ("two", "abCDe")] {
                let (blob, len) = context.open(PARTITION, name.as_bytes()).await.unwrap();
                assert_eq!(contents(&blob, len).await, expected, "{name}");
            }
        });
    }

    #[test]
    fn the_first_sync_after_a_hurry_covers_every_file() {
        let folder = tempfile::tempdir().unwrap();
        run(folder.path(), async |context| {
            let hurry = Hurry::over(folder.path().to_owned());
            let context = Hurried::new(context, hurry.clone());
            let is_settled = || hurry.0.as_ref().unwrap().changed().paths.is_empty();
            let (one, _) = context.open(PARTITION, b"one").await.unwrap();
            let (other, _) = context.open(PARTITION, b"other").await.unwrap();
            put(&one, 0, "text").await;
            assert!(is_settled(), "the runtime itself knows of it");
            for sync in 0..3 {
                hurry.set(true);
                put(&one, 0, "next").await;
                one.sync().await.unwrap();
                assert!(!is_settled());
                hurry.set(false);
                put(&other, 0, "more").await;
                assert!(!is_settled());
                match sync {
                    0 => other.sync().await.unwrap(),
                    1 => other.start_sync().await.await.unwrap(),
                    _ => other.write_at(0, b"most".to_vec(), WriteOptions::SYNC).await.unwrap(),
                }
                assert!(is_settled());
            }
            // A sync that was put off may be one of a write that was not.
            put(&one, 0, "last").await;
            hurry.set(true);
            one.sync().await.unwrap();
            assert!(!is_settled());
        });
    }

    #[test]
    fn what_cannot_be_synced_is_an_error_of_every_sync() {
        let folder = tempfile::tempdir().unwrap();
        run(folder.path(), async |_| {
            let hurry = Hurry::over(folder.path().to_owned());
            let known = hurry.0.as_ref().unwrap();
            fs::write(folder.path().join("file"), "text").unwrap();
            known.has_changed(&folder.path().join("gone"));
            assert!(hurry.settle().await.is_ok(), "what is gone needs no sync");
            known.has_changed(&folder.path().join("file/below"));
            for _ in 0..2 {
                assert!(matches!(hurry.settle().await, Err(Error::Io(_))));
            }
        });
    }
}
