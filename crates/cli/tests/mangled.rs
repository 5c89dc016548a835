//! Damaged files end with a decision or an error, never with a panic: a short, seeded run of the fuzz target.

mod ask;

use std::path::Path;

use ask::ask;

struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % limit.max(1) as u64) as usize
    }
}

/// Changes that keep the text close to a realistic mistake: lines swapped, dropped or doubled, values replaced, ends cut off.
fn mangle(text: &str, chance: &mut Chance) -> String {
    const VALUES: [&str; 14] = [
        "-1",
        "0",
        "9223372036854775807",
        "1e300",
        "\"\"",
        "null",
        "[]",
        "{}",
        "true",
        "a/b",
        "~",
        "*x",
        "&x",
        "99999999999999999999",
    ];
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..=chance.below(4) {
        let at = chance.below(lines.len());
        match chance.below(6) {
            0 => {
                lines.remove(at);
            }
            1 => lines.insert(at, lines[at].clone()),
            2 => {
                let other = chance.below(lines.len());
                lines.swap(at, other);
            }
            3 => {
                let colons: Vec<usize> = lines[at].match_indices(": ").map(|(colon, _)| colon + 2).collect();
                if let Some(&start) = colons.get(chance.below(colons.len())) {
                    let end = lines[at][start..].find([',', '}', ']']).map_or(lines[at].len(), |end| start + end);
                    lines[at].replace_range(start..end, VALUES[chance.below(VALUES.len())]);
                }
            }
            4 => {
                let mut cut = chance.below(lines[at].len() + 1);
                while !lines[at].is_char_boundary(cut) {
                    cut -= 1;
                }
                lines[at].truncate(cut);
            }
            _ => lines.truncate(at + 1),
        }
        if lines.is_empty() {
            break;
        }
    }
    lines.join("\n")
}

#[test]
fn mangled_files_never_panic() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the cases are there") {
        for file in std::fs::read_dir(entry.expect("a folder").path()).expect("a folder of cases") {
            files.push(file.expect("a file").path());
        }
    }
    files.sort();
    assert!(files.len() > 100, "the cases are there");
    let mut chance = Chance(7);
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a case is text");
        if text.len() > 20_000 {
            continue; // large ones are slow and no different
        }
        for _ in 0..12 {
            let mangled = mangle(&text, &mut chance);
            if let Err(panic) = std::panic::catch_unwind(|| ask(&mangled)) {
                panic!("{}: {panic:?}\n{mangled}", file.display());
            }
        }
    }
}
