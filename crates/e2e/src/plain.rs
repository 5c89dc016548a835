//! Plain requests to a port of this machine.

use std::io::{Read, Write};
use std::net::TcpStream;

/// What a port answers to a GET; it must be a success.
pub fn get(port: u16, path: &str) -> String {
    request(port, &format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n"))
}

/// What a port answers to a POST of JSON; it must be a success.
pub fn post(port: u16, path: &str, body: &str) -> String {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}"
    );
    request(port, &format!("{head}\r\n\r\n{body}"))
}

fn request(port: u16, text: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("somebody listens");
    stream.write_all(text.as_bytes()).expect("the request is taken");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer comes");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
    assert!(head.lines().next().is_some_and(|line| line.contains(" 200 ")), "{text}: {answer}");
    body.to_owned()
}
