//! The ways in: what stands behind the commands of `reprieve`.

pub mod args;
pub mod command;
pub mod compare;
mod complete;
pub mod demo;
pub mod html;
pub mod input;
pub mod node_diagram;
pub mod output;
pub mod plan;
pub mod policies;
mod progress;
pub mod render;
pub mod render_cycle;
pub mod report;
pub mod run;
pub mod simulate;
pub mod test;
mod web_page;
