//! Threads that run queries, and the bridge from their async world to callers that block.
//!
//! The runtime is the database's own: a caller may be on a thread of another runtime, or on none. Callers wait by
//! parking their thread, which is allowed everywhere.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker, ready};
use std::thread::Thread;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::{FutureExt, StreamExt};
use mainstem_storage::error::sqlstate;
use mainstem_storage::transaction::Waiting;
use mainstem_storage::version::{Activity, Work};
use mainstem_storage::{Error, ErrorKind, Result};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinHandle};

use crate::error::{from_datafusion, from_panic};

/// Batches that may wait for a reader, per query.
const BATCHES_AHEAD: usize = 4;
/// Rows that are made before a query on few rows is handed to the query threads.
const ROWS_AHEAD: usize = 16_384;
/// Stack of a query thread: deep expressions are walked by recursion. Only touched pages cost memory.
const STACK_BYTES: usize = 32 << 20;
/// Steps of a thread after which it looks at timers: where all threads are busy nobody else sees that a statement has
/// run too long, and a step may evaluate expressions for thousands of rows.
const STEPS_BETWEEN_TIMERS: u32 = 4;

/// The query threads of a database.
#[derive(Debug)]
pub(crate) struct Runtime {
    threads: Option<tokio::runtime::Runtime>,
    activity: Arc<Activity>,
}

impl Runtime {
    /// Starts `threads` threads. What they do is noted in `activity`, so that merges yield to it.
    pub(crate) fn start(threads: usize, activity: Arc<Activity>) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("mainstem-query")
            .thread_stack_size(STACK_BYTES)
            .event_interval(STEPS_BETWEEN_TIMERS)
            .enable_all()
            .build()
            .map_err(|e| Error::io("start", "query threads", e))?;
        Ok(Self { threads: Some(runtime), activity })
    }

    fn get(&self) -> Result<&tokio::runtime::Runtime> {
        self.threads.as_ref().ok_or_else(|| Error::closed("the database is closed"))
    }

    /// Runs `future`, which does not wait for I/O, on the calling thread.
    pub(crate) fn block_on<F: Future>(&self, future: F) -> Result<F::Output> {
        let _context = self.get()?.enter();
        Ok(park_on(future))
    }

    /// Runs `work` on a thread that may block.
    pub(crate) fn spawn_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<JoinHandle<T>> {
        Ok(self.get()?.spawn_blocking(work))
    }

    /// Runs `work` on the query threads.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> Result<()> {
        self.get()?.spawn(work);
        Ok(())
    }

    /// Starts `plan` on the query threads.
    pub(crate) fn execute(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
        cancel: Cancel,
    ) -> Result<Batches> {
        let start = || execute_stream(plan, context).map_err(|e| from_datafusion(&e));
        let task = self.drive(start, (), cancel)?;
        Ok(Batches { ready: VecDeque::new(), task: Some(task), ended: false })
    }

    /// Runs `plan`, which reads few rows, on the calling thread: handing it to another one takes longer than running
    /// it. If it has many rows, the query threads run it on, and keep `keeps` as long; whether they do is told. Its
    /// errors come with the batches.
    pub(crate) fn execute_here(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
        mut cancel: Cancel,
        keeps: impl Send + 'static,
    ) -> Result<(Batches, bool)> {
        let goes_on = cancel.clone();
        let work = async {
            let mut batches = execute_stream(plan, context).map_err(|e| from_datafusion(&e))?;
            let (mut ready, mut rows) = (VecDeque::new(), 0);
            while let Some(batch) = batches.next().await {
                let batch = batch.map_err(|e| from_datafusion(&e))?;
                rows += batch.num_rows();
                if batch.num_rows() > 0 {
                    ready.push_back(Ok(batch));
                }
                if rows > ROWS_AHEAD {
                    return Ok((ready, Some(batches)));
                }
            }
            Ok((ready, None))
        };
        let outcome = self.block_on(async {
            tokio::select! {
                biased;
                error = cancel.cancelled() => Err(error),
                outcome = at_work(&self.activity, work) => outcome,
            }
        })?;
        let (ready, rest) = outcome.unwrap_or_else(|error| (VecDeque::from([Err(error)]), None));
        let task = rest.map(|rest| self.drive(|| Ok(rest), keeps, goes_on)).transpose()?;
        let is_unfinished = task.is_some();
        Ok((Batches { ready, task, ended: false }, is_unfinished))
    }

    /// Reads the batches that `start` gives, on the query threads; `keeps` lives as long.
    fn drive(
        &self,
        start: impl FnOnce() -> Result<SendableRecordBatchStream> + Send + 'static,
        keeps: impl Send + 'static,
        mut cancel: Cancel,
    ) -> Result<Driven> {
        let activity = self.activity.clone();
        let (sender, receiver) = mpsc::channel(BATCHES_AHEAD);
        let task = self.get()?.spawn(async move {
            let work = AssertUnwindSafe(drive(start, &activity, &sender)).catch_unwind();
            let end = tokio::select! {
                biased;
                error = cancel.cancelled() => Err(error),
                outcome = work => match outcome {
                    Ok(outcome) => outcome,
                    Err(panic) => Err(from_panic(panic.as_ref())),
                },
            };
            drop(keeps);
            // Nobody listens when the reader has gone.
            let _ = sender.send(end.map(|()| None)).await;
        });
        Ok(Driven { receiver, task: task.abort_handle() })
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if let Some(runtime) = self.threads.take() {
            // Waiting for threads is not allowed on a thread of an async runtime, where the database may be dropped.
            runtime.shutdown_background();
        }
    }
}

/// What `work` returns; merges yield to it meanwhile.
async fn at_work<F: Future>(activity: &Activity, work: F) -> F::Output {
    let _at_work = activity.begin(Work::Query);
    work.await
}

type Message = Result<Option<RecordBatch>>;

async fn drive(
    start: impl FnOnce() -> Result<SendableRecordBatchStream>,
    activity: &Activity,
    sender: &mpsc::Sender<Message>,
) -> Result<()> {
    let mut stream = start()?;
    // Not while the reader takes its time.
    while let Some(batch) = at_work(activity, stream.next()).await {
        let batch = batch.map_err(|e| from_datafusion(&e))?;
        if batch.num_rows() > 0 && sender.send(Ok(Some(batch))).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// Batches of a running query. Dropping it ends the query.
#[derive(Debug)]
pub(crate) struct Batches {
    /// Those that come first.
    ready: VecDeque<Result<RecordBatch>>,
    /// What makes the others.
    task: Option<Driven>,
    ended: bool,
}

/// A task on the query threads.
#[derive(Debug)]
struct Driven {
    receiver: mpsc::Receiver<Message>,
    task: AbortHandle,
}

impl Batches {
    /// Gives `batches` first, which came first.
    pub(crate) fn put_before(&mut self, batches: VecDeque<RecordBatch>) {
        if self.ended && !batches.is_empty() {
            (self.ended, self.task) = (false, None);
        }
        batches.into_iter().rev().for_each(|batch| self.ready.push_front(Ok(batch)));
    }

    /// The next batch, or a promise to wake the task when there is one.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let message = match (self.ready.pop_front(), &mut self.task) {
            (Some(batch), _) => Some(batch.map(Some)),
            (None, Some(driven)) => ready!(driven.receiver.poll_recv(context)),
            (None, None) => Some(Ok(None)),
        };
        self.ended = !matches!(message, Some(Ok(Some(_))));
        Poll::Ready(match message {
            Some(Ok(batch)) => batch.map(Ok),
            Some(Err(e)) => Some(Err(e)),
            None => Some(Err(Error::closed("the query ended because the database was closed"))),
        })
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        park_on(poll_fn(|context| self.poll(context)))
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        if let Some(driven) = &self.task {
            driven.task.abort();
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Asks `poll` until it is ready, or `timeout` is over.
pub(crate) fn park_within<T>(timeout: Duration, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let end = Instant::now() + timeout;
    loop {
        if let Poll::Ready(output) = poll(&mut context) {
            return Poll::Ready(output);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Poll::Pending;
        }
        std::thread::park_timeout(left);
    }
}

/// Waits for `future` by parking the thread.
fn park_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

fn timed_out(timeout: Duration) -> Error {
    Error::new(
        ErrorKind::Invalid,
        sqlstate::CANCELED,
        format!("the statement was canceled: it ran longer than statement_timeout, {timeout:?}"),
    )
}

fn canceled() -> Error {
    Error::new(ErrorKind::Invalid, sqlstate::CANCELED, "the statement was canceled on request")
}

/// Cancels what a connection runs at the moment.
#[derive(Clone, Debug)]
pub(crate) struct Interrupts {
    /// How many there were.
    count: Arc<watch::Sender<u64>>,
    /// Statements are canceled by those behind the first `since`; none: by those after their start.
    since: Option<u64>,
}

impl Default for Interrupts {
    fn default() -> Self {
        Self { count: Arc::new(watch::Sender::new(0)), since: None }
    }
}

impl Interrupts {
    /// Cancels the running statement and the results still being read; does nothing to later statements.
    pub(crate) fn interrupt(&self) {
        self.count.send_modify(|count| *count += 1);
    }

    /// How many interrupts there were.
    pub(crate) fn count(&self) -> u64 {
        *self.count.borrow()
    }

    /// Statements watched from now on are canceled by the interrupts behind the first `since`; none: by those after
    /// their start.
    pub(crate) fn count_from(&mut self, since: Option<u64>) {
        self.since = since;
    }

    /// What a statement that starts now, and may run for `timeout`, looks at.
    pub(crate) fn watch(&self, timeout: Option<Duration>) -> Cancel {
        let receiver = self.count.subscribe();
        let start = self.since.unwrap_or(*receiver.borrow());
        Cancel { receiver, start, deadline: timeout.map(|timeout| (Instant::now() + timeout, timeout)) }
    }
}

/// Whether one statement was canceled.
#[derive(Clone, Debug)]
pub(crate) struct Cancel {
    receiver: watch::Receiver<u64>,
    start: u64,
    /// When the statement has run too long, and how long that is.
    deadline: Option<(Instant, Duration)>,
}

impl Cancel {
    /// Fails once the statement was canceled.
    ///
    /// # Errors
    /// 57014.
    pub(crate) fn check(&self) -> Result<()> {
        if *self.receiver.borrow() > self.start {
            return Err(canceled());
        }
        match self.deadline {
            Some((deadline, timeout)) if Instant::now() >= deadline => Err(timed_out(timeout)),
            _ => Ok(()),
        }
    }

    /// How a transaction waits for memory during the statement.
    pub(crate) fn waiting(&self) -> Waiting {
        let cancel = self.clone();
        Waiting::While(Arc::new(move || cancel.check()))
    }

    /// Waits until the statement is canceled or has run too long, and says which; forever if it never is.
    async fn cancelled(&mut self) -> Error {
        let (start, deadline) = (self.start, self.deadline);
        let interrupted = async {
            if self.receiver.wait_for(|count| *count > start).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let late = async {
            match deadline {
                Some((deadline, timeout)) => {
                    tokio::time::sleep_until(deadline.into()).await;
                    timeout
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = interrupted => canceled(),
            timeout = late => timed_out(timeout),
        }
    }
}
