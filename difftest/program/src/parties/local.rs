//! Three parties on this machine: fresh certificates in a folder that is gone as soon as they have read them, and three
//! processes of this program on loopback, which end when this one does, however it ends: each watches the pipe that is
//! its standard input.

use super::certificates::issue;
use super::files::{HostsFile, Place, write_all};
use crate::error::{Error, PartiesError};
use secure::engine::remote::Hosts;
use secure::id::PartyId;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Three running processes. Dropping it ends them.
pub struct LocalParties {
    children: Vec<Child>,
    /// Where the client finds them.
    pub hosts: Hosts,
}

impl LocalParties {
    /// Starts them and waits until they listen. Party i keeps states of runs in `party<i>` of the folder `states`, if
    /// there is one.
    ///
    /// # Errors
    /// A process that does not start or does not listen.
    pub fn start(states: Option<&Path>) -> Result<Self, Error> {
        let folder = tempfile::Builder::new().prefix("difftest-parties-").tempdir();
        let folder = folder.map_err(PartiesError::System)?;
        let issuance = issue(1).map_err(PartiesError::from)?;
        let anywhere = PartyId::ALL.map(|_| "127.0.0.1:0".to_owned());
        // The parties' files are elsewhere, and a relative path in them would begin there.
        let states = states.map(std::path::absolute).transpose().map_err(PartiesError::System)?;
        write_all(folder.path(), &issuance, &anywhere, Place::Here(states.as_deref()))?;
        let program = std::env::current_exe().map_err(PartiesError::System)?;
        let hosts = HostsFile::read_local(&folder.path().join("hosts.toml"))?;
        let mut parties = LocalParties { children: Vec::new(), hosts };
        for id in PartyId::ALL {
            let file = folder.path().join(format!("party{id}.toml"));
            let mut command = Command::new(&program);
            command.args(["party", "--until-input-ends", "--quiet", "--config"]).arg(file);
            // Ctrl-C is for the client, which ends its step; the parties end with it.
            #[cfg(unix)]
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
            let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
            parties.children.push(child.map_err(|cause| PartiesError::Process { party: id, cause })?);
        }
        for id in PartyId::ALL {
            let out = parties.children[id.index()].stdout.take();
            let mut line = String::new();
            // The line comes at once, or the process ends and with it the pipe.
            let read = out.map(|out| BufReader::new(out).read_line(&mut line));
            let address = line.trim_end().rsplit_once(" listens on ").map(|(_, address)| address.to_owned());
            match (read, address) {
                (Some(Ok(_)), Some(address)) => parties.hosts.addresses[id.index()] = address,
                _ => return Err(PartiesError::Deaf(id).into()),
            }
        }
        // Everybody has read what concerns him: no key stays on the disk.
        folder.close().map_err(PartiesError::System)?;
        Ok(parties)
    }
}

impl LocalParties {
    /// Their process ids, in order.
    pub fn processes(&self) -> [u32; 3] {
        std::array::from_fn(|i| self.children[i].id())
    }
}

impl Drop for LocalParties {
    fn drop(&mut self) {
        // Their input ends and they with it; who does not is killed.
        self.children.iter_mut().for_each(|child| drop(child.stdin.take()));
        let until = Instant::now() + Duration::from_secs(2);
        for child in &mut self.children {
            while Instant::now() < until && matches!(child.try_wait(), Ok(None)) {
                std::thread::sleep(Duration::from_millis(5));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
