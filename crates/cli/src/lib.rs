//! The ways in: what stands behind the commands of `reprieve`.

pub mod asking;
pub mod cases;
pub mod command;
pub mod compare;
mod complete;
pub mod demo;
pub mod html;
pub mod input;
pub mod output;
pub mod picture;
pub mod plan;
mod progress;
pub mod render;
pub mod render_cycle;
pub mod report;
pub mod run;
pub mod simulate;
pub mod verdicts;
mod web;
