use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// How often a server is asked whether it is there, and how long it is waited for in between: twenty seconds, while it
/// takes some milliseconds.
const KNOCKS: usize = 1_000;
const PAUSE: Duration = Duration::from_millis(20);
/// A free port may be taken by somebody else before the server has it.
const ATTEMPTS: usize = 5;

/// Starts a server on a free port of this machine, and waits until it answers at the address that is told with it.
pub(crate) fn start_server(command: impl Fn(u16) -> Command) -> Result<(Child, String)> {
    for _ in 0..ATTEMPTS {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let address = format!("127.0.0.1:{port}");
        let mut command = command(port);
        let mut server = command
            .spawn()
            .with_context(|| format!("{command:?} cannot be started"))?;
        if answers(&mut server, &address)? {
            return Ok((server, address));
        }
    }
    bail!("no server could be started on a free port in {ATTEMPTS} attempts")
}

/// Whether it came up; not when another process has the port.
fn answers(server: &mut Child, address: &str) -> Result<bool> {
    for _ in 0..KNOCKS {
        if server.try_wait()?.is_some() {
            return Ok(false);
        }
        if TcpStream::connect(address).is_ok() {
            return Ok(true);
        }
        sleep(PAUSE);
    }
    server.kill()?;
    server.wait()?;
    bail!("the server does not answer at {address}")
}
