//! Three parties as three processes, over TLS, from outside: the results are those of the parties in one process,
//! nobody gets in who should not, and whatever ends one of them ends the session in bounded time with one line that
//! names it.

mod answers;
mod campaign;
#[cfg(target_os = "linux")]
mod emulated;
mod networks;
mod resume;
mod switch;
mod tampering;

use crate::common::{program, sample};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use reference::spec::{FixedSpec, Head, NetworkSpec, Rounding, SgdSpec, TrainSpec};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use secure::control::{Hello, Open, Preamble, Purpose, Reply, receive, send};
use secure::engine::remote::{Hosts, health};
use secure::engine::{Engine, EngineConfig};
use secure::host::hex;
use secure::id::PartyId;
use secure::net::tls::{Credentials, Peer, Pins, TlsStream, fingerprint_of_pem};
use secure::testing::parameters;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap()
}

fn certs(folder: &Path) {
    let made = program().arg("certs").arg(folder).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

fn pins(folder: &Path) -> Pins {
    let of = |name: &str| fingerprint_of_pem(&read(folder, &format!("{name}.pem"))).unwrap();
    Pins { parties: [of("party0"), of("party1"), of("party2")], client: of("client") }
}

/// What `name` shows, and whom it expects.
fn credentials(folder: &Path, name: &str, pins: Pins) -> Credentials {
    let own = |end: &str| read(folder, &format!("{name}.{end}"));
    Credentials::new(&read(folder, "authority.pem"), &own("pem"), &own("key"), pins).unwrap()
}

/// One running process and what it has logged.
struct Process {
    child: Child,
    log: Arc<Mutex<String>>,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts the program for a party.
type Program = Box<dyn Fn(usize) -> Command + Send + Sync>;

/// Three processes of the program on ports of their own.
struct Parties {
    /// The program as it is started for each party.
    program: Program,
    folder: tempfile::TempDir,
    processes: Vec<Process>,
    addresses: [String; 3],
}

impl Parties {
    fn start() -> Self {
        Self::prepared(|_, text| text)
    }

    /// Started with files that `edit` has changed: the text of party k's file without addresses.
    fn prepared(edit: impl Fn(usize, String) -> String) -> Self {
        Self::started_by(Box::new(|_| program()), edit)
    }

    /// The same with a program of each party's own.
    fn started_by(program: Program, edit: impl Fn(usize, String) -> String) -> Self {
        let folder = tempfile::tempdir().unwrap();
        certs(folder.path());
        for k in 0..3 {
            let name = format!("party{k}.toml");
            let text = read(folder.path(), &name);
            let (head, _) = text.split_once("[addresses]").expect("the file says where the others are");
            let head = head.replace("record = false", "record = true").replace("seeds = false", "seeds = true");
            let head = head.replace(&format!("127.0.0.1:700{k}"), "127.0.0.1:0");
            std::fs::write(folder.path().join(name), edit(k, head)).unwrap();
        }
        let mut parties = Parties { program, folder, processes: Vec::new(), addresses: Default::default() };
        for k in 0..3 {
            let (process, address) = parties.spawn(k);
            parties.processes.push(process);
            parties.addresses[k] = address;
        }
        parties
    }

    fn spawn(&self, k: usize) -> (Process, String) {
        let mut command = (self.program)(k);
        command
            .args(["party", "--until-input-ends", "--config"])
            .arg(self.folder.path().join(format!("party{k}.toml")));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (_, address) = line.trim_end().rsplit_once(" listens on ").expect("the party says where it listens");
        let log = Arc::<Mutex<String>>::default();
        let (kept, stderr) = (Arc::clone(&log), child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                kept.lock().unwrap().push_str(&format!("{line}\n"));
            }
        });
        (Process { child, log }, address.to_owned())
    }

    fn restart(&mut self, k: usize) {
        let (process, address) = self.spawn(k);
        self.processes[k] = process;
        self.addresses[k] = address;
    }

    fn pins(&self) -> Pins {
        pins(self.folder.path())
    }

    fn credentials(&self, name: &str) -> Credentials {
        credentials(self.folder.path(), name, self.pins())
    }

    fn hosts(&self) -> Hosts {
        Hosts { addresses: self.addresses.clone(), credentials: self.credentials("client"), patience: PATIENCE }
    }

    /// The line of party k's log that contains `what`, once it is there.
    fn logged(&self, k: usize, what: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let log = self.processes[k].log.lock().unwrap().clone();
            if let Some(line) = log.lines().find(|l| l.contains(what)) {
                return line.to_owned();
            }
            assert!(Instant::now() < until, "party {k} never logs {what:?}:\n{log}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn dial(&self, credentials: &Credentials, k: usize) -> std::io::Result<TlsStream> {
        let stream = credentials.dial(Peer::Party(PartyId::ALL[k]), &self.addresses[k], PATIENCE)?;
        stream.wait(Some(PATIENCE), Some(PATIENCE))?;
        Ok(stream)
    }

    /// What party k answers to a purpose.
    fn ask(&self, credentials: &Credentials, k: usize, purpose: &Purpose) -> std::io::Result<(Reply, TlsStream)> {
        let mut stream = self.dial(credentials, k)?;
        send(&mut stream, &Preamble::own())?;
        send(&mut stream, purpose)?;
        Ok((receive(&mut stream, 1 << 16)?, stream))
    }

    fn signal(&self, k: usize, signal: &str) {
        let pid = self.processes[k].child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }
}

fn spec(head: Head, rounding: Rounding, layers: usize) -> TrainSpec {
    TrainSpec {
        network: NetworkSpec::dense(13, 7, 4, layers),
        head,
        epsilon: 0.1,
        rounding,
        fixed: FixedSpec::default(),
        sgd: SgdSpec { batch: 9, ..SgdSpec::default() },
    }
}

fn units(n: usize) -> Vec<i64> {
    (0..n as i64).map(|i| i * 7919 % 9001 - 4500).collect()
}

fn loaded(mut engine: Engine) -> Engine {
    let network = engine.spec().network.clone();
    engine.load(&parameters(&network, units)).unwrap();
    let labels: Vec<usize> = (0..40).map(|i| i * 7 % network.classes()).collect();
    engine.load_data(&units(40 * network.inputs()), &labels).unwrap();
    engine
}

fn batches(steps: u32) -> Vec<Vec<u32>> {
    (0..steps).map(|k| (0..9).map(|i| (i * 3 + k) % 40).collect()).collect()
}

#[test]
fn processes_compute_the_same_bits_as_threads_with_the_same_bytes() {
    let parties = Parties::start();
    for (layers, head) in [1, 2, 3].into_iter().flat_map(|l| Head::ALL.map(|h| (l, h))) {
        for rounding in Rounding::ALL {
            let config =
                EngineConfig { seed: Some(7), record: true, ..EngineConfig::new(spec(head, rounding, layers)) };
            let run = |engine: Engine| {
                let mut engine = loaded(engine);
                let spent = engine.train(&batches(2)).unwrap();
                let step = engine.step(&units(9 * 13), &[0, 1, 2, 3, 0, 1, 2, 3, 0]).unwrap();
                let right = engine.count_correct(&units(1100 * 13), &[1; 1100]).unwrap();
                let classes = engine.predict(&units(5 * 13)).unwrap();
                let all = engine.spent().unwrap();
                let shares =
                    engine.shares().unwrap().map(|layers| layers.into_iter().map(|l| l.weights).collect::<Vec<_>>());
                (spent, step.probes, step.rounding, right, classes, shares, all)
            };
            let threads = run(Engine::start(config.clone()).unwrap());
            let processes = run(parties.hosts().start(&config).unwrap());
            assert!(threads == processes, "{head}, {rounding}, {layers} layers");
            // By the wire: the engine's messages and bytes, a header for each, and the set-up.
            let all = processes.6;
            let last = |k: usize| {
                let log = parties.processes[k].log.lock().unwrap().clone();
                log.lines().rfind(|l| l.contains("event=close")).map(str::to_owned)
            };
            let until = Instant::now() + PATIENCE;
            loop {
                let lines: Vec<_> = (0..3).filter_map(last).collect();
                let sum = |field: &str| -> u64 {
                    let of = |l: &String| l.split(field).nth(1)?.split(' ').next()?.parse::<u64>().ok();
                    lines.iter().filter_map(of).sum()
                };
                let counted = (sum(" messages="), sum(" bytes="));
                if counted == (all.messages + 3, all.bytes + 48 * (all.messages + 3) + 3 * 16) {
                    break;
                }
                assert!(Instant::now() < until, "by the wire {counted:?}, by the engine {all:?}");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

/// A client's certificate that has expired, from an authority of its own.
fn expired(folder: &Path) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let key = KeyPair::generate().unwrap();
    std::fs::write(folder.join("authority.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["client.difftest".to_owned()]).unwrap();
    (params.not_before, params.not_after) = (rcgen::date_time_ymd(2020, 1, 1), rcgen::date_time_ymd(2021, 1, 1));
    std::fs::write(folder.join("client.pem"), params.signed_by(&key, &issuer).unwrap().pem()).unwrap();
    std::fs::write(folder.join("client.key"), key.serialize_pem()).unwrap();
}

/// A connection of TLS from somebody who shows no certificate.
fn without_certificate(folder: &Path, address: &str) -> std::io::Result<usize> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(read(folder, "authority.pem").as_bytes()).unwrap()).unwrap();
    let config = rustls::ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let session = rustls::ClientConnection::new(config.into(), "party0.difftest".try_into().unwrap()).unwrap();
    let mut stream = rustls::StreamOwned::new(session, TcpStream::connect(address)?);
    stream.write_all(&[0; 100])?;
    stream.read(&mut [0; 100])
}

#[test]
fn nobody_gets_in_who_should_not_and_nobody_waits_for_them() {
    let parties = Parties::start();
    let refused = |error: Option<String>, what: &str, logged: &str| {
        let error = error.expect("refused");
        assert!(error.contains(what), "{error}");
        let line = parties.logged(0, logged);
        assert!(!line.contains("BEGIN") && line.contains("event=refused"), "{line}");
    };
    let health_as =
        |credentials: &Credentials| parties.ask(credentials, 0, &Purpose::Health).err().map(|e| e.to_string());

    // Two who stay silent, from first to last, one of them after half a handshake; one who sends noise.
    let silent = TcpStream::connect(&parties.addresses[0]).unwrap();
    let mut half = TcpStream::connect(&parties.addresses[0]).unwrap();
    half.write_all(&[22, 3, 1, 2, 0]).unwrap();
    let mut noise = TcpStream::connect(&parties.addresses[0]).unwrap();
    noise.write_all(&[0x55; 4000]).unwrap();
    let _ = noise.read(&mut [0; 100]);
    parties.logged(0, "corrupt message");
    // Noise from one who is known; no certificate at all.
    let mut known = parties.dial(&parties.credentials("client"), 0).unwrap();
    known.write_all(&[0x55; 4000]).unwrap();
    parties.logged(0, "a frame of 1431655765 bytes");
    assert!(without_certificate(parties.folder.path(), &parties.addresses[0]).is_err());
    parties.logged(0, "sent no certificates");

    // Certificates of another authority; expired; right ones, but pinned to nobody here.
    let other = tempfile::tempdir().unwrap();
    certs(other.path());
    std::fs::write(other.path().join("foreign.pem"), read(other.path(), "authority.pem")).unwrap();
    std::fs::copy(parties.folder.path().join("authority.pem"), other.path().join("authority.pem")).unwrap();
    refused(health_as(&credentials(other.path(), "client", parties.pins())), "", "invalid peer certificate");
    let old = tempfile::tempdir().unwrap();
    expired(old.path());
    // The old authority is trusted by one more process, which must refuse for the date alone.
    let text = read(parties.folder.path(), "party0.toml");
    let theirs = format!("{}", old.path().join("authority.pem").display());
    let text = text.replace("authority = \"authority.pem\"", &format!("authority = {theirs:?}"));
    std::fs::write(parties.folder.path().join("party9.toml"), text).unwrap();
    let (trusting, address) = parties.spawn(9);
    std::fs::copy(parties.folder.path().join("authority.pem"), old.path().join("authority.pem")).unwrap();
    let late = credentials(old.path(), "client", parties.pins());
    let stream = late.dial(Peer::Party(PartyId::P0), &address, PATIENCE);
    assert!(stream.and_then(|mut s| s.read(&mut [0; 1])).is_err(), "an expired certificate");
    let until = Instant::now() + PATIENCE;
    while !trusting.log.lock().unwrap().contains("certificate expired") {
        assert!(Instant::now() < until, "{}", trusting.log.lock().unwrap());
        std::thread::sleep(Duration::from_millis(20));
    }

    // A party's certificate opens no session; the client's takes part in none; a party does not answer to another's
    // name.
    let config = EngineConfig::new(spec(Head::Softmax, Rounding::Nearest, 1));
    let open = |session: u8| Open {
        session: [session; 16],
        spec: config.spec.clone(),
        seed: None,
        deadline: config.deadline,
        addresses: parties.addresses.clone(),
    };
    let (client, party1) = (parties.credentials("client"), parties.credentials("party1"));
    let (reply, _) = parties.ask(&party1, 0, &Purpose::Open(Box::new(open(1)))).unwrap();
    assert!(matches!(reply, Reply::Refused(why) if why.contains("only the client")));
    let hello =
        |session: u8, from, digest| Purpose::Link(Hello { session: [session; 16], from, to: PartyId::P0, digest });
    let (reply, _) = parties.ask(&client, 0, &hello(1, PartyId::P1, [0; 32])).unwrap();
    assert!(matches!(reply, Reply::Refused(why) if why.contains("only parties")));
    let (reply, _) = parties.ask(&party1, 0, &hello(1, PartyId::P2, [0; 32])).unwrap();
    assert!(matches!(reply, Reply::Refused(why) if why.contains("party 1 calls itself party 2")));
    let swapped = Hosts {
        addresses: [parties.addresses[1].clone(), parties.addresses[0].clone(), parties.addresses[2].clone()],
        ..parties.hosts()
    };
    let error = swapped.start(&config).err().unwrap().to_string();
    assert!(error.starts_with("party 0 cannot be reached at"), "{error}");

    // No such session; another specification; a party twice.
    let (reply, _) = parties.ask(&party1, 0, &hello(2, PartyId::P1, [0; 32])).unwrap();
    assert!(matches!(reply, Reply::Refused(why) if why.contains("no client has opened")));
    let (reply, _open) = parties.ask(&client, 0, &Purpose::Open(Box::new(open(3)))).unwrap();
    assert!(matches!(reply, Reply::Welcome));
    let mut another = open(3);
    another.spec.sgd.learning_rate *= 2.0;
    let (reply, _) = parties.ask(&party1, 0, &hello(3, PartyId::P1, another.digest())).unwrap();
    assert!(matches!(reply, Reply::Refused(why) if why.contains("different specifications")));
    let (reply, _first) = parties.ask(&party1, 0, &hello(3, PartyId::P1, open(3).digest())).unwrap();
    assert!(matches!(reply, Reply::Welcome));
    let (reply, _) = parties.ask(&party1, 0, &hello(3, PartyId::P1, open(3).digest())).unwrap();
    assert!(matches!(reply, Reply::Refused(why) if why.contains("takes part in this session already")));

    // Another version of this program.
    let mut stream = parties.dial(&client, 0).unwrap();
    send(&mut stream, &(*b"difftest", 99u32, "9.9.9")).unwrap();
    let reply: Reply = receive(&mut stream, 1 << 16).unwrap();
    assert!(matches!(reply, Reply::Refused(why) if why.contains("runs version 9.9.9 (format 99)")));

    // All that time the parties serve whom they know.
    let mut engine = loaded(parties.hosts().start(&config).unwrap());
    engine.train(&batches(2)).unwrap();
    let status = health(&client, PartyId::P0, &parties.addresses[0], PATIENCE).unwrap();
    assert!(status.sessions >= 1 && status.party == PartyId::P0, "{status:?}");
    parties.logged(0, "it does not answer");
    drop(silent);
}

#[test]
fn a_seed_and_records_are_given_only_where_they_are_allowed() {
    let mut parties = Parties::start();
    let name = parties.folder.path().join("party1.toml");
    let text = std::fs::read_to_string(&name).unwrap();
    std::fs::write(&name, text.replace("record = true", "record = false").replace("seeds = true", "seeds = false"))
        .unwrap();
    parties.restart(1);
    let config = EngineConfig::new(spec(Head::Softmax, Rounding::Nearest, 1));
    let seeded = EngineConfig { seed: Some(1), ..config.clone() };
    let error = parties.hosts().start(&seeded).err().unwrap().to_string();
    assert!(error.starts_with("party 1 refuses the session: this party takes no seed"), "{error}");
    let mut engine = loaded(parties.hosts().start(&EngineConfig { record: true, ..config }).unwrap());
    let error = engine.step(&units(9 * 13), &[0; 9]).err().unwrap().to_string();
    assert!(error.contains("party 1 does not record"), "{error}");
}

/// Parties keep their own states; one that was killed comes back and the run goes on from there, to the same bits.
#[test]
fn a_killed_party_is_started_again_and_the_run_goes_on() {
    let mut parties = Parties::prepared(|k, text| format!("states = \"states{k}\"\n{text}"));
    let config = EngineConfig {
        deadline: Duration::from_secs(2),
        ..EngineConfig::new(spec(Head::Softmax, Rounding::Nearest, 2))
    };
    let mut whole = loaded(Engine::start(config.clone()).unwrap());
    whole.train(&batches(30)).unwrap();

    let mut engine = loaded(parties.hosts().start(&config).unwrap());
    for (step, batch) in (1..).zip(&batches(14)) {
        engine.train(std::slice::from_ref(batch)).unwrap();
        if step % 5 == 0 {
            engine.keep("a-run", step).unwrap();
        }
    }
    parties.processes[1].child.kill().unwrap();
    let error = engine.train(&batches(1)).unwrap_err().to_string();
    assert!(error.contains("party 1"), "{error}");
    drop(engine);

    parties.restart(1);
    let mut engine = loaded(parties.hosts().start(&config).unwrap());
    assert_eq!(engine.resume("another-run").unwrap(), None);
    assert_eq!(engine.resume("a-run").unwrap(), Some(10));
    engine.train(&batches(30)[10..]).unwrap();
    assert!(engine.parameters().unwrap() == whole.parameters().unwrap());
    for k in 0..3 {
        let names = std::fs::read_dir(parties.folder.path().join(format!("states{k}"))).unwrap();
        let names: Vec<_> = names.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        assert!(names.iter().all(|n| n.contains(&format!("party{k}")) && n.ends_with(".state")), "{names:?}");
    }
}

/// Two clients at once, whose jobs the same three processes take in turns, one of them over IPv6.
#[test]
fn sessions_at_the_same_time_do_not_meet() {
    let config = EngineConfig { seed: Some(3), ..EngineConfig::new(spec(Head::ReluProb, Rounding::Probabilistic, 2)) };
    let other = EngineConfig { seed: Some(4), ..EngineConfig::new(spec(Head::Softmax, Rounding::Nearest, 1)) };
    let alone = |config: &EngineConfig| {
        let mut engine = loaded(Engine::start(config.clone()).unwrap());
        engine.train(&batches(8)).unwrap();
        engine.parameters().unwrap()
    };
    let expected = [alone(&config), alone(&other)];
    for localhost in ["127.0.0.1", "[::1]"] {
        if let Err(e) = TcpListener::bind(format!("{localhost}:0")) {
            println!("skipped: this system has no {localhost}: {e}");
            continue;
        }
        let parties = Parties::prepared(|_, text| text.replace("127.0.0.1:0", &format!("{localhost}:0")));
        assert!(parties.addresses.iter().all(|address| address.starts_with(localhost)), "{:?}", parties.addresses);
        let mut first = loaded(parties.hosts().start(&config).unwrap());
        let mut second = loaded(parties.hosts().start(&other).unwrap());
        std::thread::scope(|scope| {
            scope.spawn(|| batches(8).iter().for_each(|b| drop(first.train(std::slice::from_ref(b)).unwrap())));
            scope.spawn(|| batches(8).iter().for_each(|b| drop(second.train(std::slice::from_ref(b)).unwrap())));
        });
        assert!([first.parameters().unwrap(), second.parameters().unwrap()] == expected, "{localhost}");
        let status = parties.ask(&parties.credentials("client"), 1, &Purpose::Health).unwrap().0;
        assert!(matches!(status, Reply::Status(s) if s.sessions == 2), "two sessions");
    }
}

/// What a supervisor runs: one line and exit code 0 while the party lives, one line and another code when it does not.
#[test]
fn a_supervisor_can_ask_a_party_how_it_is() {
    let mut parties = Parties::start();
    let file = parties.folder.path().join("party2.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let port = parties.addresses[2].rsplit_once(':').unwrap().1;
    std::fs::write(&file, text.replace("127.0.0.1:0", &format!("127.0.0.1:{port}"))).unwrap();
    let health = || program().args(["party", "--health", "--config"]).arg(&file).output().unwrap();
    let answer = health();
    let line = String::from_utf8(answer.stdout).unwrap();
    assert_eq!((answer.status.code(), line.lines().count()), (Some(0), 1), "{line}");
    assert!(line.starts_with("party=2 up_seconds=") && line.contains("sessions=0 ended=0 failed=0"), "{line}");
    parties.processes[2].child.kill().unwrap();
    parties.processes[2].child.wait().unwrap();
    let answer = health();
    let line = String::from_utf8(answer.stderr).unwrap();
    assert_eq!((answer.status.code(), line.lines().count()), (Some(2), 1), "{line}");
    assert!(line.contains("party 2 cannot be reached at 127.0.0.1:"), "{line}");
}

#[test]
fn commands_that_have_nothing_to_do_with_parties_elsewhere_say_so() {
    for command in [&["faults"][..], &["paper", "table"], &["fixtures", "verify"], &["certs", "none"], &["man"]] {
        let output = program().args(command).args(["--parties", "tls"]).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), error.lines().count()), (Some(2), 1), "{command:?}: {error}");
        assert!(error.contains("leave --parties out"), "{command:?}: {error}");
    }
}

#[test]
fn the_comparison_runs_through_three_processes_and_leaves_none() {
    let temporary = tempfile::tempdir().unwrap();
    let mut command = program();
    command.args(["--parties", "tls", "--steps", "2", "--batch", "16", "--layers", "2", "--data", sample()]);
    let output = command.env("TMPDIR", temporary.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("PASS  bit-exact"), "{text}");
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0, "no key is left");
}

#[test]
fn a_wrong_file_is_refused_with_its_line_and_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    certs(folder.path());
    let refusal = |name: &str, from: &str, to: &str| {
        let text = read(folder.path(), name);
        assert!(text.contains(from), "{text}");
        let wrong = folder.path().join("wrong.toml");
        std::fs::write(&wrong, text.replace(from, to)).unwrap();
        let mut command = program();
        match name {
            "hosts.toml" => command.args(["--steps", "1", "--parties"]).arg(&wrong),
            _ => command.args(["party", "--config"]).arg(&wrong),
        };
        let output = command.output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), error.lines().count()), (Some(2), 1), "{error}");
        assert!(!error.contains("BEGIN"), "{error}");
        error
    };
    let is = |error: String, what: &str| assert!(error.contains(what), "{error}");
    is(refusal("party0.toml", "listen =", "lisen ="), "line 2: unknown field `lisen`");
    is(refusal("party0.toml", "party = 0", "party = 3"), "it is 0, 1 or 2");
    is(refusal("party0.toml", "party0.key", "party1.key"), "do not belong together");
    is(refusal("party0.toml", "party0.key", "party0.pem"), "holds no private key");
    is(refusal("party0.toml", "party0.key", "nothing.key"), "check the path");
    let pin = hex(&pins(folder.path()).parties[2]);
    is(refusal("party0.toml", &pin, &pin[2..]), "pins.party2 is not the SHA-256");
    is(refusal("party0.toml", &pin, &hex(&pins(folder.path()).parties[1])), "pinned twice");
    is(refusal("hosts.toml", "127.0.0.1:7001", "127.0.0.1"), "addresses.party1");
    is(refusal("hosts.toml", "party1 = \"127", "# party1 = \"127"), "must name party0, party1 and party2");
    is(refusal("hosts.toml", "127.0.0.1:7001", "127.0.0.1:1"), "party 0 cannot be reached at 127.0.0.1:7000");
}
