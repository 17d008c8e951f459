//! Threads that run queries, and the bridge from their async world to callers that block.
//!
//! The runtime is the database's own: a caller may be on a thread of another runtime, or on none. Callers wait by
//! parking their thread, which is allowed everywhere.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
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
/// Rows that may wait for a reader where it runs the query itself.
const ROWS_AHEAD: usize = 16_384;
/// Stack of a query thread: deep expressions are walked by recursion. Only touched pages cost memory.
const STACK_BYTES: usize = 32 << 20;

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
        mut cancel: Cancel,
    ) -> Result<Batches> {
        let activity = self.activity.clone();
        let (sender, receiver) = mpsc::channel(BATCHES_AHEAD);
        let task = self.get()?.spawn(async move {
            let work = AssertUnwindSafe(drive(plan, context, &activity, &sender)).catch_unwind();
            let end = tokio::select! {
                biased;
                error = cancel.cancelled() => Err(error),
                outcome = work => match outcome {
                    Ok(outcome) => outcome,
                    Err(panic) => Err(from_panic(panic.as_ref())),
                },
            };
            // Nobody listens when the reader has gone.
            let _ = sender.send(end.map(|()| None)).await;
        });
        Ok(Batches { rows: Source::Task { receiver, task: task.abort_handle() }, ended: false })
    }

    /// Runs `plan`, which reads few rows, on the calling thread: handing it to another one takes longer than running
    /// it. If it has many rows, the reader runs it on. Its errors come with the batches.
    pub(crate) fn execute_here(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
        mut cancel: Cancel,
    ) -> Result<Batches> {
        let runtime = self.get()?.handle().clone();
        let waiting = cancel.clone();
        let work = async {
            let batches = execute_stream(plan, context).map_err(|e| from_datafusion(&e))?;
            let mut rest = Rest { batches, runtime, activity: self.activity.clone(), cancel: waiting, keeps: None };
            let (mut ready, mut rows) = (VecDeque::new(), 0);
            while let Some(batch) = rest.batches.next().await {
                let batch = batch.map_err(|e| from_datafusion(&e))?;
                rows += batch.num_rows();
                if batch.num_rows() > 0 {
                    ready.push_back(Ok(batch));
                }
                if rows > ROWS_AHEAD {
                    return Ok((ready, Some(Box::new(rest))));
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
        Ok(Batches { rows: Source::Here { ready, rest }, ended: false })
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
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    activity: &Activity,
    sender: &mpsc::Sender<Message>,
) -> Result<()> {
    let mut stream = execute_stream(plan, context).map_err(|e| from_datafusion(&e))?;
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
    rows: Source,
    ended: bool,
}

/// Where batches come from.
#[derive(Debug)]
enum Source {
    /// A task on the query threads.
    Task { receiver: mpsc::Receiver<Message>, task: AbortHandle },
    /// They are there, but for those that the reader makes.
    Here { ready: VecDeque<Result<RecordBatch>>, rest: Option<Box<Rest>> },
}

/// What is left of a query that the reader runs on its own thread.
struct Rest {
    batches: SendableRecordBatchStream,
    runtime: tokio::runtime::Handle,
    activity: Arc<Activity>,
    cancel: Cancel,
    /// What has to live as long as it runs.
    keeps: Option<Box<dyn Any + Send>>,
}

impl fmt::Debug for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rest").finish_non_exhaustive()
    }
}

impl Rest {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        let _context = self.runtime.enter();
        let _at_work = self.activity.begin(Work::Query);
        loop {
            if let Err(error) = self.cancel.check() {
                return Poll::Ready(Some(Err(error)));
            }
            match self.batches.poll_next_unpin(context) {
                Poll::Ready(Some(Ok(batch))) if batch.num_rows() == 0 => {}
                polled => return polled.map_err(|e| from_datafusion(&e)),
            }
        }
    }
}

impl Batches {
    /// Keeps `what` as long as the query runs; false if it has ended, and `what` is let go of.
    pub(crate) fn keep(&mut self, what: impl Any + Send) -> bool {
        match &mut self.rows {
            Source::Here { rest: Some(rest), .. } => {
                rest.keeps = Some(Box::new(what));
                true
            }
            Source::Here { .. } | Source::Task { .. } => false,
        }
    }

    /// The next batch, or a promise to wake the task when there is one.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let receiver = match &mut self.rows {
            Source::Task { receiver, .. } => receiver,
            Source::Here { ready, rest } => {
                let next = match (ready.pop_front(), rest) {
                    (None, Some(rest)) => ready!(rest.poll(context)),
                    (next, _) => next,
                };
                self.ended = !matches!(next, Some(Ok(_)));
                return Poll::Ready(next);
            }
        };
        let Poll::Ready(message) = receiver.poll_recv(context) else { return Poll::Pending };
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
        if let Source::Task { task, .. } = &self.rows {
            task.abort();
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
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
