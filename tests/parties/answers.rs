//! The client's side of its connections: parties that shake hands and then answer late, wrongly or not at all.

use super::{certs, credentials, pins, spec};
use reference::spec::{Head, Rounding, TrainSpec};
use secure::control::{FromParty, Preamble, Purpose, Reply, receive, send};
use secure::engine::remote::{Hosts, health};
use secure::engine::worker::Answer;
use secure::engine::{Engine, EngineConfig};
use secure::id::PartyId;
use secure::net::tls::{Credentials, Peer, Pins, TlsStream};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What a party does on a connection after the handshake.
type Acts = fn(TlsStream);

/// Half of the time that a party may take no round.
const DEADLINE: Duration = Duration::from_millis(200);

/// How long the client waits for a connection, and for the first sign of life on it.
const PATIENCE: Duration = Duration::from_secs(2);

fn client(folder: &Path) -> Credentials {
    credentials(folder, "client", pins(folder))
}

/// The address of a party that accepts one connection.
fn party(folder: &Path, k: usize, acts: Acts) -> String {
    let own = credentials(folder, &format!("party{k}"), pins(folder));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || acts(own.accept(listener.accept().unwrap().0, Duration::from_secs(20)).unwrap()));
    address
}

/// Waits until the client has gone.
fn silent(mut stream: TlsStream) {
    while receive::<Purpose>(&mut stream, 1 << 16).is_ok() {}
}

/// Opens the session that it is asked for.
fn welcome(stream: &mut TlsStream) {
    receive::<Preamble>(stream, 1 << 16).unwrap();
    assert!(matches!(receive(stream, 1 << 16).unwrap(), Purpose::Open(_)));
    send(stream, &Reply::Welcome).unwrap();
}

fn done(stream: &mut TlsStream) {
    send(stream, &FromParty::Answer(Box::new(Ok(Answer::Done)))).unwrap();
}

/// Is ready, and then silent.
fn ready(mut stream: TlsStream) {
    welcome(&mut stream);
    done(&mut stream);
    silent(stream);
}

/// The client's session with a party 0 that acts so and two others that are ready.
fn session(folder: &Path, acts: Acts) -> Result<Engine, String> {
    let addresses = [party(folder, 0, acts), party(folder, 1, ready), party(folder, 2, ready)];
    let hosts = Hosts { addresses, credentials: client(folder), patience: PATIENCE };
    let spec = spec(Head::Softmax, Rounding::Nearest, 1);
    hosts.start(&EngineConfig { deadline: DEADLINE, ..EngineConfig::new(spec) }).map_err(|e| e.to_string())
}

/// Every 20 ms its rounds so far, for three times as long as a party may take none.
fn alive(stream: &mut TlsStream, rounds: impl Fn(u64) -> u64) {
    for k in 0..60 {
        if send(stream, &FromParty::Alive(rounds(k))).is_err() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_party_that_does_not_answer_is_named_with_what_it_did() {
    let folder = tempfile::tempdir().unwrap();
    certs(folder.path());
    let error = |acts| session(folder.path(), acts).err().expect("no session");
    let gone = error(|mut stream| {
        welcome(&mut stream);
        stream.finish();
    });
    assert_eq!(gone, "party 0 left without an answer: it ended the connection");
    let dumb = error(|mut stream| {
        welcome(&mut stream);
        silent(stream);
    });
    assert_eq!(dumb, "party 0 gave no sign of life for 2 s");
    let stuck = error(|mut stream| {
        welcome(&mut stream);
        alive(&mut stream, |_| 7);
    });
    assert!(stuck.starts_with("party 0 gave no answer and took no round for "), "{stuck}");
    let failed = error(|mut stream| {
        welcome(&mut stream);
        let why = secure::Error::misuse("as planted");
        send(&mut stream, &FromParty::Answer(Box::new(Err(why)))).unwrap();
        silent(stream);
    });
    assert_eq!(failed, "as planted");
}

#[test]
fn a_party_that_gets_on_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    certs(folder.path());
    let engine = session(folder.path(), |mut stream| {
        welcome(&mut stream);
        alive(&mut stream, |k| k);
        done(&mut stream);
        silent(stream);
    });
    assert!(engine.is_ok(), "{:?}", engine.err());
}

/// Whoever is asked how it is, or for a session, and says nothing, is waited for as long as the client has patience.
#[test]
fn a_party_that_says_nothing_after_the_handshake_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    certs(folder.path());
    let slow: Acts = |stream| {
        std::thread::sleep(Duration::from_secs(10));
        drop(stream);
    };
    let address = party(folder.path(), 0, slow);
    let error = health(&client(folder.path()), PartyId::P0, &address, DEADLINE).expect_err("no answer").to_string();
    assert_eq!(error, format!("party 0 cannot be reached at {address}: it does not answer"));
    let address = party(folder.path(), 0, slow);
    let addresses = [address.clone(), String::new(), String::new()];
    let hosts = Hosts { addresses, credentials: client(folder.path()), patience: DEADLINE };
    let config = EngineConfig::new(spec(Head::Softmax, Rounding::Nearest, 1));
    let error = hosts.start(&config).err().expect("no answer").to_string();
    assert_eq!(error, format!("party 0 cannot be reached at {address}: it does not answer"));
}

#[test]
fn nobody_is_dialled_for_what_cannot_be_and_a_certificate_pinned_to_another_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    certs(folder.path());
    let nowhere = || Hosts {
        addresses: [(); 3].map(|()| "127.0.0.1:1".to_owned()),
        credentials: client(folder.path()),
        patience: DEADLINE,
    };
    let bad = TrainSpec { epsilon: -1.0, ..spec(Head::Softmax, Rounding::Nearest, 1) };
    let error = nowhere().start(&EngineConfig::new(bad.clone())).err().expect("refused").to_string();
    assert_eq!(Some(error), bad.validate().err().map(|e| e.to_string()));
    // The name in the certificate is right, and the list of pins says that it is another's.
    let Pins { parties: [a, b, c], client } = pins(folder.path());
    let swapped = credentials(folder.path(), "client", Pins { parties: [b, a, c], client });
    let address = party(folder.path(), 0, silent);
    let error = health(&swapped, PartyId::P0, &address, Duration::from_secs(20)).expect_err("refused").to_string();
    assert!(error.ends_with("expected party 0, met the certificate of party 1"), "{error}");
}

/// The client's and party 0's end of one connection, set up in a second or not at all.
fn both_ends(folder: &Path) -> (TlsStream, TlsStream) {
    let (listener, second) = (TcpListener::bind("127.0.0.1:0").unwrap(), Duration::from_secs(1));
    let address = listener.local_addr().unwrap().to_string();
    let own = credentials(folder, "party0", pins(folder));
    let party = std::thread::spawn(move || own.accept(listener.accept().unwrap().0, second).unwrap());
    let client = client(folder).dial(Peer::Party(PartyId::P0), &address, second).unwrap();
    (client, party.join().unwrap())
}

/// What is not done here waits for ever: nobody has said how long.
#[test]
fn a_connection_carries_counts_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    certs(folder.path());
    let ends = || both_ends(folder.path());
    let (mut client, mut party) = ends();
    assert_eq!((client.peer(), party.peer()), (Peer::Party(PartyId::P0), Peer::Client));
    let written = client.written();
    let handshake = written.load(Ordering::Relaxed);
    client.write_all(&[7; 1000]).unwrap();
    client.flush().unwrap();
    assert!(handshake > 0 && written.load(Ordering::Relaxed) >= handshake + 1000);
    let mut got = [0; 1000];
    party.read_exact(&mut got).unwrap();
    assert_eq!(got, [7; 1000]);
    // The time for the handshake is no time for what follows it.
    let later = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(1200));
        client.write_all(&[8]).unwrap();
        client
    });
    party.read_exact(&mut got[..1]).unwrap();
    let mut client = later.join().unwrap();
    party.set_nonblocking(true).unwrap();
    assert_eq!(party.read(&mut got).unwrap_err().kind(), ErrorKind::WouldBlock);
    party.set_nonblocking(false).unwrap();
    let ended = |read: std::io::Result<usize>| read.map_or_else(|e| e.kind() == ErrorKind::UnexpectedEof, |n| n == 0);
    client.finish();
    assert!(ended(party.read(&mut got)));

    let (mut client, _party) = ends();
    let closer = client.closer().unwrap();
    std::thread::spawn(move || closer.stop_reading());
    assert!(ended(client.read(&mut got)));

    let (client, mut party) = ends();
    client.closer().unwrap().close();
    assert!(ended(party.read(&mut got)));
}
