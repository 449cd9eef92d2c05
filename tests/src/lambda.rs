use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::server::start_server;
use crate::{binary, python};

/// How soon a function that ended is started again.
const PAUSE: Duration = Duration::from_millis(20);
/// When an invocation is given up: a function that was killed never answers.
const TIMEOUT_SECONDS: &str = "20";

/// Lambda on this machine (cargo-lambda's runtime): functions are invoked over HTTP, and their real binaries take it
/// from there. Stopped when it is dropped, with its functions.
#[derive(Debug)]
pub struct LambdaServer {
    server: Child,
    address: String,
    functions: Vec<Function>,
    _folder: TempDir,
}

impl LambdaServer {
    /// Starts one on a free port, without functions.
    pub fn start() -> Result<Self> {
        // It wants to be in a Cargo package, which is never built.
        let folder = tempfile::tempdir()?;
        std::fs::create_dir(folder.path().join("src"))?;
        std::fs::write(folder.path().join("src/main.rs"), "fn main() {}\n")?;
        let mut manifest = "[package]\nname = \"functions\"\nversion = \"0.0.0\"\n[workspace]\n".to_owned();
        for name in ["ingest", "catalog"] {
            manifest.push_str(&format!("[[bin]]\nname = \"{name}\"\npath = \"src/main.rs\"\n"));
        }
        std::fs::write(folder.path().join("Cargo.toml"), manifest)?;
        let program = python("lambda")?.with_file_name("cargo-lambda");
        let (server, address) = start_server(|port| {
            let mut command = Command::new(&program);
            command
                .args(["lambda", "watch", "--only-lambda-apis", "--ignore-changes"])
                .args([
                    "--invoke-address",
                    "127.0.0.1",
                    "--invoke-port",
                    &port.to_string(),
                ])
                .args(["--timeout", TIMEOUT_SECONDS])
                .current_dir(folder.path())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            command
        })?;
        Ok(Self {
            server,
            address,
            functions: Vec::new(),
            _folder: folder,
        })
    }

    /// What functions are below, such as `…/ingest/invocations`.
    pub fn functions(&self) -> String {
        format!("http://{}/2015-03-31/functions", self.address)
    }

    /// `host:port`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Starts a function of this name from its binary, and again whenever it ends, as Lambda does; what it logs goes to
    /// `log`.
    pub fn start_function(
        &mut self,
        name: &str,
        package: &str,
        variables: &[(&str, &str)],
        log: &Path,
    ) -> Result<()> {
        let log = std::fs::File::options().create(true).append(true).open(log)?;
        let own = [
            (
                "AWS_LAMBDA_RUNTIME_API",
                format!("http://{}/.rt/{name}", self.address),
            ),
            ("AWS_LAMBDA_FUNCTION_NAME", name.to_owned()),
            ("AWS_LAMBDA_FUNCTION_VERSION", "1".to_owned()),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "1024".to_owned()),
        ];
        let mut command = Command::new(binary(package)?);
        command
            .envs(variables.iter().copied())
            .envs(own)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let process = Arc::new(Mutex::new(command.spawn()?));
        let is_wanted = Arc::new(AtomicBool::new(true));
        let (of_thread, wanted) = (process.clone(), is_wanted.clone());
        let keeper = std::thread::spawn(move || {
            while wanted.load(Ordering::SeqCst) {
                let mut process = of_thread.lock().unwrap_or_else(PoisonError::into_inner);
                let has_ended = matches!(process.try_wait(), Ok(Some(_)));
                if has_ended && let Ok(again) = command.spawn() {
                    *process = again;
                }
                drop(process);
                sleep(PAUSE);
            }
            let mut process = of_thread.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = process.kill();
            let _ = process.wait();
        });
        self.functions.push(Function {
            name: name.to_owned(),
            process,
            is_wanted,
            keeper: Some(keeper),
        });
        Ok(())
    }

    /// Kills a function, in whatever it does.
    pub fn kill_function(&self, name: &str) -> Result<()> {
        let function = self.functions.iter().find(|function| function.name == name);
        let function = function.with_context(|| format!("there is no function {name}"))?;
        let mut process = function.process.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(process.kill()?)
    }
}

/// A process, and the thread that starts it again.
#[derive(Debug)]
struct Function {
    name: String,
    process: Arc<Mutex<Child>>,
    is_wanted: Arc<AtomicBool>,
    keeper: Option<JoinHandle<()>>,
}

impl Drop for Function {
    fn drop(&mut self) {
        self.is_wanted.store(false, Ordering::SeqCst);
        let _ = self.keeper.take().map(JoinHandle::join);
    }
}

impl Drop for LambdaServer {
    fn drop(&mut self) {
        self.functions.clear();
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
