//! The commands of `reprieve`: a module for each command, and what they share (arguments, input, tables, HTML pages).

pub mod args;
pub mod command;
pub mod compare;
mod complete;
pub mod demo;
pub mod input;
pub mod node_diagram;
pub mod output;
pub mod plan;
pub mod problems;
mod progress;
pub mod render;
pub mod render_cycle;
pub mod run;
pub mod simulate;
pub mod test;
mod web_page;
