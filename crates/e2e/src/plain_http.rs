//! Plain HTTP requests to a local port.

use std::io::{Read, Write};
use std::net::TcpStream;

/// The body of the response to a GET, which must have status 200.
pub fn get(port: u16, path: &str) -> String {
    request(port, &format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n"))
}

/// The body of the response to a POST of JSON, which must have status 200.
pub fn post(port: u16, path: &str, body: &str) -> String {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}"
    );
    request(port, &format!("{head}\r\n\r\n{body}"))
}

fn request(port: u16, text: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a server listens on the port");
    stream.write_all(text.as_bytes()).expect("the request is sent");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("a response arrives");
    let (head, body) = response.split_once("\r\n\r\n").expect("a response has a head");
    assert!(head.lines().next().is_some_and(|line| line.contains(" 200 ")), "{text}: {response}");
    body.to_owned()
}
