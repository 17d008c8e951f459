//! Other engines, each a process of its own that lives as long as the experiment, driven by JSON lines
//! (`bench/peers/`).
//!
//! Comes in: the folder of the scripts, the engines wanted, and what they load; statements, where the script has no
//! cases of its own. Goes out: answers, and samples, a round at a time, so that theirs and ours take turns. A peer that
//! is missing, fails or answers wrongly is left out from then on, and a note says why.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::duel::{Duel, Sample};

/// An engine to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// SQLite in memory.
    SqliteMemory,
    /// SQLite in a file, with WAL and an fsync a commit.
    SqliteDisk,
    /// DuckDB in memory.
    DuckDbMemory,
    /// DuckDB on a file.
    DuckDbDisk,
}

impl Engine {
    /// As the scripts name it.
    fn argument(self) -> &'static str {
        match self {
            Self::SqliteMemory => "sqlite-memory",
            Self::SqliteDisk => "sqlite-disk",
            Self::DuckDbMemory => "duckdb-memory",
            Self::DuckDbDisk => "duckdb-disk",
        }
    }

    /// What stands behind name and version.
    fn place(self) -> &'static str {
        match self {
            Self::SqliteMemory | Self::DuckDbMemory => "in memory",
            Self::SqliteDisk => "on disk, fsync",
            Self::DuckDbDisk => "on disk",
        }
    }
}

/// What the peers load.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Load<'a> {
    /// Rows of the table, or whatever the script counts by it.
    pub rows: u64,
    /// Where files of theirs go.
    pub directory: &'a Path,
    /// Statements that make and fill the tables; none where the script knows them itself.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub script: &'a [String],
}

/// A statement that a peer is told, and then runs as a case.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Told<'a> {
    /// Its name as a case.
    pub case: &'a str,
    /// Its text: `$1` stands for the value, and `@` for a number that is new in each run.
    pub sql: &'a str,
    /// How it is handed over.
    pub call: Call,
    /// The values of a round; none when it has no parameter.
    pub values: Option<Values>,
}

/// How a statement is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Call {
    /// Prepared once, run with values.
    Prepared,
    /// Its text with values, each time.
    OneShot,
    /// A text with literals in the places of `$1`.
    Text,
    /// The same, whose rows come as Arrow batches.
    Arrow,
}

/// Values of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Values {
    /// Below this number, uniformly random.
    Below(u64),
    /// This number.
    Always(u64),
    /// From this number on, each once.
    From(u64),
}

/// What a run of a statement gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Answer {
    /// Rows of the result; of a writing statement, those it wrote.
    pub rows: u64,
    /// The sum of the whole numbers in them; true is 1.
    pub sum: i64,
}

#[derive(Serialize)]
#[serde(tag = "do", rename_all = "lowercase")]
enum Request<'a> {
    Load(&'a Load<'a>),
    Tell { statement: &'a Told<'a>, values: &'a [Option<i64>] },
    Run { case: &'a str, seconds: f64 },
}

#[derive(Deserialize)]
struct Loaded {
    engine: String,
}

#[derive(Deserialize)]
struct Answered {
    answers: Vec<Answer>,
}

#[derive(Deserialize)]
struct Ran {
    rows: u64,
    seconds: f64,
    p99_us: f64,
    worst_ms: f64,
    wrong: Option<String>,
}

#[derive(Deserialize)]
struct Failed {
    error: String,
}

struct Peer {
    engine: Engine,
    /// With its version and place, once it is loaded.
    name: String,
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    fn start(python: &str, script: &Path, engine: Engine) -> Result<Self, String> {
        let mut process = Command::new(python)
            .arg("-B")
            .arg(script)
            .arg(engine.argument())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| e.to_string())?;
        match (process.stdin.take(), process.stdout.take()) {
            (Some(requests), Some(answers)) => {
                let name = engine.argument().to_string();
                Ok(Self { engine, name, process, requests, answers: BufReader::new(answers) })
            }
            _ => Err("the process has no pipes".into()),
        }
    }

    fn send(&mut self, request: &Request<'_>) -> Result<(), String> {
        let mut line = serde_json::to_string(request).map_err(|e| e.to_string())?;
        line.push('\n');
        let asked = self.requests.write_all(line.as_bytes()).and_then(|()| self.requests.flush());
        asked.map_err(|e| match e.kind() {
            std::io::ErrorKind::BrokenPipe => "the process ended".to_owned(),
            _ => e.to_string(),
        })
    }

    fn receive<T: for<'a> Deserialize<'a>>(&mut self) -> Result<T, String> {
        let mut line = String::new();
        let bytes = self.answers.read_line(&mut line).map_err(|e| e.to_string())?;
        if bytes == 0 {
            return Err("the process ended".into());
        }
        if let Ok(failed) = serde_json::from_str::<Failed>(&line) {
            return Err(failed.error);
        }
        serde_json::from_str(&line).map_err(|e| format!("{e} in {line}"))
    }

    fn tell(&mut self, statement: &Told<'_>, values: &[Option<i64>]) -> Result<Vec<Answer>, String> {
        self.send(&Request::Tell { statement, values })?;
        let Answered { answers } = self.receive()?;
        match answers.len() == values.len() {
            true => Ok(answers),
            false => Err(format!("{} answers to \"{}\" instead of {}", answers.len(), statement.case, values.len())),
        }
    }

    fn run(&mut self, case: &str, time: Duration) -> Result<Sample, String> {
        self.send(&Request::Run { case, seconds: time.as_secs_f64() })?;
        let ran: Ran = self.receive()?;
        match ran.wrong {
            Some(what) => Err(format!("its answer to \"{case}\" is wrong: {what}")),
            None => {
                Ok(Sample { rate: ran.rows as f64 / ran.seconds.max(1e-9), p99_us: ran.p99_us, worst_ms: ran.worst_ms })
            }
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It is not needed any more, whatever becomes of it.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The peers of an experiment that are there.
#[derive(Default)]
pub struct Peers {
    peers: Vec<Peer>,
    notes: Vec<String>,
}

impl Peers {
    /// Nobody.
    #[must_use]
    pub fn none() -> Self {
        let notes = vec!["run without peers: their columns are empty".into()];
        Self { peers: vec![], notes }
    }

    /// Installs what the scripts in `folder` need, if it is not there yet; starts `script` for each engine, and lets
    /// all of them load at once.
    #[must_use]
    pub fn start(folder: &Path, script: &str, engines: &[Engine], load: &Load<'_>) -> Self {
        let mut all = Self::default();
        let python = match install(folder) {
            Ok(python) => python,
            Err(why) => {
                all.notes.push(format!("no peers, their columns are empty: {why}"));
                return all;
            }
        };
        for &engine in engines {
            let started = Peer::start(&python, &folder.join(script), engine)
                .and_then(|mut peer| peer.send(&Request::Load(load)).map(|()| peer));
            match started {
                Ok(peer) => all.peers.push(peer),
                Err(why) => all.notes.push(format!("no figures of {}: {why}", engine.argument())),
            }
        }
        all.retain(|peer| {
            let loaded: Loaded = peer.receive()?;
            peer.name = format!("{} {}", loaded.engine, peer.engine.place());
            Ok(())
        });
        all
    }

    /// Keeps the peers with which `work` succeeds.
    fn retain(&mut self, mut work: impl FnMut(&mut Peer) -> Result<(), String>) {
        let notes = &mut self.notes;
        self.peers.retain_mut(|peer| match work(peer) {
            Ok(()) => true,
            Err(why) => {
                notes.push(format!("no further figures of {}: {why}", peer.name));
                false
            }
        });
    }

    /// Tells all peers `statement`, whose case they can run from then on; what each answers to `values`.
    pub fn tell(&mut self, statement: &Told<'_>, values: &[Option<i64>]) -> Vec<(String, Vec<Answer>)> {
        let mut all = Vec::new();
        self.retain(|peer| {
            all.push((peer.name.clone(), peer.tell(statement, values)?));
            Ok(())
        });
        all
    }

    /// A round of `case` for each of `engines` that is there, in their order, into `duel`.
    pub fn round(&mut self, case: &str, time: Duration, engines: &[Engine], duel: &mut Duel) {
        for &engine in engines {
            self.retain(|peer| {
                if peer.engine == engine {
                    duel.other(&peer.name.clone(), peer.run(case, time)?);
                }
                Ok(())
            });
        }
    }

    /// Why some figures are missing.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// The interpreter that has the peers' packages.
fn install(folder: &Path) -> Result<String, String> {
    let script = folder.join("install.py");
    if !script.exists() {
        return Err(format!("{} is not there", script.display()));
    }
    let output = Command::new("python3")
        .arg("-B")
        .arg(&script)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!("python3: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().last() {
        Some(python) if output.status.success() => Ok(python.trim().to_string()),
        _ => Err(format!("{} failed", script.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_what_the_scripts_read() {
        let text = |request: &Request<'_>| serde_json::to_string(request).unwrap();
        assert_eq!(
            text(&Request::Run { case: "select", seconds: 0.5 }),
            r#"{"do":"run","case":"select","seconds":0.5}"#
        );
        let load = Load { rows: 3, directory: Path::new("d"), script: &[] };
        assert_eq!(text(&Request::Load(&load)), r#"{"do":"load","rows":3,"directory":"d"}"#);
        let load = Load { script: &["CREATE".to_owned()], ..load };
        assert_eq!(text(&Request::Load(&load)), r#"{"do":"load","rows":3,"directory":"d","script":["CREATE"]}"#);
        let statement = Told { case: "c", sql: "SELECT $1", call: Call::OneShot, values: Some(Values::Below(9)) };
        assert_eq!(
            text(&Request::Tell { statement: &statement, values: &[Some(1), None] }),
            [
                r#"{"do":"tell","statement":{"case":"c","sql":"SELECT $1","call":"one-shot","#,
                r#""values":{"below":9}},"values":[1,null]}"#
            ]
            .concat()
        );
    }

    #[test]
    fn what_is_missing_is_told() {
        let nowhere = Path::new("no such folder");
        let mut peers = Peers::start(
            nowhere,
            "hybrid.py",
            &[Engine::SqliteMemory],
            &Load { rows: 1, directory: nowhere, script: &[] },
        );
        assert!(peers.notes().concat().contains("their columns are empty"), "{:?}", peers.notes());
        let mut duel = Duel::default();
        peers.round("select", Duration::ZERO, &[Engine::SqliteMemory], &mut duel);
        assert!(duel.yardsticks(|sample| sample.rate).is_empty());
    }

    /// A shell that answers in the place of a peer.
    #[cfg(unix)]
    fn shell(answers: &str) -> Peers {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("peer.sh");
        std::fs::write(&script, answers).unwrap();
        let mut process =
            Command::new("sh").args([&script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (requests, answers) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut peer = Peer {
            engine: Engine::SqliteMemory,
            name: "shell".into(),
            process,
            requests,
            answers: BufReader::new(answers),
        };
        // The script has been read once it answers.
        let ready: Loaded = peer.receive().unwrap();
        assert_eq!(ready.engine, "ready");
        Peers { peers: vec![peer], notes: vec![] }
    }

    #[cfg(unix)]
    #[test]
    fn a_peer_that_fails_is_left_out_and_named() {
        let ran = |wrong: &str| {
            format!(r#"{{"operations":2,"rows":20,"seconds":2.0,"p50_us":1,"p99_us":3,"worst_ms":4,"wrong":{wrong}}}"#)
        };
        let good = ran("null");
        for (bad, why) in [
            (ran("\"12 rows\""), "wrong: 12 rows"),
            (r#"{"error":"no space"}"#.to_string(), "no space"),
            ("nonsense".to_string(), "nonsense"),
            (String::new(), "the process ended"),
        ] {
            let last = if bad.is_empty() { "exit".to_string() } else { format!("read x; echo '{bad}'; read x") };
            let mut peers = shell(&format!("echo '{{\"engine\":\"ready\"}}'\nread x; echo '{good}'\n{last}\n"));
            let mut duel = Duel::default();
            for _ in 0..3 {
                peers.round("select", Duration::ZERO, &[Engine::SqliteMemory], &mut duel);
            }
            assert_eq!(duel.yardsticks(|sample| sample.rate), [("shell".to_string(), 10.0)]);
            assert_eq!(peers.notes().len(), 1, "{:?}", peers.notes());
            assert!(peers.notes()[0].contains(why), "{why} in {:?}", peers.notes());
        }
    }

    #[cfg(unix)]
    #[test]
    fn answers_are_those_that_were_asked_for() {
        let mut peers = shell(
            "echo '{\"engine\":\"ready\"}'\nread x; echo '{\"answers\":[{\"rows\":1,\"sum\":7}]}'\n\
             read x; echo '{\"answers\":[]}'; read x\n",
        );
        let statement = Told { case: "c", sql: "SELECT 7", call: Call::Text, values: None };
        assert_eq!(peers.tell(&statement, &[None]), [("shell".to_owned(), vec![Answer { rows: 1, sum: 7 }])]);
        assert!(peers.tell(&statement, &[None]).is_empty());
        assert!(peers.notes().concat().contains("0 answers to \"c\" instead of 1"), "{:?}", peers.notes());
    }
}
